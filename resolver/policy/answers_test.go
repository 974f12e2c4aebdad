package policy

import (
	"net/netip"
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

func TestRebinding(t *testing.T) {
	private := prefixes("10.0.0.0/8", "192.168.0.0/16", "127.0.0.0/8", "fd00::/8")
	allowed := []wire.Name{wire.MustName("home.example")}
	v6 := func(text string) []byte { return netip.MustParseAddr(text).AsSlice() }
	hint := func(addr ...byte) []byte { return append([]byte{0, 1, 0, 0, 4, 0, byte(len(addr))}, addr...) }
	for _, c := range []struct {
		name  string
		owner string
		t     wire.Type
		rdata [][]byte
		left  int
	}{
		{"public", "www.example", wire.TypeA, [][]byte{{192, 0, 2, 1}}, 1},
		{"private", "www.example", wire.TypeA, [][]byte{{10, 0, 0, 1}, {192, 0, 2, 1}}, 1},
		{"only private", "www.example", wire.TypeA, [][]byte{{10, 0, 0, 1}}, 0},
		{"allowed", "nas.home.example", wire.TypeA, [][]byte{{10, 0, 0, 1}}, 1},
		{"unique local", "www.example", wire.TypeAAAA, [][]byte{v6("fd00::1"), v6("2001:db8::1")}, 1},
		{"mapped", "www.example", wire.TypeAAAA, [][]byte{v6("::ffff:192.168.1.1")}, 0},
		{"NAT64", "www.example", wire.TypeAAAA, [][]byte{v6("64:ff9b::10.1.2.3"), v6("64:ff9b::192.0.2.1")}, 1},
		{"service hint", "www.example", wire.TypeHTTPS, [][]byte{hint(10, 0, 0, 1), hint(192, 0, 2, 1)}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner := wire.MustName(c.owner)
			sig := make([]byte, 30)
			sig[1] = byte(c.t) // Type Covered
			content := &entry.Content{Kind: entry.KindAnswer, QName: owner, QType: c.t, Status: wire.Secure, Answer: []wire.RRset{
				{Owner: owner, Type: c.t, Class: wire.ClassIN, TTL: 60, RDATA: c.rdata, Sigs: [][]byte{sig}},
			}}
			e, err := entry.Pack(nil, content, 5)
			if err != nil {
				t.Fatal(err)
			}
			rule := newRebinding(private, allowed)
			if !rule.special {
				t.Error("these prefixes are all special-purpose")
			}
			if !rule.Concerns(e) {
				if c.left != len(c.rdata) {
					t.Fatal("the rule does not look")
				}
				return
			}
			o := rule.Examine(content, 5)
			left := 0
			if len(content.Answer) > 0 {
				left = len(content.Answer[0].RDATA)
			}
			want := Pass
			switch {
			case c.left == 0:
				want = Fail
			case c.left != len(c.rdata):
				want = Changed
			}
			if left != c.left || o.Action != want {
				t.Errorf("%d left, %+v; want %d", left, o, c.left)
			}
			if o.Action == Changed && content.Status != wire.Insecure {
				t.Error("still secure")
			}
		})
	}
	if newRebinding(prefixes("192.0.2.0/24"), nil).special {
		t.Error("192.0.2.0/24 is not marked in entries")
	}
}

func TestAliasBlock(t *testing.T) {
	name, target := wire.MustName("www.example"), wire.MustName("X.Tracker.example")
	c := &entry.Content{Kind: entry.KindAnswer, QName: name, QType: wire.TypeA, Answer: []wire.RRset{
		{Owner: name, Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{[]byte(target)}},
		{Owner: target, Type: wire.TypeA, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{{192, 0, 2, 1}}},
	}}
	e, err := entry.Pack(nil, c, 5)
	if err != nil {
		t.Fatal(err)
	}
	rules := NewAnswerRules(&Config{BlockLists: []List{{Names: nameSet(t, "tracker.example"), EDE: wire.EDEBlocked}}})
	if len(rules) != 1 || !rules[0].Concerns(e) {
		t.Fatal("the rule does not look")
	}
	if o := rules[0].Examine(c, 5); o.Action != Answer || o.Entry.RCODE() != wire.RCODENXDomain {
		t.Errorf("got %+v", o)
	}
}

package policy

import (
	"net/netip"
	"strings"
	"testing"

	"bonsai/wire"
)

func nameSet(t *testing.T, names ...string) *NameSet {
	t.Helper()
	b := NewNameSetBuilder()
	if _, err := b.ReadList(strings.NewReader(strings.Join(names, "\n"))); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

func TestBlock(t *testing.T) {
	order := NewOrder(&Config{
		Allow:      prefixes("127.0.0.0/8"),
		AllowLists: []*NameSet{nameSet(t, "good.ads.example")},
		BlockLists: []List{
			{Label: "ads", Names: nameSet(t, "ads.example"), Action: ListNXDomain, EDE: wire.EDEBlocked},
			{Label: "nodata", Names: nameSet(t, "nodata.example"), Action: ListNoData, EDE: wire.EDEFiltered},
			{Label: "court", Names: nameSet(t, "court.example"), Action: ListRefuse, EDE: wire.EDECensored},
			{Label: "wall", Names: nameSet(t, "wall.example"), Action: ListAddress, EDE: wire.EDEBlocked,
				Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.80")}},
		},
	})
	for _, c := range []struct {
		name    string
		qtype   wire.Type
		action  Action
		rcode   wire.RCODE
		ede     wire.EDECode
		answers int
	}{
		{"x.ads.example", wire.TypeA, Answer, wire.RCODENXDomain, wire.EDEBlocked, 0},
		{"good.ads.example", wire.TypeA, Pass, 0, wire.NoEDE, 0},
		{"nodata.example", wire.TypeA, Answer, wire.RCODENoError, wire.EDEFiltered, 0},
		{"court.example", wire.TypeA, Fail, wire.RCODERefused, wire.EDECensored, 0},
		{"wall.example", wire.TypeA, Answer, wire.RCODENoError, wire.EDEBlocked, 1},
		{"wall.example", wire.TypeAAAA, Answer, wire.RCODENoError, wire.EDEBlocked, 0},
		{"example", wire.TypeA, Pass, 0, wire.NoEDE, 0},
	} {
		t.Run(c.name+" "+c.qtype.String(), func(t *testing.T) {
			o := order.Judge(&Request{Query: query(t, c.name, c.qtype, wire.ClassIN, true), Client: netip.MustParseAddr("127.0.0.1"), Now: 9})
			if o.Action != c.action {
				t.Fatalf("got %+v", o)
			}
			if o.Action != Answer {
				if o.RCODE != c.rcode || o.EDE != c.ede {
					t.Errorf("got %+v", o)
				}
				return
			}
			content, err := o.Entry.Unpack(9)
			if err != nil {
				t.Fatal(err)
			}
			if content.RCODE != c.rcode || len(content.Answer) != c.answers || len(content.EDE) != 1 || content.EDE[0].Code != c.ede {
				t.Errorf("got %+v", content)
			}
		})
	}
}

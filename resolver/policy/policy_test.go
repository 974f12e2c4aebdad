package policy

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"bonsai/cache/entry"
	"bonsai/wire"
)

func query(t *testing.T, name string, qtype wire.Type, class wire.Class, rd bool) *wire.Query {
	t.Helper()
	flags := uint16(0)
	if rd {
		flags = wire.FlagRD
	}
	pkt := wire.AppendQuery(nil, 7, flags, []byte(wire.MustName(name)), qtype, 0, nil)
	binary.BigEndian.PutUint16(pkt[len(pkt)-2:], uint16(class))
	q := new(wire.Query)
	if v := q.Parse(pkt); v != wire.QueryOK {
		t.Fatalf("query %s: verdict %d", name, v)
	}
	return q
}

var entryOptions = &entry.Options{}

func prefixes(list ...string) (out []netip.Prefix) {
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func testOrder() Order {
	return NewOrder(&Config{
		Allow:      prefixes("127.0.0.0/8", "::1/128", "10.0.0.0/8"),
		Refuse:     prefixes("10.66.0.0/16"),
		AllowSnoop: prefixes("127.0.0.2/32"),
		Version:    "bonsai test",
		SpecialUse: true,
	})
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		client string
		q      *wire.Query
		action Action
		rcode  wire.RCODE
		ede    wire.EDECode
	}{
		{"allowed", "127.0.0.1", query(t, "example.com", wire.TypeA, wire.ClassIN, true), Pass, 0, wire.NoEDE},
		{"stranger", "192.0.2.1", query(t, "example.com", wire.TypeA, wire.ClassIN, true), Fail, wire.RCODERefused, wire.EDEProhibited},
		{"refused inside allowed", "10.66.1.1", query(t, "example.com", wire.TypeA, wire.ClassIN, true), Fail, wire.RCODERefused, wire.EDEProhibited},
		{"IPv6 loopback", "::1", query(t, "example.com", wire.TypeA, wire.ClassIN, true), Pass, 0, wire.NoEDE},
		{"RD=0", "127.0.0.1", query(t, "example.com", wire.TypeA, wire.ClassIN, false), Fail, wire.RCODERefused, wire.EDENotAuthoritative},
		{"RD=0 from who may", "127.0.0.2", query(t, "example.com", wire.TypeA, wire.ClassIN, false), Cached, 0, wire.NoEDE},
		{"transfer", "127.0.0.1", query(t, "example.com", wire.TypeAXFR, wire.ClassIN, true), Fail, wire.RCODERefused, wire.EDENotSupported},
		{"NXNAME", "127.0.0.1", query(t, "example.com", wire.TypeNXNAME, wire.ClassIN, true), Fail, wire.RCODEFormErr, wire.EDEInvalidQueryType},
		{"OPT as QTYPE", "127.0.0.1", query(t, "example.com", wire.TypeOPT, wire.ClassIN, true), Fail, wire.RCODEFormErr, wire.EDEInvalidQueryType},
		{"ANY", "127.0.0.1", query(t, "example.com", wire.TypeANY, wire.ClassIN, true), Pass, 0, wire.NoEDE},
		{"Hesiod", "127.0.0.1", query(t, "example.com", wire.TypeA, wire.ClassHS, true), Fail, wire.RCODERefused, wire.EDENotSupported},
		{"version.bind", "127.0.0.1", query(t, "version.bind", wire.TypeTXT, wire.ClassCH, true), Text, 0, wire.NoEDE},
		{"id.server without an ID", "127.0.0.1", query(t, "id.server", wire.TypeTXT, wire.ClassCH, true), Fail, wire.RCODERefused, wire.EDEProhibited},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOrder().Judge(&Request{Query: c.q, Client: netip.MustParseAddr(c.client)})
			if o.Action != c.action || o.RCODE != c.rcode || o.EDE != c.ede {
				t.Errorf("got %+v, want action %d, %v, EDE %d", o, c.action, c.rcode, c.ede)
			}
		})
	}
}

func TestSpecialUse(t *testing.T) {
	for _, c := range []struct {
		name   string
		qtype  wire.Type
		local  bool
		rcode  wire.RCODE
		answer string // RDATA in presentation format, "" for none
	}{
		{"localhost.", wire.TypeA, true, wire.RCODENoError, "127.0.0.1"},
		{"a.localhost.", wire.TypeAAAA, true, wire.RCODENoError, "::1"},
		{"localhost.", wire.TypeMX, true, wire.RCODENoError, ""},
		{"localhost.example.", wire.TypeA, false, 0, ""},
		{"x.invalid.", wire.TypeA, true, wire.RCODENXDomain, ""},
		{"test.", wire.TypeA, true, wire.RCODENXDomain, ""},
		{"x.onion.", wire.TypeA, true, wire.RCODENXDomain, ""},
		{"printer.local.", wire.TypeA, true, wire.RCODENXDomain, ""},
		{"1.0.0.127.in-addr.arpa.", wire.TypePTR, true, wire.RCODENXDomain, ""},
		{"10.in-addr.arpa.", wire.TypeSOA, true, wire.RCODENoError, "10.in-addr.arpa. nobody.invalid. 1 3600 1200 604800 10800"},
		{"10.in-addr.arpa.", wire.TypeA, true, wire.RCODENoError, ""},
		{"10.in-addr.arpa.", wire.TypeDS, false, 0, ""},
		{"8.in-addr.arpa.", wire.TypePTR, false, 0, ""},
		{"1.64.100.in-addr.arpa.", wire.TypePTR, true, wire.RCODENXDomain, ""},
		{"1.127.100.in-addr.arpa.", wire.TypePTR, true, wire.RCODENXDomain, ""},
		{"1.128.100.in-addr.arpa.", wire.TypePTR, false, 0, ""},
		{"_dns.resolver.arpa.", wire.TypeSVCB, true, wire.RCODENoError, ""},
		{"resolver.arpa.", wire.TypeA, true, wire.RCODENoError, ""},
		{"home.arpa.", wire.TypeNS, true, wire.RCODENoError, "home.arpa."},
	} {
		t.Run(c.name+c.qtype.String(), func(t *testing.T) {
			q := query(t, c.name, c.qtype, wire.ClassIN, true)
			o := testOrder().Judge(&Request{Query: q, Client: netip.MustParseAddr("127.0.0.1"), Now: 1000})
			if (o.Action == Answer) != c.local {
				t.Fatalf("action %d, want local %v", o.Action, c.local)
			}
			if !c.local {
				return
			}
			var b wire.Builder
			b.Begin(nil, q, 1232, 0)
			o.Entry.AppendTo(&b, 1000, entryOptions)
			m := new(dns.Msg)
			if err := m.Unpack(b.Finish(q, 0, o.Entry.RCODE(), 1232, nil)); err != nil {
				t.Fatal(err)
			}
			if m.Rcode != int(c.rcode) {
				t.Errorf("RCODE %d, want %v", m.Rcode, c.rcode)
			}
			got := ""
			if len(m.Answer) > 0 {
				got = m.Answer[0].String()[len(m.Answer[0].Header().String()):]
			} else if len(m.Ns) != 1 || m.Ns[0].Header().Rrtype != dns.TypeSOA {
				t.Errorf("negative response without SOA: %v", m)
			}
			if got != c.answer {
				t.Errorf("answer %q, want %q", got, c.answer)
			}
		})
	}
}

// Every rule's name is one that decisions are counted by.
func TestRulesHaveNames(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`Rule: +"([a-z0-9-]*)"|fail\("([a-z0-9-]*)"`)
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(source), -1) {
			name := m[1] + m[2]
			if found[name] = true; RuleIndex(name) == len(Rules) {
				t.Errorf("%s: the rule %q is not in Rules", file, name)
			}
		}
	}
	if len(found) != len(Rules) {
		t.Errorf("%d rules in the source, %d in Rules", len(found), len(Rules))
	}
}

package policy

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// answered returns what an order answers from a rule's entry, nil where none answers.
func answered(t *testing.T, order Order, name string, qtype wire.Type, rd bool) (*dns.Msg, Outcome) {
	t.Helper()
	q := query(t, name, qtype, wire.ClassIN, rd)
	o := order.Judge(&Request{Query: q, Client: netip.MustParseAddr("127.0.0.1"), Now: 1000})
	if o.Action != Answer {
		return nil, o
	}
	var b wire.Builder
	b.Begin(nil, q, 1232, 0)
	o.Entry.AppendTo(&b, 1000, entryOptions)
	m := new(dns.Msg)
	if err := m.Unpack(b.Finish(q, 0, o.Entry.RCODE(), 1232, nil)); err != nil {
		t.Fatal(err)
	}
	return m, o
}

// TestAS112: what RFC 7534 §3.5 has in its zone files, and RFC 7535 §3 for the target of DNAME.
func TestAS112(t *testing.T) {
	order := NewOrder(&Config{Allow: prefixes("127.0.0.0/8"), AS112: true, SpecialUse: true, ServerID: "Node 7, Ghent"})
	const (
		direct = "\t604800\tIN\tSOA\tprisoner.iana.org. hostmaster.root-servers.org. 1 604800 60 604800 604800"
		target = "\t604800\tIN\tSOA\tblackhole.as112.arpa. noc.dns.icann.org. 1 604800 60 604800 604800"
	)
	for _, c := range []struct {
		name   string
		qtype  wire.Type
		rcode  int
		answer []string
		soa    string
	}{
		{"10.in-addr.arpa.", wire.TypeSOA, dns.RcodeSuccess, []string{"10.in-addr.arpa." + direct}, ""},
		{"31.172.in-addr.arpa.", wire.TypeNS, dns.RcodeSuccess, []string{"31.172.in-addr.arpa.\t604800\tIN\tNS\tblackhole-1.iana.org.", "31.172.in-addr.arpa.\t604800\tIN\tNS\tblackhole-2.iana.org."}, ""},
		{"168.192.in-addr.arpa.", wire.TypeA, dns.RcodeSuccess, nil, "168.192.in-addr.arpa." + direct},
		{"1.2.168.192.in-addr.arpa.", wire.TypePTR, dns.RcodeNameError, nil, "168.192.in-addr.arpa." + direct},
		{"9.9.254.169.in-addr.arpa.", wire.TypePTR, dns.RcodeNameError, nil, "254.169.in-addr.arpa." + direct},
		{"empty.as112.arpa.", wire.TypeSOA, dns.RcodeSuccess, []string{"empty.as112.arpa." + target}, ""},
		{"empty.as112.arpa.", wire.TypeNS, dns.RcodeSuccess, []string{"empty.as112.arpa.\t604800\tIN\tNS\tblackhole.as112.arpa."}, ""},
		{"a.b.empty.as112.arpa.", wire.TypeAAAA, dns.RcodeNameError, nil, "empty.as112.arpa." + target},
		{"hostname.as112.net.", wire.TypeTXT, dns.RcodeSuccess, []string{"hostname.as112.net.\t604800\tIN\tTXT\t\"Node 7, Ghent\""}, ""},
		{"hostname.as112.arpa.", wire.TypeTXT, dns.RcodeSuccess, []string{"hostname.as112.arpa.\t604800\tIN\tTXT\t\"Node 7, Ghent\""}, ""},
		{"hostname.as112.arpa.", wire.TypeMX, dns.RcodeSuccess, nil, "hostname.as112.arpa." + target},
	} {
		for _, rd := range []bool{true, false} { // other resolvers ask without
			m, o := answered(t, order, c.name, c.qtype, rd)
			if m == nil || m.Rcode != c.rcode || o.Rule != "as112" || !o.Entry.AA() {
				t.Errorf("%s %v: %+v %v", c.name, c.qtype, o, m)
				continue
			}
			var got []string
			for _, rr := range m.Answer {
				got = append(got, rr.String())
			}
			soa := ""
			if len(m.Ns) == 1 {
				soa = m.Ns[0].String()
			}
			if len(got) != len(c.answer) || soa != c.soa {
				t.Errorf("%s %v: answer %q, authority %q", c.name, c.qtype, got, soa)
			}
			for i := range min(len(got), len(c.answer)) {
				if got[i] != c.answer[i] {
					t.Errorf("%s %v: %q, want %q", c.name, c.qtype, got[i], c.answer[i])
				}
			}
		}
	}
	if m, _ := answered(t, order, "10.in-addr.arpa.", wire.TypeANY, true); m == nil || len(m.Answer) != 3 {
		t.Errorf("ANY: %v", m)
	}
	// Not of AS112: other private zones stay as they are, and a parent has its child's DS.
	if _, o := answered(t, order, "1.0.0.127.in-addr.arpa.", wire.TypePTR, true); o.Rule != "special-use" {
		t.Errorf("127.in-addr.arpa: %+v", o)
	}
	for _, name := range []string{"as112.arpa.", "blackhole.as112.arpa.", "as112.net.", "15.172.in-addr.arpa.", "32.172.in-addr.arpa."} {
		if m, o := answered(t, order, name, wire.TypeA, true); m != nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if m, o := answered(t, order, "10.in-addr.arpa.", wire.TypeDS, true); m != nil {
		t.Errorf("DS: %+v", o)
	}
	// Strangers are refused first.
	q := query(t, "10.in-addr.arpa.", wire.TypeSOA, wire.ClassIN, false)
	if o := order.Judge(&Request{Query: q, Client: netip.MustParseAddr("192.0.2.1")}); o.RCODE != wire.RCODERefused {
		t.Errorf("a stranger: %+v", o)
	}
	// Off: 10.in-addr.arpa is the local zone of RFC 6303, and nothing is said of empty.as112.arpa.
	off := NewOrder(&Config{Allow: prefixes("127.0.0.0/8"), SpecialUse: true})
	if m, o := answered(t, off, "10.in-addr.arpa.", wire.TypeSOA, true); m == nil || o.Rule != "special-use" || o.Entry.AA() {
		t.Errorf("off: %+v", o)
	}
	if m, _ := answered(t, off, "empty.as112.arpa.", wire.TypeSOA, true); m != nil {
		t.Errorf("off: %v", m)
	}
}

// TestConfiguredBeatsBuiltIn: of configured and built-in zones the most specific decides, and of two of
// one name that which is configured.
func TestConfiguredBeatsBuiltIn(t *testing.T) {
	for _, role := range []bool{false, true} {
		order := NewOrder(&Config{Allow: prefixes("127.0.0.0/8"), SpecialUse: true, AS112: role, Zones: []wire.Name{
			wire.MustName("168.192.In-Addr.arpa."), wire.MustName("7.10.in-addr.arpa."), wire.MustName("home.arpa."), wire.Root, wire.MustName("in-addr.arpa."),
		}})
		for name, local := range map[string]bool{
			"1.1.168.192.in-addr.arpa.": false, "168.192.in-addr.arpa.": false, "1.7.10.in-addr.arpa.": false, "7.10.in-addr.arpa.": false,
			"8.10.in-addr.arpa.": true, "10.in-addr.arpa.": true, "17.10.in-addr.arpa.": true,
			"1.16.172.in-addr.arpa.": true, "x.invalid.": true, "printer.home.arpa.": false,
		} {
			if m, o := answered(t, order, name, wire.TypePTR, true); (m != nil) != local {
				t.Errorf("AS112 %v: %s: %+v", role, name, o)
			}
		}
		// RFC 4035 §3.1.4.1: a DS is the parent's, here the built-in zone's.
		if m, o := answered(t, order, "7.10.in-addr.arpa.", wire.TypeDS, true); m == nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 || len(m.Ns) != 1 {
			t.Errorf("DS of a configured zone: %+v", o)
		}
	}
}

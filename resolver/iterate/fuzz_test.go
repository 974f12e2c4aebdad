package iterate

import (
	"testing"

	"github.com/miekg/dns"

	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// FuzzScrub holds of any response that nothing is taken from it that the zone may not say: RFC 2181
// §5.4.1.
func FuzzScrub(f *testing.F) {
	for _, lines := range [][3][]string{
		{{"www.example.com. A 192.0.2.1"}, {"example.com. NS ns.example.com.", "com. NS a."}, {"ns.example.com. A 192.0.2.2"}},
		{{"www.example.com. CNAME a.example.net.", "a.example.net. A 192.0.2.1"}, nil, nil},
		{{"sub.example.com. DNAME example.net.", "www.sub.example.com. CNAME www.example.net."}, nil, nil},
		{nil, {"sub.example.com. NS ns.sub.example.com.", "sub.example.com. NS ns.example.net.", "sub.example.com. DS 1 13 2 AABB"}, {"ns.sub.example.com. A 192.0.2.3", "ns.example.net. A 192.0.2.4"}},
		{nil, {"example.com. SOA a. b. 1 2 3 4 5", "a.example.com. NSEC z.example.com. A"}, nil},
	} {
		m := new(dns.Msg)
		m.SetQuestion("www.sub.example.com.", dns.TypeA)
		m.Response = true
		for i, section := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
			for _, line := range lines[i] {
				rr, err := dns.NewRR(line)
				if err != nil {
					f.Fatal(err)
				}
				*section = append(*section, rr)
			}
		}
		pkt, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(pkt, uint16(1), uint8(0))
		f.Add(pkt, uint16(wire.TypeDS), uint8(1))
	}
	zones := []wire.Name{wire.MustName("example.com."), wire.Root, wire.MustName("sub.example.com.")}
	f.Fuzz(func(t *testing.T, pkt []byte, qt uint16, which uint8) {
		zone := zones[int(which)%len(zones)]
		q := question{wire.MustName("www.sub.example.com."), wire.Type(qt)}
		var m wire.Message
		if m.Parse(pkt) != nil {
			return
		}
		var s said
		if s.scrub(&m, zone, q) != nil {
			return
		}
		for _, forwarder := range []bool{false, true} {
			checkClass(t, &s, s.classify(zone, q, forwarder), zone, q)
		}
	})
}

// checkClass holds what a response is taken for against what a zone may say.
func checkClass(t *testing.T, s *said, c class, zone wire.Name, q question) {
	if c == isReferral {
		cut := makeCut(s, zone, 1000, false)
		if !cut.Zone.IsBelow(zone) || !q.name.IsSubdomainOf(cut.Zone) {
			t.Fatalf("a server of %v refers %v to %v", zone, q.name, cut.Zone)
		}
		addrs := 0
		for _, server := range cut.Servers {
			addrs += len(server.Addrs)
			if len(server.Addrs) > 0 && !server.Name.IsSubdomainOf(zone) {
				t.Fatalf("glue of %v from a server of %v", server.Name, zone)
			}
		}
		if len(cut.Servers) > zonecut.MaxServers || addrs > zonecut.MaxAddrs {
			t.Fatalf("%d servers, %d addresses", len(cut.Servers), addrs)
		}
		return
	}
	r := resolution{Iterator: &Iterator{config: Config{FullResponses: true}}, cut: &zonecut.Cut{Zone: zone}, said: *s, name: q.name, qtype: q.t, reply: &exchange.Reply{}}
	res := r.makeResult()
	for i := range res.Answer {
		set := &res.Answer[i]
		if !set.Owner.IsSubdomainOf(zone) || !q.name.IsSubdomainOf(set.Owner) {
			t.Fatalf("%v %v in an answer of %v to %v", set.Owner, set.Type, zone, q.name)
		}
	}
	for _, sets := range [][]wire.RRset{res.Authority, res.Additional} {
		for i := range sets {
			if !sets[i].Owner.IsSubdomainOf(zone) {
				t.Fatalf("%v %v beside an answer of %v", sets[i].Owner, sets[i].Type, zone)
			}
		}
	}
	if (res.Kind == Alias) != (res.Target != "") || res.Target != "" && !res.Target.Valid() {
		t.Fatalf("%v with target %v", res.Kind, res.Target)
	}
	if len(res.Answer) > 0 != (res.Kind == Answer || res.Kind == Alias) {
		t.Fatalf("%v with %d RRsets", res.Kind, len(res.Answer))
	}
}

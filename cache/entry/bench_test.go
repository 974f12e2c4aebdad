package entry

import (
	"testing"

	"bonsai/wire"
)

// benchContents are what caches hold most.
func benchContents(t testing.TB) []struct {
	name string
	c    *Content
} {
	plain := func(typ wire.Type, lines ...string) *Content {
		sets := rrsets(t, wire.Insecure, lines...)
		return &Content{QName: sets[0].Owner, QType: typ, Status: wire.Insecure, Answer: sets}
	}
	sig := func(owner, covered string) string {
		return owner + " 300 IN RRSIG " + covered + " 13 2 300 20231128000000 20231114000000 1 example. " + signature64
	}
	signed := plain(wire.TypeA, "www.example. 300 IN A 192.0.2.1", sig("www.example.", "A"))
	denied := plain(wire.TypeNone, "example. 300 IN SOA ns.example. admin.example. 2023111401 7200 3600 1209600 300", sig("example.", "SOA"),
		"2t7b4g4vsa5smi47k61mv5bv1a22bojr.example. 300 IN NSEC3 1 0 0 - 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG", sig("2t7b4g4vsa5smi47k61mv5bv1a22bojr.example.", "NSEC3"),
		"kohar7mbb8dc2ce8a9qvl8hon4k53uhi.example. 300 IN NSEC3 1 0 0 - kohb7mbb8dc2ce8a9qvl8hon4k53uhi0 A RRSIG", sig("kohar7mbb8dc2ce8a9qvl8hon4k53uhi.example.", "NSEC3"))
	denied.Kind, denied.QName, denied.RCODE = KindDenial, wire.MustName("nothing.example."), wire.RCODENXDomain
	denied.Answer, denied.Authority = nil, denied.Answer
	chain := plain(wire.TypeA, "www.example. 300 IN CNAME www.example.cdn.test.", "www.example.cdn.test. 60 IN CNAME e1.cdn.test.", "e1.cdn.test. 20 IN A 192.0.2.1", "e1.cdn.test. 20 IN A 192.0.2.2")
	return []struct {
		name string
		c    *Content
	}{
		{"A", plain(wire.TypeA, "www.example. 300 IN A 192.0.2.1")},
		{"4A", plain(wire.TypeA, "www.example. 300 IN A 192.0.2.1", "www.example. 300 IN A 192.0.2.2", "www.example. 300 IN A 192.0.2.3", "www.example. 300 IN A 192.0.2.4")},
		{"AAAA", plain(wire.TypeAAAA, "www.example. 300 IN AAAA 2001:db8::1")},
		{"TXT", plain(wire.TypeTXT, `www.example. 300 IN TXT "v=spf1 ip4:192.0.2.0/24 include:_spf.example.net include:_spf.example.org -all"`)},
		{"chain", chain},
		{"signed", signed},
		{"denied", denied},
	}
}

func BenchmarkAppendTo(b *testing.B) {
	for _, do := range []bool{false, true} {
		for _, bench := range benchContents(b) {
			e := mustPack(b, bench.c, testNow)
			name := bench.name
			if do {
				name += "/DO"
			}
			b.Run(name, func(b *testing.B) {
				var q wire.Query
				q.Parse(wire.AppendQuery(nil, 1, 0, []byte(bench.c.QName), e.QType(), 1232, nil))
				buf := make([]byte, 0, 1232)
				var builder wire.Builder
				o := Options{DO: do}
				b.ReportAllocs()
				for b.Loop() {
					builder.Begin(buf, &q, 1232, wire.OPTSize)
					o.Rotate++
					e.AppendTo(&builder, testNow+1, &o)
				}
				b.ReportMetric(float64(len(e)), "bytes/entry")
				b.ReportMetric(float64(len(builder.Buf)), "bytes/response")
			})
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for _, bench := range benchContents(b) {
		b.Run(bench.name, func(b *testing.B) {
			buf := make([]byte, 0, 65535)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = Pack(buf[:0], bench.c, testNow)
			}
		})
	}
}

func BenchmarkMatches(b *testing.B) {
	c := benchContents(b)[0].c
	e := mustPack(b, c, testNow)
	qname := []byte(c.QName)
	for b.Loop() {
		if !e.Matches(c.Kind, 0, qname, wire.TypeA) {
			b.Fatal("no match")
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	for _, bench := range benchContents(b) {
		e := mustPack(b, bench.c, testNow)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Unpack(testNow); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

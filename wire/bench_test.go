package wire

import "testing"

func BenchmarkQueryParse(b *testing.B) {
	plain := AppendQuery(nil, 1, FlagRD, []byte(MustName("www.Some-Example.co.uk")), TypeA, 0, nil)
	edns := AppendQuery(nil, 1, FlagRD, []byte(MustName("www.Some-Example.co.uk")), TypeA, 1232, nil)
	cookie := AppendQuery(nil, 1, FlagRD, []byte(MustName("www.Some-Example.co.uk")), TypeA, 1232, AppendOption(nil, OptionCookie, make([]byte, 24)))
	for _, bench := range []struct {
		name string
		pkt  []byte
	}{{"plain", plain}, {"EDNS", edns}, {"cookie", cookie}} {
		b.Run(bench.name, func(b *testing.B) {
			var q Query
			b.ReportAllocs()
			for b.Loop() {
				if q.Parse(bench.pkt) != QueryOK {
					b.Fatal("no query")
				}
			}
		})
	}
}

// benchResponse is a response with so many addresses, and name servers with glue.
func benchResponse(addresses int) []byte {
	qname := MustName("www.example.com")
	var b Builder
	b.BeginMessage(nil, []byte(qname), TypeA, 0xFFFF)
	for i := range addresses {
		b.Buf = AppendRecordHeader(b.Buf, []byte{0xC0, 12}, TypeA, 300, 4)
		b.Buf = append(b.Buf, 192, 0, 2, byte(i))
	}
	b.Commit(b.Mark(), Answer, addresses)
	var names []int
	for i := range 2 {
		b.Buf = AppendRecordHeader(b.Buf, []byte{0xC0, 16}, TypeNS, 300, 6)
		names = append(names, b.Mark())
		b.Buf = append(b.Buf, 3, 'n', 's', byte('1'+i), 0xC0, 16)
	}
	b.Commit(b.Mark(), Authority, 2)
	for _, at := range names {
		b.Buf = AppendRecordHeader(b.Buf, []byte{0xC0, byte(at)}, TypeA, 300, 4)
		b.Buf = append(b.Buf, 192, 0, 2, 53)
	}
	b.Commit(b.Mark(), Additional, 2)
	var q Query
	return b.Finish(&q, 0, 0, 0, nil)
}

func BenchmarkMessageParse(b *testing.B) {
	pkt := benchResponse(2)
	var m Message
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Parse(pkt); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResponse(b *testing.B) {
	pkt := benchResponse(2)
	var m Message
	if err := m.Parse(pkt); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var r Response
		if m.Response(&r) != nil || len(r.Additional) != 2 {
			b.Fatal("wrong")
		}
	}
}

// BenchmarkRRsets groups as many records as a message has room for, each an RRset of its own and all
// in one: the time for a record has to stay the same.
func BenchmarkRRsets(b *testing.B) {
	for _, bench := range []struct {
		name    string
		records int
		owner   func(i int) []byte
	}{
		{"few", 60, func(i int) []byte { return []byte{3, byte(i), byte(i >> 8), 'x', 0} }},
		{"many", 3600, func(i int) []byte { return []byte{3, byte(i), byte(i >> 8), 'x', 0} }},
		{"same", 4000, func(int) []byte { return []byte{0xC0, 12} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			pkt := tinyRecords(bench.records, bench.owner, func(i int) []byte { return []byte{byte(i)} })
			var m Message
			if err := m.Parse(pkt); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.RRsets(Answer); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bench.records), "ns/record")
		})
	}
}

// tinyRecords makes a message of so many NULL records.
func tinyRecords(n int, owner, rdata func(i int) []byte) []byte {
	var b Builder
	b.BeginMessage(nil, []byte("\x01x\x00"), TypeNULL, 0xFFFF)
	for i := range n {
		r := rdata(i)
		b.Buf = append(AppendRecordHeader(b.Buf, owner(i), TypeNULL, 60, len(r)), r...)
	}
	b.Commit(b.Mark(), Answer, n)
	var q Query
	return b.Finish(&q, 0, 0, 0, nil)
}

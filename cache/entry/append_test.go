package entry

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"bonsai/wire"

	"github.com/miekg/dns"
)

// written is an RRset as a response has it: its section and its records, uncompressed.
type written struct {
	section wire.Section
	records [][]byte
}

// model says what AppendTo writes of a content with room for all, by the plainest means.
func model(c *Content, age uint32, o *Options) (sets []written) {
	for s, list := range sections(c) {
		for i := range list {
			set := canonicalSet(list[i])
			section := wire.Section(s)
			if !o.DO && isDNSSEC(set.Type, c.QType, section) {
				continue
			}
			ttl := set.TTL - min(set.TTL, age)
			if o.Stale {
				ttl = min(set.TTL, o.StaleTTL)
			}
			w := written{section: section}
			n := len(set.RDATA)
			turn := 0
			if set.Type == wire.TypeA || set.Type == wire.TypeAAAA || s == 0 && c.Kind != KindCut {
				turn = int(o.Rotate) % n
			}
			for i := range n {
				w.records = append(w.records, record(&set, set.Type, ttl, set.RDATA[(i+turn)%n]))
			}
			if o.DO {
				for _, r := range set.Sigs {
					w.records = append(w.records, record(&set, wire.TypeRRSIG, ttl, r))
				}
			}
			sets = append(sets, w)
		}
	}
	return sets
}

func record(set *wire.RRset, t wire.Type, ttl uint32, r []byte) []byte {
	return append(wire.AppendRecordHeader(nil, []byte(set.Owner), t, ttl, len(r)), r...)
}

// readRecords expands the records of a message, and says where each ends.
func readRecords(t testing.TB, message []byte) (records [][]byte, ends []int) {
	t.Helper()
	var m wire.Message
	if err := m.Parse(message); err != nil {
		t.Fatalf("%x: %v", message, err)
	}
	off, _ := wire.NameEnd(message, wire.HeaderSize)
	off += 4
	for i := range m.Records {
		r := &m.Records[i]
		set := canonicalSet(wire.RRset{Owner: m.Owner(r), Type: r.Type, RDATA: [][]byte{m.RDATA(r)}})
		records = append(records, record(&set, r.Type, r.TTL, set.RDATA[0]))
		off, _ = wire.NameEnd(message, off)
		off += recordHead + int(binary.BigEndian.Uint16(message[off+8:]))
		ends = append(ends, off)
	}
	if off != len(message) {
		t.Fatalf("%x: records end at %d", message, off)
	}
	return records, ends
}

func spell(g *generator, n wire.Name) wire.Name {
	b := []byte(n)
	for i, c := range b {
		if c-'a' < 26 && g.IntN(2) == 0 {
			b[i] -= 32
		}
	}
	return wire.Name(b)
}

// TestAppendTo writes random content under every option and compares the records.
func TestAppendTo(t *testing.T) {
	for seed := range uint64(1200) {
		g := newGenerator(seed)
		c := g.content()
		e := mustPack(t, c, testNow)
		qname := spell(g, c.QName)
		for i := range 8 {
			o := Options{DO: i&1 != 0, Stale: i&2 != 0, StaleTTL: 30}
			if i&4 != 0 {
				o.Rotate = uint16(g.Uint32())
			}
			age := g.Uint32N(400) * g.Uint32N(2)
			message, truncated := respond(t, e, qname, testNow+age, &o, 65535, Entry.AppendTo)
			got, _ := readRecords(t, message)
			var want [][]byte
			for _, w := range model(c, age, &o) {
				want = append(want, w.records...)
			}
			if truncated || !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("seed %d %+v age %d:\ngot  %x\nwant %x\nof   %x", seed, o, age, got, want, []byte(e))
			}
			if new(dns.Msg).Unpack(message) != nil && !g.mixedCase && wellFormed(c) {
				t.Fatalf("seed %d: another implementation does not read %x", seed, message)
			}
		}
	}
}

// wellFormed says whether content has only what any implementation reads.
func wellFormed(c *Content) bool {
	for _, list := range sections(c) {
		for _, set := range list {
			switch set.Type {
			case wire.TypeNSEC, wire.TypeNSEC3, wire.TypeRRSIG, wire.TypeHTTPS, wire.TypeCAA, wire.TypeTLSA:
				return false
			}
		}
	}
	return true
}

// TestTruncation gives a response every limit, and wants the RRsets that fit and no others.
func TestTruncation(t *testing.T) {
	for seed := range uint64(50) {
		g := newGenerator(seed)
		c := g.content()
		e := mustPack(t, c, testNow)
		o := Options{DO: seed&1 != 0, Rotate: uint16(seed)}
		whole, _ := respond(t, e, c.QName, testNow, &o, 65535, Entry.AppendTo)
		_, ends := readRecords(t, whole)
		sets := model(c, 0, &o)
		head := wire.HeaderSize + len(c.QName) + 4
		for limit := head; limit <= len(whole); limit++ {
			end, n, fit := head, 0, 0
			for fit < len(sets) && ends[n+len(sets[fit].records)-1] <= limit {
				n += len(sets[fit].records)
				end = ends[n-1]
				fit++
			}
			tc := fit < len(sets) && sets[fit].section != wire.Additional
			got, truncated := respond(t, e, c.QName, testNow, &o, limit, Entry.AppendTo)
			if truncated != tc || got[2]>>1&1 == 1 != tc || !bytes.Equal(got[wire.HeaderSize:], whole[wire.HeaderSize:end]) {
				t.Fatalf("seed %d limit %d: TC %t, want %t\ngot  %x\nwant %x", seed, limit, truncated, tc, got, whole[:end])
			}
			if records, _ := readRecords(t, got); len(records) != n {
				t.Fatalf("seed %d limit %d: %d records counted, want %d", seed, limit, len(records), n)
			}
		}
	}
}

// TestFastPath holds appendPlain against appendAll: where it writes at all, both write the same.
func TestFastPath(t *testing.T) {
	fast := 0
	for seed := range uint64(2000) {
		g := newGenerator(seed)
		c := g.content()
		c.Authority, c.Additional, c.EDE, c.Used, c.Realm, c.RCODE = nil, nil, nil, false, 0, defaultRCODE(c.Kind)
		c.Answer = c.Answer[:min(len(c.Answer), 1)]
		e := mustPack(t, c, testNow)
		for i := range 12 {
			o := Options{DO: i&1 != 0, Stale: i&2 != 0, StaleTTL: 30, Rotate: uint16(g.Uint32())}
			now, limit := uint32(testNow-5+g.IntN(400)), 65535
			if i&4 != 0 {
				limit = 12 + len(c.QName) + 4 + g.IntN(100)
			}
			took := false
			got, gotTC := respond(t, e, c.QName, now, &o, limit, func(e Entry, b *wire.Builder, now uint32, o *Options) {
				if took = e.appendPlain(b, now, o); !took {
					if b.Truncated() || b.Count(wire.Answer) != 0 {
						t.Fatalf("seed %d: said no and wrote", seed)
					}
					e.appendAll(b, now, o)
				}
			})
			want, wantTC := respond(t, e, c.QName, now, &o, limit, Entry.appendAll)
			if gotTC != wantTC || !bytes.Equal(got, want) {
				t.Fatalf("seed %d %+v limit %d:\ngot  %x %t\nwant %x %t", seed, o, limit, got, gotTC, want, wantTC)
			}
			if took {
				fast++
			}
		}
	}
	if fast < 500 {
		t.Fatalf("the fast path was taken %d times only", fast)
	}
}

// TestCutOfAnyType: the plain RRset of a cut is its NS, whatever QTYPE it goes by.
func TestCutOfAnyType(t *testing.T) {
	for _, typ := range []wire.Type{wire.TypeNone, wire.TypeA, wire.TypeAAAA, wire.TypeTXT, wire.TypeNS, wire.Type(65400)} {
		sets := rrsets(t, wire.Unchecked, "example. 300 IN NS a.ns.example.", "example. 300 IN NS b.ns.example.")
		c := &Content{Kind: KindCut, QName: sets[0].Owner, QType: typ, Answer: sets}
		e := mustPack(t, c, testNow)
		message, _ := respond(t, e, c.QName, testNow, &Options{Rotate: 1}, 512, Entry.AppendTo)
		got, _ := readRecords(t, message)
		if want := model(c, 0, &Options{Rotate: 1})[0].records; !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%v: got %x, want %x", typ, got, want)
		}
		if e.HasAlias() || e.HasSpecialAddress() {
			t.Errorf("%v: an alias or an address", typ)
		}
	}
}

// TestFastPathTaken says which entries have to take the fast path.
func TestFastPathTaken(t *testing.T) {
	sig := "www.example. 300 IN RRSIG A 13 2 300 20231128000000 20231114000000 1 example. " + signature64
	for _, test := range []struct {
		name  string
		lines []string
		do    bool
		want  bool
	}{
		{"A", []string{"www.example. 300 IN A 192.0.2.1", "www.example. 300 IN A 192.0.2.2"}, true, true},
		{"private A", []string{"www.example. 300 IN A 10.0.0.1"}, false, true},
		{"AAAA", []string{"www.example. 300 IN AAAA 2001:db8::1"}, false, true},
		{"TXT", []string{`www.example. 300 IN TXT "v=spf1 -all"`}, false, true},
		{"TXT of two strings", []string{`www.example. 300 IN TXT "v=spf1" "-all"`}, false, true},
		{"CNAME", []string{"www.example. 300 IN CNAME host.example."}, false, true},
		{"signed, DO not set", []string{"www.example. 300 IN A 192.0.2.1", sig}, false, true},
		{"signed, DO set", []string{"www.example. 300 IN A 192.0.2.1", sig}, true, false},
		{"SOA", []string{"www.example. 300 IN SOA ns.example. h.example. 1 2 3 4 5"}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			sets := rrsets(t, wire.Insecure, test.lines...)
			c := &Content{QName: sets[0].Owner, QType: sets[0].Type, Status: wire.Insecure, Answer: sets}
			e := mustPack(t, c, testNow)
			respond(t, e, c.QName, testNow, &Options{DO: test.do}, 512, func(e Entry, b *wire.Builder, now uint32, o *Options) {
				if got := e.appendPlain(b, now, o); got != test.want {
					t.Errorf("took the fast path: %t, want %t", got, test.want)
				}
			})
		})
	}
}

const signature64 = "q83vEjRWeJASNFZ4kKvN7xI0VniQq83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJCrze8SNFZ4kKvN7w=="

// TestAllocations: a hit allocates nothing, and packing only where the buffer has to grow.
func TestAllocations(t *testing.T) {
	if invariants {
		t.Skip("the assertions allocate")
	}
	for seed := range uint64(60) {
		g := newGenerator(seed)
		c := g.content()
		e := mustPack(t, c, testNow)
		var q wire.Query
		q.Parse(wire.AppendQuery(nil, 1, 0, []byte(c.QName), e.QType(), 1232, nil))
		buf, packed, options := make([]byte, 0, 1232), make([]byte, 0, 65535), make([]byte, 0, 600)
		var b wire.Builder
		o := Options{DO: seed&1 != 0, Rotate: uint16(seed)}
		allocs := testing.AllocsPerRun(20, func() {
			b.Begin(buf, &q, 1232, wire.OPTSize)
			e.AppendTo(&b, testNow, &o)
			b.Finish(&q, 0, e.RCODE(), 1232, nil)
			options = e.AppendEDE(options[:0])
			_ = e.Matches(c.Kind, c.Realm, q.Name(), c.QType)
			_, _, _, _ = e.Original(), e.Status(), e.HasAlias(), e.HasSpecialAddress()
		})
		allocs += testing.AllocsPerRun(20, func() { packed, _ = Pack(packed[:0], c, testNow) })
		if allocs != 0 {
			t.Fatalf("seed %d: %v allocations", seed, allocs)
		}
		if allocs := testing.AllocsPerRun(20, func() { Pack(nil, c, testNow) }); allocs > 1 {
			t.Fatalf("seed %d: %v allocations for an entry of its own", seed, allocs)
		}
	}
}

func ExampleEntry_AppendTo() {
	c := &Content{
		QName: wire.MustName("www.example."), QType: wire.TypeA, Status: wire.Insecure,
		Answer: []wire.RRset{{Owner: wire.MustName("www.example."), Type: wire.TypeA, Class: wire.ClassIN,
			Status: wire.Insecure, TTL: 300, RDATA: [][]byte{{192, 0, 2, 1}}}},
	}
	packed, err := Pack(nil, c, 1_700_000_000)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(packed), "bytes")

	var b wire.Builder
	b.BeginMessage(nil, []byte(c.QName), c.QType, 512)
	Entry(packed).AppendTo(&b, 1_700_000_100, &Options{})
	fmt.Printf("%x\n", b.Buf[wire.HeaderSize+len(c.QName)+4:])
	// Output:
	// 24 bytes
	// c00c00010001000000c80004c0000201
}

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// testRecord is a record of a message that a test makes.
type testRecord struct {
	section Section
	owner   Name
	t       Type
	class   Class
	ttl     uint32
	rdata   string
}

// testMessage writes records, in order of sections.
func testMessage(records ...testRecord) []byte {
	var b Builder
	b.BeginMessage(nil, []byte("\x01q\x00"), TypeA, 0xFFFF)
	for _, r := range records {
		mark := b.Mark()
		b.Buf = AppendRecordHeader(b.Buf, []byte(r.owner), r.t, r.ttl, len(r.rdata))
		if r.class != 0 {
			binary.BigEndian.PutUint16(b.Buf[len(b.Buf)-8:], uint16(r.class))
		}
		b.Buf = append(b.Buf, r.rdata...)
		b.Commit(mark, r.section, 1)
	}
	var q Query
	return b.Finish(&q, 0, RCODENXDomain, 0, nil)
}

// rrsig is RDATA of an RRSIG that covers t.
func rrsig(t Type, signature string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(t))) + strings.Repeat("\x00", 16) + "\x01z\x00" + signature
}

// show writes RRsets briefly.
func show(sets []RRset) string {
	var out []string
	for _, s := range sets {
		text := fmt.Sprintf("%v %v %d %q", s.Owner, s.Type, s.TTL, s.RDATA)
		for _, sig := range s.Sigs {
			text += fmt.Sprintf(" signed %q", sig[21:])
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestRRsets(t *testing.T) {
	var g Grouping
	a, b := Name("\x01a\x00"), Name("\x01b\x00")
	for _, test := range []struct {
		name    string
		records []testRecord
		want    string
	}{
		{"none", nil, ""},
		{"grouped in order of appearance", []testRecord{
			{0, a, TypeTXT, 0, 60, "1"}, {0, b, TypeTXT, 0, 60, "2"}, {0, "\x01A\x00", TypeTXT, 0, 60, "3"}, {0, a, TypeHINFO, 0, 60, "4"},
		}, `a. TXT 60 ["1" "3"]; b. TXT 60 ["2"]; a. HINFO 60 ["4"]`},
		{"the least TTL, of signatures too", []testRecord{
			{0, a, TypeTXT, 0, 60, "1"}, {0, a, TypeTXT, 0, 50, "2"}, {0, a, TypeRRSIG, 0, 40, rrsig(TypeTXT, "s")},
		}, `a. TXT 40 ["1" "2"] signed "s"`},
		{"duplicates are one", []testRecord{
			{0, a, TypeTXT, 0, 60, "1"}, {0, a, TypeTXT, 0, 50, "1"}, {0, a, TypeRRSIG, 0, 60, rrsig(TypeTXT, "s")}, {0, a, TypeRRSIG, 0, 60, rrsig(TypeTXT, "s")},
		}, `a. TXT 50 ["1"] signed "s"`},
		{"signature before what it covers", []testRecord{
			{0, a, TypeRRSIG, 0, 60, rrsig(TypeTXT, "s")}, {0, b, TypeTXT, 0, 60, "1"}, {0, a, TypeTXT, 0, 60, "2"},
		}, `b. TXT 60 ["1"]; a. TXT 60 ["2"] signed "s"`},
		{"several signatures", []testRecord{
			{0, a, TypeTXT, 0, 60, "1"}, {0, a, TypeRRSIG, 0, 60, rrsig(TypeTXT, "s")}, {0, a, TypeRRSIG, 0, 60, rrsig(TypeTXT, "r")},
		}, `a. TXT 60 ["1"] signed "s" signed "r"`},
		{"signature of what is not there", []testRecord{
			{0, a, TypeTXT, 0, 60, "1"}, {0, a, TypeRRSIG, 0, 60, rrsig(TypeHINFO, "s")}, {0, b, TypeRRSIG, 0, 60, rrsig(TypeTXT, "r")},
		}, fmt.Sprintf(`a. TXT 60 ["1"]; a. RRSIG 60 [%q]; b. RRSIG 60 [%q]`, rrsig(TypeHINFO, "s"), rrsig(TypeTXT, "r"))},
		{"signature of a signature", []testRecord{
			{0, a, TypeRRSIG, 0, 60, rrsig(TypeRRSIG, "s")}, {0, a, TypeRRSIG, 0, 60, rrsig(TypeRRSIG, "r")},
		}, fmt.Sprintf(`a. RRSIG 60 [%q %q]`, rrsig(TypeRRSIG, "s"), rrsig(TypeRRSIG, "r"))},
		{"signature in another section", []testRecord{
			{0, a, TypeTXT, 0, 60, "1"}, {1, a, TypeRRSIG, 0, 60, rrsig(TypeTXT, "s")},
		}, `a. TXT 60 ["1"]`},
		{"another class", []testRecord{
			{0, a, TypeTXT, ClassCH, 60, "1"}, {0, a, TypeTXT, 0, 60, "2"}, {0, a, TypeRRSIG, ClassCH, 60, rrsig(TypeTXT, "s")},
		}, `a. TXT 60 ["2"]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Message
			if err := m.Parse(testMessage(test.records...)); err != nil {
				t.Fatal(err)
			}
			sets, err := m.RRsets(Answer)
			if got := show(sets); err != nil || got != test.want {
				t.Errorf("got  %s %v\nwant %s", got, err, test.want)
			}
			var r Response
			if err := g.Response(&m, &r); err != nil || show(r.Answer) != test.want || r.QName != "\x01q\x00" || r.RCODE != RCODENXDomain {
				t.Errorf("Response: %s %v", show(r.Answer), err)
			}
		})
	}
}

// TestResponseSections: each section is grouped for itself, as RRsets does.
func TestResponseSections(t *testing.T) {
	a := Name("\x01a\x00")
	var records []testRecord
	for s := Answer; s <= Additional; s++ {
		for i := range 20 {
			records = append(records, testRecord{s, a, TypeTXT, 0, 60, fmt.Sprint(i)}, testRecord{s, Name(fmt.Sprintf("\x02%02d\x00", i)), TypeHINFO, 0, 60, "x"})
		}
		records = append(records, testRecord{s, a, TypeRRSIG, 0, 60, rrsig(TypeTXT, s.String())})
	}
	var m Message
	if err := m.Parse(testMessage(records...)); err != nil {
		t.Fatal(err)
	}
	var r Response
	if err := m.Response(&r); err != nil {
		t.Fatal(err)
	}
	for s, sets := range [...][]RRset{r.Answer, r.Authority, r.Additional} {
		want, err := m.RRsets(Section(s))
		if err != nil || show(sets) != show(want) || len(sets) != 21 || len(sets[0].RDATA) != 20 || string(sets[0].Sigs[0][21:]) != Section(s).String() {
			t.Errorf("%v: %s\nwant %s", Section(s), show(sets), show(want))
		}
		if cap(sets) != len(sets) && s < 2 {
			t.Errorf("%v: an append would overwrite the next section", Section(s))
		}
	}
}

// TestRRsetsManyOwners goes through the index, with names that differ in case only.
func TestRRsetsManyOwners(t *testing.T) {
	pkt := tinyRecords(3000, func(i int) []byte {
		label := fmt.Sprintf("%c%d", "aA"[i%2], i/2%1000)
		return append(append([]byte{byte(len(label))}, label...), 0)
	}, func(i int) []byte { return []byte(fmt.Sprint(i % 10)) })
	var m Message
	if err := m.Parse(pkt); err != nil {
		t.Fatal(err)
	}
	sets, err := m.RRsets(Answer)
	if err != nil || len(sets) != 1000 {
		t.Fatal(len(sets), err)
	}
	for i, s := range sets {
		if want := fmt.Sprintf("a%d.", i); s.Owner.Canonical().String() != want || len(s.RDATA) != 2 {
			t.Fatalf("RRset %d: %v %q", i, s.Owner, s.RDATA)
		}
	}
}

// TestRRsetSize: 256 records are an RRset, also where more come and are the same; 257 are not.
func TestRRsetSize(t *testing.T) {
	same := func(int) []byte { return []byte{0xC0, 12} }
	for _, test := range []struct {
		records, different int
		want               error
	}{{256, 256, nil}, {4000, 256, nil}, {257, 257, ErrRRsetSize}, {17, 17, nil}, {16, 16, nil}, {4000, 3, nil}} {
		pkt := tinyRecords(test.records, same, func(i int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(i%test.different)) })
		var m Message
		if err := m.Parse(pkt); err != nil {
			t.Fatal(err)
		}
		sets, err := m.RRsets(Answer)
		if !errors.Is(err, test.want) || err == nil && (len(sets) != 1 || len(sets[0].RDATA) != test.different) {
			t.Errorf("%+v: %d RRsets, %v", test, len(sets), err)
		}
	}
}

// TestHostileMessages: the largest messages of the worst kinds are read, or refused, in one pass.
func TestHostileMessages(t *testing.T) {
	chain := []byte{0} // the root, behind it pointers each to the one before
	at := func(i int) int { return HeaderSize + 3 + 4 + 12 + i }
	for i := range 120 {
		target := at(0)
		if i > 0 {
			target = at(1 + 2*(i-1))
		}
		chain = append(chain, 0xC0|byte(target>>8), byte(target))
	}
	deep := at(1 + 2*119)
	for name, pkt := range map[string][]byte{
		"tiny records":            tinyRecords(5000, func(int) []byte { return []byte{0} }, func(int) []byte { return nil }),
		"different owners":        tinyRecords(3600, func(i int) []byte { return []byte{3, byte(i), byte(i >> 8), 'x', 0} }, func(int) []byte { return nil }),
		"counted, not there":      append([]byte{0, 0, 0x80, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, make([]byte, 60000)...),
		"names of a deep pointer": deepOwners(chain, deep),
	} {
		var m Message
		allocs := testing.AllocsPerRun(1, func() { m.Parse(pkt) })
		if allocs > 20 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
		if m.Parse(pkt) == nil {
			var r Response
			if err := m.Response(&r); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		var q Query
		q.Parse(pkt)
	}
}

// deepOwners fills a message with records whose owners walk a chain of pointers.
func deepOwners(chain []byte, deep int) []byte {
	first := true
	return tinyRecords(5000, func(int) []byte {
		if first {
			return []byte{0xC0, 12}
		}
		return []byte{0xC0 | byte(deep>>8), byte(deep)}
	}, func(int) []byte {
		if first {
			first = false
			return chain
		}
		return nil
	})
}

// TestMessageReuse: a Message parsed again keeps nothing but its memory.
func TestMessageReuse(t *testing.T) {
	var m Message
	goldenMessages(t, func(file, _ string, pkt []byte) {
		var fresh Message
		err, want := m.Parse(pkt), fresh.Parse(pkt)
		if (err == nil) != (want == nil) {
			t.Fatal(file, err, want)
		}
		if err == nil && (len(m.Records) != len(fresh.Records) || m.EDNS.Present != fresh.EDNS.Present || m.QName() != fresh.QName() || m.QType != fresh.QType) {
			t.Errorf("%s: got %+v, want %+v", file, m, fresh)
		}
	})
	pkt := benchResponse(2)
	if allocs := testing.AllocsPerRun(10, func() { m.Parse(pkt) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if m.Parse(make([]byte, 0x10000)) == nil {
		t.Error("a message of 64 KiB and more")
	}
}

func TestResponseAllocs(t *testing.T) {
	var m Message
	if err := m.Parse(benchResponse(2)); err != nil {
		t.Fatal(err)
	}
	var r Response
	if allocs := testing.AllocsPerRun(100, func() { m.Response(&r) }); allocs > 3 {
		t.Errorf("%v allocations: RRsets, their lists and what was expanded are three", allocs)
	}
	want := show(r.Authority)
	var g Grouping
	if allocs := testing.AllocsPerRun(100, func() { g.Response(&m, &r) }); allocs != 0 || show(r.Authority) != want {
		t.Errorf("%v allocations in memory used again: %s", allocs, show(r.Authority))
	}
}

// TestCut parses each golden message cut at every octet: nothing panics, and what is whole is not
// changed by what comes behind.
func TestCut(t *testing.T) {
	goldenMessages(t, func(file, _ string, pkt []byte) {
		for n := range pkt {
			var m Message
			if m.Parse(pkt[:n:n]) == nil {
				appendAndCompare(t, &m)
			}
			var q Query
			q.Parse(pkt[:n:n])
		}
	})
}

func TestRDATAFields(t *testing.T) {
	name := "\x01a\x00"
	for _, test := range []struct {
		t     Type
		rdata string
		ok    bool
		names string
	}{
		{TypeA, "1234", true, ""},
		{TypeA, "123", false, ""},
		{TypeAAAA, "12345", false, ""},
		{TypeNS, name, true, "0-3c"},
		{TypeNS, name + "x", false, ""},
		{TypeNS, "\xc0\x00", false, ""},
		{TypeNS, "", false, ""},
		{TypeMX, "\x00\x01" + name, true, "2-5c"},
		{TypeSOA, name + name + strings.Repeat("x", 20), true, "0-3c 3-6c"},
		{TypeSOA, name + name + strings.Repeat("x", 19), false, ""},
		{TypeSRV, "123456" + name, true, "6-9"},
		{TypeRRSIG, strings.Repeat("x", 18) + name + "sig", true, "18-21"},
		{TypeRRSIG, strings.Repeat("x", 17), false, ""},
		{TypeNSEC, name + "bitmap", true, "0-3"},
		{TypeNAPTR, "1234\x01u\x00\x00" + name, true, "8-11"},
		{TypeNAPTR, "1234\x09u\x00\x00" + name, false, ""},
		{TypeNAPTR, "1234", false, ""},
		{TypeDS, "123", false, ""},
		{TypeTXT, "", true, ""},
		{Type(65000), "anything", true, ""},
	} {
		if got := ValidRDATA(test.t, []byte(test.rdata)); got != test.ok {
			t.Errorf("ValidRDATA(%v, %q) is %t", test.t, test.rdata, got)
		}
		var x Expander
		out, ok := x.RDATA([]byte("x"+test.rdata), test.t, 1, 1+len(test.rdata))
		if ok != test.ok || ok && string(out) != test.rdata {
			t.Errorf("RDATA(%v, %q) is %q %t", test.t, test.rdata, out, ok)
		}
		if !test.ok {
			NameFields(test.t, []byte(test.rdata), func(off, end int, _ bool) {
				if off < 0 || end > len(test.rdata) {
					t.Errorf("NameFields(%v, %q) gives %d to %d", test.t, test.rdata, off, end)
				}
			})
			continue
		}
		var fields []string
		NameFields(test.t, []byte(test.rdata), func(off, end int, compressible bool) {
			fields = append(fields, fmt.Sprintf("%d-%d%s", off, end, map[bool]string{true: "c"}[compressible]))
		})
		if got := strings.Join(fields, " "); got != test.names || HasCompressibleNames(test.t) != strings.Contains(got, "c") {
			t.Errorf("NameFields(%v) are %s, want %s", test.t, got, test.names)
		}
	}
	if FixedRDATALen(TypeA) != 4 || FixedRDATALen(TypeAAAA) != 16 || FixedRDATALen(TypeTXT) != 0 || CoveredType([]byte{0}) != TypeNone {
		t.Error("FixedRDATALen or CoveredType")
	}
	var x Expander
	if _, ok := x.RDATA([]byte("1234"), TypeA, 2, 1); ok {
		t.Error("RDATA of no stretch")
	}
	if _, ok := x.Name([]byte{0xC0, 0}, 0); ok {
		t.Error("a name that points to itself")
	}
}

func TestTypes(t *testing.T) {
	for _, test := range []struct {
		text string
		want Type
		ok   bool
	}{{"A", 1, true}, {"aaaa", 28, true}, {"TYPE28", 28, true}, {"type65400", 65400, true}, {"TYPE65536", 0, false}, {"TYPE", 0, false}, {"NOPE", 0, false}, {"", 0, false}} {
		if got, ok := ParseType(test.text); ok != test.ok || ok && got != test.want {
			t.Errorf("ParseType(%q) is %v %t", test.text, got, ok)
		}
	}
	if Type(28).String() != "AAAA" || Type(65400).String() != "TYPE65400" || RCODE(3).String() != "NXDOMAIN" || RCODE(77).String() != "RCODE77" ||
		Section(9).String() != "unknown" || Status(9).String() != "unknown" || Secure.String() != "secure" {
		t.Error("String")
	}
	for typ, meta := range map[Type]bool{TypeA: false, TypeOPT: true, TypeANY: true, TypeAXFR: true, TypeNXNAME: true, Type(127): false, Type(256): false} {
		if typ.IsMeta() != meta {
			t.Errorf("%v is meta: %t", typ, !meta)
		}
	}
}

func TestAppendRecordHeader(t *testing.T) {
	if got := AppendRecordHeader(nil, []byte{0xC0, 12}, TypeMX, 0x01020304, 0x0506); !bytes.Equal(got, []byte{0xC0, 12, 0, 15, 0, 1, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("%x", got)
	}
}

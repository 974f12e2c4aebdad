package wire

import (
	"bytes"
	"slices"
	"testing"
)

func TestQueryParse(t *testing.T) {
	qname := []byte(MustName("WWW.Example.com"))
	cookie := AppendOption(nil, OptionCookie, []byte("01234567"))
	query := AppendQuery(nil, 0x1234, FlagRD|FlagCD, qname, TypeAAAA, 1400, cookie)
	var q Query
	if v := q.Parse(query); v != QueryOK {
		t.Fatal(v)
	}
	data, ok := q.EDNS.Option(OptionCookie)
	if q.ID != 0x1234 || !q.Has(FlagRD) || !q.Has(FlagCD) || q.Has(FlagAD) || q.QType != TypeAAAA || q.QClass != ClassIN ||
		string(q.Name()) != "\x03www\x07example\x03com\x00" || !q.DO() || !q.WantsAD() || !ok || string(data) != "01234567" ||
		q.UDPLimit(1232) != 1232 || q.UDPLimit(4096) != 1400 || !bytes.Equal(q.Question(), query[12:12+len(qname)+4]) {
		t.Fatalf("%+v", q)
	}
	if _, ok := q.EDNS.Option(OptionNSID); ok {
		t.Error("an option that is not there")
	}
	// The same Query reads a smaller one, and nothing of the first is left.
	if v := q.Parse(AppendQuery(nil, 1, 0, []byte("\x00"), TypeNS, 0, nil)); v != QueryOK || string(q.Name()) != "\x00" || q.EDNS.Present || q.DO() || q.UDPLimit(1232) != 512 {
		t.Fatalf("%v %+v", v, q)
	}
	if v := q.Parse(query[:11]); v != QueryDrop || q.HasQuestion() || q.ID != 0 || q.Question() != nil {
		t.Fatalf("%v %+v", v, q)
	}
}

// TestQueryVerdicts changes a good query in one place at a time.
func TestQueryVerdicts(t *testing.T) {
	good := AppendQuery(nil, 1, FlagRD, []byte(MustName("www.example")), TypeA, 1232, nil)
	edit := func(f func(b []byte)) []byte {
		b := slices.Clone(good)
		f(b)
		return b
	}
	opt := len(good) - OPTSize
	tsig := AppendRecordHeader(nil, []byte("\x03key\x00"), TypeTSIG, 0, 2)
	many := func(n byte) []byte { // n unknown records and then the OPT
		b := slices.Clone(good[:opt])
		for range n {
			b = append(AppendRecordHeader(b, []byte{0}, Type(65000), 0, 1), 7)
		}
		b[11] = n + 1
		return append(b, good[opt:]...)
	}
	for _, test := range []struct {
		name string
		pkt  []byte
		want Verdict
	}{
		{"good", good, QueryOK},
		{"empty", nil, QueryDrop},
		{"a response", edit(func(b []byte) { b[2] |= 0x80 }), QueryDrop},
		{"a response with another opcode", edit(func(b []byte) { b[2] |= 0xA0 }), QueryDrop},
		{"NOTIFY", edit(func(b []byte) { b[2] |= 4 << 3 }), QueryNotImp},
		{"UPDATE, whatever follows", edit(func(b []byte) { b[2] |= 5 << 3 })[:12], QueryNotImp},
		{"two questions", edit(func(b []byte) { b[5] = 2 }), QueryFormErr},
		{"an answer", edit(func(b []byte) { b[7] = 1 }), QueryFormErr},
		{"an authority", edit(func(b []byte) { b[9] = 1 }), QueryFormErr},
		{"no question", append([]byte{0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}, good[opt:]...), QueryFormErr},
		{"QNAME past the end", edit(func(b []byte) { b[12] = 63 }), QueryFormErr},
		{"QNAME with a pointer", edit(func(b []byte) { b[12] = 0xC0 }), QueryFormErr},
		{"QCLASS cut", good[:opt-1], QueryFormErr},
		{"OPT cut", good[:len(good)-1], QueryFormErr},
		{"OPT counted and missing", good[:opt], QueryFormErr},
		{"OPT missing", edit(func(b []byte) { b[11] = 0 })[:opt], QueryOK},
		{"something behind", append(slices.Clone(good), 0), QueryFormErr},
		{"two OPTs", append(edit(func(b []byte) { b[11] = 2 }), good[opt:]...), QueryFormErr},
		{"OPT with a name", edit(func(b []byte) { b[opt] = 1 }), QueryFormErr},
		{"version 1", edit(func(b []byte) { b[opt+6] = 1 }), QueryBadVers},
		{"extended RCODE is ignored", edit(func(b []byte) { b[opt+5] = 1 }), QueryOK},
		{"option cut", append(edit(func(b []byte) { b[len(b)-1] = 3 }), 0, 3, 0), QueryFormErr},
		{"option too long", append(edit(func(b []byte) { b[len(b)-1] = 4 }), 0, 3, 0, 1), QueryFormErr},
		{"TSIG behind the OPT", append(append(edit(func(b []byte) { b[11] = 2 }), tsig...), 0, 0), QueryOK},
		{"two records before the OPT", many(2), QueryOK},
		{"three records before the OPT", many(3), QueryFormErr},
	} {
		t.Run(test.name, func(t *testing.T) {
			var q Query
			if got := q.Parse(test.pkt); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestQNameLengths(t *testing.T) {
	for labels := range 129 {
		name := append(bytes.Repeat([]byte{1, 'A'}, labels), 0)
		var q Query
		v := q.Parse(AppendQuery(nil, 1, 0, name, TypeA, 0, nil))
		if want := len(name) <= MaxNameLen; (v == QueryOK) != want {
			t.Errorf("QNAME of %d octets: %v", len(name), v)
		} else if want && string(q.Name()) != string(bytes.ToLower(name)) {
			t.Errorf("QNAME of %d octets: %q", len(name), q.Name())
		}
	}
}

func TestFold(t *testing.T) {
	for i := range 256 {
		for at := range 8 {
			x := uint64(i)<<(8*at) | 0x5A41<<((8*at+24)%48)
			got := fold8(x)
			for k := range 8 {
				if c := byte(x >> (8 * k)); byte(got>>(8*k)) != lower(c) {
					t.Fatalf("fold8(%016x) = %016x", x, got)
				}
			}
		}
	}
}

func TestUDPLimit(t *testing.T) {
	for _, test := range []struct{ client, ours, want int }{{0, 1232, 512}, {511, 1232, 512}, {512, 1232, 512}, {1000, 1232, 1000}, {65535, 1232, 1232}} {
		q := Query{EDNS: EDNS{Present: true, UDPSize: uint16(test.client)}}
		if got := q.UDPLimit(test.ours); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

func TestQueryAllocs(t *testing.T) {
	pkt := AppendQuery(nil, 1, 0, []byte(MustName("www.Example.com")), TypeA, 1232, AppendOption(nil, OptionCookie, make([]byte, 24)))
	var q Query
	buf := make([]byte, 0, 512)
	var b Builder
	allocs := testing.AllocsPerRun(100, func() {
		q.Parse(pkt)
		b.Begin(buf, &q, 512, OPTSize)
		b.Finish(&q, FlagRA, RCODEServFail, 1232, nil)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

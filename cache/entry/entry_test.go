package entry

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bonsai/wire"

	"github.com/miekg/dns"
)

const testNow = 1_700_000_000

// rdata returns the RDATA of a record in presentation format, uncompressed.
func rdata(t testing.TB, text string) (wire.Name, wire.Type, uint32, []byte) {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil || rr == nil {
		t.Fatalf("%s: %v", text, err)
	}
	buf := make([]byte, 65535)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	h := rr.Header()
	owner := wire.MustName(h.Name)
	return owner, wire.Type(h.Rrtype), h.Ttl, slices.Clone(buf[len(owner)+10 : n])
}

// rrsets makes RRsets of records in presentation format, in order; an RRSIG goes with the RRset
// before it that it covers.
func rrsets(t testing.TB, status wire.Status, lines ...string) (sets []wire.RRset) {
	t.Helper()
	for _, line := range lines {
		owner, typ, ttl, r := rdata(t, line)
		if typ == wire.TypeRRSIG && len(sets) > 0 {
			if last := &sets[len(sets)-1]; last.Is(owner, wire.CoveredType(r)) {
				last.Sigs = append(last.Sigs, r)
				continue
			}
		}
		if len(sets) > 0 && sets[len(sets)-1].Is(owner, typ) {
			sets[len(sets)-1].RDATA = append(sets[len(sets)-1].RDATA, r)
			continue
		}
		sets = append(sets, wire.RRset{Owner: owner, Type: typ, Class: wire.ClassIN, Status: status, TTL: ttl, RDATA: [][]byte{r}})
	}
	return sets
}

// mustPack packs, and checks what Pack promises of any entry.
func mustPack(t testing.TB, c *Content, now uint32) Entry {
	t.Helper()
	out, err := Pack([]byte("before"), c, now)
	if err != nil {
		t.Fatalf("Pack %+v: %v", c, err)
	}
	if string(out[:6]) != "before" {
		t.Fatal("Pack changed what was in dst")
	}
	e := Entry(slices.Clip(out[6:]))
	if err := e.Check(); err != nil {
		t.Fatalf("%x of %+v: %v", []byte(e), c, err)
	}
	if !e.Matches(c.Kind, c.Realm, []byte(c.QName.Canonical()), c.QType) {
		t.Fatalf("%x does not match its question", []byte(e))
	}
	return e
}

// respond writes the whole response of an entry to a query with the QNAME spelled as given.
func respond(t testing.TB, e Entry, qname wire.Name, now uint32, o *Options, limit int, appendTo func(Entry, *wire.Builder, uint32, *Options)) ([]byte, bool) {
	t.Helper()
	var q wire.Query
	if v := q.Parse(wire.AppendQuery(nil, 0xABCD, wire.FlagRD, []byte(qname), e.QType(), 0, nil)); v != wire.QueryOK {
		t.Fatal("query", v)
	}
	var b wire.Builder
	before := make([]byte, 3, 100) // a response may lie anywhere in its buffer
	b.Begin(before, &q, limit, 0)
	appendTo(e, &b, now, o)
	return b.Finish(&q, 0, e.RCODE(), 0, nil)[3:], b.Truncated()
}

// generator makes random content.
type generator struct {
	*rand.Rand
	mixedCase bool
	long      bool // names are as long as they may be
	names     []wire.Name
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.mixedCase, g.long = seed%3 == 0, seed%29 == 7
	return g
}

func (g *generator) label() string {
	n := 1 + g.IntN(12)
	if g.IntN(20) == 0 {
		n = 1 + g.IntN(63)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789-_"[g.IntN(38)]
		if g.IntN(40) == 0 {
			b[i] = byte(g.IntN(256))
		}
		if !g.mixedCase {
			b[i] = wire.AppendCanonical(nil, b[i:i+1])[0]
		} else if g.IntN(3) == 0 && b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 32
		}
	}
	return string(b)
}

// name makes a name that likely ends in, or is, one that was made before.
func (g *generator) name() wire.Name {
	n := wire.Root
	if len(g.names) > 0 && g.IntN(5) > 0 {
		n = g.names[g.IntN(len(g.names))]
		n = n.Suffix(g.IntN(n.Labels() + 1))
	}
	for g.IntN(2) == 0 || g.long {
		longer, ok := n.Prepend(g.label())
		if !ok {
			break
		}
		n = longer
	}
	if g.mixedCase && g.IntN(4) == 0 {
		n = n.Canonical()
	}
	g.names = append(g.names, n)
	return n
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g *generator) ttl() uint32 {
	switch g.IntN(4) {
	case 0:
		return []uint32{0, 1, 59, 60, 61, 300, 3600, 3601, 86400, 172800, 604800, 11835, 11836, 667195, 667196, 1<<24 - 1, 1 << 24}[g.IntN(17)]
	case 1:
		return 300
	}
	return g.Uint32N(90000)
}

var testTypes = []wire.Type{
	wire.TypeA, wire.TypeAAAA, wire.TypeTXT, wire.TypeCNAME, wire.TypeNS, wire.TypeSOA, wire.TypePTR,
	wire.TypeMX, wire.TypeSRV, wire.TypeHTTPS, wire.TypeDS, wire.TypeDNSKEY, wire.TypeNSEC,
	wire.TypeNSEC3, wire.TypeCAA, wire.TypeTLSA, wire.TypeNAPTR, wire.TypeDNAME, wire.TypeRP,
	wire.TypeMINFO, wire.Type(65400), wire.TypeRRSIG,
}

// rdata makes RDATA that is well-formed for its type.
func (g *generator) rdata(t wire.Type) []byte {
	name := func() []byte { return []byte(g.name()) }
	join := bytes.Join
	switch t {
	case wire.TypeA:
		return g.bytes(4)
	case wire.TypeAAAA:
		return g.bytes(16)
	case wire.TypeTXT:
		r := g.bytes(1 + g.IntN(60))
		r[0] = byte(len(r) - 1)
		if g.IntN(4) == 0 {
			r = append(r, 3, 'a', 'b', 'c')
		}
		return r
	case wire.TypeCNAME, wire.TypeNS, wire.TypePTR, wire.TypeDNAME:
		return name()
	case wire.TypeSOA:
		numbers := g.bytes(20)
		for i := 4; i < 20; i += 4 {
			binary.BigEndian.PutUint32(numbers[i:], g.ttl())
		}
		return join([][]byte{name(), name(), numbers}, nil)
	case wire.TypeMX:
		return join([][]byte{g.bytes(2), name()}, nil)
	case wire.TypeSRV:
		return join([][]byte{g.bytes(6), name()}, nil)
	case wire.TypeHTTPS:
		r := join([][]byte{g.bytes(2), name()}, nil)
		if g.IntN(2) == 0 {
			r = append(append(r, 0, 4, 0, 4), g.bytes(4)...)
		}
		return r
	case wire.TypeNSEC:
		return join([][]byte{name(), g.bytes(g.IntN(9))}, nil)
	case wire.TypeNSEC3:
		if g.IntN(2) == 0 {
			return join([][]byte{{1, byte(g.IntN(2)), 0, 0, 0, 20}, g.bytes(20), g.bytes(8)}, nil)
		}
		return g.bytes(g.IntN(50))
	case wire.TypeNAPTR:
		return join([][]byte{g.bytes(4), {1, 'u'}, {0}, {2, 'a', 'b'}, name()}, nil)
	case wire.TypeRP, wire.TypeMINFO:
		return join([][]byte{name(), name()}, nil)
	case wire.TypeRRSIG:
		return g.sig(wire.Type(g.IntN(60)), 300)
	case wire.TypeDS, wire.TypeDNSKEY:
		return g.bytes(4 + g.IntN(300))
	}
	return g.bytes(g.IntN(300))
}

// sig makes the RDATA of an RRSIG of the usual shapes and others.
func (g *generator) sig(covered wire.Type, ttl uint32) []byte {
	algorithm := []byte{8, 13, 15, 14, 5, 200, 0}[g.IntN(7)]
	length := usualLen(algorithm)
	if length == 0 || g.IntN(4) == 0 {
		length = g.IntN(300)
	}
	if g.IntN(3) == 0 {
		ttl = g.ttl()
	}
	r := binary.BigEndian.AppendUint16(nil, uint16(covered))
	r = append(r, algorithm, byte([]int{2, 3, 7, 20}[g.IntN(4)]))
	r = binary.BigEndian.AppendUint32(r, ttl)
	inception := uint32(testNow - 3600*g.IntN(3))
	r = binary.BigEndian.AppendUint32(r, inception+uint32([]int{180000, 14 * 86400, 14*86400 + 3600, 1 << 25, -5}[g.IntN(5)]))
	r = binary.BigEndian.AppendUint32(r, inception)
	r = binary.BigEndian.AppendUint16(r, uint16(1000+g.IntN(2)))
	r = append(r, g.names[0].Canonical().Suffix(g.IntN(3))...)
	if g.IntN(8) == 0 {
		r = append(r[:18], g.name()...)
	}
	return append(r, g.bytes(length)...)
}

func (g *generator) rrset(c *Content, common uint32) (set wire.RRset) {
	set = wire.RRset{Owner: g.name(), Type: testTypes[g.IntN(len(testTypes))], Class: wire.ClassIN, TTL: common, Status: c.Status}
	switch g.IntN(4) {
	case 0:
		set.Owner = c.QName
	case 1:
		set.Owner = g.names[g.IntN(len(g.names))]
	}
	if set.Type == wire.TypeNSEC3 && g.IntN(4) > 0 {
		label := (&base32Lower).appendLabel(nil, g.bytes(20))
		if g.mixedCase && g.IntN(2) == 0 {
			label = (&base32Upper).appendLabel(nil, g.bytes(20))
		}
		if owner, ok := c.QName.Suffix(g.IntN(3)).Prepend(string(label[1:])); ok {
			set.Owner = owner
		}
	}
	if g.IntN(3) == 0 {
		set.TTL = g.ttl()
	}
	if g.IntN(6) == 0 {
		set.Status = wire.Status(g.IntN(5))
	}
	n := 1
	if set.Type != wire.TypeCNAME && g.IntN(2) == 0 {
		n += g.IntN(10)
	}
	for range n {
		set.RDATA = append(set.RDATA, g.rdata(set.Type))
	}
	for set.Type != wire.TypeRRSIG && g.IntN(3) == 0 {
		set.Sigs = append(set.Sigs, g.sig(set.Type, set.TTL))
	}
	return set
}

// content makes an entry's content of any kind.
func (g *generator) content() *Content {
	c := &Content{Kind: Kind(g.IntN(int(kinds))), QName: g.name(), Status: wire.Status(g.IntN(5)), AA: g.IntN(2) == 0, Used: g.IntN(5) == 0}
	common := g.ttl()
	if g.IntN(3) == 0 {
		c.Realm = uint16(g.Uint32())
	}
	c.QType = testTypes[g.IntN(len(testTypes))]
	c.RCODE = defaultRCODE(c.Kind)
	if g.IntN(4) == 0 {
		c.RCODE = wire.RCODE(g.IntN(24))
	}
	for g.IntN(4) == 0 && len(c.EDE) < MaxEDE {
		c.EDE = append(c.EDE, wire.EDE{Code: wire.EDECode(g.IntN(40)), Text: string(g.bytes(g.IntN(40)))})
	}
	for _, section := range []*[]wire.RRset{&c.Answer, &c.Authority, &c.Additional} {
		for g.IntN(5) < 3 && len(*section) < 6 {
			*section = append(*section, g.rrset(c, common))
		}
	}
	if g.IntN(25) == 0 && len(c.Answer) > 0 { // so long that pointers to what comes behind are none
		long := wire.RRset{Owner: g.name(), Type: wire.Type(65400), Class: wire.ClassIN, TTL: common, Status: c.Status}
		long.RDATA = [][]byte{g.bytes(9000), g.bytes(300), g.bytes(7500)}
		c.Answer = slices.Insert(c.Answer, 0, long)
	}
	if len(c.Answer) > 0 && g.IntN(2) == 0 { // the plain form
		set := &c.Answer[0]
		set.Owner, set.Status, set.TTL, c.QType = c.QName, c.Status, common, set.Type
		if c.Kind == KindCut {
			c.QType = wire.TypeNone
		}
	}
	if g.IntN(3) == 0 {
		c.Lifetime = 1 + g.Uint32N(604800)
	}
	return c
}

// canonicalSet folds what an entry does not keep the case of: owners, and names that a sender may
// compress.
func canonicalSet(set wire.RRset) wire.RRset {
	set.Owner = set.Owner.Canonical()
	if wire.HasCompressibleNames(set.Type) {
		list := set.RDATA
		set.RDATA = nil
		for _, r := range list {
			out := slices.Clone(r)
			wire.NameFields(set.Type, r, func(off, end int, compressible bool) {
				copy(out[off:], wire.AppendCanonical(nil, r[off:end]))
			})
			set.RDATA = append(set.RDATA, out)
		}
	}
	return set
}

func sections(c *Content) [3][]wire.RRset {
	return [3][]wire.RRset{c.Answer, c.Authority, c.Additional}
}

func sameContent(got, want *Content, age uint32) error {
	lifetime := want.Lifetime
	if lifetime == 0 {
		lifetime = leastTTL(want)
	}
	g, w := *got, *want
	if g.Lifetime != lifetime-min(lifetime, age) {
		return fmt.Errorf("lifetime %d, want %d less %d", g.Lifetime, lifetime, age)
	}
	g.Lifetime, w.Lifetime = 0, 0
	w.QName = w.QName.Canonical()
	gs, ws := sections(&g), sections(&w)
	g.Answer, g.Authority, g.Additional, w.Answer, w.Authority, w.Additional = nil, nil, nil, nil, nil, nil
	if !reflect.DeepEqual(g, w) {
		return fmt.Errorf("got %+v, want %+v", g, w)
	}
	for s := range gs {
		if len(gs[s]) != len(ws[s]) {
			return fmt.Errorf("%v: %d RRsets, want %d", wire.Section(s), len(gs[s]), len(ws[s]))
		}
		for i := range gs[s] {
			got, want := canonicalSet(gs[s][i]), canonicalSet(ws[s][i])
			want.TTL -= min(want.TTL, age)
			if !reflect.DeepEqual(got, want) {
				return fmt.Errorf("%v %d:\ngot  %+v\nwant %+v", wire.Section(s), i, got, want)
			}
		}
	}
	return nil
}

// TestUnpack packs random content and gets it back, whatever its age.
func TestUnpack(t *testing.T) {
	for seed := range uint64(2500) {
		g := newGenerator(seed)
		c := g.content()
		e := mustPack(t, c, testNow)
		for _, age := range []uint32{0, 1, g.Uint32N(1 << 20)} {
			got, err := e.Unpack(testNow + age)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := sameContent(got, c, age); err != nil {
				t.Fatalf("seed %d age %d: %v\n%x", seed, age, err, []byte(e))
			}
		}
		if got, _ := e.Unpack(testNow - 500); sameContent(got, c, 0) != nil {
			t.Fatalf("seed %d: a clock set back changed the content", seed)
		}
	}
}

// TestAccessors holds the methods that read a field against the content.
func TestAccessors(t *testing.T) {
	for seed := range uint64(1500) {
		g := newGenerator(seed)
		c := g.content()
		e := mustPack(t, c, testNow)
		lifetime := c.Lifetime
		if lifetime == 0 {
			lifetime = leastTTL(c)
		}
		got := fmt.Sprint(e.Kind(), e.Realm(), wire.Name(e.QName()), e.QType(), e.RCODE(), e.AA(), e.Status(), e.Used(),
			e.EDE(), e.HasEDE(), e.Expires(), e.Original(), e.HasAlias(), e.HasSpecialAddress())
		want := fmt.Sprint(c.Kind, c.Realm, c.QName.Canonical(), c.QType, c.RCODE, c.AA, c.Status, c.Used,
			c.EDE, len(c.EDE) > 0, testNow+lifetime, lifetime, hasAlias(c.Answer), hasSpecialAddress(c))
		if got != want {
			t.Fatalf("seed %d:\ngot  %s\nwant %s", seed, got, want)
		}
		if e.Matches(c.Kind, c.Realm+1, e.QName(), c.QType) || e.Matches(c.Kind, c.Realm, e.QName(), c.QType+1) ||
			e.Matches((c.Kind+1)%kinds, c.Realm, e.QName(), c.QType) || e.Matches(c.Kind, c.Realm, []byte("\x01x\x00"), c.QType) {
			t.Fatalf("seed %d matches another question", seed)
		}
		options := wire.EDNS{Options: e.AppendEDE(nil)}
		data, ok := options.Option(wire.OptionEDE)
		if ok != (len(c.EDE) > 0) || ok && (binary.BigEndian.Uint16(data) != uint16(c.EDE[0].Code) || string(data[2:]) != c.EDE[0].Text) {
			t.Fatalf("seed %d: EDE %x", seed, data)
		}
	}
}

// TestOverhead: what most entries are costs at most three bytes beyond QNAME, type, expiry and RDATA,
// whatever the TTL up to a week, and one where the TTL is one that people write.
func TestOverhead(t *testing.T) {
	for _, typ := range []wire.Type{wire.TypeA, wire.TypeAAAA, wire.TypeTXT} {
		for seed := range uint64(300) {
			g := newGenerator(seed)
			qname := g.name()
			ttl, most := g.Uint32N(604800), 3
			if seed%3 == 0 {
				ttl, most = []uint32{1, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 259200, 604800}[seed/3%17], 1
			}
			set := wire.RRset{Owner: qname, Type: typ, Class: wire.ClassIN, Status: wire.Insecure, TTL: ttl}
			floor := len(qname) + 2 + 4
			for range 1 + g.IntN(4) {
				r := g.rdata(typ)
				if typ == wire.TypeTXT {
					r = append([]byte{200}, g.bytes(200)...)
				}
				set.RDATA = append(set.RDATA, r)
				floor += len(r)
			}
			c := &Content{QName: qname, QType: typ, Status: wire.Insecure, AA: true, Answer: []wire.RRset{set}}
			if e := mustPack(t, c, testNow); len(e) > floor+most {
				t.Errorf("%v of TTL %d: %d bytes over %d", typ, ttl, len(e)-floor, floor)
			}
		}
	}
}

// TestPackErrors: what can't be held is refused, and dst is as it was.
func TestPackErrors(t *testing.T) {
	good := func() *Content {
		return &Content{QName: "\x01a\x00", QType: wire.TypeTXT, Answer: []wire.RRset{{Owner: "\x01a\x00", Type: wire.TypeTXT, Class: wire.ClassIN, TTL: 60,
			RDATA: [][]byte{{1, 'x'}}}}}
	}
	sets := func(n int, rdata []byte) (list []wire.RRset) {
		for i := range n {
			list = append(list, wire.RRset{Owner: wire.Name([]byte{2, byte(i), byte(i >> 8), 0}), Type: wire.TypeTXT, Class: wire.ClassIN, RDATA: [][]byte{rdata}})
		}
		return list
	}
	for _, test := range []struct {
		name string
		edit func(c *Content)
		want error
	}{
		{"good", func(*Content) {}, nil},
		{"no QNAME", func(c *Content) { c.QName = "" }, ErrUnpackable},
		{"a kind that is none", func(c *Content) { c.Kind = kinds }, ErrUnpackable},
		{"an RCODE above a byte", func(c *Content) { c.RCODE = 256 }, ErrUnpackable},
		{"a status that is none", func(c *Content) { c.Status = wire.Indeterminate + 1 }, ErrUnpackable},
		{"a status of an RRset that is none", func(c *Content) { c.Answer[0].Status = 9 }, ErrUnpackable},
		{"class CH", func(c *Content) { c.Answer[0].Class = wire.ClassCH }, ErrUnpackable},
		{"no records", func(c *Content) { c.Answer[0].RDATA = nil }, ErrUnpackable},
		{"an owner that is no name", func(c *Content) { c.Answer[0].Owner = "\x05a" }, ErrUnpackable},
		{"an A of five octets", func(c *Content) {
			c.Answer[0].Type, c.QType = wire.TypeA, wire.TypeA
			c.Answer[0].RDATA[0] = []byte("12345")
		}, ErrUnpackable},
		{"a name with a pointer", func(c *Content) { c.Answer[0].Type, c.Answer[0].RDATA[0] = wire.TypeNS, []byte{0xC0, 12} }, ErrUnpackable},
		{"a signature of another type", func(c *Content) { c.Answer[0].Sigs = [][]byte{append(make([]byte, 18), 0)} }, ErrUnpackable},
		{"a signature cut short", func(c *Content) { c.Answer[0].Sigs = [][]byte{{0, 16}} }, ErrUnpackable},
		{"257 records", func(c *Content) { c.Answer[0].RDATA = slices.Repeat([][]byte{{1, 'x'}}, 257) }, ErrUnpackable},
		{"256 records", func(c *Content) { c.Answer[0].RDATA = slices.Repeat([][]byte{{1, 'x'}}, 256) }, nil},
		{"64 KiB of one record", func(c *Content) { c.Answer[0].RDATA = [][]byte{make([]byte, 65535)} }, ErrTooLarge},
		{"more than a message holds", func(c *Content) { c.Authority = sets(10, make([]byte, 7000)) }, ErrTooLarge},
		{"more than a message holds, if less than an entry", func(c *Content) { c.Authority = sets(4700, nil) }, ErrTooLarge},
		{"almost what a message holds", func(c *Content) { c.Authority = sets(9, make([]byte, 7000)) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := good()
			test.edit(c)
			out, err := Pack([]byte("before"), c, testNow)
			if err != test.want || err != nil && string(out) != "before" {
				t.Errorf("got %v and %d bytes, want %v", err, len(out), test.want)
			}
		})
	}
}

// TestErrorText: texts are cut between characters, and more than two errors are not kept.
func TestErrorText(t *testing.T) {
	long := strings.Repeat("a", 199) + "é and more"
	c := &Content{Kind: KindFailure, QName: "\x01a\x00", QType: wire.TypeA, RCODE: wire.RCODEServFail, Lifetime: 5,
		EDE: []wire.EDE{{Code: 22, Text: long}, {Code: 0xFFFE, Text: strings.Repeat("b", 200)}, {Code: 1}}}
	packed, err := Pack(nil, c, testNow)
	if err != nil {
		t.Fatal(err)
	}
	got := Entry(packed).EDE()
	want := []wire.EDE{{Code: 22, Text: long[:199]}, {Code: 0xFFFE, Text: strings.Repeat("b", 200)}}
	if !slices.Equal(got, want) || Entry(packed).Check() != nil {
		t.Errorf("got %+v", got)
	}
	if KindCut.String() != "cut" || kinds.String() != "unknown" {
		t.Error("String of a Kind")
	}
}

// TestTimes holds what is shown of a TTL when the clock runs, stands still or is set back.
func TestTimes(t *testing.T) {
	sets := rrsets(t, wire.Insecure, "www.example. 300 IN CNAME host.example.", "host.example. 60 IN A 192.0.2.1")
	c := &Content{QName: sets[0].Owner, QType: wire.TypeA, Status: wire.Insecure, Answer: sets}
	e := mustPack(t, c, testNow)
	later := append(Entry(nil), e...)
	if later.Shift(7); later.Expires() != testNow+67 || later.Original() != 60 {
		t.Errorf("shifted by 7 s: expires %d, lifetime %d", later.Expires(), later.Original())
	}
	if later.Shift(0xFFFFFFF9); !bytes.Equal(later, e) {
		t.Error("shifted there and back it is another")
	}
	if e.Expires() != testNow+60 || e.Original() != 60 {
		t.Errorf("expires %d, lifetime %d", e.Expires(), e.Original())
	}
	for _, test := range []struct {
		now  uint32
		o    Options
		want [2]uint32
	}{
		{testNow, Options{}, [2]uint32{300, 60}},
		{testNow + 59, Options{}, [2]uint32{241, 1}},
		{testNow + 60, Options{}, [2]uint32{240, 0}},
		{testNow + 90, Options{}, [2]uint32{210, 0}},
		{testNow - 1, Options{}, [2]uint32{300, 60}},
		{0, Options{}, [2]uint32{300, 60}},
		{0xFFFFFFFF, Options{}, [2]uint32{0, 0}},
		{testNow + 90, Options{Stale: true, StaleTTL: 30}, [2]uint32{30, 30}},
		{testNow + 90, Options{Stale: true, StaleTTL: 100}, [2]uint32{100, 60}},
	} {
		message, _ := respond(t, e, c.QName, test.now, &test.o, 512, Entry.AppendTo)
		var m wire.Message
		if err := m.Parse(message); err != nil || m.Records[0].TTL != test.want[0] || m.Records[1].TTL != test.want[1] {
			t.Errorf("%+v: got %d and %d", test, m.Records[0].TTL, m.Records[1].TTL)
		}
	}
	// At the end of the era an entry lives shorter, not in the past.
	c.Lifetime = 3600
	if e := mustPack(t, c, 0xFFFFFFF0); e.Expires() != 0xFFFFFFFF || e.Original() != 15 {
		t.Errorf("expires %d, lifetime %d", e.Expires(), e.Original())
	}
}

// TestSpans: every span is read as it was written, in as few bytes as promised.
func TestSpans(t *testing.T) {
	check := func(v uint32, most int) {
		b := appendSpan(nil, v)
		c := cursor{e: b}
		if got := c.span(); got != v || c.bad || c.p != len(b) || len(b) > most {
			t.Fatalf("span %d: %x read as %d", v, b, got)
		}
	}
	for v := range uint32(700000) {
		switch {
		case v < span3Base:
			check(v, 2)
		case v < span3End:
			check(v, 3)
		default:
			check(v, 4)
		}
	}
	for bit := range 32 {
		for _, v := range []uint32{1<<bit - 1, 1 << bit, 1<<bit + 1} {
			check(v, 5)
		}
	}
	for n := range 0x10000 {
		b := appendLength(nil, n)
		c := cursor{e: b}
		if got := c.length(); got != n || c.bad || c.p != len(b) {
			t.Fatalf("length %d: %x read as %d", n, b, got)
		}
	}
}

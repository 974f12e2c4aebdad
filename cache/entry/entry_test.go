package entry

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
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
	names     []wire.Name
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.mixedCase = seed%3 == 0
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
	for g.IntN(2) == 0 {
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
		return []uint32{0, 1, 59, 60, 61, 300, 3600, 3601, 86400, 172800, 604800, 11835, 11836, 536123, 536124, 1<<24 - 1, 1 << 24}[g.IntN(17)]
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
	for seed := range uint64(4000) {
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
	for seed := range uint64(2000) {
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

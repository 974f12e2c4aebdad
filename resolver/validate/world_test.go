package validate

import (
	"context"
	"crypto"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// testNow is the second that everything in these tests happens in.
const testNow = 1_800_000_000

// world is a tree of signed zones, made and served in memory.
type world struct {
	tb    testing.TB
	zones map[string]*testZone
	// change alters the response to "NAME TYPE" before it is judged.
	change map[string]func(*dns.Msg)
	// lost holds the "NAME TYPE" that nobody answers.
	lost  map[string]bool
	asked []string
}

type testZone struct {
	origin     string
	parent     *testZone
	algorithm  uint8
	keys       []testKey
	unsigned   bool
	insecure   bool // signed, with no DS at the parent
	nsec3      bool
	optOut     bool
	iterations uint16
	salt       string // hex
	digest     uint8
	compact    bool // RFC 9824
	records    map[string]map[uint16][]dns.RR
	names      []string // that an NSEC or NSEC3 is for, in order of owner
	hashes     []string
	sigs       map[string][]dns.RR
}

type testKey struct {
	record *dns.DNSKEY
	signer crypto.Signer
}

// newWorld makes zones from texts: a first line "zone ORIGIN options…", then records.
func newWorld(tb testing.TB, texts ...string) *world {
	tb.Helper()
	w := &world{tb: tb, zones: map[string]*testZone{}, change: map[string]func(*dns.Msg){}, lost: map[string]bool{}}
	for _, text := range texts {
		w.addZone(text)
	}
	for _, z := range w.zones {
		for o := z.origin; o != "." && z.parent == nil; {
			_, o, _ = strings.Cut(o, ".")
			if o == "" {
				o = "."
			}
			z.parent = w.zones[o]
		}
		if z.parent != nil && !z.unsigned && !z.insecure {
			z.parent.add(z.keys[0].record.ToDS(z.digest))
		}
	}
	for _, z := range w.zones {
		z.finish()
	}
	return w
}

func (w *world) addZone(text string) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	options := strings.Fields(lines[0])
	z := &testZone{
		origin: options[1], algorithm: dns.ECDSAP256SHA256, digest: dns.SHA256,
		records: map[string]map[uint16][]dns.RR{}, sigs: map[string][]dns.RR{},
	}
	for _, o := range options[2:] {
		name, value, _ := strings.Cut(o, "=")
		switch name {
		case "unsigned":
			z.unsigned = true
		case "insecure":
			z.insecure = true
		case "nsec3":
			z.nsec3 = true
		case "optout":
			z.nsec3, z.optOut = true, true
		case "compact":
			z.compact = true
		case "iterations":
			fmt.Sscan(value, &z.iterations)
		case "salt":
			z.salt = value
		case "alg":
			fmt.Sscan(value, &z.algorithm)
		case "digest":
			fmt.Sscan(value, &z.digest)
		default:
			w.tb.Fatal("unknown option ", o)
		}
	}
	soa := "@ 3600 SOA ns hostmaster 1 3600 900 86400 900"
	for _, line := range append([]string{soa, "@ 3600 NS ns.example."}, lines[1:]...) {
		zp := dns.NewZoneParser(strings.NewReader(strings.TrimSpace(line)), z.origin, "")
		zp.SetDefaultTTL(3600)
		for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
			z.add(rr)
		}
		if zp.Err() != nil {
			w.tb.Fatal(zp.Err())
		}
	}
	if !z.unsigned {
		z.addKey(w.tb, z.algorithm)
	}
	w.zones[z.origin] = z
}

func (z *testZone) add(rr dns.RR) {
	h := rr.Header()
	key := strings.ToLower(h.Name)
	if z.records[key] == nil {
		z.records[key] = map[uint16][]dns.RR{}
	}
	z.records[key][h.Rrtype] = append(z.records[key][h.Rrtype], rr)
}

// addKey adds a key that signs everything.
func (z *testZone) addKey(tb testing.TB, algorithm uint8) testKey {
	k := makeKey(tb, z.origin, algorithm)
	z.keys = append(z.keys, k)
	z.add(k.record)
	return k
}

var keyBits = map[uint8]int{5: 1024, 7: 1024, 8: 1024, 10: 1024, 13: 256, 14: 384, 15: 256}

func makeKey(tb testing.TB, origin string, algorithm uint8) testKey {
	tb.Helper()
	record := &dns.DNSKEY{
		Hdr:   dns.RR_Header{Name: origin, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600},
		Flags: dns.ZONE | dns.SEP, Protocol: 3, Algorithm: algorithm,
	}
	private, err := record.Generate(keyBits[algorithm])
	if err != nil {
		tb.Fatal(err)
	}
	return testKey{record, private.(crypto.Signer)}
}

// cutAbove returns the delegation in z at or above name, "" if none.
func (z *testZone) cutAbove(name string) (cut string) {
	for n := name; n != z.origin && dns.IsSubDomain(z.origin, n); n = parentOf(n) {
		if len(z.records[n][dns.TypeNS]) > 0 {
			cut = n
		}
	}
	return cut
}

func parentOf(name string) string {
	i, end := dns.NextLabel(name, 0)
	if end {
		return "."
	}
	return name[i:]
}

// finish lays out the chain of denials.
func (z *testZone) finish() {
	set := map[string]bool{}
	for name, types := range z.records {
		cut := z.cutAbove(name)
		if cut != "" && cut != name {
			continue // glue
		}
		if z.optOut && cut == name && len(types[dns.TypeDS]) == 0 {
			continue
		}
		set[name] = true
		for n := name; z.nsec3 && n != z.origin; n = parentOf(n) {
			set[n] = true
		}
	}
	for n := range set {
		z.names = append(z.names, n)
	}
	if !z.nsec3 {
		sort.Slice(z.names, func(i, k int) bool {
			return wire.Compare(wire.MustName(z.names[i]), wire.MustName(z.names[k])) < 0
		})
		return
	}
	sort.Slice(z.names, func(i, k int) bool { return z.hash(z.names[i]) < z.hash(z.names[k]) })
	for _, n := range z.names {
		z.hashes = append(z.hashes, z.hash(n))
	}
}

func (z *testZone) hash(name string) string {
	return strings.ToLower(dns.HashName(name, dns.SHA1, z.iterations, z.salt))
}

// sign returns an RRset with its signatures.
func (z *testZone) sign(rrs []dns.RR) []dns.RR {
	if z.unsigned || len(rrs) == 0 {
		return rrs
	}
	h := rrs[0].Header()
	key := h.Name + " " + dns.TypeToString[h.Rrtype]
	if _, ok := z.sigs[key]; !ok {
		for _, k := range z.keys {
			z.sigs[key] = append(z.sigs[key], z.signature(k, rrs))
		}
	}
	return append(append([]dns.RR(nil), rrs...), z.sigs[key]...)
}

func (z *testZone) signature(k testKey, rrs []dns.RR) *dns.RRSIG {
	sig := &dns.RRSIG{
		Hdr:        dns.RR_Header{Name: rrs[0].Header().Name, Rrtype: dns.TypeRRSIG, Class: dns.ClassINET, Ttl: rrs[0].Header().Ttl},
		Algorithm:  k.record.Algorithm,
		Inception:  testNow - 3600,
		Expiration: testNow + 86400,
		KeyTag:     k.record.KeyTag(),
		SignerName: z.origin,
	}
	if err := sig.Sign(k.signer, rrs); err != nil {
		panic(err)
	}
	return sig
}

// zoneFor returns the zone that answers for name and type: for a DS the parent's.
func (w *world) zoneFor(name string, t uint16) *testZone {
	if t == dns.TypeDS && name != "." {
		name = parentOf(name)
	}
	for {
		if z := w.zones[name]; z != nil {
			return z
		}
		if name == "." {
			return nil
		}
		name = parentOf(name)
	}
}

// respond is an authoritative server's response, which goes on along aliases in its zone.
func (w *world) respond(name string, t uint16) (*dns.Msg, *testZone) {
	z := w.zoneFor(name, t)
	m := new(dns.Msg)
	m.SetQuestion(name, t)
	m.Response, m.Authoritative = true, true
	for range 4 {
		if name = z.answer(m, strings.ToLower(name), t); name == "" || w.zoneFor(name, t) != z {
			break
		}
	}
	if f := w.change[m.Question[0].Name+" "+dns.TypeToString[t]]; f != nil {
		f(m)
	}
	return m, z
}

// answer adds what z says to name, and returns the target of an alias.
func (z *testZone) answer(m *dns.Msg, name string, t uint16) string {
	if cut := z.cutAbove(name); cut != "" && (cut != name || t != dns.TypeDS) {
		m.Authoritative = false
		m.Ns = append(m.Ns, z.records[cut][dns.TypeNS]...)
		z.deny(m, cut, dns.TypeDS)
		return ""
	}
	if types := z.records[name]; types != nil {
		return z.answerFrom(m, name, name, t, types)
	}
	for n := name; n != z.origin; n = parentOf(n) {
		if d := z.records[parentOf(n)][dns.TypeDNAME]; len(d) > 0 {
			return z.redirect(m, name, d)
		}
	}
	if z.exists(name) {
		z.addSOA(m)
		z.deny(m, name, t)
		return ""
	}
	encloser := z.encloser(name)
	if types := z.records[wildcardAt(encloser)]; types != nil {
		target := z.answerFrom(m, name, wildcardAt(encloser), t, types)
		z.denyNext(m, name, encloser)
		if i := z.indexOf(encloser); z.nsec3 && len(m.Answer) == 0 && i >= 0 {
			z.addDenial(m, i) // RFC 5155 §7.2.5
		}
		return target
	}
	z.addSOA(m)
	if z.compact {
		z.compactDenial(m, name)
		return ""
	}
	m.Rcode = dns.RcodeNameError
	z.deny(m, name, t)
	return ""
}

func (z *testZone) answerFrom(m *dns.Msg, name, source string, t uint16, types map[uint16][]dns.RR) string {
	rrs, target := types[t], ""
	if c := types[dns.TypeCNAME]; len(rrs) == 0 && len(c) > 0 {
		rrs, target = c, c[0].(*dns.CNAME).Target
	}
	if len(rrs) == 0 {
		z.addSOA(m)
		z.deny(m, source, t)
		return ""
	}
	for _, rr := range z.sign(rrs) {
		rr = dns.Copy(rr)
		rr.Header().Name = name
		m.Answer = append(m.Answer, rr)
	}
	return target
}

func (z *testZone) redirect(m *dns.Msg, name string, d []dns.RR) string {
	owner, to := d[0].Header().Name, d[0].(*dns.DNAME).Target
	target := strings.TrimSuffix(name, owner) + to
	m.Answer = append(m.Answer, z.sign(d)...)
	m.Answer = append(m.Answer, &dns.CNAME{
		Hdr:    dns.RR_Header{Name: name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: d[0].Header().Ttl},
		Target: target,
	})
	return target
}

func (z *testZone) addSOA(m *dns.Msg) {
	m.Ns = append(m.Ns, z.sign(z.records[z.origin][dns.TypeSOA])...)
}

func wildcardAt(encloser string) string { return strings.TrimRight("*."+encloser, ".") + "." }

// exists says whether there is something at or below name.
func (z *testZone) exists(name string) bool {
	for n := range z.records {
		if dns.IsSubDomain(name, n) {
			return true
		}
	}
	return false
}

func (z *testZone) encloser(name string) string {
	for n := parentOf(name); ; n = parentOf(n) {
		if n == z.origin || z.exists(n) {
			return n
		}
	}
}

// deny adds what denies name or its type.
func (z *testZone) deny(m *dns.Msg, name string, t uint16) {
	switch {
	case z.unsigned:
		return
	case t == dns.TypeDS && len(z.records[name][dns.TypeDS]) > 0:
		m.Ns = append(m.Ns, z.sign(z.records[name][dns.TypeDS])...)
		return
	case z.records[name] != nil && z.indexOf(name) >= 0:
		z.addDenial(m, z.indexOf(name))
		return
	case z.nsec3 && z.indexOf(name) >= 0:
		z.addDenial(m, z.indexOf(name))
		return
	}
	encloser := z.encloser(name)
	z.denyNext(m, name, encloser)
	if z.nsec3 {
		for z.indexOf(encloser) < 0 {
			encloser = parentOf(encloser)
		}
		z.addDenial(m, z.indexOf(encloser))
	}
	if !z.exists(name) {
		z.addDenial(m, z.before(wildcardAt(encloser)))
	}
}

// denyNext adds what denies the name one label below encloser on the way to name.
func (z *testZone) denyNext(m *dns.Msg, name, encloser string) {
	if z.unsigned {
		return
	}
	if z.nsec3 {
		for z.indexOf(encloser) < 0 { // there only for an opted-out delegation
			encloser = parentOf(encloser)
		}
		for parentOf(name) != encloser {
			name = parentOf(name)
		}
	}
	z.addDenial(m, z.before(name))
}

func (z *testZone) indexOf(name string) int {
	for i, n := range z.names {
		if n == name {
			return i
		}
	}
	return -1
}

// before returns the index of the NSEC or NSEC3 that covers name.
func (z *testZone) before(name string) int {
	var i int
	if z.nsec3 {
		h := z.hash(name)
		i = sort.Search(len(z.hashes), func(i int) bool { return z.hashes[i] >= h })
	} else {
		n := wire.MustName(name)
		i = sort.Search(len(z.names), func(i int) bool { return wire.Compare(wire.MustName(z.names[i]), n) >= 0 })
	}
	return (i + len(z.names) - 1) % len(z.names)
}

func (z *testZone) addDenial(m *dns.Msg, i int) {
	rr := z.denial(i)
	for _, have := range m.Ns {
		if have.Header().Name == rr.Header().Name && have.Header().Rrtype == rr.Header().Rrtype {
			return
		}
	}
	m.Ns = append(m.Ns, z.sign([]dns.RR{rr})...)
}

// denial makes the NSEC or NSEC3 number i.
func (z *testZone) denial(i int) dns.RR {
	name, next := z.names[i], z.names[(i+1)%len(z.names)]
	h := dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: 900}
	if !z.nsec3 {
		return &dns.NSEC{Hdr: h, NextDomain: next, TypeBitMap: z.bitmap(name, dns.TypeRRSIG, dns.TypeNSEC)}
	}
	h.Name, h.Rrtype = strings.TrimSuffix(z.hashes[i]+"."+z.origin, ".")+".", dns.TypeNSEC3
	x := &dns.NSEC3{
		Hdr: h, Hash: dns.SHA1, Iterations: z.iterations, SaltLength: uint8(len(z.salt) / 2), Salt: z.salt,
		HashLength: sha1.Size, NextDomain: z.hashes[(i+1)%len(z.hashes)], TypeBitMap: z.bitmap(name),
	}
	if z.optOut {
		x.Flags = 1
	}
	return x
}

func (z *testZone) bitmap(name string, more ...uint16) []uint16 {
	types := more
	cut := z.cutAbove(name) == name
	for t := range z.records[name] {
		if !cut || t == dns.TypeNS || t == dns.TypeDS {
			types = append(types, t)
		}
	}
	if z.nsec3 && len(types) > 0 && (!cut || len(z.records[name][dns.TypeDS]) > 0) {
		types = append(types, dns.TypeRRSIG)
	}
	sort.Slice(types, func(i, k int) bool { return types[i] < types[k] })
	return types
}

// compactDenial denies a name by a record at the name itself (RFC 9824 §3.1).
func (z *testZone) compactDenial(m *dns.Msg, name string) {
	m.Ns = append(m.Ns, z.sign([]dns.RR{&dns.NSEC{
		Hdr:        dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: 900},
		NextDomain: "\\000." + name,
		TypeBitMap: []uint16{dns.TypeRRSIG, dns.TypeNSEC, uint16(wire.TypeNXNAME)},
	}})...)
}

// anchor returns the DS of a zone's first key.
func (w *world) anchor(origin string) Anchor {
	w.tb.Helper()
	a, err := anchorOf(w.zones[origin].keys[0].record.ToDS(dns.SHA256))
	if err != nil {
		w.tb.Fatal(err)
	}
	return a
}

// parse turns a message into what the resolver hands over.
func parse(tb testing.TB, m *dns.Msg) *wire.Response {
	tb.Helper()
	packed, err := m.Pack()
	if err != nil {
		tb.Fatal(err)
	}
	var pm wire.Message
	if err := pm.Parse(packed); err != nil {
		tb.Fatal(err)
	}
	r := &wire.Response{QName: wire.Name(pm.QNameBytes()), QType: pm.QType, RCODE: pm.RCODE(), AA: true}
	for s, to := range []*[]wire.RRset{&r.Answer, &r.Authority, &r.Additional} {
		if *to, err = pm.RRsets(wire.Section(s)); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

// client asks the world and judges, as a resolver does.
type client struct {
	w    *world
	v    *Validator
	mu   sync.Mutex
	kept map[string]*Fetched
	cost Cost
}

func newClient(w *world, config Config) *client {
	if config.Anchors == nil {
		config.Anchors = []Anchor{w.anchor(".")}
	}
	config.Now = func() int64 { return testNow }
	v, err := New(config)
	if err != nil {
		w.tb.Fatal(err)
	}
	return &client{w: w, v: v, kept: map[string]*Fetched{}}
}

var errLost = errors.New("lost")

// ask resolves and judges one question.
func (c *client) ask(ctx context.Context, name string, t uint16) (*Fetched, error) {
	key := name + " " + dns.TypeToString[t]
	c.w.asked = append(c.w.asked, key)
	if c.w.lost[key] {
		return nil, errLost
	}
	m, z := c.w.respond(name, t)
	f := &Fetched{Response: *parse(c.w.tb, m)}
	f.Verdict = c.v.Judge(ctx, &f.Response, wire.MustName(z.origin), c, &c.cost)
	return f, nil
}

// Fetch implements Fetcher.
func (c *client) Fetch(ctx context.Context, name wire.Name, t wire.Type) (*Fetched, error) {
	key := name.String() + " " + t.String()
	if f := c.kept[key]; f != nil {
		return f, nil
	}
	f, err := c.ask(ctx, name.String(), uint16(t))
	if err == nil {
		c.kept[key] = f
	}
	return f, err
}

// Cut implements Fetcher.
func (c *client) Cut(name wire.Name) wire.Name {
	if name == wire.Root {
		return ""
	}
	return wire.MustName(c.w.zoneFor(name.Parent().String(), dns.TypeNS).origin)
}

// judged asks a fresh client.
func (w *world) judged(name, t string, config Config) *Fetched {
	w.tb.Helper()
	f, err := newClient(w, config).ask(context.Background(), name, dns.StringToType[t])
	if err != nil {
		w.tb.Fatal(err)
	}
	return f
}

// fresh returns a client with the same keys and nothing else kept.
func (c *client) fresh() *client { return &client{w: c.w, v: c.v, kept: map[string]*Fetched{}} }

func (c *client) get(t testing.TB, name, qtype string) *Fetched {
	t.Helper()
	f, err := c.ask(context.Background(), name, dns.StringToType[qtype])
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// checkJudged compares what was judged with what is expected, the statuses of RRsets included: the
// weakest of them is that of the whole.
func checkJudged(t testing.TB, f *Fetched, want expectation) {
	t.Helper()
	if f.Status != want.status || f.RCODE != want.rcode || f.Denial != want.denial {
		t.Errorf("got %v, %v, denial %d (%d %s), want %v, %v, denial %d", f.Status, f.RCODE, f.Denial,
			f.EDE.Code, f.EDE.Text, want.status, want.rcode, want.denial)
	}
	if f.Status != wire.Secure && f.Status != wire.Insecure {
		return
	}
	weakest := wire.Secure
	for _, sets := range [][]wire.RRset{f.Answer, f.Authority} {
		for i := range sets {
			switch sets[i].Status {
			case wire.Secure:
			case wire.Insecure:
				weakest = wire.Insecure
			default:
				t.Errorf("%s is %v", describe(&sets[i]), sets[i].Status)
			}
		}
	}
	if weakest != f.Status && len(f.Answer)+len(f.Authority) > 0 {
		t.Errorf("the weakest RRset is %v, the whole %v", weakest, f.Status)
	}
}

func mustBase64(t testing.TB, text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func toBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

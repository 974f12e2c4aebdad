package denial

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"bonsai/wire"
)

// model is a zone as sets of types by name, with its chain of denials.
type model struct {
	zone  wire.Name
	types map[wire.Name][]wire.Type
	nsec3 bool
	salt  []byte
	names []wire.Name // that have an NSEC or NSEC3, in its order
}

// newModel reads "name type…" lines below a zone; "@" is the apex.
func newModel(zone string, nsec3 bool, lines ...string) *model {
	zone = strings.ToLower(zone)
	m := &model{zone: wire.MustName(zone), types: map[wire.Name][]wire.Type{}, nsec3: nsec3, salt: []byte{0xAB}}
	m.types[m.zone] = []wire.Type{wire.TypeNS, wire.TypeSOA}
	for _, line := range lines {
		f := strings.Fields(line)
		name := wire.MustName(strings.TrimSuffix(f[0]+"."+zone, "."))
		if f[0] == "@" {
			name = m.zone
		}
		name = name.Canonical()
		for _, text := range f[1:] {
			t, _ := wire.ParseType(text)
			m.types[name] = append(m.types[name], t)
		}
	}
	set := map[wire.Name]bool{}
	for n := range m.types {
		if m.cutAbove(n.Parent()) {
			continue
		}
		set[n] = true
		for ; nsec3 && n != m.zone; n = n.Parent() {
			set[n] = true
		}
	}
	for n := range set {
		m.names = append(m.names, n)
	}
	sort.Slice(m.names, func(i, k int) bool { return bytes.Compare(m.order(m.names[i]), m.order(m.names[k])) < 0 })
	return m
}

// order is a key made in another way than the store's: the labels from the top, padded.
func (m *model) order(n wire.Name) []byte {
	if m.nsec3 {
		return hashName(nil, n, m.salt, 1)
	}
	var out []byte
	for i := 1; i <= n.Labels(); i++ {
		label := []byte(n.Suffix(i).Canonical().Label())
		for _, c := range label {
			out = binary.BigEndian.AppendUint16(out, uint16(c)+1)
		}
		out = append(out, 0, 0)
	}
	return out
}

func hashName(dst []byte, name wire.Name, salt []byte, iterations uint16) []byte {
	h := sha1.Sum(append([]byte(name.Canonical()), salt...))
	for range iterations {
		h = sha1.Sum(append(h[:], salt...))
	}
	return append(dst, h[:]...)
}

// cutAbove says whether name is at or below a delegation or below a DNAME.
func (m *model) cutAbove(n wire.Name) bool {
	for ; n.IsSubdomainOf(m.zone) && n != m.zone; n = n.Parent() {
		if slices.Contains(m.types[n], wire.TypeNS) || slices.Contains(m.types[n], wire.TypeDNAME) {
			return true
		}
	}
	return slices.Contains(m.types[m.zone], wire.TypeDNAME) && n == m.zone
}

// truth is what the zone says to name and type: the name of the owner that answers, or denied.
func (m *model) truth(name wire.Name, t wire.Type) string {
	name = name.Canonical()
	switch {
	case m.cutAbove(name.Parent()) && name != m.zone:
		return "elsewhere"
	case slices.Contains(m.types[name], wire.TypeNS) && name != m.zone && t != wire.TypeDS:
		return "elsewhere"
	}
	source := name
	if !m.exists(name) {
		encloser := name.Parent()
		for !m.exists(encloser) {
			encloser = encloser.Parent()
		}
		if source, _ = encloser.Prepend("*"); !m.exists(source) {
			return "NXDOMAIN"
		}
	}
	types := m.types[source]
	if slices.Contains(types, t) || slices.Contains(types, wire.TypeCNAME) {
		return "answer of " + source.String()
	}
	return "NODATA"
}

func (m *model) exists(name wire.Name) bool {
	for n := range m.types {
		if n.IsSubdomainOf(name) {
			return true
		}
	}
	return false
}

// sig is a signature that no one verifies.
func (m *model) sig(t wire.Type, labels int) []byte {
	b := make([]byte, rrsigFixed)
	binary.BigEndian.PutUint16(b, uint16(t))
	b[2], b[3] = 13, byte(labels)
	return append(append(b, m.zone...), bytes.Repeat([]byte{byte(t)}, 64)...)
}

func (m *model) set(owner wire.Name, t wire.Type, ttl uint32, rdata ...[]byte) wire.RRset {
	labels := owner.Labels()
	if owner.IsWildcard() {
		labels--
	}
	return wire.RRset{Owner: owner, Type: t, Class: wire.ClassIN, Status: wire.Secure, TTL: ttl, RDATA: rdata, Sigs: [][]byte{m.sig(t, labels)}}
}

func (m *model) soa(ttl uint32) wire.RRset {
	return m.set(m.zone, wire.TypeSOA, ttl, []byte("\x01a\x00\x01b\x00"+strings.Repeat("\x00\x00\x00\x01", 5)))
}

// denial makes the NSEC or NSEC3 number i.
func (m *model) denial(i int, ttl uint32) wire.RRset {
	name, next := m.names[i], m.names[(i+1)%len(m.names)]
	types := slices.Clone(m.types[name])
	if len(types) > 0 {
		types = append(types, wire.TypeRRSIG)
	}
	if !m.nsec3 {
		return m.set(name, wire.TypeNSEC, ttl, append([]byte(next), bitmap(append(types, wire.TypeNSEC))...))
	}
	rdata := append([]byte{1, 0, 0, 1, byte(len(m.salt))}, m.salt...)
	rdata = append(append(rdata, hashLength), hashName(nil, next, m.salt, 1)...)
	owner := hashOwner(hashName(nil, name, m.salt, 1), m.zone)
	return m.set(owner, wire.TypeNSEC3, ttl, append(rdata, bitmap(types)...))
}

func bitmap(types []wire.Type) []byte {
	b := make([]byte, 32)
	last := -1
	for _, t := range types {
		b[t/8] |= 0x80 >> (t % 8)
		last = max(last, int(t/8))
	}
	if last < 0 {
		return nil
	}
	return append([]byte{0, byte(last + 1)}, b[:last+1]...)
}

// all is every denial of the zone in one response.
func (m *model) all(ttl uint32) *wire.Response {
	r := &wire.Response{Authority: []wire.RRset{m.soa(ttl)}}
	for i := range m.names {
		r.Authority = append(r.Authority, m.denial(i, ttl))
	}
	return r
}

// wildcards is every RRset at a wildcard, as it comes in an answer made of it.
func (m *model) wildcards(ttl uint32) *wire.Response {
	r := &wire.Response{Authority: []wire.RRset{m.denial(0, ttl)}}
	for n, types := range m.types {
		for _, t := range types {
			if n.IsWildcard() {
				set := m.set(n, t, ttl, []byte(n))
				set.Owner, _ = n.Parent().Prepend("x")
				r.Answer = append(r.Answer, set)
			}
		}
	}
	return r
}

var zoneLines = []string{
	"@ DNSKEY", "www A TXT", "*.wild A MX", "*.cwild CNAME", "a.b.c.d A", "sub NS", "ns.sub A", "secure NS DS",
	"red DNAME", "x.*.went A", "alias CNAME", "UPPER A", `\000\001 A`, `\001 A`, `\001\001.\000 A`, `a\000b A`, "z A", "*.z.z A",
	"deep.wild A",
}

func newStore(size int64) *Store { return New(Config{Size: size, Hash: hashName}) }

var labels = []string{"www", "wild", "cwild", "*", "a", "b", "c", "d", "sub", "ns", "secure", "red", "x", "went", "alias",
	"upper", "\x00\x01", "\x01", "\x01\x01", "\x00", "a\x00b", "z", "q", "deep", "WWW", "zz", "aa", "-"}

func randomName(random *rand.Rand, zone wire.Name) wire.Name {
	n := zone
	for range random.IntN(5) {
		if next, ok := n.Prepend(labels[random.IntN(len(labels))]); ok {
			n = next
		}
	}
	return n
}

var someTypes = []wire.Type{wire.TypeA, wire.TypeAAAA, wire.TypeMX, wire.TypeTXT, wire.TypeNS, wire.TypeDS, wire.TypeCNAME, wire.TypeSOA, wire.TypeCAA}

// said is what a response says, in the words of truth.
func said(r *wire.Response) string {
	switch {
	case r == nil:
		return ""
	case len(r.Answer) == 1:
		return "answer of " + wire.Name(r.Answer[0].RDATA[0]).String()
	case r.RCODE == wire.RCODENXDomain:
		return "NXDOMAIN"
	}
	return "NODATA"
}

// TestLookup asks for many names of a zone of which all is known: what is denied is answered, and as
// the zone would; nothing else is but what wildcards stand for.
func TestLookup(t *testing.T) {
	for _, nsec3 := range []bool{false, true} {
		t.Run(fmt.Sprint("nsec3=", nsec3), func(t *testing.T) {
			m, s := newModel("example.", nsec3, zoneLines...), newStore(1<<20)
			s.Add(m.all(300), 100, 0)
			s.Add(m.wildcards(300), 100, 0)
			random := rand.New(rand.NewPCG(1, 2))
			answers := map[string]int{}
			for range 20000 {
				name, qtype := randomName(random, m.zone), someTypes[random.IntN(len(someTypes))]
				if name == m.zone && qtype == wire.TypeDS {
					continue // the parent's
				}
				got, truth := said(s.Lookup(name, qtype, 150)), m.truth(name, qtype)
				want := truth
				if truth == "elsewhere" || truth == "answer of "+name.Canonical().String() {
					want = ""
				}
				if got != want && !(nsec3 && got == "" && name.Labels() > maxHashes) {
					t.Fatalf("%s %s: got %q, the zone has %q", name, qtype, got, truth)
				}
				answers[got]++
			}
			if answers["NXDOMAIN"] < 1000 || answers["NODATA"] < 1000 || answers["answer of *.wild.example."] < 20 || answers["answer of *.cwild.example."] < 20 {
				t.Errorf("answers: %v", answers)
			}
		})
	}
}

// TestPartial learns a zone denial by denial, from the proofs of random queries: never is anything
// answered that the zone contradicts, and a flood of random names is soon answered whole.
func TestPartial(t *testing.T) {
	for _, nsec3 := range []bool{false, true} {
		m, s := newModel("example.", nsec3, zoneLines...), newStore(1<<20)
		random := rand.New(rand.NewPCG(3, 4))
		asked, answered := 0, 0
		for i := range 5000 {
			name := randomName(random, m.zone)
			if i%2 == 0 {
				name, _ = m.zone.Prepend(fmt.Sprintf("r%d", random.Uint32()))
			}
			truth := m.truth(name, wire.TypeA)
			got := said(s.Lookup(name, wire.TypeA, 100))
			if got != "" && got != truth {
				t.Fatalf("%s: got %q, the zone has %q", name, got, truth)
			}
			if truth != "NXDOMAIN" {
				continue
			}
			if asked++; got != "" {
				answered++
				continue
			}
			r := &wire.Response{Authority: []wire.RRset{m.soa(300)}}
			for range 2 {
				r.Authority = append(r.Authority, m.denial(random.IntN(len(m.names)), 300))
			}
			s.Add(r, 100, 0)
		}
		if answered*100 < asked*95 {
			t.Errorf("nsec3 %v: %d of %d are answered", nsec3, answered, asked)
		}
	}
}

// TestContents compares what comes out with what went in.
func TestContents(t *testing.T) {
	for _, nsec3 := range []bool{false, true} {
		m, s := newModel("Example.", nsec3, zoneLines...), newStore(1<<20)
		in := m.all(300)
		s.Add(in, 100, 0)
		s.Add(m.wildcards(200), 100, 0)
		r := s.Lookup(wire.MustName("q.Example."), wire.TypeA, 150)
		if r == nil || len(r.Authority) < 2 {
			t.Fatal("nothing is answered")
		}
		for _, got := range r.Authority {
			i := slices.IndexFunc(in.Authority, func(s wire.RRset) bool { return s.Is(got.Owner, got.Type) })
			if i < 0 {
				t.Fatalf("%s %s comes from nowhere", got.Owner, got.Type)
			}
			want := in.Authority[i]
			if got.TTL != 250 || got.Status != wire.Secure || got.Class != wire.ClassIN || len(got.Sigs) != 1 || !wire.EqualFold(got.Sigs[0], want.Sigs[0]) ||
				len(got.RDATA) != 1 || !wire.EqualFold(got.RDATA[0], want.RDATA[0]) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		r = s.Lookup(wire.MustName("Q.wild.Example."), wire.TypeMX, 150)
		if said(r) != "answer of *.wild.example." || r.Answer[0].Owner != wire.MustName("Q.wild.Example.") || r.Answer[0].TTL != 150 || len(r.Authority) != 1 {
			t.Errorf("got %+v", r)
		}
	}
}

// TestSpelling keeps the next name of an NSEC as it was signed (RFC 6840 §5.1).
func TestSpelling(t *testing.T) {
	s, m := newStore(1<<20), newModel("example.", false, "a A", "z A")
	for _, next := range []string{"Z.example.", "z.Example.", "example."} {
		r := &wire.Response{Authority: []wire.RRset{m.soa(300), m.denial(1, 300)}}
		rdata := append([]byte(wire.MustName(next)), bitmap([]wire.Type{wire.TypeA})...)
		r.Authority[1].RDATA[0] = rdata
		s.Add(r, 100, 0)
		got := s.Lookup(wire.MustName("a.example."), wire.TypeMX, 100)
		if got == nil || !bytes.Equal(got.Authority[1].RDATA[0], rdata) {
			t.Errorf("%s does not come out as it went in", next)
		}
	}
}

// TestKeys orders names by keys as by names (RFC 4034 §6.1), and makes names of keys again.
func TestKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	zone := wire.MustName("example.")
	for range 20000 {
		a, b := randomName(random, zone), randomName(random, zone)
		ka, kb := appendKey(nil, a, zone), appendKey(nil, b, zone)
		if got, want := bytes.Compare(ka, kb), wire.Compare(a, b); got != want {
			t.Fatalf("%s and %s: got %d, want %d", a, b, got, want)
		}
		if got := nameOf(ka, zone); got != a.Canonical() {
			t.Fatalf("%s comes back as %s", a, got)
		}
		if got, want := nameOf(ka[:common(ka, kb)], zone), wire.CommonAncestor(a, b).Canonical(); got != want {
			t.Fatalf("%s and %s have %s in common, not %s", a, b, want, got)
		}
		if got := isBelow(ka, kb); got != a.IsBelow(b) {
			t.Fatalf("%s below %s: %v", a, b, got)
		}
	}
}

// TestRefused gives what must not be used.
func TestRefused(t *testing.T) {
	m := newModel("example.", false, "a A", "z A")
	m3 := newModel("example.", true, "a A", "z A")
	name := wire.MustName("q.example.")
	for _, c := range []struct {
		what   string
		m      *model
		change func(r *wire.Response)
		now    uint32
	}{
		{"insecure", m, func(r *wire.Response) {
			for i := range r.Authority {
				r.Authority[i].Status = wire.Insecure
			}
		}, 100},
		{"without SOA", m, func(r *wire.Response) { r.Authority = r.Authority[1:] }, 100},
		{"expired", m, func(*wire.Response) {}, 400},
		{"expired to the second", m, func(*wire.Response) {}, 400},
		{"unsigned", m, func(r *wire.Response) {
			for i := range r.Authority {
				r.Authority[i].Sigs = nil
			}
		}, 100},
		{"opt-out", m3, func(r *wire.Response) {
			for i := range r.Authority[1:] {
				r.Authority[i+1].RDATA[0][1] = 1
			}
		}, 100},
		{"unknown hash", m3, func(r *wire.Response) {
			for i := range r.Authority[1:] {
				r.Authority[i+1].RDATA[0][0] = 2
			}
		}, 100},
		{"made of a wildcard", m, func(r *wire.Response) {
			for i := range r.Authority[1:] {
				r.Authority[i+1].Sigs[0][3] = 0
			}
		}, 100},
		{"of another zone", m, func(r *wire.Response) {
			for i := range r.Authority[1:] {
				r.Authority[i+1].Owner = wire.MustName("a.other.")
			}
		}, 100},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newStore(1 << 20)
			s.Add(c.m.all(300), 100, 0)
			if s.Lookup(name, wire.TypeA, 399) == nil {
				t.Fatal("is not answered to begin with")
			}
			s = newStore(1 << 20)
			r := c.m.all(300)
			c.change(r)
			s.Add(r, 100, 0)
			if r := s.Lookup(name, wire.TypeA, c.now); r != nil {
				t.Errorf("answers %v", said(r))
			}
		})
	}
	// RFC 9824: a compact denial tells nothing of other names or types.
	s, r := newStore(1<<20), m.all(300)
	r.Authority[1].RDATA[0] = append(bytes.Clone([]byte(m.names[1])), bitmap([]wire.Type{wire.TypeRRSIG, wire.TypeNSEC, wire.TypeNXNAME})...)
	s.Add(&wire.Response{Authority: r.Authority[:2]}, 100, 0)
	if r := s.Lookup(m.zone, wire.TypeMX, 100); r != nil {
		t.Errorf("answers %v", said(r))
	}
	for _, qtype := range []wire.Type{wire.TypeANY, wire.TypeRRSIG, wire.TypeOPT, wire.TypeNXNAME} {
		s := newStore(1 << 20)
		s.Add(m.all(300), 100, 0)
		if r := s.Lookup(name, qtype, 100); r != nil {
			t.Errorf("answers %v", qtype)
		}
	}
}

// TestZoneCuts: a parent's denials say nothing of names in the child, and a DS is the parent's.
func TestZoneCuts(t *testing.T) {
	s := newStore(1 << 20)
	parent, child := newModel("example.", false, "sub NS", "secure NS DS"), newModel("sub.example.", false, "www A")
	s.Add(parent.all(300), 100, 0)
	for name, want := range map[string]string{
		"a.sub.example. A": "", "sub.example. A": "", "sub.example. DS": "NODATA", "secure.example. DS": "", "a.secure.example. DS": "", "t.example. A": "NXDOMAIN",
	} {
		n, qtype, _ := strings.Cut(name, " ")
		rt, _ := wire.ParseType(qtype)
		if got := said(s.Lookup(wire.MustName(n), rt, 100)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	s.Add(child.all(300), 100, 0)
	for name, want := range map[string]string{
		"a.sub.example. A": "NXDOMAIN", "sub.example. A": "NODATA", "sub.example. DS": "NODATA", "www.sub.example. DS": "NODATA",
	} {
		n, qtype, _ := strings.Cut(name, " ")
		rt, _ := wire.ParseType(qtype)
		if got := said(s.Lookup(wire.MustName(n), rt, 100)); got != want {
			t.Errorf("with the child, %s: got %q, want %q", name, got, want)
		}
	}
}

// TestFlush forgets a name, a zone, all; and what was begun before.
func TestFlush(t *testing.T) {
	for _, nsec3 := range []bool{false, true} {
		for _, c := range []struct{ flushed, other, still string }{
			{"q.example.", "b.example.", "NXDOMAIN"}, {"a.example.", "y.example.", "NXDOMAIN"}, {"a.example.", "b.example.", ""},
			{"example.", "b.example.", ""}, {".", "b.example.", ""}, {"other.", "b.example.", "NXDOMAIN"},
		} {
			flushed, still := c.flushed, c.still
			m, s := newModel("example.", nsec3, "a A", "m A", "z A"), newStore(1<<20)
			s.Add(m.all(300), 100, 0)
			s.Flush(wire.MustName(flushed), 7)
			check(t, s)
			if nsec3 && flushed != "other." {
				still = ""
			}
			if got := said(s.Lookup(wire.MustName(c.other), wire.TypeA, 100)); got != still {
				t.Errorf("%v, after %s: got %q for another, want %q", nsec3, flushed, got, still)
			}
			if got := said(s.Lookup(wire.MustName(flushed), wire.TypeA, 100)); got != "" {
				t.Errorf("%v, %s is flushed, and answered with %q", nsec3, flushed, got)
			}
			s.Add(m.all(300), 100, 6)
			if got := said(s.Lookup(wire.MustName(flushed), wire.TypeMX, 100)); got != "" {
				t.Errorf("%v, %s is flushed, and added again from before", nsec3, flushed)
			}
			s.Add(m.all(300), 100, 7)
			if got := said(s.Lookup(wire.MustName("q.example."), wire.TypeMX, 100)); got != "NXDOMAIN" {
				t.Errorf("%v, after %s nothing is added any more", nsec3, flushed)
			}
			check(t, s)
		}
	}
}

// check holds the invariants of a store.
func check(t testing.TB, s *Store) {
	t.Helper()
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
}

// TestEviction fills a small store over and over: it keeps within its size and holds together, what is
// used stays, and what it answers is true.
func TestEviction(t *testing.T) {
	s := newStore(MinSize)
	random := rand.New(rand.NewPCG(7, 8))
	used := newModel("used.", true, "a A", "m A", "z A")
	s.Add(used.all(100000), 100, 0)
	kept := 0
	for i := range 3000 {
		m := newModel(fmt.Sprintf("z%d.", random.IntN(400)), random.IntN(2) == 0, "www A", "*.w MX", fmt.Sprintf("n%d TXT", i%7), "sub NS")
		now := uint32(100 + i)
		s.Add(m.all(300), now, 0)
		s.Add(m.wildcards(300), now, 0)
		if i%50 == 0 {
			check(t, s)
			s.Flush(randomName(random, m.zone), 0)
			check(t, s)
		}
		name := randomName(random, m.zone)
		if got := said(s.Lookup(name, wire.TypeA, now)); got != "" && got != m.truth(name, wire.TypeA) && !strings.Contains(name.String(), "n") {
			t.Fatalf("%s: got %q, the zone has %q", name, got, m.truth(name, wire.TypeA))
		}
		if said(s.Lookup(wire.MustName("q.used."), wire.TypeA, now)) != "" {
			kept++
		}
	}
	check(t, s)
	if kept < 2900 {
		t.Errorf("what is used is there %d times of 3000", kept)
	}
	if st := s.Stats(); st.Evicted == 0 || st.Used < st.Size/2 {
		t.Errorf("%+v", st)
	}
}

// TestResalt begins a new chain where the parameters change.
func TestResalt(t *testing.T) {
	s, m := newStore(1<<20), newModel("example.", true, "a A", "z A")
	s.Add(m.all(300), 100, 0)
	other := newModel("example.", true, "a A", "z A", "q A")
	other.salt = []byte{1, 2, 3}
	sort.Slice(other.names, func(i, k int) bool {
		return bytes.Compare(other.order(other.names[i]), other.order(other.names[k])) < 0
	})
	s.Add(&wire.Response{Authority: []wire.RRset{other.soa(300), other.denial(0, 300)}}, 100, 0)
	check(t, s)
	if got := said(s.Lookup(wire.MustName("q.example."), wire.TypeA, 100)); got != "" {
		t.Errorf("the old chain answers %s", got)
	}
	s.Add(other.all(300), 100, 0)
	if got := said(s.Lookup(wire.MustName("r.example."), wire.TypeA, 100)); got != "NXDOMAIN" {
		t.Errorf("the new chain answers %q", got)
	}
	check(t, s)
}

// TestConcurrent adds, asks and flushes at once.
func TestConcurrent(t *testing.T) {
	s, m := newStore(MinSize), newModel("example.", false, zoneLines...)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(9, uint64(g)))
			for i := range 500 {
				switch {
				case i%100 == 99:
					s.Flush(randomName(random, m.zone), 0)
				case i%4 == 0:
					s.Add(m.all(300), 100, 0)
				default:
					name := randomName(random, m.zone)
					if got := said(s.Lookup(name, wire.TypeA, 100)); got != "" && got != m.truth(name, wire.TypeA) {
						t.Errorf("%s: %s", name, got)
					}
				}
				s.Stats()
			}
		})
	}
	group.Wait()
	check(t, s)
}

func BenchmarkLookup(b *testing.B) {
	for _, nsec3 := range []bool{false, true} {
		b.Run(fmt.Sprint("nsec3=", nsec3), func(b *testing.B) {
			m, s := newModel("example.", nsec3, zoneLines...), newStore(1<<20)
			s.Add(m.all(300), 100, 0)
			name := wire.MustName("nothing.example.")
			b.ReportAllocs()
			for b.Loop() {
				if s.Lookup(name, wire.TypeA, 100) == nil {
					b.Fatal("nothing")
				}
			}
		})
	}
}

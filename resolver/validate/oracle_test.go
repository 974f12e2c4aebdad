package validate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// contradiction says how a judged response contradicts the zones it speaks of: what is secure must
// be true, and nothing that is signed may be made insecure. "" where it does not.
func (w *world) contradiction(f *Fetched) string {
	if f.Status != wire.Secure && f.Status != wire.Insecure {
		return ""
	}
	insecure := false
	for i := range f.Answer {
		set := &f.Answer[i]
		if set.Type == wire.TypeNSEC || set.Type == wire.TypeNSEC3 {
			insecure = insecure || set.Status == wire.Insecure
			continue // made by the signer, not in the zones' texts
		}
		truth, signed := w.truth(set.Owner.String(), uint16(set.Type))
		insecure = insecure || set.Status == wire.Insecure
		switch {
		case set.Status == wire.Insecure && signed && !w.optedOut(set.Owner.String()):
			return describe(set) + " is secure, and passes for insecure"
		case set.Status == wire.Secure && !signed:
			return describe(set) + " is insecure, and passes for secure"
		case set.Status == wire.Secure && truth != contents(set):
			return fmt.Sprintf("%s passes for secure: %q, not %q", describe(set), contents(set), truth)
		}
	}
	if f.Denial == NotDenied {
		if !insecure && f.Status == wire.Insecure {
			return "insecure, and nothing in it is"
		}
		return ""
	}
	return w.denialContradiction(f, insecure)
}

func (w *world) denialContradiction(f *Fetched, insecure bool) string {
	j := judgement{r: &f.Response}
	target, _ := j.target()
	name := strings.ToLower(target.String())
	truth, signed := w.truth(name, uint16(f.QType))
	cname, _ := w.truth(name, dns.TypeCNAME)
	if f.Status == wire.Insecure {
		if signed && !insecure && !w.optedOut(name) && !w.costly(name, uint16(f.QType)) {
			return "the denial of " + name + " is secure, and passes for insecure"
		}
		return ""
	}
	switch {
	case !signed:
		return "the denial of " + name + " is insecure, and passes for secure"
	case truth != "" || cname != "" && f.QType != wire.TypeDS:
		return "what is denied is there: " + name
	case f.Denial == NXDomain && w.existing(name):
		return "a name that is denied is there: " + name
	}
	return ""
}

// truth returns what the zones have at name, and whether it is signed all the way.
func (w *world) truth(name string, t uint16) (text string, signed bool) {
	z := w.zoneFor(strings.ToLower(name), t)
	var m dns.Msg
	z.answer(&m, strings.ToLower(name), t)
	var lines []string
	for _, rr := range m.Answer {
		if rr.Header().Rrtype == t && strings.EqualFold(rr.Header().Name, name) {
			lines = append(lines, rdataOf(rr))
		}
	}
	sort.Strings(lines)
	for signed = true; z != nil; z = z.parent {
		signed = signed && !z.unsigned && !z.insecure
	}
	return strings.Join(lines, "|"), signed
}

func rdataOf(rr dns.RR) string {
	var m dns.Msg
	m.Answer = []dns.RR{rr}
	packed, _ := m.Pack()
	var pm wire.Message
	if pm.Parse(packed) != nil || len(pm.Records) != 1 {
		return "?"
	}
	return string(pm.RDATA(&pm.Records[0]))
}

func contents(set *wire.RRset) string {
	var lines []string
	for _, r := range set.RDATA {
		lines = append(lines, string(r))
	}
	sort.Strings(lines)
	return strings.Join(lines, "|")
}

// existing says whether something is at or below name, or made of a wildcard or DNAME there.
func (w *world) existing(name string) bool {
	z := w.zoneFor(name, dns.TypeNone)
	for n := name; n != z.origin; n = parentOf(n) {
		if len(z.records[parentOf(n)][dns.TypeDNAME]) > 0 {
			return true
		}
	}
	return z.cutAbove(name) != "" || z.exists(name) || z.records[wildcardAt(z.encloser(name))] != nil
}

// optedOut says whether name lies in a zone where an opt-out span makes denials insecure.
func (w *world) optedOut(name string) bool {
	for z := w.zoneFor(strings.ToLower(name), dns.TypeNone); z != nil; z = z.parent {
		if z.optOut {
			return true
		}
	}
	return false
}

func (w *world) costly(name string, t uint16) bool {
	return w.zoneFor(name, t).iterations > maxIterations
}

// mutation changes one RRset of a response.
type mutation struct {
	name  string
	apply func(r *wire.Response, sets *[]wire.RRset, i int)
}

var mutations = []mutation{
	{"without it", func(_ *wire.Response, sets *[]wire.RRset, i int) { *sets = slices.Delete(*sets, i, i+1) }},
	{"unsigned", func(_ *wire.Response, sets *[]wire.RRset, i int) { (*sets)[i].Sigs = nil }},
	{"bad signature", func(_ *wire.Response, sets *[]wire.RRset, i int) { flip(&(*sets)[i].Sigs, -1) }},
	{"other labels", func(_ *wire.Response, sets *[]wire.RRset, i int) { flip(&(*sets)[i].Sigs, 3) }},
	{"other time", func(_ *wire.Response, sets *[]wire.RRset, i int) { flip(&(*sets)[i].Sigs, 11) }},
	{"other tag", func(_ *wire.Response, sets *[]wire.RRset, i int) { flip(&(*sets)[i].Sigs, 17) }},
	{"other algorithm", func(_ *wire.Response, sets *[]wire.RRset, i int) { flip(&(*sets)[i].Sigs, 2) }},
	{"other type covered", func(_ *wire.Response, sets *[]wire.RRset, i int) { flip(&(*sets)[i].Sigs, 1) }},
	{"other RDATA", func(_ *wire.Response, sets *[]wire.RRset, i int) { flip(&(*sets)[i].RDATA, 1) }},
	{"other owner", func(_ *wire.Response, sets *[]wire.RRset, i int) {
		(*sets)[i].Owner = wire.Name("\x01q") + (*sets)[i].Owner.Parent()
	}},
	{"child of owner", func(_ *wire.Response, sets *[]wire.RRset, i int) { (*sets)[i].Owner, _ = (*sets)[i].Owner.Prepend("q") }},
	{"more RDATA", func(_ *wire.Response, sets *[]wire.RRset, i int) {
		other := slices.Clone((*sets)[i].RDATA)
		flip(&other, 1)
		(*sets)[i].RDATA = append(slices.Clone((*sets)[i].RDATA), other[0])
	}},
	{"NXDOMAIN", func(r *wire.Response, _ *[]wire.RRset, _ int) { r.RCODE = wire.RCODENXDomain }},
	{"NOERROR", func(r *wire.Response, _ *[]wire.RRset, _ int) { r.RCODE = wire.RCODENoError }},
}

// flip changes one bit of an octet of the first of several fields, counted from the end if at < 0.
func flip(fields *[][]byte, at int) {
	if len(*fields) == 0 {
		return
	}
	*fields = slices.Clone(*fields)
	b := slices.Clone((*fields)[0])
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 1
	(*fields)[0] = b
}

// TestJudgeMutated changes every RRset of every response in every way: what comes out is true, or
// does not pass.
func TestJudgeMutated(t *testing.T) {
	for _, options := range []string{"", "nsec3", "optout", "compact"} {
		w := newWorld(t, signedTexts(options)...)
		c := newClient(w, Config{MaxFailed: 1 << 20, MaxVerified: 1 << 20})
		for _, e := range expectations {
			passed := 0
			for _, m := range mutations {
				passed += c.checkMutations(t, e, m)
			}
			if e.status == wire.Secure && passed > 24 {
				t.Errorf("%s %s %s: %d mutations pass", options, e.name, e.qtype, passed)
			}
		}
	}
}

// checkMutations applies m to each RRset of a response, and counts how often it is none the worse.
func (c *client) checkMutations(t *testing.T, e expectation, m mutation) (passed int) {
	for section := range 2 {
		for i := 0; ; i++ {
			msg, z := c.w.respond(e.name, dns.StringToType[e.qtype])
			f := &Fetched{Response: *parse(t, msg)}
			sets := [...]*[]wire.RRset{&f.Answer, &f.Authority}[section]
			if i >= len(*sets) {
				break
			}
			what := fmt.Sprintf("%s %s, %s: %s", e.name, e.qtype, describe(&(*sets)[i]), m.name)
			m.apply(&f.Response, sets, i)
			var cost Cost
			f.Verdict = c.v.Judge(context.Background(), &f.Response, wire.MustName(z.origin), c, &cost)
			if why := c.w.contradiction(f); why != "" {
				t.Errorf("%s: %s", what, why)
			}
			if f.Status == wire.Secure {
				passed++
			}
		}
	}
	return passed
}

// pool is every RRset that a hostile server could put into a response: all that the zones sign.
func (w *world) pool() (sets []wire.RRset) {
	var origins []string
	for o := range w.zones {
		origins = append(origins, o)
	}
	sort.Strings(origins)
	for _, o := range origins {
		z := w.zones[o]
		var names []string
		for n := range z.records {
			names = append(names, n)
		}
		sort.Strings(names)
		var m dns.Msg
		for _, n := range names {
			for t, rrs := range z.records[n] {
				if cut := z.cutAbove(n); cut == "" || cut == n && t == dns.TypeDS {
					m.Ns = append(m.Ns, z.sign(rrs)...)
				}
			}
		}
		for i := range z.names {
			if !z.unsigned {
				z.addDenial(&m, i)
			}
		}
		sets = append(sets, parseSets(w.tb, &m)...)
	}
	sort.Slice(sets, func(i, k int) bool { return describe(&sets[i]) < describe(&sets[k]) })
	return sets
}

func parseSets(tb testing.TB, m *dns.Msg) []wire.RRset {
	m.SetQuestion(".", dns.TypeNone)
	return parse(tb, m).Authority
}

var hostileQuestions = func() (q []expectation) {
	q = slices.Clone(expectations)
	for _, name := range []string{"bare.example.", "sub.example.", "example.", "dname.example.", "wild.example.", "www.example."} {
		for _, prefix := range []string{"", "a.", "*.", "a.b."} {
			for _, t := range []string{"A", "DS", "NS", "TXT", "CNAME", "DNSKEY", "ANY"} {
				q = append(q, expectation{name: prefix + name, qtype: t})
			}
		}
	}
	return q
}()

// compose makes the response that pick chooses from the pool, most of it denials of the zone asked.
func (h *hostile) compose(q expectation, pick func(int) int) *wire.Response {
	pool := h.pool
	denials := h.denials[h.c.w.zoneFor(q.name, dns.StringToType[q.qtype]).origin]
	r := &wire.Response{QName: wire.MustName(q.name), QType: wire.Type(dns.StringToType[q.qtype])}
	if pick(2) == 1 {
		r.RCODE = wire.RCODENXDomain
	}
	if pick(4) == 0 {
		s := pool[pick(len(pool))]
		if pick(2) == 0 {
			s.Owner = r.QName
		}
		r.Answer = append(r.Answer, s)
	}
	for range pick(6) {
		s := pool[pick(len(pool))]
		if len(denials) > 0 && pick(4) > 0 {
			s = denials[pick(len(denials))]
		}
		if pick(16) == 0 {
			s.Sigs = nil
		}
		r.Authority = append(r.Authority, s)
	}
	return r
}

// TestHostile composes responses of genuine RRsets at random: no proof may come of them that the
// zones contradict.
func TestHostile(t *testing.T) {
	for _, options := range []string{"", "nsec3", "optout"} {
		t.Run(options, func(t *testing.T) {
			w := newWorld(t, signedTexts(options)...)
			h := newHostile(w)
			random := rand.New(rand.NewPCG(1, 2))
			proofs := 0
			for range 4000 {
				proofs += h.check(t, random.IntN)
			}
			if proofs < 80 {
				t.Errorf("only %d of the responses pass for secure denials", proofs)
			}
		})
	}
}

// hostile is a server that has seen everything and says anything.
type hostile struct {
	c       *client
	pool    []wire.RRset
	denials map[string][]wire.RRset // by zone
	origins []string
}

func newHostile(w *world) *hostile {
	h := &hostile{c: newClient(w, Config{MaxFailed: 1 << 30, MaxVerified: 1 << 30}), pool: w.pool(), denials: map[string][]wire.RRset{}}
	for o := range w.zones {
		h.origins = append(h.origins, o)
	}
	for _, s := range h.pool {
		if s.Type == wire.TypeNSEC || s.Type == wire.TypeNSEC3 {
			sig, _ := wire.ParseRRSIG(s.Sigs[0])
			h.denials[sig.Signer.String()] = append(h.denials[sig.Signer.String()], s)
		}
	}
	sort.Strings(h.origins)
	return h
}

// check judges one composed response and returns 1 if it passes for a secure denial.
func (h *hostile) check(t testing.TB, pick func(int) int) int {
	q := hostileQuestions[pick(len(hostileQuestions))]
	h.c.w.tb = t
	r := h.compose(q, pick)
	zone := ""
	if i := pick(len(h.origins) + 1); i > 0 {
		zone = h.origins[i-1]
	}
	f := &Fetched{Response: *r}
	var cost Cost
	hint := wire.Name("")
	if zone != "" {
		hint = wire.MustName(zone)
	}
	f.Verdict = h.c.v.Judge(context.Background(), &f.Response, hint, h.c, &cost)
	if why := h.c.w.contradiction(f); why != "" {
		var sets []string
		for i := range r.Authority {
			sets = append(sets, describe(&r.Authority[i]))
		}
		t.Errorf("%s %s from %s, %v with %s: %s", q.name, q.qtype, zone, r.RCODE, strings.Join(sets, ", "), why)
	}
	if f.Status == wire.Secure && f.Denial != NotDenied {
		return 1
	}
	return 0
}

// FuzzHostile is TestHostile with the fuzzer picking.
func FuzzHostile(f *testing.F) {
	var worlds []*hostile
	for _, options := range []string{"", "nsec3", "optout"} {
		worlds = append(worlds, newHostile(newWorld(f, signedTexts(options)...)))
	}
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Fuzz(func(t *testing.T, data []byte) {
		pick := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			v := int(data[0])
			if data = data[1:]; n > 256 && len(data) > 0 {
				v, data = v<<8|int(data[0]), data[1:]
			}
			return v % n
		}
		worlds[pick(len(worlds))].check(t, pick)
	})
}

package denial

import (
	"bytes"

	"bonsai/wire"
)

// Lookup answers a question from what is held: NXDOMAIN or NODATA with its proof, or the RRset or alias
// that a wildcard stands for, with the proof that it may. All RRsets are secure and made anew, with
// what is left of their TTLs. It returns nil where what is held does not tell. It allocates.
func (s *Store) Lookup(name wire.Name, t wire.Type, now uint32) *wire.Response {
	if t.IsMeta() || t == wire.TypeRRSIG || t == wire.TypeNSEC3 {
		return nil
	}
	s.stats.lookups.Add(1)
	s.mu.RLock()
	defer s.mu.RUnlock()
	z := s.deepest(name.Canonical(), t)
	if z == nil || !s.readable(z.soa, now) {
		return nil
	}
	q := question{s: s, z: z, name: name, t: t, now: now}
	var ok bool
	if z.list[nsecKind].len() > 0 {
		ok = q.byNSEC()
	}
	if !ok && z.list[nsec3Kind].len() > 0 {
		ok = q.byNSEC3()
	}
	if !ok {
		return nil
	}
	return q.response()
}

// deepest returns the deepest zone held that may hold name. RFC 4035 §3.1.4.1: of a DS it is the
// parent.
func (s *Store) deepest(name wire.Name, t wire.Type) *zone {
	if len(s.zones) == 0 {
		return nil
	}
	if t == wire.TypeDS && name != wire.Root {
		name = name.Parent()
	}
	for ; ; name = name.Parent() {
		if z := s.zones[name]; z != nil {
			return z
		}
		if name == wire.Root {
			return nil
		}
	}
}

// question is a lookup on its way, with what answers it.
type question struct {
	s    *Store
	z    *zone
	name wire.Name
	t    wire.Type
	now  uint32

	nxdomain bool
	wildcard ref // the RRset that answers; 0: the answer is a denial
	proofs   [3]ref
	count    int
}

func (q *question) use(at ref) {
	for _, have := range q.proofs[:q.count] {
		if have == at {
			return
		}
	}
	q.proofs[q.count] = at
	q.count++
}

func (q *question) response() *wire.Response {
	s, c := q.s, &q.s.stats
	r := &wire.Response{QName: q.name, QType: q.t}
	if q.wildcard != 0 {
		set := s.rrset(q.z, q.wildcard, q.now)
		set.Owner = q.name
		r.Answer = []wire.RRset{set}
		c.wildcards.Add(1)
	} else {
		r.Authority = append(r.Authority, s.rrset(q.z, q.z.soa, q.now))
		if q.nxdomain {
			r.RCODE = wire.RCODENXDomain
			c.names.Add(1)
		} else {
			c.types.Add(1)
		}
	}
	for _, at := range q.proofs[:q.count] {
		r.Authority = append(r.Authority, s.rrset(q.z, at, q.now))
	}
	return r
}

// denies says whether the types at a name deny that of the question.
func (q *question) denies(types wire.Bitmap, apex bool) bool {
	// RFC 6840 §4.3: with the CNAME bit there is an answer.
	if types.Has(q.t) || types.Has(wire.TypeCNAME) {
		return false
	}
	if q.t == wire.TypeDS {
		// RFC 6840 §4.4: the child's side knows nothing of a DS; the root has no parent.
		return !types.Has(wire.TypeSOA) || apex && q.z.name == wire.Root
	}
	return !isDelegation(types)
}

// isDelegation says that types are of the parent's side of a zone cut (RFC 6840 §4.1).
func isDelegation(types wire.Bitmap) bool { return types.Has(wire.TypeNS) && !types.Has(wire.TypeSOA) }

// byNSEC looks among the zone's NSECs.
func (q *question) byNSEC() bool {
	var buf [maxKey + len(wildcardLabel)]byte
	key := appendKey(buf[:0], q.name, q.z.name)
	x, found := q.nsecAt(key)
	switch {
	case x == nil:
		return false
	case found:
		q.use(x.at)
		return q.denies(x.types, len(key) == 0)
	case !x.covers(key):
		return false
	}
	q.use(x.at)
	if isBelow(x.next, key) {
		return true // an empty non-terminal has no types at all
	}
	// Owner and next name are neighbours: no other name has more in common with this one.
	encloser := key[:max(common(key, x.owner), common(key, x.next))]
	wildcard := append(bytes.Clone(encloser), wildcardLabel...)
	w, found := q.nsecAt(wildcard)
	switch {
	case w == nil:
		return false
	case found && q.denies(w.types, false):
		q.use(w.at)
		return true
	case found:
		return q.expand(wildcard, w.types)
	case !w.covers(wildcard):
		return false
	}
	q.use(w.at)
	q.nxdomain = !isBelow(w.next, wildcard)
	return true
}

// nsecAt returns the live NSEC at or before a key.
func (q *question) nsecAt(key []byte) (x *span, found bool) {
	at, found := q.z.list[nsecKind].atOrBefore(&q.s.ring, key, false)
	if !q.s.readable(at, q.now) {
		return nil, false
	}
	n := q.s.nsecSpan(q.z, at)
	return &n, found
}

// covers says whether nothing lies at a key, which is above that of the owner. RFC 6840 §4.1, RFC
// 6672 §5.3.4.1: an NSEC of a delegation or DNAME tells nothing of what is below it.
func (x *span) covers(key []byte) bool {
	if len(x.next) > 0 && bytes.Compare(key, x.next) >= 0 {
		return false
	}
	return !isBelow(key, x.owner) || !isDelegation(x.types) && !x.types.Has(wire.TypeDNAME)
}

// expand answers with what is held of a wildcard: the RRset of the type, or the alias (RFC 8198
// §5.3).
func (q *question) expand(wildcard []byte, types wire.Bitmap) bool {
	t := q.t
	if !types.Has(t) {
		t = wire.TypeCNAME
	}
	if isDelegation(types) || types.Has(wire.TypeDNAME) {
		return false
	}
	key := append(wildcard, byte(t>>8), byte(t))
	at, found := q.z.list[wildcardKind].atOrBefore(&q.s.ring, key, false)
	if !found || !q.s.readable(at, q.now) {
		return false
	}
	q.wildcard = at
	return true
}

// maxHashes bounds the names hashed in one lookup.
const maxHashes = 8

// byNSEC3 looks among the zone's NSEC3s (RFC 5155 §8.4 to §8.8).
func (q *question) byNSEC3() bool {
	q.count = 0
	x, found := q.nsec3At(q.name)
	if found {
		q.use(x.at)
		return q.denies(x.types, len(q.name) == len(q.z.name))
	}
	encloser, next := q.name, x
	for range maxHashes {
		if len(encloser) <= len(q.z.name) {
			return false
		}
		encloser = encloser.Parent()
		if x, found = q.nsec3At(encloser); found {
			break
		}
		next = x
	}
	if !found || next == nil || isDelegation(x.types) || x.types.Has(wire.TypeDNAME) {
		return false
	}
	wildcard, ok := encloser.Prepend("*")
	if !ok {
		return false
	}
	w, found := q.nsec3At(wildcard)
	switch {
	case w == nil:
		return false
	case found && !q.denies(w.types, false):
		q.use(next.at)
		return q.expand(append(appendKey(nil, encloser, q.z.name), wildcardLabel...), w.types)
	}
	q.nxdomain = !found
	q.use(x.at)
	q.use(next.at)
	q.use(w.at)
	return true
}

// nsec3At returns the live NSEC3 at a name, or the one that covers it, or nil.
func (q *question) nsec3At(name wire.Name) (x *span, found bool) {
	var buf [hashLength]byte
	hash := q.s.config.Hash(buf[:0], name, q.z.salt, q.z.iterations)
	at, found := q.z.list[nsec3Kind].atOrBefore(&q.s.ring, hash, true)
	if !q.s.readable(at, q.now) {
		return nil, false
	}
	n := q.s.nsec3Span(at)
	if !found && !n.coversHash(hash) {
		return nil, false
	}
	return &n, found
}

// coversHash says whether a hash, which is not the owner's, lies before the next one.
func (x *span) coversHash(hash []byte) bool {
	before := bytes.Compare(hash, x.next) < 0
	if bytes.Compare(x.owner, x.next) < 0 {
		return before && bytes.Compare(x.owner, hash) < 0
	}
	return before || bytes.Compare(x.owner, hash) < 0 && !bytes.Equal(hash, x.next)
}

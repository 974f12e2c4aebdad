package cache

// Eviction. A new entry goes to the probation ring. Leaving that, it goes to the main ring if it was
// used twice since it was stored, or if main has room or what is worth less than it; else it is
// forgotten, and a ghost tells that it was there and whether it was used. Coming back it is taken for
// used once if there is such a ghost, and goes to main at once if that was used. So it takes three
// questions for a name to push others out of main, however far between; a flood of names asked for
// once or twice passes by. An entry that leaves main is carried to the front again, with one use
// less, if it was used; else it is forgotten.

// maxMoves is how many entries are copied an insert, at most.
const maxMoves = 32

// promotion is how many uses bring an entry from probation to main.
const promotion = 2

// maxLooks is how far an entry that has earned no place looks for one in main.
const maxLooks = 8

const (
	// maxRetreat is what part of main is given to the index in one lap, at most.
	maxRetreat = 32
	// tailLead is how many entries leave for one that comes while that is done.
	tailLead = 8
)

// tail is what lies at the tail of a ring.
type tail struct {
	off, n  uint32 // where, and how many bytes in all
	live    bool   // a slot points at it
	slot    slotRef
	place   place
	expires uint32
}

// oldest returns what lies at the tail of r.
func (s *shard) oldest(r *ring) (t tail) {
	t.off = r.tail
	n, prefix := readPrefix(s.mem[t.off:])
	if prefix == 0 {
		t.n = n
		return t
	}
	e := s.entry(t.off)
	t.n = regionSize(n)
	k := keyOf(e)
	t.place = s.placeOf(k.hash)
	t.slot, t.live = s.locate(t.off, &t.place)
	t.expires = e.Expires()
	return t
}

// use returns how often the live entry was used.
func (t *tail) use() uint32 { return t.slot.b.use(t.slot.i) }

// worthless says whether the live entry is kept for nobody: it is beyond the stale limit. RFC 8767 §5:
// until then what is expired may be all that there is in an outage, so that it goes for want of room
// alone, as what has no time left.
func (s *shard) worthless(t *tail, now uint32) bool { return isOver(t.expires, now, s.stale.Load()) }

// allocate makes room for n bytes in r.
func (s *shard) allocate(r *ring, n, now uint32, moves *int) (off uint32, ok bool) {
	for !r.fit(n) {
		if r.empty() {
			return 0, false
		}
		s.leave(r, now, moves)
	}
	return r.take(n), true
}

// leave takes what lies at the tail of r away, or to where it belongs now.
func (s *shard) leave(r *ring, now uint32, moves *int) {
	t := s.oldest(r)
	r.release(t.n)
	switch {
	case !t.live:
	case s.worthless(&t, now):
		s.expire(&t)
	case r == &s.main:
		s.leaveMain(&t, moves)
	default:
		s.leaveProbation(&t, now, moves)
	}
}

// makeWay brings main's limit down to wish, for the index, as far as that goes. What is written above
// it stays until the tail comes there; in that last stretch the tail goes faster than the head
// follows, and begins again before the head has come to the end.
func (s *shard) makeWay(wish, now uint32, moves *int) {
	r := &s.main
	wish = max(wish, r.limit-(r.limit-r.base)/maxRetreat)
	for lead := tailLead; lead > 0 && r.wrapped && r.tail > wish; lead-- {
		s.leave(r, now, moves)
	}
	r.limit = min(r.limit, max(wish, r.extent()))
}

// leaveMain carries a used entry to the front of main, or forgets it.
func (s *shard) leaveMain(t *tail, moves *int) {
	switch use := t.use(); {
	case use == 0:
		s.forget(t.slot, &s.counts.Unused)
	case *moves == 0 || !s.main.fit(t.n):
		s.forget(t.slot, &s.counts.Hurried)
	default:
		s.carry(t, s.main.take(t.n), use-1, moves)
	}
}

// leaveProbation brings an entry to main, or forgets it.
func (s *shard) leaveProbation(t *tail, now uint32, moves *int) {
	use := t.use()
	switch {
	case *moves == 0:
	case use >= promotion:
		if to, ok := s.allocate(&s.main, t.n, now, moves); ok {
			s.carry(t, to, 0, moves)
			return
		}
	case s.main.fit(t.n) || t.expires > now && s.clearJunk(t, now, moves):
		s.carry(t, s.main.take(t.n), use, moves)
		return
	}
	s.remember(&t.place, use > 0)
	s.forget(t.slot, &s.counts.Unused)
}

// expire forgets an entry that is worthless. If it was used, that is remembered.
func (s *shard) expire(t *tail) {
	if t.use() > 0 {
		s.remember(&t.place, true)
	}
	s.forget(t.slot, &s.counts.Expired)
}

// clearJunk makes room in main for an entry that has earned none, of what is worth less than it: the
// unused that is expired, or will be in less than seven tenths of its time.
func (s *shard) clearJunk(candidate *tail, now uint32, moves *int) bool {
	for looks := maxLooks; looks > 0 && !s.main.fit(candidate.n); looks-- {
		if s.main.empty() {
			return false
		}
		t := s.oldest(&s.main)
		switch {
		case !t.live:
			s.main.release(t.n)
		case s.worthless(&t, now):
			s.main.release(t.n)
			s.expire(&t)
		case t.use() > 0:
			s.main.release(t.n)
			s.leaveMain(&t, moves)
		case remaining(t.expires, now)*10 < remaining(candidate.expires, now)*7:
			s.main.release(t.n)
			s.forget(t.slot, &s.counts.Unused)
		default:
			return false
		}
	}
	return s.main.fit(candidate.n)
}

// remaining returns the seconds until expires.
func remaining(expires, now uint32) uint64 { return uint64(max(expires, now) - now) }

// carry copies an entry that has left its ring to to, in main.
func (s *shard) carry(t *tail, to, use uint32, moves *int) {
	*moves--
	s.counts.Carried++
	b := t.slot.b
	if overlaps := to < t.off && to+t.n > t.off; overlaps {
		// It overwrites itself, so that readers must wait.
		s.begin(b)
		defer s.end(b)
	}
	if to != t.off {
		move(s.mem, to, t.off, t.n)
		s.repoint(t.slot, to)
	}
	b.setUse(t.slot.i, use)
}

// remember leaves a ghost of a key.
func (s *shard) remember(p *place, used bool) {
	g := p.ghost
	if used {
		g |= ghostTwice
	}
	s.bucket(addressA(p.a, s.buckets.Load())).remember(g)
}

// recall says what ghost there is of a key: of one that was stored, and maybe of one used then, too.
func (s *shard) recall(p *place) (stored, used bool) {
	g, stored := s.bucket(addressA(p.a, s.buckets.Load())).recall(p.ghost)
	return stored, g&ghostTwice != 0
}

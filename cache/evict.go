package cache

// Eviction. A new entry goes to the probation ring. Leaving that, it goes to the main ring if it was
// used twice since it was stored, or if main has room for it; else it is forgotten, and a ghost tells
// that it was there and whether it was used. A key that comes back while there is a ghost of it goes
// to main at once: so it takes two or three questions for a name to push others out of main, however
// far between, and a flood of names asked for once or twice passes by. An entry that leaves main is
// carried to the front again, with one use less, if it was used; else it is forgotten. What is expired
// goes before what is not, but where there is room for all: see worthless and clearExpired.

import (
	"sync/atomic"

	"bonsai/cache/entry"
)

// maxMoves is how many entries are copied an insert, at most.
const maxMoves = 32

const (
	// promotion is how many uses bring an entry from probation to main.
	promotion = 2
	// returned is how many uses an entry is taken to have had that comes back to where its ghost says
	// that it was used.
	returned = 2
	// maxExpired is how many expired entries go from main for one that leaves probation unused, and
	// lasting for how many seconds that has to live yet. What lives shorter is seldom asked for in time.
	maxExpired = 2
	lasting    = 300
)

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

// touchTail loads from what will leave next, so that the wait for it and those for the index overlap.
func (s *shard) touchTail() {
	off := s.probation.tail &^ (word - 1)
	atomic.LoadUint64(word64(s.mem, off))
	atomic.LoadUint64(word64(s.mem, min(off+64, s.size-word)))
}

// tailExpires returns when what lies at the tail of r expires, live or not; 0 for a free stretch.
func (s *shard) tailExpires(r *ring) uint32 {
	n, prefix := readPrefix(s.mem[r.tail:])
	if prefix == 0 {
		return 0
	}
	return entry.Entry(s.mem[r.tail+prefix:][:n]).Expires()
}

// use returns how often the live entry was used.
func (t *tail) use() uint32 { return t.slot.b.use(t.slot.i) }

// worthless says whether the live entry is kept for nobody: it is beyond the stale limit. RFC 8767 §5:
// until then what is expired may be all that there is in an outage, so that it goes for want of room
// alone, but before what is not expired.
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
		s.expire(&t, r)
	case r == &s.main:
		s.leaveMain(&t, now, moves)
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
func (s *shard) leaveMain(t *tail, now uint32, moves *int) {
	switch use := t.use(); {
	case use == 0:
		s.fade(t, now)
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
	case s.main.fit(t.n) || use == 0 && remaining(t.expires, now) >= lasting && s.clearExpired(t.n, now):
		s.carry(t, s.main.take(t.n), use, moves)
		return
	}
	s.remember(&t.place, use > 0)
	s.forget(t.slot, &s.counts.Unused)
}

// fade forgets an entry of main that nobody uses. Of one that is expired a ghost is left: it may have
// been asked for as often as its TTL let be seen.
func (s *shard) fade(t *tail, now uint32) {
	if t.expires <= now {
		s.remember(&t.place, false)
	}
	s.forget(t.slot, &s.counts.Unused)
}

// expire forgets an entry that is worthless, but not that it was there.
func (s *shard) expire(t *tail, r *ring) {
	if use := t.use(); use > 0 || r == &s.main {
		s.remember(&t.place, use > 0)
	}
	s.forget(t.slot, &s.counts.Expired)
}

// clearExpired makes room for n bytes in main, of what is expired and unused there or left over. It is for
// entries that were not used: those that were leave a better ghost, and to let them in would let in
// floods of names asked for twice.
func (s *shard) clearExpired(n, now uint32) bool {
	r := &s.main
	for looks := maxExpired; looks > 0 && !r.fit(n); looks-- {
		if r.empty() || s.tailExpires(r) > now {
			return false
		}
		t := s.oldest(r)
		switch {
		case !t.live:
		case s.worthless(&t, now):
			s.expire(&t, r)
		case t.use() == 0:
			s.fade(&t, now)
		default:
			return false
		}
		r.release(t.n)
	}
	return r.fit(n)
}

// remaining returns the seconds until expires.
func remaining(expires, now uint32) uint32 { return max(expires, now) - now }

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
func (s *shard) remember(p *place, used bool) { s.ghostsOf(p).remember(p.ghost, used) }

// ghostsOf returns the bucket with a key's ghost.
func (s *shard) ghostsOf(p *place) *bucket { return s.bucket(addressA(p.a, s.buckets.Load())) }

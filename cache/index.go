package cache

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// The index of a shard is an array of buckets that grows downwards from the end of its memory.
// A key has two candidate buckets and its slot is in one of them: there is no chain to walk, so
// that names chosen to collide cost a bounded look and at worst each other's places.
//
//	size  field
//	  32  8 slots: where in the shard the entry lies, and above that more bits of the hash
//	   8  a tag of 8 bits for each slot, 0 where it is free
//	  20  ghosts of entries that were forgotten (ghost.go)
//	   4  meta: two bits of use for each slot, and the bucket's version
const (
	slots      = 8
	bucketSize = 64
)

type bucket struct {
	slot         [slots]uint32
	tags         uint64
	used, unused uint64 // ghosts, for the holder of the lock
	late         uint32 // and older ones, unused
	meta         uint32
}

const (
	versionOne = 1 << (2 * slots)   // one in the version, which is the rest of meta
	maxUse     = 3                  // uses counted since an entry was stored or last moved
	everyByte  = 0x0101010101010101 // times a byte: that byte eight times
)

const (
	// The index grows when it has more entries than loadNum/loadDen of its slots, by at most
	// maxSplits buckets an insert. With fuller buckets the ones that are to take an entry are often
	// both full, and to make room in one costs more than all else of an insert.
	loadNum, loadDen = 4, 5
	maxSplits        = 2
	// Where free slots are hard to find it grows with more than pressedNum/pressedDen of its slots.
	pressedNum, pressedDen = 5, 8
	// spareShare is what part of the index's size it may grow by at any time, without waiting for the
	// main ring to come to its end.
	spareShare = 32
	// maxSearch is how many entries are looked at in third buckets, to find one with a free slot.
	maxSearch = 8 * slots
)

// busy says whether the bucket is being changed in a way that readers must not see half of.
func busy(meta uint32) bool { return meta&versionOne != 0 }

// version returns what meta says without the bits of use.
func version(meta uint32) uint32 { return meta / versionOne }

// begin and end enclose a change that readers must not see half of. A change of one slot in one
// atomic store needs neither.
func (s *shard) begin(b *bucket) {
	s.clock.Add(1)
	atomic.AddUint32(&b.meta, versionOne)
}

func (s *shard) end(b *bucket) { atomic.AddUint32(&b.meta, versionOne) }

// use returns the count of uses of slot i.
func (b *bucket) use(i int) uint32 { return atomic.LoadUint32(&b.meta) >> (2 * i) & maxUse }

// setUse sets it. Most slots have it already, and then nothing is written.
func (b *bucket) setUse(i int, n uint32) {
	if b.use(i) != n {
		atomic.AndUint32(&b.meta, ^(maxUse << (2 * i)))
		atomic.OrUint32(&b.meta, n<<(2*i))
	}
}

// mark counts a use of slot i, seen under meta. Most hits find the count full and write nothing. A
// mark that comes between two others is lost, which nobody misses.
func (b *bucket) mark(i int, meta uint32) {
	if meta>>(2*i)&maxUse < maxUse {
		atomic.CompareAndSwapUint32(&b.meta, meta, meta+1<<(2*i))
	}
}

// tag returns the tag of slot i, 0 where it is free.
func (b *bucket) tag(i int) uint8 { return uint8(b.tags >> (8 * i)) }

func (b *bucket) setTag(i int, t uint8) {
	atomic.StoreUint64(&b.tags, b.tags&^(0xFF<<(8*i))|uint64(t)<<(8*i))
}

// A match is a set of slots: the lowest bit of the i-th byte stands for slot i.
type match uint64

// matches returns the slots whose tag is t, of a bucket's tags.
func matches(tags uint64, t uint8) match {
	const low = 0x7F * everyByte
	x := tags ^ uint64(t)*everyByte
	return match(^((x&low + low) | x | low) >> 7)
}

// first returns the lowest slot of m, which has one.
func (m match) first() int { return bits.TrailingZeros64(uint64(m)) / 8 }

// free returns the free slots.
func (b *bucket) free() match { return matches(b.tags, 0) }

// filled counts the slots in use.
func (b *bucket) filled() int { return slots - bits.OnesCount64(uint64(b.free())) }

// place is what the hash of a key says within its shard.
type place struct {
	a, b  uint32 // the candidate buckets, to be cut to the count of buckets
	tag   uint8  // never 0
	ghost uint32 // ghostBits, never 0
	extra uint32 // bits above the offset in the slot
}

// placeOf splits a key's hash. The bits that say where are the low ones of either half. The tag is
// taken from the top of the first, so that it stays apart below 2^24 buckets, and the extra bits from
// the top of the second. A ghost lies in the first candidate and so can have what leads to the other.
func (s *shard) placeOf(h uint64) place {
	return place{
		a:     uint32(h),
		b:     uint32(h >> 32),
		tag:   max(1, uint8(h>>24)),
		ghost: max(1, uint32(h>>32)&(1<<ghostBits-1)),
		extra: uint32(h>>32) &^ (1<<s.offsetBits - 1),
	}
}

// The index grows by linear hashing: bucket n takes what belongs there from a bucket in front that
// had it before, so that as the count goes from a base to its double those split already hold half
// of what the others do. The two candidates are cut by different bases, powers of two and three
// times powers of two: each new bucket relieves two others, and where the one sort is uneven the
// other is not.

// addressA cuts a first candidate to n buckets: to as many low bits as n has or, where that is
// beyond them, one less.
func addressA(candidate, n uint32) uint32 {
	mask := uint32(1)<<bits.Len32(n-1) - 1
	if i := candidate & mask; i < n {
		return i
	}
	return candidate & (mask >> 1)
}

// addressB cuts a second candidate to n buckets: three times what some low bits say, and which of
// three comes from the top.
func addressB(candidate, n uint32) uint32 {
	third := uint32(uint64(candidate) * 3 >> 32)
	mask := uint32(1)<<bits.Len32((n-1)/3) - 1
	if i := candidate&mask*3 + third; i < n {
		return i
	}
	return candidate&(mask>>1)*3 + third
}

// parents returns the buckets that hold what belongs to bucket n until that is there.
func parents(n uint32) (a, b uint32) {
	return n - 1<<(bits.Len32(n)-1), n - 3<<(bits.Len32(n/3)-1)
}

// candidates returns the buckets of a key among n.
func (s *shard) candidates(p *place, n uint32) (a, b *bucket) {
	return s.bucket(addressA(p.a, n)), s.bucket(addressB(p.b, n))
}

// bucket returns the i-th bucket.
func (s *shard) bucket(i uint32) *bucket {
	return (*bucket)(unsafe.Pointer(&s.mem[s.size-bucketSize*(i+1)]))
}

// slotRef is a slot of a bucket, for the holder of the lock.
type slotRef struct {
	b *bucket
	i int
}

// offset returns where the entry lies that a slot's word speaks of; 0 for a free slot.
func (s *shard) offset(word uint32) uint32 { return word & (1<<s.offsetBits - 1) }

// at returns where the entry of a slot lies.
func (s *shard) at(r slotRef) uint32 { return s.offset(r.b.slot[r.i]) }

// repoint says that the entry of a slot lies at off now.
func (s *shard) repoint(r slotRef, off uint32) {
	w := &r.b.slot[r.i]
	atomic.StoreUint32(w, *w&^(1<<s.offsetBits-1)|off)
}

// find returns the slot of a key.
func (s *shard) find(k *Key, p *place) (slotRef, bool) {
	a, b := s.candidates(p, s.buckets.Load())
	for _, b := range [2]*bucket{a, b} {
		for m := matches(b.tags, p.tag); m != 0; m &= m - 1 {
			r := slotRef{b, m.first()}
			w := b.slot[r.i]
			if off := s.offset(w); w^off == p.extra && k.finds(s.entry(off)) {
				return r, true
			}
		}
	}
	return slotRef{}, false
}

// locate returns the slot that points at off, where an entry with this place lies or lay.
func (s *shard) locate(off uint32, p *place) (slotRef, bool) {
	a, b := s.candidates(p, s.buckets.Load())
	atomic.LoadUint64(&b.tags) // so that the waits for both overlap
	for _, b := range [2]*bucket{a, b} {
		for m := matches(b.tags, p.tag); m != 0; m &= m - 1 {
			if i := m.first(); s.offset(b.slot[i]) == off {
				return slotRef{b, i}, true
			}
		}
	}
	return slotRef{}, false
}

// insert makes a slot for an entry at off.
func (s *shard) insert(p *place, off, use, now uint32) {
	a, b := s.candidates(p, s.buckets.Load())
	r := slotRef{b: a}
	if b.filled() < a.filled() {
		r.b = b
	}
	if free := r.b.free(); free != 0 {
		r.i = free.first()
	} else {
		r = s.makeRoom(a, b, now)
	}
	s.fill(r, p.extra|off, p.tag, use)
	s.entries++
}

// fill writes a free slot.
func (s *shard) fill(r slotRef, word uint32, tag uint8, use uint32) {
	r.b.setUse(r.i, use)
	atomic.StoreUint32(&r.b.slot[r.i], word)
	r.b.setTag(r.i, tag)
}

// clear frees a slot.
func (s *shard) clear(r slotRef) {
	atomic.StoreUint32(&r.b.slot[r.i], 0)
	r.b.setTag(r.i, 0)
}

// makeRoom frees a slot in one of two full buckets: by moving an entry to its other bucket, if need be
// after moving one from there to a third, or else by forgetting the one that is worth least.
func (s *shard) makeRoom(a, b *bucket, now uint32) slotRef {
	if s.walks > 0 {
		return s.sacrifice(a, b, now)
	}
	var others [2 * slots]*bucket
	for half, from := range [2]*bucket{a, b} {
		s.touchSlots(from)
		for i := range slots {
			r := slotRef{from, i}
			to := s.other(r)
			if to.filled() < slots {
				s.displace(r, to)
				return r
			}
			others[half*slots+i] = to
		}
	}
	s.pressed = true
	if n, ok := s.relieveAny(&others, a, b); ok {
		r := slotRef{a, n}
		if n >= slots {
			r = slotRef{b, n - slots}
		}
		s.displace(r, others[n])
		return r
	}
	return s.sacrifice(a, b, now)
}

// relieveAny frees a slot in one of some full buckets, by moving an entry from there to a third, and
// says in which.
func (s *shard) relieveAny(full *[2 * slots]*bucket, a, b *bucket) (which int, ok bool) {
	looks := maxSearch
	for n, via := range full {
		if via == a || via == b {
			continue // as all are where names were chosen to collide
		}
		for i := range slots {
			r := slotRef{via, i}
			if to := s.other(r); to.filled() < slots {
				s.displace(r, to)
				return n, true
			}
		}
		if looks -= slots; looks < 0 {
			break
		}
	}
	return 0, false
}

// placeOfSlot returns the place of a slot's entry.
func (s *shard) placeOfSlot(r slotRef) place { return s.placeOf(keyOf(s.entry(s.at(r))).hash) }

// other returns the bucket that a slot's entry could be in instead, or its own where that is both.
func (s *shard) other(r slotRef) *bucket {
	p := s.placeOfSlot(r)
	a, b := s.candidates(&p, s.buckets.Load())
	if a != r.b {
		return a
	}
	return b
}

// displace moves a slot to another bucket that has a free one.
func (s *shard) displace(r slotRef, to *bucket) {
	s.counts.Displaced++
	s.begin(r.b)
	s.begin(to)
	s.moveSlot(r, to)
	s.end(to)
	s.end(r.b)
}

func (s *shard) moveSlot(r slotRef, to *bucket) {
	free := slotRef{to, to.free().first()}
	s.fill(free, r.b.slot[r.i], r.b.tag(r.i), r.b.use(r.i))
	s.clear(r)
}

// sacrifice forgets the least used entry of two full buckets, an expired one first among equals, and
// takes one use from the others, so that none of them stays for ever.
func (s *shard) sacrifice(a, b *bucket, now uint32) slotRef {
	var worst slotRef
	least := ^uint32(0)
	for _, from := range [2]*bucket{a, b} {
		for i := range slots {
			score := 2 * from.use(i)
			if r := (slotRef{from, i}); s.entry(s.at(r)).Expires() > now {
				score++
			}
			if score < least {
				worst, least = slotRef{from, i}, score
			}
			if u := from.use(i); u > 0 {
				from.setUse(i, u-1)
			}
		}
	}
	s.forget(worst, &s.counts.Crowded)
	return worst
}

// grow adds buckets while there are more entries than they carry well, a few at a time, and keeps the
// main ring out of what the index may want before the ring's lap is over.
func (s *shard) grow(now uint32, moves *int) {
	wanted := uint32(uint64(s.entries)*loadDen/(slots*loadNum)) + 1
	n := s.buckets.Load()
	// Just after it has doubled nearly all of the index's room is in the few buckets split since.
	// Where that is hard to find the index runs ahead.
	if s.pressed && s.entries/pressedNum > n*slots/pressedDen {
		wanted = max(wanted, n+1)
	}
	s.pressed = false
	for splits := 0; n < wanted && splits < maxSplits && s.walks == 0; splits++ {
		if s.main.extent() > s.size-bucketSize*(n+1) {
			break
		}
		s.split(n)
		n++
	}
	n = max(n, wanted)
	if wish := s.size - bucketSize*(n+n/spareShare); s.main.limit > wish {
		s.makeWay(wish, now, moves)
	}
}

// split adds bucket n and moves to it what can't stay in its parents then, and of what can as much as
// evens them out.
func (s *shard) split(n uint32) {
	to := s.bucket(n)
	for w := range uint32(bucketSize / 4) {
		atomic.StoreUint32(word32(s.mem, s.size-bucketSize*(n+1)+4*w), 0)
	}
	i, j := parents(n)
	a, b := s.bucket(i), s.bucket(j)
	s.touchSlots(a)
	s.touchSlots(b)
	s.begin(to)
	s.begin(a)
	if a != b {
		s.begin(b)
	}
	s.buckets.Store(n + 1)
	s.splitFrom(a, b, to)
	if a != b {
		s.splitFrom(b, a, to)
		s.end(b)
	}
	s.end(a)
	s.end(to)
}

// touchSlots loads from the entries of a bucket, so that the waits for memory overlap.
func (s *shard) touchSlots(b *bucket) {
	for _, w := range b.slot {
		atomic.LoadUint32(word32(s.mem, s.offset(w)&^3))
	}
}

// splitFrom moves slots from one parent of bucket to; mate is the other. All three are begun.
func (s *shard) splitFrom(from, mate, to *bucket) {
	n := s.buckets.Load()
	for i := range slots {
		if from.tag(i) == 0 {
			continue
		}
		r := slotRef{from, i}
		p := s.placeOfSlot(r)
		a, b := s.candidates(&p, n)
		if stays := a == from || b == from; stays {
			if (a == to || b == to) && to.filled() < from.filled()-1 {
				s.moveSlot(r, to)
			}
			continue
		}
		other := a
		if a == to {
			other = b
		}
		switch {
		case to.filled() < slots:
			s.moveSlot(r, to)
		case other == mate && mate.filled() < slots:
			s.moveSlot(r, mate)
		case other != mate && s.relieve(other, from, mate, to):
			s.begin(other)
			s.moveSlot(r, other)
			s.end(other)
		default:
			s.forget(r, &s.counts.Crowded)
		}
	}
}

// relieve sees to a free slot in b, by moving an entry to a bucket other than those of a split.
func (s *shard) relieve(b, from, mate, to *bucket) bool {
	for i := 0; i < slots && b.filled() == slots; i++ {
		r := slotRef{b, i}
		if o := s.other(r); o != from && o != mate && o != to && o.filled() < slots {
			s.displace(r, o)
		}
	}
	return b.filled() < slots
}

package cache

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"

	"bonsai/cache/entry"
)

// shard is one stretch of memory with the entries of the names that hash to it:
//
//	0        probation               main                        size
//	| unused | ring, an eighth       | ring …            ← index |
//
// The index grows down into what the main ring has not written; together they are the budget.
type shard struct {
	// What readers need; only buckets and clock ever change, and rarely.
	mem        []byte
	size       uint32
	offsetBits uint32         // how many bits an offset takes in a slot
	stale      *atomic.Uint32 // the cache's stale limit, in seconds
	buckets    atomic.Uint32  // of the index
	clock      atomic.Uint32  // counts what begin began; see read.go

	_ [64]byte // what writers write lies on other cache lines

	mu        sync.Mutex
	probation ring
	main      ring
	walks     int    // walks under way that count on each slot staying in its bucket
	entries   uint32 // slots in use
	pressed   bool   // a free slot was hard to find
	frontiers frontiers
	counts    Counts

	release func() // gives mem back

	_ [64]byte
}

const (
	// granule divides every shard's size: the largest page of the systems we run on.
	granule = 1 << 16
	// reserved bytes at the start hold nothing, for an offset of 0 means a free slot.
	reserved = word
	// probationShare is what part of a shard new entries pass through.
	probationShare = 8
	// entryShare is what part of its ring an entry may take.
	entryShare = 16
	// firstBuckets is the size of an empty shard's index: a page of it.
	firstBuckets = 4096 / bucketSize
	// sumSize is the length of the checksum behind an entry.
	sumSize = 4
)

// init makes an empty shard of memory that is zero.
func (s *shard) init(mem []byte, release func(), stale *atomic.Uint32) {
	s.mem, s.release, s.stale = mem, release, stale
	s.size = uint32(len(mem))
	s.offsetBits = uint32(bits.Len32(s.size - 1))
	s.buckets.Store(firstBuckets)
	mainBase := s.size / probationShare / touchStep * touchStep
	s.probation = ring{base: reserved, limit: mainBase, clock: &s.clock}
	s.main = ring{base: mainBase, limit: s.size - firstBuckets*bucketSize, clock: &s.clock}
	s.probation.reset()
	s.main.reset()
	s.initFrontiers()
}

// entry returns what lies at off, for the holder of the lock.
func (s *shard) entry(off uint32) entry.Entry {
	n, prefix := readPrefix(s.mem[off:])
	e := entry.Entry(s.mem[off+prefix : off+prefix+n])
	if invariants {
		checkSum(off, e)
	}
	return e[:n:n]
}

// regionSize returns how many bytes an entry of n bytes takes in a ring.
func regionSize(n uint32) uint32 {
	size := prefixSize(n) + n
	if invariants {
		size += sumSize
	}
	return size
}

// write writes e behind its length at off, and counts its bytes.
func (s *shard) write(off uint32, e entry.Entry) {
	s.counts.EntryBytes += uint64(regionSize(uint32(len(e))))
	var scratch [maxPrefix]byte
	prefix := appendPrefix(scratch[:0], uint32(len(e)))
	put(s.mem, off, prefix)
	off += uint32(len(prefix))
	put(s.mem, off, e)
	if invariants {
		var check [4]byte
		binary.LittleEndian.PutUint32(check[:], sum(e))
		put(s.mem, off+uint32(len(e)), check[:])
	}
}

// writeFree marks n bytes at off as free.
func (s *shard) writeFree(off, n uint32) {
	if n > 0 {
		var scratch [minFree]byte
		put(s.mem, off, appendFree(scratch[:0], n))
	}
}

// admits says whether e is small enough for the ring it would go to first.
func (s *shard) admits(e entry.Entry) bool {
	r := &s.probation
	if e.Used() {
		r = &s.main
	}
	if len(e) > MaxEntry || regionSize(uint32(len(e))) > (r.limit-r.base)/entryShare {
		s.counts.TooLarge++
		return false
	}
	return true
}

// outdated says whether the name of k was flushed after epoch. That the lock is held sees to it that
// a flush that begins now finds what is stored.
func (s *shard) outdated(f *flushes, k *Key, epoch uint64) bool {
	if f.covers(k.name, epoch) {
		s.counts.Outdated++
		return true
	}
	return false
}

// prepare touches what n more bytes need, letting go of the lock while it does.
func (s *shard) prepare(n uint32) {
	for p := s.ahead(n); p != (pages{}); p = s.ahead(n) {
		s.mu.Unlock()
		s.touch(p)
		s.mu.Lock()
	}
}

// store puts e in place of the entry of k, if there is one.
func (s *shard) store(k *Key, e entry.Entry, now uint32) {
	p := s.placeOf(k.hash)
	if old, ok := s.find(k, &p); ok {
		s.counts.Refreshed++
		if !s.overwrite(old, e) {
			s.replace(k, &p, old, e, now)
		}
		return
	}
	s.counts.Inserted++
	r, use, moves := &s.probation, uint32(0), maxMoves
	switch used, unused := s.ghostsOf(&p).recall(p.ghost); {
	case used:
		r, use = &s.main, returned
	case unused || e.Used():
		r = &s.main
	}
	if off, ok := s.allocate(r, regionSize(uint32(len(e))), now, &moves); ok {
		s.write(off, e)
		s.insert(&p, off, use, now)
	}
	s.grow(now, &moves)
}

// overwrite writes e over a slot's entry where it fits. That it is stored again counts as a use: it
// was asked for.
func (s *shard) overwrite(r slotRef, e entry.Entry) bool {
	off := s.at(r)
	old, n := regionSize(uint32(len(s.entry(off)))), regionSize(uint32(len(e)))
	if n > old {
		return false
	}
	s.begin(r.b)
	s.write(off, e)
	s.writeFree(off+n, old-n)
	s.end(r.b)
	r.b.setUse(r.i, min(maxUse, r.b.use(r.i)+1))
	s.counts.EntryBytes -= uint64(old)
	return true
}

// replace stores e elsewhere than the slot's entry, which readers find until e is in its place. It
// goes where that was, or to main if that was used, and counts as a use like overwrite.
func (s *shard) replace(k *Key, p *place, old slotRef, e entry.Entry, now uint32) {
	r, moves := &s.probation, maxMoves
	use := min(maxUse, old.b.use(old.i)+1)
	if use >= promotion || s.at(old) >= s.main.base {
		r = &s.main
	}
	n := regionSize(uint32(len(e)))
	off, ok := s.allocate(r, n, now, &moves)
	if !ok {
		return
	}
	s.write(off, e)
	// Making room may have moved the old entry, or forgotten it.
	old, ok = s.find(k, p)
	if !ok {
		s.insert(p, off, use, now)
		return
	}
	s.counts.EntryBytes -= uint64(regionSize(uint32(len(s.entry(s.at(old))))))
	s.repoint(old, off)
	old.b.setUse(old.i, use)
}

// remove frees a slot. Its entry's bytes stay in their ring until the hand comes by.
func (s *shard) remove(r slotRef) {
	s.counts.EntryBytes -= uint64(regionSize(uint32(len(s.entry(s.at(r))))))
	s.clear(r)
	s.entries--
}

// forget removes and counts why.
func (s *shard) forget(r slotRef, why *uint64) {
	*why++
	s.remove(r)
}

// lookup is read for the holder of the lock.
func (s *shard) lookup(k *Key, buf []byte, f *found) bool {
	p := s.placeOf(k.hash)
	r, ok := s.find(k, &p)
	if ok {
		e := s.entry(s.at(r))
		*f = found{buf[:copy(buf, e)], r.b, r.i, atomic.LoadUint32(&r.b.meta)}
	}
	return ok
}

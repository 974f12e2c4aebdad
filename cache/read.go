package cache

import (
	"runtime"
	"sync/atomic"

	"bonsai/cache/entry"
)

// Reading takes no lock and writes nothing that readers share. A reader copies what it needs by
// atomic loads and then asks whether that still stands; if not, it begins again. That is sound
// because a writer
//
//   - clears or repoints a slot before it writes over the bytes the slot pointed at, so that a
//     slot's word seen unchanged after the copy vouches for the copy;
//   - writes over bytes that a slot does point at, or moves a slot to another bucket, only between
//     begin and end, which leave the bucket's version odd in between and other than before.
//
// A version has few bits: whoever sleeps between two looks at it might see it come round. So the
// shard counts all changes, and a reader who sees that many have passed begins again.

const (
	// maxTries is how often a reader begins again before it takes the lock. Each time a writer was
	// there first, so that a reader fails this often only where writers do nothing else.
	maxTries = 64
	// maxChanges is how many changes may begin while a reader reads: fewer than bring a bucket's
	// version back to what it was.
	maxChanges = 1<<(32-2*slots)/2 - 1
)

// found is an entry copied out, with its slot.
type found struct {
	entry entry.Entry
	b     *bucket
	i     int
	meta  uint32 // of the bucket when the entry was read
}

// outcome is what one attempt to read gives.
type outcome uint8

const (
	absent outcome = iota
	present
	disturbed // by a writer
)

// read copies the entry of k into buf, and says in f where it was.
func (s *shard) read(k *Key, buf []byte, f *found) bool {
	p := s.placeOf(k.hash)
	for try := range maxTries {
		if o := s.try(k, &p, buf, f); o != disturbed {
			return o == present
		}
		if try > maxTries/2 {
			runtime.Gosched()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookup(k, buf, f)
}

// try makes one attempt.
func (s *shard) try(k *Key, p *place, buf []byte, f *found) outcome {
	clock := s.clock.Load()
	a, b := s.candidates(p, s.buckets.Load())
	// Both are loaded at once, so that the waits for memory overlap.
	metaA, metaB := atomic.LoadUint32(&a.meta), atomic.LoadUint32(&b.meta)
	if busy(metaA | metaB) {
		return disturbed
	}
	o := s.probe(k, p, a, metaA, buf, f)
	if o == absent {
		o = s.probe(k, p, b, metaB, buf, f)
		// A slot might have been moved to a from b after the look at a.
		if o == absent && (version(atomic.LoadUint32(&a.meta)) != version(metaA) || version(atomic.LoadUint32(&b.meta)) != version(metaB)) {
			o = disturbed
		}
	}
	if s.clock.Load()-clock > maxChanges {
		o = disturbed
	}
	return o
}

// probe looks for k in one bucket, whose meta was read before.
func (s *shard) probe(k *Key, p *place, b *bucket, meta uint32, buf []byte, f *found) outcome {
	for m := matches(atomic.LoadUint64(&b.tags), p.tag); m != 0; m &= m - 1 {
		i := m.first()
		w := atomic.LoadUint32(&b.slot[i])
		off := s.offset(w)
		if off == 0 || w^off != p.extra {
			continue
		}
		e, whole := s.copyEntry(buf, off)
		if atomic.LoadUint32(&b.slot[i]) != w || version(atomic.LoadUint32(&b.meta)) != version(meta) {
			return disturbed
		}
		if invariants {
			checkSum(off, e)
		}
		if whole && k.finds(e) {
			*f = found{e[:len(e):len(e)], b, i, meta}
			return present
		}
	}
	return absent
}

// copyEntry copies the entry at off to buf. It may be called where there is none any more, and then
// says false or returns what happened to lie there.
func (s *shard) copyEntry(buf []byte, off uint32) (e entry.Entry, whole bool) {
	n, prefix := peekPrefix(s.mem, off)
	start, end := off+prefix, off+prefix+n
	if invariants {
		end += sumSize
	}
	if prefix == 0 || n > MaxEntry || end > s.size || end < off {
		return nil, false
	}
	copyOut(buf, s.mem, start, end)
	start %= word
	return entry.Entry(buf[start : start+n]), true
}

// touchIndex loads from the index lines of k.
func (s *shard) touchIndex(k *Key) {
	p := s.placeOf(k.hash)
	a, b := s.candidates(&p, s.buckets.Load())
	atomic.LoadUint32(&a.meta)
	atomic.LoadUint32(&b.meta)
}

// touchEntry loads from what may be the entry of k.
func (s *shard) touchEntry(k *Key) {
	p := s.placeOf(k.hash)
	a, b := s.candidates(&p, s.buckets.Load())
	for _, b := range [2]*bucket{a, b} {
		for m := matches(atomic.LoadUint64(&b.tags), p.tag); m != 0; m &= m - 1 {
			w := atomic.LoadUint32(&b.slot[m.first()])
			if off := s.offset(w); off != 0 && w^off == p.extra {
				// An entry takes one or two cache lines, as most do.
				atomic.LoadUint64(word64(s.mem, off&^(word-1)))
				atomic.LoadUint64(word64(s.mem, min(off+64, s.size-word)&^(word-1)))
			}
		}
	}
}

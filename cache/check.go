package cache

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"bonsai/cache/entry"
)

// checkSum panics where e, read from off, is not what was written; its checksum lies behind it.
func checkSum(off uint32, e entry.Entry) {
	n := len(e)
	if got, want := sum(e), binary.LittleEndian.Uint32(e[n:n+sumSize]); got != want {
		panic(fmt.Sprintf("cache: entry at %d of %d bytes: checksum %08x, want %08x", off, n, got, want))
	}
}

// check returns what is wrong with a shard, for the holder of the lock. It looks at everything.
func (s *shard) check() error {
	starts := make(map[uint32]bool) // of regions: true where a slot points at it
	for _, r := range []*ring{&s.probation, &s.main} {
		if err := s.checkRing(r, starts); err != nil {
			return err
		}
	}
	if index := s.size - bucketSize*s.buckets.Load(); s.main.limit > index || s.main.extent() > s.main.limit {
		return fmt.Errorf("main is written to %d, its limit is %d, the index begins at %d", s.main.extent(), s.main.limit, index)
	}
	entries, bytes := uint32(0), uint64(0)
	for n := range s.buckets.Load() {
		b := s.bucket(n)
		if busy(atomic.LoadUint32(&b.meta)) {
			return fmt.Errorf("bucket %d is busy", n)
		}
		for i := range slots {
			if (b.tag(i) == 0) != (b.slot[i] == 0) {
				return fmt.Errorf("bucket %d slot %d: tag %02x, word %08x", n, i, b.tag(i), b.slot[i])
			}
			if b.tag(i) == 0 {
				continue
			}
			entries++
			size, err := s.checkSlot(n, slotRef{b, i}, starts)
			if err != nil {
				return fmt.Errorf("bucket %d slot %d: %w", n, i, err)
			}
			bytes += uint64(size)
		}
	}
	if entries != s.entries || bytes != s.counts.EntryBytes {
		return fmt.Errorf("%d entries of %d bytes, but %d of %d were counted", entries, bytes, s.entries, s.counts.EntryBytes)
	}
	return nil
}

// checkRing walks the ring and adds the starts of its entries.
func (s *shard) checkRing(r *ring, starts map[uint32]bool) error {
	stretches := [][2]uint32{{r.tail, r.head}}
	if r.wrapped {
		stretches = [][2]uint32{{r.tail, r.lap}, {r.base, r.head}}
		if r.head > r.tail || r.tail > r.lap {
			return fmt.Errorf("wrapped ring with head %d, tail %d, lap %d", r.head, r.tail, r.lap)
		}
	}
	for _, stretch := range stretches {
		at := stretch[0]
		for at < stretch[1] {
			n, prefix := readPrefix(s.mem[at:])
			if prefix != 0 {
				starts[at] = false
				n = regionSize(n)
			}
			at += n
		}
		if at != stretch[1] || at > r.limit || stretch[0] < r.base {
			return fmt.Errorf("ring of %d to %d: a stretch from %d to %d ends at %d", r.base, r.limit, stretch[0], stretch[1], at)
		}
	}
	return nil
}

// checkSlot returns the size of a slot's entry in its ring.
func (s *shard) checkSlot(n uint32, r slotRef, starts map[uint32]bool) (uint32, error) {
	off := s.at(r)
	if taken, ok := starts[off]; !ok || taken {
		return 0, fmt.Errorf("no entry begins at %d, or one that another slot has", off)
	}
	starts[off] = true
	e := s.entry(off)
	k := keyOf(e)
	p := s.placeOf(k.hash)
	if r.b.tag(r.i) != p.tag || r.b.slot[r.i] != p.extra|off {
		return 0, fmt.Errorf("word %08x with tag %02x, want %08x with %02x", r.b.slot[r.i], r.b.tag(r.i), p.extra|off, p.tag)
	}
	count := s.buckets.Load()
	if a, b := addressA(p.a, count), addressB(p.b, count); a != n && b != n {
		return 0, fmt.Errorf("its entry belongs to buckets %d and %d", a, b)
	}
	return regionSize(uint32(len(e))), nil
}

package cache

// The first touch of a page makes the kernel find and clear one, which takes longer than a store.
// So the pages that the next stores will touch are touched before, by whoever has just left the
// lock. Pages stay resident from then on.

// touchStep divides the pages of all systems we run on.
const touchStep = 4096

// touchMargin is how near to the end of what was touched a writer may come before it goes on.
const touchMargin = 1024

// frontiers say how far the rings and the index have been touched, in whole steps.
type frontiers struct{ probation, main, index uint32 }

// pages are offsets of pages to touch; 0 is none.
type pages [3]uint32

func (s *shard) initFrontiers() {
	s.frontiers = frontiers{
		probation: 0,
		main:      s.main.base,
		index:     s.size,
	}
}

// ahead returns the pages that are to be touched so that n more bytes can be written without a
// fault, at most one a region, for the holder of the lock, who touches them after leaving it.
func (s *shard) ahead(n uint32) (p pages) {
	f := &s.frontiers
	if need := s.probation.head + n; need > f.probation && f.probation < s.probation.limit {
		p[0], f.probation = f.probation, f.probation+touchStep
	}
	if need := s.main.head + n; need > f.main && f.main < s.main.limit {
		p[1], f.main = f.main, f.main+touchStep
	}
	if need := s.size - bucketSize*s.buckets.Load() - touchMargin; need < f.index && f.index > s.main.base {
		f.index -= touchStep
		p[2] = f.index
	}
	return p
}

// touch touches pages, without the lock.
func (s *shard) touch(p pages) {
	for _, off := range p {
		if off != 0 {
			touchWord(s.mem, off)
		}
	}
}

package cache

import (
	"sync/atomic"
	"unsafe"

	"bonsai/cache/entry"
)

// Counts are what the writers of a shard, or of all, have done since New, and in EntryBytes what
// is there now.
type Counts struct {
	Inserted  uint64 // stored under a key that had no entry
	Refreshed uint64 // stored over the entry of the same key
	Carried   uint64 // copied from probation to main, or to the front of main
	Displaced uint64 // moved to their other bucket to make room in the index
	Expired   uint64 // forgotten because expired for longer than the stale limit
	Unused    uint64 // forgotten because not used, or not enough, since stored or last carried
	Hurried   uint64 // forgotten although used, because one insert had moved as many as it may
	Crowded   uint64 // forgotten because other entries had all places that their key can have
	Flushed   uint64 // forgotten by a flush or by Remove
	TooLarge  uint64 // not stored: more than a ring takes
	Outdated  uint64 // not stored: flushed since its resolution began

	EntryBytes uint64 // of the entries that can be found, each with its length
}

func (c *Counts) add(o *Counts) {
	c.Inserted += o.Inserted
	c.Refreshed += o.Refreshed
	c.Carried += o.Carried
	c.Displaced += o.Displaced
	c.Expired += o.Expired
	c.Unused += o.Unused
	c.Hurried += o.Hurried
	c.Crowded += o.Crowded
	c.Flushed += o.Flushed
	c.TooLarge += o.TooLarge
	c.Outdated += o.Outdated
	c.EntryBytes += o.EntryBytes
}

// Stats says what happened since New and what there is now, in entries and bytes.
type Stats struct {
	Hits, Misses uint64 // lookups by outcome; a hit may be of an expired entry
	Counts

	Entries    uint64 // that can be found, live and expired
	Used       uint64 // bytes of entries and index
	Capacity   uint64 // bytes that entries and index may take in all: what was asked for, less what is lost to rounding
	IndexBytes uint64 // of the index as it is now
	RingBytes  uint64 // written in the rings: EntryBytes and what is left of entries that can't be found
	Touched    uint64 // bytes that have ever been written, in steps of the smallest page: resident
}

// Stats returns the counters. It takes each shard's lock for a moment.
func (c *Cache) Stats() Stats {
	var st Stats
	for i := range c.stripes {
		st.Hits += c.stripes[i].hits.Load()
		st.Misses += c.stripes[i].misses.Load()
	}
	for i := range c.shards {
		c.shards[i].addStats(&st)
	}
	st.Used = st.EntryBytes + st.IndexBytes
	return st
}

func (s *shard) addStats(st *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Counts.add(&s.counts)
	st.Entries += uint64(s.entries)
	st.Capacity += uint64(s.size)
	st.IndexBytes += bucketSize * uint64(s.buckets.Load())
	st.RingBytes += uint64(s.probation.written() + s.main.written())
	f := &s.frontiers
	// Main and index may share a page, and the index may have grown into what main touched.
	st.Touched += uint64(min(s.size, f.probation+f.main-s.main.base+s.size-f.index))
}

// Live counts the entries not expired at now, and their bytes as EntryBytes does, by a walk.
func (c *Cache) Live(now uint32) (entries, bytes uint64) {
	c.Walk(func(e entry.Entry) bool {
		if e.Expires() > now {
			entries++
			bytes += uint64(regionSize(uint32(len(e))))
		}
		return true
	})
	return entries, bytes
}

// stripes spread the counters of lookups, so that goroutines do not write to the same cache line.
type stripes [64]struct {
	hits, misses atomic.Uint64
	_            [48]byte
}

// stripe returns the index of the counters to use. Goroutines are told apart by where their stacks
// lie, which needs nothing of the callers; that two share a stripe costs time and nothing else.
func (*stripes) stripe() uintptr {
	var here byte
	return uintptr(uint64(uintptr(unsafe.Pointer(&here))>>12) * 0x9E3779B97F4A7C15 >> (64 - 6))
}

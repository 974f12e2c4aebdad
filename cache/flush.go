package cache

import (
	"sync"
	"sync/atomic"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// flushes remember which names were flushed when, so that what was asked before a flush is not
// stored after it.
type flushes struct {
	epoch atomic.Uint64 // of the latest flush
	mu    sync.Mutex
	// floor is an epoch: whatever was begun before it is refused. It stands for all flushes whose
	// names are not remembered.
	floor  uint64
	latest [maxFlushes]flushed // by epoch, as a ring
}

// maxFlushes is how many flushes are remembered by name. One more, and resolutions older than the
// oldest of them store nothing, which costs them nothing but that.
const maxFlushes = 64

type flushed struct {
	epoch uint64
	name  wire.Name
	tree  bool
}

// add remembers a flush; a name of "" stands for all names.
func (f *flushes) add(name wire.Name, tree bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	epoch := f.epoch.Load() + 1
	if name == "" {
		f.floor = epoch
	} else {
		slot := &f.latest[epoch%maxFlushes]
		f.floor = max(f.floor, slot.epoch)
		*slot = flushed{epoch, wire.Name([]byte(name)), tree}
	}
	f.epoch.Store(epoch)
}

// covers says whether name was flushed after epoch.
func (f *flushes) covers(name wire.Name, epoch uint64) bool {
	if epoch >= f.epoch.Load() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch < f.floor {
		return true
	}
	for i := range f.latest {
		l := &f.latest[i]
		if l.epoch > epoch && (name == l.name || l.tree && name.IsSubdomainOf(l.name)) {
			return true
		}
	}
	return false
}

// Epoch returns the count of flushes. A resolution takes it when it begins and gives it to Store.
func (c *Cache) Epoch() uint64 { return c.flushes.epoch.Load() }

// FlushName forgets what is stored at a canonical name, of QTYPE t or, for 0, of all. With a QTYPE,
// what is stored at the name under QTYPE 0 goes too, for it speaks of every type.
func (c *Cache) FlushName(name wire.Name, t wire.Type) {
	c.flushes.add(name, false)
	k := MakeKey(entry.KindAnswer, 0, name, t)
	c.shard(&k).flush(func(e entry.Entry) bool {
		return string(e.QName()) == string(name) && (t == 0 || e.QType() == t || e.QType() == 0)
	})
}

// FlushTree forgets what is stored at and below a canonical name.
func (c *Cache) FlushTree(name wire.Name) {
	c.flushes.add(name, true)
	for i := range c.shards {
		c.shards[i].flush(func(e entry.Entry) bool {
			return wire.BorrowName(e.QName()).IsSubdomainOf(name)
		})
	}
}

// Flush forgets the entries that match says. It gets each with a lock held: it may not keep the
// entry, nor call the cache.
func (c *Cache) Flush(match func(entry.Entry) bool) {
	c.flushes.add("", true)
	for i := range c.shards {
		c.shards[i].flush(match)
	}
}

// Walk calls f with each entry, live or expired, until f says false. It holds no lock then, and f
// may not keep the entry. Of what is stored, moved or forgotten meanwhile it may see some twice, or
// not.
func (c *Cache) Walk(f func(entry.Entry) bool) {
	var buf []byte
	for i := range c.shards {
		s := &c.shards[i]
		for n := uint32(0); n < s.buckets.Load(); n++ {
			buf = s.copyBucket(buf[:0], n)
			for rest := buf; len(rest) > 0; {
				size, prefix := readPrefix(rest)
				if !f(entry.Entry(rest[prefix : prefix+size : prefix+size])) {
					return
				}
				rest = rest[prefix+size:]
			}
		}
	}
}

// copyBucket appends the entries of a bucket, each behind its length.
func (s *shard) copyBucket(dst []byte, n uint32) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(n)
	for i := range slots {
		if b.tag(i) != 0 {
			e := s.entry(s.at(slotRef{b, i}))
			dst = append(appendPrefix(dst, uint32(len(e))), e...)
		}
	}
	return dst
}

// walkStep is how many buckets a walk looks at before it lets others have the lock.
const walkStep = 16

// flush forgets what match says of what was there when it began.
func (s *shard) flush(match func(entry.Entry) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walks++
	defer func() { s.walks-- }()
	for n := uint32(0); n < s.buckets.Load(); n++ {
		if n%walkStep == walkStep-1 {
			s.mu.Unlock()
			s.mu.Lock()
		}
		b := s.bucket(n)
		for i := range slots {
			if r := (slotRef{b, i}); b.tag(i) != 0 && match(s.entry(s.at(r))) {
				s.forget(r, &s.counts.Flushed)
			}
		}
	}
}

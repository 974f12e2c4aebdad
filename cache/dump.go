package cache

import (
	"encoding/binary"
	"errors"

	"bonsai/cache/entry"
)

// A dump is what a cache holds as blocks of bytes, from which another cache of any size can be
// filled much faster than by Store:
//
//	4  length of the entry in the lower 24 bits, little-endian; above them its uses
//	n  the entry
//
// and so on to the end of the block. The order says nothing.

// DumpBlock is the length in bytes from which on a block of a dump is given away. One is longer by
// MaxEntry and dumpHead at most.
const DumpBlock = 256 << 10

const (
	dumpHead   = 4
	dumpLength = 1<<24 - 1
	dumpUses   = 24
)

// leastMean is the least that entries are believed to take on the average, whatever a dump's figures say.
const leastMean = 32

// MaxDumpBlock is the length in bytes of the longest block.
const MaxDumpBlock = DumpBlock + MaxEntry + dumpHead

// ErrBlock says that a block is none of a dump, or that one of its entries is none.
var ErrBlock = errors.New("cache: not a block of a dump")

// Dump calls write with blocks of the entries that keep says yes to, and returns how many there were
// or the error of write. A block lies in memory that is used again. keep gets each entry with a lock
// held: it may not keep it, nor call the cache. Lookups are not held up, and stores for some
// microseconds; of what is stored, moved or forgotten meanwhile it may see some twice, or not.
func (c *Cache) Dump(keep func(entry.Entry) bool, write func(block []byte) error) (entries int, err error) {
	block := make([]byte, 0, MaxDumpBlock)
	for i := range c.shards {
		s := &c.shards[i]
		for n := uint32(0); n < s.buckets.Load(); {
			var some int
			block, n, some = s.dumpBuckets(block, n, keep)
			if entries += some; len(block) < DumpBlock {
				continue
			}
			if err := write(block); err != nil {
				return entries, err
			}
			block = block[:0]
		}
	}
	if len(block) > 0 {
		err = write(block)
	}
	return entries, err
}

// dumpBuckets appends entries from bucket n on, of walkStep buckets or until the block is full, and
// returns the bucket to go on with.
func (s *shard) dumpBuckets(block []byte, n uint32, keep func(entry.Entry) bool) (more []byte, next uint32, entries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := min(n+walkStep, s.buckets.Load())
	for ahead := n; ahead < end; ahead++ {
		s.touchSlots(s.bucket(ahead))
	}
	for ; n < end && len(block) < DumpBlock; n++ {
		b := s.bucket(n)
		for i := range slots {
			if b.tag(i) == 0 {
				continue
			}
			e := s.entry(s.at(slotRef{b, i}))
			if !keep(e) {
				continue
			}
			block = append(binary.LittleEndian.AppendUint32(block, uint32(len(e))|b.use(i)<<dumpUses), e...)
			entries++
		}
	}
	return block, n, entries
}

// A Loader fills a cache from the blocks of a dump. It is for one goroutine; there may be one for each.
type Loader struct {
	cache *Cache
	epoch uint64
	items []loadItem
	first [maxShards]int32 // of a shard's items, one more than its place in items
}

// loadItem is an entry of a block on its way to its shard.
type loadItem struct {
	key   Key
	entry entry.Entry
	uses  uint32
	next  int32 // of the same shard, as in first
}

// NewLoader returns a loader for a dump of about so many entries of so many bytes in all. Where the
// cache is empty its index is made as large as they want it at once. What is flushed from now on is
// not brought back.
func (c *Cache) NewLoader(entries, bytes uint64) *Loader {
	l := &Loader{cache: c, epoch: c.Epoch()}
	if entries == 0 {
		return l
	}
	for i := range c.shards {
		c.shards[i].presize(entries/uint64(len(c.shards)), max(leastMean, bytes/entries))
	}
	return l
}

// presize makes the index of a shard that never held anything as large as so many entries of so many
// bytes each want it, or as many of them as there is room for.
func (s *shard) presize(entries, mean uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := uint64(s.main.limit-s.main.base) / (mean + bucketSize*loadDen/(slots*loadNum))
	n := uint32(min(entries, most)*loadDen/(slots*loadNum)) + 1
	// What was never written is zero, as an empty bucket is.
	if s.counts.Inserted > 0 || n <= s.buckets.Load() {
		return
	}
	s.main.limit = s.size - bucketSize*(n+n/spareShare)
	s.buckets.Store(n)
}

// Load stores the entries of a block that takes, which may change their expiry there, says yes to, but for those whose key has an entry
// that is not expired, and returns how many. ErrBlock says that the block is damaged: then nothing of
// it is stored.
func (l *Loader) Load(block []byte, now uint32, takes func(entry.Entry) bool) (entries int, err error) {
	if err := l.parse(block, takes); err != nil {
		return 0, err
	}
	for i := range l.cache.shards {
		if at := l.first[i]; at != 0 {
			l.first[i] = 0
			entries += l.store(&l.cache.shards[i], at, now)
		}
	}
	return entries, nil
}

// parse sorts the entries of a block by shard.
func (l *Loader) parse(block []byte, takes func(entry.Entry) bool) error {
	l.items = l.items[:0]
	shards := uint64(len(l.cache.shards))
	for len(block) > 0 {
		if len(block) < dumpHead {
			return l.damaged()
		}
		head := binary.LittleEndian.Uint32(block)
		n := int(head & dumpLength)
		if n > len(block)-dumpHead || n > MaxEntry {
			return l.damaged()
		}
		e := entry.Entry(block[dumpHead : dumpHead+n : dumpHead+n])
		block = block[dumpHead+n:]
		q, ok := e.Scan()
		if !ok {
			return l.damaged()
		}
		if !takes(e) {
			continue
		}
		item := loadItem{key: MakeKey(q.Kind, q.Realm, q.QName, q.QType), entry: e, uses: head >> dumpUses & maxUse}
		shard := item.key.nameHash >> 32 * shards >> 32
		item.next = l.first[shard]
		l.items = append(l.items, item)
		l.first[shard] = int32(len(l.items))
	}
	return nil
}

func (l *Loader) damaged() error {
	clear(l.first[:])
	return ErrBlock
}

// loadAhead is how many items a loader looks ahead, so that the waits for memory overlap.
const loadAhead = 8

// store stores the items of a shard.
func (l *Loader) store(s *shard, first int32, now uint32) (entries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ahead := first
	for range loadAhead {
		ahead = l.touch(s, ahead)
	}
	for at := first; at != 0; {
		ahead = l.touch(s, ahead)
		item := &l.items[at-1]
		at = item.next
		if !s.outdated(&l.cache.flushes, &item.key, l.epoch) && s.admits(item.entry) && s.load(item, now) {
			entries++
		}
		s.touch(s.ahead(touchMargin))
	}
	return entries
}

func (l *Loader) touch(s *shard, at int32) (next int32) {
	if at == 0 {
		return 0
	}
	item := &l.items[at-1]
	s.touchIndex(&item.key)
	return item.next
}

// load stores one entry: in main while that has room, so that nothing is pushed out for it, else as
// any that is new.
func (s *shard) load(item *loadItem, now uint32) bool {
	p := s.placeOf(item.key.hash)
	if r, ok := s.find(&item.key, &p); ok {
		if s.entry(s.at(r)).Expires() > now {
			return false
		}
		s.forget(r, &s.counts.Expired)
	}
	n := regionSize(uint32(len(item.entry)))
	if s.main.wrapped || s.main.limit-s.main.head < n {
		s.store(&item.key, item.entry, now)
		if r, ok := s.find(&item.key, &p); ok {
			r.b.setUse(r.i, item.uses)
		}
		return true
	}
	s.counts.Inserted++
	off := s.main.take(n)
	s.write(off, item.entry)
	s.insert(&p, off, item.uses, now)
	moves := maxMoves
	s.grow(now, &moves)
	return true
}

package policy

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync/atomic"

	"bonsai/cache/offheap"
	"bonsai/wire"
)

// NameSet is a set of names by their 64-bit hashes, at eight to ten bytes a name: a list of millions
// fits where their spellings would not. A name that is not in the set is taken for one that is with a
// chance of its size in 2^64, under a hash seed drawn anew for each set. It is immutable, but for its counter.
//
// Most names asked for are in no set, nor is anything above them. What tells of that comes first: it is
// small, and one look at it decides of most names, for of a name's last two labels most sets know
// nothing.
//
//	labels  one bit for each number of labels that a name of the set has
//	tops    filter of the last two labels of each name of two or more
//	slots   open addressing, 6 bytes each, 0 is free
type NameSet struct {
	seed   maphash.Seed
	labels labelCounts
	tops   filter
	slots  []byte
	places int
	count  int
	hits   *atomic.Uint64 // nil: not counted
}

const (
	slotSize = 6
	tagMask6 = 1<<(8*slotSize) - 1
	// fill is how much of the slots is used, in percent: a look is at one cache line or two.
	fill = 70
)

// labelCounts is a set of numbers of labels, of which a name has at most 127.
type labelCounts [2]uint64

func (l *labelCounts) add(n int)      { l[n>>6&1] |= 1 << (n & 63) }
func (l *labelCounts) has(n int) bool { return l[n>>6&1]&(1<<(n&63)) != 0 }

// filter says of a hash that it is not there, or that it may be: one in thirty that is not passes. A
// hash has four bits of one word.
type filter []uint64

// filterBits are those of a hash that is there.
const filterBits = 10

func (f filter) at(h uint64) (word int, mask uint64) {
	hi, _ := bits.Mul64(h, uint64(len(f)))
	return int(hi), 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63)
}

func (f filter) has(h uint64) bool {
	word, mask := f.at(h)
	return f[word]&mask == mask
}

// NameSetBuilder collects names. It holds memory until Build or Discard.
type NameSetBuilder struct {
	seed    maphash.Seed
	labels  labelCounts
	names   hashList
	tops    hashList
	lastTop uint64
	pause   breather
}

// NewNameSetBuilder returns an empty builder.
func NewNameSetBuilder() *NameSetBuilder {
	return &NameSetBuilder{seed: maphash.MakeSeed(), pause: newBreather()}
}

// Add adds a name in canonical case.
func (b *NameSetBuilder) Add(name wire.Name) {
	b.names.add(maphash.String(b.seed, string(name)))
	n, top := topOf(name)
	b.labels.add(n)
	if n < 2 {
		return
	}
	// Lists are often in order: names of one place follow each other.
	if h := maphash.String(b.seed, string(top)); h != b.lastTop || b.tops.used == 0 {
		b.lastTop = h
		b.tops.add(h)
	}
}

// topOf returns the number of a name's labels and the last two of them.
func topOf(name wire.Name) (labels int, top wire.Name) {
	last, before := 0, 0
	for i := 0; name[i] != 0; i += int(name[i]) + 1 {
		before, last = last, i
		labels++
	}
	return labels, name[before:]
}

// Discard gives back what a builder holds. There is nothing after Build.
func (b *NameSetBuilder) Discard() {
	b.names.discard()
	b.tops.discard()
}

// Build returns the set and empties the builder. While it runs it takes another eight bytes a name.
func (b *NameSetBuilder) Build() *NameSet {
	s := &NameSet{seed: b.seed, labels: b.labels}
	tops := b.tops.sorted(&b.pause)
	s.tops = s.newFilter(tops.words, &b.pause)
	tops.release()
	names := b.names.sorted(&b.pause)
	s.fillSlots(names.words, &b.pause)
	names.release()
	b.labels = labelCounts{}
	return s
}

// keep reserves memory that goes with the set.
func (s *NameSet) keep(size int) []byte {
	mem, release := offheap.Reserve(size)
	runtime.AddCleanup(s, func(release func()) { release() }, release)
	return mem
}

func (s *NameSet) newFilter(hashes []uint64, pause *breather) filter {
	f := filter(offheap.Words(s.keep(8 * (len(hashes)*filterBits/64 + 1))))
	for i, h := range hashes {
		word, mask := f.at(h)
		f[word] |= mask
		if i%chunkSize == chunkSize-1 {
			pause.breathe()
		}
	}
	return f
}

// fillSlots has the hashes in order, so that it walks through the memory once.
func (s *NameSet) fillSlots(hashes []uint64, pause *breather) {
	s.count, s.places = len(hashes), len(hashes)*100/fill+1
	// Two bytes more, for the last slot is read as a word, too.
	s.slots = s.keep(slotSize*s.places + 2)
	for n, h := range hashes {
		if n%chunkSize == chunkSize-1 {
			pause.breathe()
		}
		i := s.place(h)
		for s.slot(i) != 0 {
			i = s.after(i)
		}
		var tag [8]byte
		binary.LittleEndian.PutUint64(tag[:], tagOf(h))
		copy(s.slots[slotSize*i:], tag[:slotSize])
	}
}

// CountIn makes n count the queries and answers that the set decided. It is called before the set is
// given to rules.
func (s *NameSet) CountIn(n *atomic.Uint64) { s.hits = n }

// decided counts.
func (s *NameSet) decided() {
	if s.hits != nil {
		s.hits.Add(1)
	}
}

// tagOf is what a slot has of a hash: never 0, which marks a free one.
func tagOf(h uint64) uint64 { return max(h&tagMask6, 1) }

// place spreads hashes over the slots, whatever their number, without a division. It goes by the
// high bits, tags by the low ones.
func (s *NameSet) place(h uint64) int {
	hi, _ := bits.Mul64(h, uint64(s.places))
	return int(hi)
}

func (s *NameSet) after(i int) int {
	if i++; i == s.places {
		return 0
	}
	return i
}

func (s *NameSet) slot(i int) uint64 {
	return binary.LittleEndian.Uint64(s.slots[slotSize*i:]) & tagMask6
}

// Len returns how many names there are.
func (s *NameSet) Len() int { return s.count }

// Bytes returns the memory that the set holds.
func (s *NameSet) Bytes() int { return 8*len(s.tops) + len(s.slots) }

// Has says whether name, in canonical case, is in the set.
func (s *NameSet) Has(name wire.Name) bool {
	found := s.has(name)
	runtime.KeepAlive(s) // what it holds goes with it
	return found
}

func (s *NameSet) has(name wire.Name) bool {
	h := maphash.String(s.seed, string(name))
	tag := tagOf(h)
	for i := s.place(h); ; i = s.after(i) {
		switch s.slot(i) {
		case tag:
			return true
		case 0:
			return false
		}
	}
}

// Covers says whether name, in canonical case, or a name above it, but the root, is in the set.
func (s *NameSet) Covers(name wire.Name) bool {
	found := s.covers(name)
	runtime.KeepAlive(s)
	return found
}

func (s *NameSet) covers(name wire.Name) bool {
	n, top := topOf(name)
	if n >= 2 && !s.tops.has(maphash.String(s.seed, string(top))) {
		if !s.labels.has(1) {
			return false
		}
		n, name = 1, top.Parent()
	}
	for ; n > 0; n-- {
		if s.labels.has(n) && s.has(name) {
			return true
		}
		name = name.Parent()
	}
	return false
}

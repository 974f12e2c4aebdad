package cache

import "sync/atomic"

// A ring is a stretch of a shard's memory that is written from its start to its end and over again.
// Entries lie in it one behind the other, each behind its length, and none is cut by the end:
//
//	base        head      tail          lap   limit
//	|  newest→   |  free   | →oldest …    |     |      wrapped
//
//	base   tail             head              limit
//	|  free | oldest … newest |      free       |      not wrapped
//
// What is written is found again from tail on, oldest first, live or not. base ≤ tail ≤ lap ≤ limit
// and base ≤ head ≤ limit, and head ≤ tail where wrapped.
type ring struct {
	base, limit uint32
	head, tail  uint32
	lap         uint32 // where the entries end before the ring begins again at base; if wrapped
	wrapped     bool

	// clock is the shard's. A lap counts as more changes than a reader puts up with, for an entry
	// might come to lie just where it lay a lap before.
	clock *atomic.Uint32
}

// extent returns the offset above which nothing is written.
func (r *ring) extent() uint32 {
	if r.wrapped {
		return r.lap
	}
	return r.head
}

// fit says whether n bytes may be written at head, which it puts back to base where they fit there
// and no more at the end.
func (r *ring) fit(n uint32) bool {
	if r.wrapped {
		return n <= r.tail-r.head
	}
	if r.head == r.tail {
		r.head, r.tail = r.base, r.base
	}
	if n <= r.limit-r.head {
		return true
	}
	if r.head == r.base {
		return false // longer than the ring; see maxEntry
	}
	r.lap, r.head, r.wrapped = r.head, r.base, true
	r.clock.Add(maxChanges + 1)
	return n <= r.tail-r.head
}

// take writes down that the n bytes at head, which fit, are written.
func (r *ring) take(n uint32) (off uint32) {
	off = r.head
	r.head += n
	return off
}

// empty says whether nothing is written.
func (r *ring) empty() bool { return !r.wrapped && r.head == r.tail }

// release frees the n bytes at tail.
func (r *ring) release(n uint32) {
	r.tail += n
	if r.wrapped && r.tail == r.lap {
		r.tail, r.wrapped = r.base, false
	}
}

// written returns how many bytes lie between tail and head.
func (r *ring) written() uint32 {
	if r.wrapped {
		return r.lap - r.tail + r.head - r.base
	}
	return r.head - r.tail
}

// reset empties the ring.
func (r *ring) reset() { r.head, r.tail, r.wrapped = r.base, r.base, false }

// Lengths. The first byte tells the form; entries below 192 bytes pay one.
//
//	00               a free byte
//	01 … BF          the length
//	C0 … FE, 1 byte  192 + 256·(first − C0) + second
//	FF, 3 bytes      the length in 23 bits below a bit that says that this is no entry but free
const (
	longForm  = 0xC0
	wideForm  = 0xFF
	wideSize  = 4
	freeWide  = 1 << 23
	maxPrefix = wideSize
	// minFree is the shortest stretch written as one; a shorter one is that many free bytes.
	minFree = wideSize
)

// prefixSize returns how many bytes the length n takes.
func prefixSize(n uint32) uint32 {
	switch {
	case n < longForm:
		return 1
	case n < longForm+(wideForm-longForm)<<8:
		return 2
	}
	return wideSize
}

// appendPrefix appends the length n of an entry.
func appendPrefix(dst []byte, n uint32) []byte {
	switch prefixSize(n) {
	case 1:
		return append(dst, byte(n))
	case 2:
		n -= longForm
		return append(dst, byte(longForm+n>>8), byte(n))
	}
	return append(dst, wideForm, byte(n>>16), byte(n>>8), byte(n))
}

// readPrefix reads the length at the start of b, of which it needs up to maxPrefix bytes: an entry
// of n bytes behind a prefix of size bytes, or a free stretch of n bytes in all, for which size is 0.
func readPrefix(b []byte) (n, size uint32) {
	switch c := uint32(b[0]); {
	case c == 0:
		return 1, 0
	case c < longForm:
		return c, 1
	case c < wideForm:
		return longForm + (c-longForm)<<8 + uint32(b[1]), 2
	}
	n = uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	if n&freeWide != 0 {
		return n &^ freeWide, 0
	}
	return n, wideSize
}

// appendFree appends the start of a free stretch of n bytes: its wide form or, below minFree, all.
func appendFree(dst []byte, n uint32) []byte {
	if n < minFree {
		return append(dst, make([]byte, n)...)
	}
	n |= freeWide
	return append(dst, wideForm, byte(n>>16), byte(n>>8), byte(n))
}

//go:build !amd64 || race

package cache

import (
	"encoding/binary"
	"sync/atomic"
)

// put writes src at off by atomic words, leaving the bytes beside it as they are: only the holder
// of the shard's lock writes.
func put(mem []byte, off uint32, src []byte) {
	for len(src) > 0 {
		at := off % word
		n := min(word-at, uint32(len(src)))
		p := word64(mem, off-at)
		var w [word]byte
		binary.NativeEndian.PutUint64(w[:], *p)
		copy(w[at:], src[:n])
		atomic.StoreUint64(p, binary.NativeEndian.Uint64(w[:]))
		src, off = src[n:], off+n
	}
}

// move copies n bytes from off from to the lower or not overlapping offset to.
func move(mem []byte, to, from, n uint32) {
	var chunk [64]byte
	for n > 0 {
		c := copy(chunk[:min(n, uint32(len(chunk)))], mem[from:])
		put(mem, to, chunk[:c])
		to, from, n = to+uint32(c), from+uint32(c), n-uint32(c)
	}
}

// copyOut copies mem from off to end to dst[off%word:], by whole words: mem's length is a multiple of
// the word.
func copyOut(dst, mem []byte, off, end uint32) {
	start := off &^ (word - 1)
	for at := start; at < end; at += word {
		binary.NativeEndian.PutUint64(dst[at-start:], atomic.LoadUint64(word64(mem, at)))
	}
}

// peekPrefix is readPrefix of what lies at off.
func peekPrefix(mem []byte, off uint32) (n, size uint32) {
	var w [2 * word]byte
	copyOut(w[:], mem, off, min(off+maxPrefix, uint32(len(mem))))
	return readPrefix(w[off%word:])
}

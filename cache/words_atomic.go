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

package cache

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// This file and its twins are all that reads and writes a shard's memory while others may be
// writing and reading it. Readers load whole aligned words, atomically and in order, and find out
// afterwards whether what they read still stands; see read.go.

// word is the size of what is loaded at once.
const word = 8

// word32 and word64 point into mem at an aligned offset, which is checked against its length.
func word32(mem []byte, off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&mem[off])) }
func word64(mem []byte, off uint32) *uint64 { return (*uint64)(unsafe.Pointer(&mem[off])) }

// copyOut copies the words of mem that hold its bytes from off to end, from the word-th on, to the
// start of dst: byte off comes to lie at dst[off%word]. mem's length is a multiple of the word.
func copyOut(dst, mem []byte, off, end, from uint32) {
	start := off &^ (word - 1)
	for at := start + from*word; at < end; at += word {
		binary.NativeEndian.PutUint64(dst[at-start:], atomic.LoadUint64(word64(mem, at)))
	}
}

package cache

import "unsafe"

// This file and its twins are all that reads and writes a shard's memory while others may be
// writing and reading it. Readers load in order and find out afterwards whether what they read still
// stands; see read.go.

// word is the size of what is loaded at once.
const word = 8

// word32 and word64 point into mem at an aligned offset, which is checked against its length.
func word32(mem []byte, off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&mem[off])) }
func word64(mem []byte, off uint32) *uint64 { return (*uint64)(unsafe.Pointer(&mem[off])) }

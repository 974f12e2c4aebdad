package policy

import "unsafe"

// reserveHeap returns size zeroed bytes of the Go heap, aligned for words; there is nothing to give
// back.
func reserveHeap(size int) (mem []byte, release func()) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size), func() {}
}

// wordsOf views memory that reserve gave as words.
func wordsOf(mem []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}

// Package offheap gives memory that lies outside the Go heap: the collector neither scans it nor takes
// it into account when it sets its goal.
package offheap

import "unsafe"

// reserveHeap returns size zeroed bytes of the Go heap, aligned for words; there is nothing to give
// back.
func reserveHeap(size int) (mem []byte, release func()) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size), func() {}
}

// Words views memory that Reserve gave as words.
func Words(mem []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}

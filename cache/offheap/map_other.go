//go:build !unix || race

package offheap

// Reserve returns size zeroed bytes, aligned for words, and what gives them back. It takes from the Go
// heap: the race detector sees this memory, as it does not see what mmap gives.
func Reserve(size int) (mem []byte, release func()) { return reserveHeap(size) }

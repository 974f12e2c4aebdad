//go:build !unix || race

package policy

// reserve takes from the Go heap: the race detector sees this memory, as it does not see what mmap gives.
func reserve(size int) (mem []byte, release func()) { return reserveHeap(size) }

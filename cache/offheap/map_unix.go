//go:build unix && !race

package offheap

import "golang.org/x/sys/unix"

// Reserve returns size zeroed bytes, aligned for words and resident only where touched, and what gives
// them back. Where the system has no more, the Go heap gives them.
func Reserve(size int) (mem []byte, release func()) {
	if size == 0 {
		return nil, func() {}
	}
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return reserveHeap(size)
	}
	return mem, func() { _ = unix.Munmap(mem) }
}

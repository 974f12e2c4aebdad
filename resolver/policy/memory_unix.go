//go:build unix && !race

package policy

import "golang.org/x/sys/unix"

// reserve returns size zeroed bytes, aligned for words, and what gives them back. They lie outside
// the Go heap: a list of millions within it would let the heap grow by several times its size before
// the collector runs, and what a reload needs for a moment is gone when it ends and not some time
// later. Where the system has no more the heap gives them.
func reserve(size int) (mem []byte, release func()) {
	if size == 0 {
		return nil, func() {}
	}
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return reserveHeap(size)
	}
	return mem, func() { _ = unix.Munmap(mem) }
}

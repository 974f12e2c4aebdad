//go:build unix && !race

package cache

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// reserve maps size bytes, a multiple of the page, of private anonymous memory: zeroed, outside the
// Go heap, resident only where touched. release gives it back.
func reserve(size int) (mem []byte, release func(), err error) {
	// With guards, a page on either side faults, so that no shard can write into what lies beside it.
	guard := 0
	if invariants {
		guard = granule
	}
	whole, err := unix.Mmap(-1, 0, size+2*guard, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|mapFlags)
	if err != nil {
		return nil, nil, fmt.Errorf("cache: reserving %d bytes: %w", size, err)
	}
	release = func() { unix.Munmap(whole) }
	for _, g := range [][]byte{whole[:guard], whole[guard+size:]} {
		if len(g) == 0 {
			continue
		}
		if err := unix.Mprotect(g, unix.PROT_NONE); err != nil {
			release()
			return nil, nil, fmt.Errorf("cache: guarding memory: %w", err)
		}
	}
	mem = whole[guard : guard+size : guard+size]
	advise(mem)
	return mem, release, nil
}

// touchWord makes the page of off resident. It writes without changing anything, whoever else
// writes there.
func touchWord(mem []byte, off uint32) { atomic.AddUint32(word32(mem, off), 0) }

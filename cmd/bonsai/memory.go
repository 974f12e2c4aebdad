package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

// besidesCache is what the process needs in a cgroup besides its cache, in bytes.
const besidesCache = 64 << 20

// fitMemory holds the cache's budget against the memory that the process may have, and gives the
// rest to the Go heap as its limit, unless GOMEMLIMIT says otherwise. The cache lies outside that heap.
func fitMemory(cacheSize, limit int64, limited bool) error {
	if !limited {
		return nil
	}
	if most := limit - besidesCache; cacheSize > most {
		return fmt.Errorf("cache-size: %d MiB does not fit: the memory limit of the cgroup is %d MiB, of which %d are for all else; at most %d MiB",
			cacheSize>>20, limit>>20, besidesCache>>20, max(most, 0)>>20)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit - cacheSize)
	}
	return nil
}

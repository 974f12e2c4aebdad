//go:build !race

package cache

import "golang.org/x/sys/unix"

// mapFlags asks for no swap to be set aside: most of the range may never be touched.
const mapFlags = unix.MAP_NORESERVE

// advise keeps the kernel from backing a touched byte with a huge page: the shards fill side by
// side, each from its start, and an empty cache would soon be resident.
func advise(mem []byte) {
	// It fails where the kernel has no huge pages, and then there is nothing to avoid.
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
}

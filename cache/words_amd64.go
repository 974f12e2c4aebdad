//go:build amd64 && !race

package cache

// On amd64 stores become visible in the order they were made and loads are made in order, so that
// plain copies between atomic operations are as good as atomic words, and several times faster.

// put writes src at off.
func put(mem []byte, off uint32, src []byte) { copy(mem[off:], src) }

// move copies n bytes from off from to the lower or not overlapping offset to.
func move(mem []byte, to, from, n uint32) { copy(mem[to:to+n], mem[from:from+n]) }

// copyOut copies mem from off to end to dst[off%word:].
func copyOut(dst, mem []byte, off, end uint32) { copy(dst[off%word:], mem[off:end]) }

// peekPrefix is readPrefix of what lies at off.
func peekPrefix(mem []byte, off uint32) (n, size uint32) { return readPrefix(mem[off:]) }

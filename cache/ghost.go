package cache

// A ghost is some bits of the hash of a key whose entry was forgotten. It lies in the bucket of the
// key's first candidate in one of two queues, the latest in the lowest bits: of entries that had been
// used, and of those that had not. So the many that nobody asks for again do not push out the few that
// were asked for.
const (
	ghostBits    = 12 // with fewer a flood would too often be taken for what was there
	usedGhosts   = 5
	newGhosts    = 5 // of the unused, in a word of their own
	unusedGhosts = newGhosts + 2
)

// remember adds a ghost, in place of the oldest of its queue.
func (b *bucket) remember(g uint32, used bool) {
	if used {
		b.used = b.used<<ghostBits&(1<<(usedGhosts*ghostBits)-1) | uint64(g)
		return
	}
	oldest := uint32(b.unused >> ((newGhosts - 1) * ghostBits))
	b.unused = b.unused<<ghostBits&(1<<(newGhosts*ghostBits)-1) | uint64(g)
	b.late = b.late<<ghostBits&(1<<((unusedGhosts-newGhosts)*ghostBits)-1) | oldest
}

// recall says whether a ghost is there, of an entry that was used or of one that was not, and forgets
// it.
func (b *bucket) recall(g uint32) (used, unused bool) {
	if at := findGhost(b.used, g); at >= 0 {
		b.used &^= (1<<ghostBits - 1) << at
		return true, false
	}
	if at := findGhost(b.unused, g); at >= 0 {
		b.unused &^= (1<<ghostBits - 1) << at
		return false, true
	}
	if at := findGhost(uint64(b.late), g); at >= 0 {
		b.late &^= (1<<ghostBits - 1) << at
		return false, true
	}
	return false, false
}

// findGhost returns the lowest bit of a ghost, which is not 0, in a word of them; below 0 where it is
// not there.
func findGhost(word uint64, g uint32) int {
	for at := 0; word != 0; at += ghostBits {
		if uint32(word)&(1<<ghostBits-1) == g {
			return at
		}
		word >>= ghostBits
	}
	return -1
}

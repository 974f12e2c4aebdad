package cache

// A ghost is some bits of the hash of a key whose entry was forgotten. It lies in the bucket of the
// key's first candidate, three to a word and the latest in front, in one of two queues: of entries
// that had been used, and of those that had not. So the many that nobody asks for again do not push
// out the few that were asked for.
const (
	ghostBits   = 10
	ghostsAWord = 3
	usedWords   = 2
	unusedWords = 3
	ghostMask   = 1<<ghostBits - 1
	wordMask    = 1<<(ghostsAWord*ghostBits) - 1
)

// ghosts returns one of the queues.
func (b *bucket) ghosts(used bool) []uint32 {
	if used {
		return b.ghost[:usedWords]
	}
	return b.ghost[usedWords:]
}

// remember adds a ghost, in place of the oldest of its queue.
func (b *bucket) remember(g uint32, used bool) {
	for q := b.ghosts(used); len(q) > 0; q = q[1:] {
		g, q[0] = q[0]>>((ghostsAWord-1)*ghostBits), q[0]<<ghostBits&wordMask|g
	}
}

// recall says whether a ghost is there, of an entry that was used or of one that was not, and forgets
// it.
func (b *bucket) recall(g uint32) (used, unused bool) {
	if b.takeGhost(g, true) {
		return true, false
	}
	return false, b.takeGhost(g, false)
}

func (b *bucket) takeGhost(g uint32, used bool) bool {
	q := b.ghosts(used)
	for i := range q {
		for shift := 0; shift < ghostsAWord*ghostBits; shift += ghostBits {
			if q[i]>>shift&ghostMask == g {
				q[i] &^= ghostMask << shift
				return true
			}
		}
	}
	return false
}

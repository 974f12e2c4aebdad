package policy

import (
	"slices"

	"bonsai/cache/offheap"
)

// hashes are words outside the Go heap, as offheap.Reserve gives them.
type hashes struct {
	words   []uint64
	release func()
}

func newHashes(n int) hashes {
	mem, release := offheap.Reserve(8 * n)
	return hashes{offheap.Words(mem), release}
}

// hashList grows by chunks, so that it never holds what it has twice.
type hashList struct {
	full []hashes
	last hashes
	used int // of last
}

// chunkSize is how many hashes a list makes room for at once.
const chunkSize = 1 << 13

func (l *hashList) add(h uint64) {
	if l.used == len(l.last.words) {
		if l.used > 0 {
			l.full = append(l.full, l.last)
		}
		l.last, l.used = newHashes(chunkSize), 0
	}
	l.last.words[l.used] = h
	l.used++
}

// sorted moves all hashes to one place, in order and each once, for the caller to release. It empties
// the list.
func (l *hashList) sorted() (all hashes) {
	all = newHashes(len(l.full)*chunkSize + l.used)
	for i, c := range l.full {
		copy(all.words[i*chunkSize:], c.words)
		c.release()
	}
	copy(all.words[len(l.full)*chunkSize:], l.last.words[:l.used])
	l.full = nil
	l.discard()
	slices.Sort(all.words)
	all.words = slices.Compact(all.words)
	return all
}

// discard empties the list.
func (l *hashList) discard() {
	for _, c := range l.full {
		c.release()
	}
	if l.used > 0 {
		l.last.release()
	}
	*l = hashList{}
}

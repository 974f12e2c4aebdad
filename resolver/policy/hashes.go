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

// sortBits is by how many high bits hashes are brought near their places before they are sorted: 2048 of two
// million, hashes as they are, are then sorted at once.
const sortBits = 10

// sorted moves all hashes to one place, in order and each once, for the caller to release. It empties
// the list.
func (l *hashList) sorted(pause *breather) (all hashes) {
	if l.used > 0 {
		l.full = append(l.full, hashes{l.last.words[:l.used], l.last.release})
	}
	var ends [1<<sortBits + 1]int // of the hashes with these bits; before they are moved, where they begin
	total := 0
	for _, c := range l.full {
		for _, h := range c.words {
			ends[h>>(64-sortBits)+1]++
		}
		total += len(c.words)
		pause.breathe()
	}
	for i := range ends[1:] {
		ends[i+1] += ends[i]
	}
	all = newHashes(total)
	for _, c := range l.full {
		for _, h := range c.words {
			end := &ends[h>>(64-sortBits)]
			all.words[*end] = h
			*end++
		}
		c.release()
		pause.breathe()
	}
	*l = hashList{}
	begin := 0
	for _, end := range ends[:1<<sortBits] {
		slices.Sort(all.words[begin:end])
		begin = end
		pause.breathe()
	}
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

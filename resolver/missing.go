package resolver

import (
	"hash/maphash"
	"sync/atomic"

	"bonsai/wire"
)

// writes counts what is stored, by names that share a hash, so that who has looked under a name and found
// nothing can tell later whether there may be something now.
type writes struct {
	seed   maphash.Seed
	counts [256]atomic.Uint64
}

func newWrites() *writes { return &writes{seed: maphash.MakeSeed()} }

// of returns the count of a canonical name. A writer adds to it before it stores and again behind that.
func (w *writes) of(name wire.Name) *atomic.Uint64 {
	return &w.counts[maphash.String(w.seed, string(name))%uint64(len(w.counts))]
}

// missing is what a lookup for a client has just not found, so that it need not be looked for again: an
// answer to the question, a denial or an alias of its name, a remembered failure. It holds until
// something is stored.
type missing struct {
	question question // of the zero type where nothing is known to be missing
	seen     uint64   // writes, before the lookup
}

// isMissing says whether the cache is known to have nothing under a name for a type.
func (t *tree) isMissing(name wire.Name, rt wire.Type) bool {
	m := &t.missing
	return m.question.t == rt && m.question.name == name && m.seen == t.r.writes.of(name).Load()
}

// isAlone says whether what has just been stored under a name for a type is all that there is: seen are
// the writes then counted, its own first step included.
func (m *missing) isAlone(name wire.Name, rt wire.Type, seen uint64) bool {
	return m.question.t == rt && m.question.name == name && m.seen+1 == seen
}

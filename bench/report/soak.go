package main

import (
	"sync/atomic"

	"bonsai/bench"
	"bonsai/wire"
)

// soakLookups asks for names inserted lately and long ago until told to stop.
func soakLookups(l bench.Layout, r random, inserted, asked, found *atomic.Int64, stop *atomic.Bool) {
	mix := newMix(true)
	var q wire.Query
	query, out := make([]byte, 0, 512), make([]byte, 0, 4096)
	for !stop.Load() {
		n := int(inserted.Load())
		if n == 0 {
			continue
		}
		i := r.below(n)
		if r.below(2) == 0 {
			i = max(0, n-1-r.below(min(n, 100_000)))
		}
		query = mix.Query(query[:0], i)
		if q.Parse(query) != wire.QueryOK {
			continue
		}
		asked.Add(1)
		if _, ok := l.Lookup(out, &q, later); ok {
			found.Add(1)
		}
	}
}

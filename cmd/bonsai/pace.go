package main

import (
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

// What is large, the cache, lies outside of the Go heap. In there is little that lives long, and the
// resolution of cold names makes tens of MB a second of garbage. Go's own goal, in proportion to what
// lives, would either collect a tiny heap hundreds of times a second or, with large block lists, let
// the process grow by several times their size.
const (
	// heapHeadroom is how many bytes of garbage there may be before a collection.
	heapHeadroom = 4 << 20
	// leastPercent keeps the work of collections in proportion where much lives, in percent of that.
	leastPercent = 50
	// goMinHeap is the least goal that Go sets with GOGC=100. It grows with GOGC: where little lives, a
	// high one alone would let the heap grow to tens of MB before its first collection.
	goMinHeap = 4 << 20
)

// paceCollector keeps the goal of each collection heapHeadroom above what lives. Where the environment
// has a say in it, everything stays as Go has it.
func paceCollector() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		new(pacer).repace()
	}
}

// pacer is told of each collection by being found unused in it.
type pacer struct {
	percent int
	_       [16]byte // a smaller one would share its place with other values, and may never be found
}

// repace sets the goal by what the last collection found to live, and again after the next one.
func (p *pacer) repace() {
	found := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	runtimemetrics.Read(found)
	percent := gcPercent(found[0].Value.Uint64(), found[1].Value.Uint64()+found[2].Value.Uint64())
	// Setting it stops the world for an instant: small changes are not worth that.
	if percent*8 < p.percent*7 || percent*7 > p.percent*8 {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
	next := &pacer{percent: p.percent}
	runtime.SetFinalizer(next, (*pacer).repace)
}

// gcPercent returns the GOGC that puts the goal heapHeadroom above so many bytes of the heap that live.
// Go adds its percentage of the roots, stacks and globals, to the goal, too.
func gcPercent(live, roots uint64) int {
	percent := min(heapHeadroom*100/max(live+roots, 1), (live+heapHeadroom)*100/goMinHeap)
	return int(max(percent, leastPercent))
}

package main

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"testing"
	"time"
)

func TestGCPercent(t *testing.T) {
	for _, test := range []struct {
		live, roots uint64
		want        int
	}{
		{0, 0, 100}, {2 << 20, 0, 150}, {2 << 20, 2 << 20, 100}, {3 << 20, 1 << 20, 100}, {8 << 20, 0, 50}, {1 << 40, 0, leastPercent},
	} {
		if got := gcPercent(test.live, test.roots); got != test.want {
			t.Errorf("with %d bytes that live and %d of roots: %d %%, want %d", test.live, test.roots, got, test.want)
		}
	}
}

// TestGoalOfTheEmptyHeap: before anything lives the heap may grow by heapHeadroom and no more, give or
// take what Go rounds.
func TestGoalOfTheEmptyHeap(t *testing.T) {
	before := debug.SetGCPercent(gcPercent(0, 0))
	defer debug.SetGCPercent(before)
	runtime.GC()
	found := []runtimemetrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	runtimemetrics.Read(found)
	live := found[1].Value.Uint64()
	// By the percentage of what lives in this test, or the least that Go sets: that one is told apart here.
	byLive := 2*live + found[2].Value.Uint64() + found[3].Value.Uint64()
	if goal, most := found[0].Value.Uint64(), max(byLive, heapHeadroom)*11/10; goal > most {
		t.Errorf("the goal is %d bytes, want at most %d", goal, most)
	}
}

// TestPaceCollector: what comes to live changes the goal at the collection after, and so does what dies.
func TestPaceCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	paceCollector()
	percent := func() int {
		s := []runtimemetrics.Sample{{Name: "/gc/gogc:percent"}}
		runtimemetrics.Read(s)
		return int(s[0].Value.Uint64())
	}
	// The finalizer runs some time behind its collection.
	reach := func(what string, ok func(int) bool) {
		for range 1000 {
			runtime.GC()
			if ok(percent()) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%s: GOGC stays %d", what, percent())
	}
	ballast := make([]byte, 256<<20)
	reach("with 256 MiB", func(p int) bool { return p == leastPercent })
	runtime.KeepAlive(ballast)
	ballast = nil
	reach("without", func(p int) bool { return p > leastPercent })
}

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
		live uint64
		want int
	}{
		{0, mostPercent}, {100 << 10, mostPercent}, {2 << 20, 800}, {16 << 20, 100}, {32 << 20, 50}, {1 << 40, leastPercent},
	} {
		if got := gcPercent(test.live); got != test.want {
			t.Errorf("with %d bytes that live: %d %%, want %d", test.live, got, test.want)
		}
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

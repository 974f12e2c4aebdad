package main

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"
)

func TestFitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "")
	if err := fitMemory(4<<30, 0, false); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	if err := fitMemory(449<<20, 512<<20, true); err == nil || !strings.Contains(err.Error(), "at most 448 MiB") {
		t.Errorf("error %v", err)
	}
	if err := fitMemory(448<<20, 512<<20, true); err != nil {
		t.Error(err)
	}
	if got := debug.SetMemoryLimit(-1); got != 64<<20 {
		t.Errorf("heap limit %d, want what the cache leaves", got)
	}
	debug.SetMemoryLimit(math.MaxInt64)
	t.Setenv("GOMEMLIMIT", "1GiB")
	if err := fitMemory(100<<20, 512<<20, true); err != nil || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Errorf("error %v, heap limit %d: GOMEMLIMIT is to win", err, debug.SetMemoryLimit(-1))
	}
}

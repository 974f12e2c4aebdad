//go:build !race

package cache

import (
	"fmt"
	"os"
	"testing"
)

// residentPages returns how many pages of the process are resident.
func residentPages(t *testing.T) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	var size int64
	if _, err := fmt.Sscan(string(text), &size, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEmptyIsNotResident: a large budget takes no memory before there are entries, and with a few of
// them in each shard a few pages each.
func TestEmptyIsNotResident(t *testing.T) {
	page := int64(os.Getpagesize())
	before := residentPages(t)
	c := newCache(t, 4<<30, 0)
	if took := (residentPages(t) - before) * page; took > 4<<20 {
		t.Errorf("an empty cache of 4 GiB takes %d bytes", took)
	}
	fillMix(t, c, 0, 1000)
	if took := (residentPages(t) - before) * page; took > 16<<20 {
		t.Errorf("with 1000 entries a cache of 4 GiB takes %d bytes", took)
	}
}

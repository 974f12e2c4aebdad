//go:build invariants && unix && !race

package cache

import (
	"runtime/debug"
	"testing"
	"unsafe"
)

// TestGuards: a shard's memory ends where it ends, to the byte and on both sides.
func TestGuards(t *testing.T) {
	c := newCache(t, MinSize, 0)
	mem := c.shards[0].mem
	for name, p := range map[string]unsafe.Pointer{
		"before": unsafe.Add(unsafe.Pointer(&mem[0]), -1),
		"behind": unsafe.Add(unsafe.Pointer(&mem[len(mem)-1]), 1),
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				if recover() == nil {
					t.Error("written to")
				}
			}()
			*(*byte)(p) = 1
		})
	}
}

// TestChecksum: a byte changed from outside is noticed when its entry is next read.
func TestChecksum(t *testing.T) {
	c, q := newCache(t, MinSize, 0), answerOf("www.example.")
	keep(t, c, q, 0)
	c.shards[0].mem[reserved+20]++
	defer func() {
		if recover() == nil {
			t.Error("not noticed")
		}
	}()
	has(c, q, 1000)
}

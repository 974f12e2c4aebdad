package offheap

import (
	"runtime"
	"testing"
)

var raceEnabled bool

func TestReserve(t *testing.T) {
	for _, size := range []int{0, 1, 8, 4096, 1<<20 + 3} {
		mem, release := Reserve(size)
		if len(mem) != size || len(Words(mem)) != size/8 {
			t.Fatalf("%d bytes and %d words, asked for %d", len(mem), len(Words(mem)), size)
		}
		for i, b := range mem {
			if b != 0 {
				t.Fatalf("byte %d of %d is %d", i, size, b)
			}
			mem[i] = byte(i)
		}
		for i, w := range Words(mem) {
			if byte(w) != mem[8*i] && byte(w>>56) != mem[8*i] {
				t.Fatalf("word %d of %d does not lie at byte %d", i, size, 8*i)
			}
		}
		release()
	}
}

// The collector's goal goes by what lives in the heap: what is reserved has no part in it.
func TestOutsideTheHeap(t *testing.T) {
	if raceEnabled || runtime.GOOS == "windows" {
		t.Skip("memory comes from the Go heap here")
	}
	const size = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mem, release := Reserve(size)
	defer release()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > size/2 {
		t.Errorf("the heap grew by %d bytes for %d reserved", grown, len(mem))
	}
}

package cache

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"bonsai/cache/entry"
)

// TestConcurrent has readers, writers, flushes, walks and removals at one small shard, where entries
// are overwritten all the time, and looks into every entry found.
func TestConcurrent(t *testing.T) {
	c, err := New(Config{Size: MinSize, StaleLimit: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const names, steps = 100, 3000
	var now atomic.Uint32
	now.Store(1000)
	var hits atomic.Uint64
	var writers, readers sync.WaitGroup
	for seed := range uint64(2) {
		write := func(r *rand.Rand) {
			q := randomQuestion(r, names)
			k := q.key()
			e := packed(t, q, r.Uint64(), r.IntN(2000), now.Load(), uint32(r.IntN(100)+1), false)
			c.Store(&k, e, now.Load(), c.Epoch())
			switch r.IntN(200) {
			case 0:
				c.FlushName(q.name, q.qtype)
			case 1:
				c.Remove(&k)
			case 2:
				now.Add(1)
			case 3:
				c.Walk(func(e entry.Entry) bool { return intact(t, e) })
			case 4:
				checkAll(t, c)
			}
		}
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 7))
			for step := 0; step < steps && !t.Failed(); step++ {
				write(r)
			}
		})
	}
	var over atomic.Bool
	for seed := range uint64(2) {
		readers.Go(func() {
			buf := c.NewBuf()
			for r := rand.New(rand.NewPCG(seed, 8)); !over.Load() && !t.Failed(); {
				q := randomQuestion(r, names)
				k := q.key()
				c.Prefetch(&k)
				c.PrefetchEntry(&k)
				if e, ok := c.Lookup(&k, now.Load(), buf); ok {
					hits.Add(1)
					if !k.finds(e) || !intact(t, e) {
						t.Errorf("%v: got %x", q, e)
					}
				}
			}
		})
	}
	writers.Wait()
	over.Store(true)
	readers.Wait()
	checkAll(t, c)
	t.Logf("%d hits, %+v", hits.Load(), c.Stats())
	if hits.Load() == 0 {
		t.Error("nothing found")
	}
}

// intact says whether e is one that packed made, whole.
func intact(t *testing.T, e entry.Entry) bool {
	c, err := e.Unpack(1000)
	if err != nil || len(c.Answer) != 1 || len(c.Answer[0].RDATA) != 1 {
		t.Errorf("%x: %v", e, err)
		return false
	}
	rdata := c.Answer[0].RDATA[0]
	version := binary.BigEndian.Uint64(rdata)
	for i := 8; i < len(rdata); i++ {
		if rdata[i] != byte(version>>(i%8))+byte(i) {
			t.Errorf("torn at byte %d of %x", i, rdata)
			return false
		}
	}
	return true
}

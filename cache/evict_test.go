package cache

import (
	"fmt"
	"testing"
	"unsafe"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// evictSize is the RDATA of the entries of these tests, in bytes: a smallest cache holds a good
// hundred of them in probation and eight hundred in main.
const evictSize = 1000

const (
	inProbation = 120 // surely fewer than probation holds
	overflow    = 170 // surely more
	inMain      = 700
)

// evictor stores and asks for numbered names in a cache of one shard.
type evictor struct {
	t   *testing.T
	c   *Cache
	now uint32
	buf []byte
}

func newEvictor(t *testing.T, stale uint32) *evictor {
	c := newCache(t, MinSize, stale)
	return &evictor{t, c, 1000, c.NewBuf()}
}

func numbered(i int) question { return answerOf(fmt.Sprintf("n%d.example.", i)) }

func (v *evictor) store(i int, lifetime uint32) {
	v.t.Helper()
	q := numbered(i)
	k := q.key()
	if !v.c.Store(&k, packed(v.t, q, uint64(i), evictSize, v.now, lifetime, false), v.now, 0) {
		v.t.Fatalf("name %d is not stored", i)
	}
}

// storeAll stores the names from the from-th to before the to-th.
func (v *evictor) storeAll(from, to int, lifetime uint32) {
	v.t.Helper()
	for i := from; i < to; i++ {
		v.store(i, lifetime)
	}
}

func (v *evictor) ask(i int) bool {
	k := numbered(i).key()
	_, ok := v.c.Lookup(&k, v.now, v.buf)
	return ok
}

// where says in which ring a name lies, and how often it counts as used.
func (v *evictor) where(i int) (ring string, use uint32) {
	s, k := &v.c.shards[0], numbered(i).key()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placeOf(k.hash)
	r, ok := s.find(&k, &p)
	switch {
	case !ok:
		return "none", 0
	case s.at(r) < s.main.base:
		return "probation", r.b.use(r.i)
	}
	return "main", r.b.use(r.i)
}

func (v *evictor) expect(i int, ring string, use uint32) {
	v.t.Helper()
	if gotRing, gotUse := v.where(i); gotRing != ring || gotUse != use {
		v.t.Errorf("name %d is in %s, used %d times, want %s and %d", i, gotRing, gotUse, ring, use)
	}
}

// fillMain brings names into main until that is full, and all of them unused.
func (v *evictor) fillMain(lifetime uint32) (next int) {
	v.t.Helper()
	for next = 100_000; v.c.Stats().Unused == 0; next++ {
		v.store(next, lifetime)
	}
	return next
}

// TestPromotion: from probation an entry goes to main where it was used twice, or where main has room;
// else it is forgotten.
func TestPromotion(t *testing.T) {
	for _, test := range []struct {
		name string
		full bool
		uses int
		ring string
		use  uint32
	}{
		{"room, unused", false, 0, "main", 0},
		{"room, used once", false, 1, "main", 1},
		{"full, unused", true, 0, "none", 0},
		{"full, used once", true, 1, "none", 0},
		{"full, used twice", true, 2, "main", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newEvictor(t, 0)
			if test.full {
				v.fillMain(3600)
			}
			v.store(0, 3600)
			for range test.uses {
				v.ask(0)
			}
			v.expect(0, "probation", uint32(test.uses))
			v.storeAll(1, 1+overflow, 3600)
			v.expect(0, test.ring, test.use)
			checkAll(t, v.c)
		})
	}
}

// TestReturn: what was forgotten and comes back goes to main at once, and as if used if it was used
// before; what was never there does not, however many others have left meanwhile.
func TestReturn(t *testing.T) {
	for _, test := range []struct {
		name string
		uses int
		ring string
		use  uint32
	}{{"unused", 0, "main", 0}, {"used once", 1, "main", returned}} {
		t.Run(test.name, func(t *testing.T) {
			v := newEvictor(t, 0)
			v.fillMain(3600)
			v.store(0, 3600)
			for range test.uses {
				v.ask(0)
			}
			v.storeAll(1, 1+overflow, 3600)
			v.expect(0, "none", 0)
			v.store(0, 3600)
			v.expect(0, test.ring, test.use)
			v.store(1_000_000, 3600)
			v.expect(1_000_000, "probation", 0)
		})
	}
}

// TestRefreshIsUse: to be stored again under the same key is a use, in place and elsewhere.
func TestRefreshIsUse(t *testing.T) {
	for _, size := range []int{evictSize, evictSize + 100} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			v := newEvictor(t, 0)
			v.store(0, 3600)
			q := numbered(0)
			k := q.key()
			for use := uint32(1); use < 5; use++ {
				size := size + int(use)*(size-evictSize)
				v.c.Store(&k, packed(t, q, uint64(use), size, v.now, 3600, false), v.now, 0)
				if _, got := v.where(0); got != min(use, maxUse) {
					t.Errorf("used %d times after %d refreshes", got, use)
				}
			}
			checkAll(t, v.c)
		})
	}
}

// TestHintedGoesToMain: what resolution leans on does not wait for its use to be seen.
func TestHintedGoesToMain(t *testing.T) {
	v := newEvictor(t, 0)
	q := numbered(0)
	k := q.key()
	v.c.Store(&k, packed(t, q, 1, evictSize, v.now, 3600, true), v.now, 0)
	v.expect(0, "main", 0)
}

// TestFloodPassesBy: names asked for once, or twice in a row, leave what is in use where it is, however
// many they are.
func TestFloodPassesBy(t *testing.T) {
	for _, asks := range []int{1, 2} {
		t.Run(fmt.Sprint(asks), func(t *testing.T) {
			v := newEvictor(t, 0)
			v.storeAll(0, inMain+inProbation, 86400)
			const flood, pause = 20_000, 1000 // a name in use is asked for once while so many pass
			lost, asked := 0, 0
			for i := range flood {
				v.store(1_000_000+i, 86400)
				if asks == 2 {
					v.ask(1_000_000 + i)
				}
				for used := 0; i%pause == 0 && used < inMain; used++ {
					asked++
					if !v.ask(used) {
						lost++
						v.store(used, 86400)
					}
				}
			}
			// Ghosts have twelve bits, and of a flood a few in a thousand are taken for who was there.
			if lost > asked/100 {
				t.Errorf("of %d questions %d found the name lost", asked, lost)
			}
			checkAll(t, v.c)
		})
	}
}

// TestExpiredGoFirst: what is expired and unused makes room for what is not expired; what is expired and
// used stays, but within the stale window only.
func TestExpiredGoFirst(t *testing.T) {
	const stale = 1000
	for _, test := range []struct {
		name    string
		uses    int
		passed  uint32
		goes    bool // for a new name that nobody asked for again
		counted bool // as expired
	}{
		{"live and unused", 0, 50, false, false},
		{"expired and unused", 0, 100, true, false},
		{"expired and used", 1, 100 + stale - 1, false, false},
		{"used, beyond the stale window", 1, 100 + stale, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newEvictor(t, stale)
			next := v.fillMain(100)
			if test.uses > 0 {
				for i := 100_000; i < next; i++ {
					v.ask(i)
				}
			}
			v.now += test.passed
			before := v.c.Stats()
			v.storeAll(0, 2*overflow, 3600)
			after := v.c.Stats()
			if got := after.Expired > before.Expired; got != test.counted {
				t.Errorf("%d left as expired", after.Expired-before.Expired)
			}
			// In main, where they were not asked for: there is room only where others go.
			if ring, _ := v.where(0); (ring == "main") != test.goes {
				t.Errorf("a new name is in %s", ring)
			}
			checkAll(t, v.c)
		})
	}
}

// TestMovesAreBounded: one insert carries no more than its share, even where all are used; the rest it
// has to forget.
func TestMovesAreBounded(t *testing.T) {
	v := newEvictor(t, 0)
	name := func(i int) question { return answerOf(fmt.Sprintf("s%d.example.", i)) }
	small := 0
	for ; v.c.Stats().Unused == 0; small++ {
		q := name(small)
		k := q.key()
		v.c.Store(&k, packed(t, q, 1, 20, v.now, 3600, false), v.now, 0)
	}
	for round := 0; round < maxUse; round++ {
		for i := range small {
			k := name(i).key()
			v.c.Lookup(&k, v.now, v.buf)
		}
	}
	// Large ones that go to main at once need the room of hundreds there.
	large := int(v.c.shards[0].main.limit-v.c.shards[0].main.base)/entryShare - 200
	for i := range 8 {
		q := question{entry.KindCut, 0, wire.MustName(fmt.Sprintf("l%d.example.", i)), wire.TypeNone}
		k := q.key()
		before := v.c.Stats()
		v.c.Store(&k, packed(t, q, 1, large, v.now, 3600, true), v.now, 0)
		after := v.c.Stats()
		if moved := after.Carried - before.Carried; moved > maxMoves {
			t.Fatalf("an insert carried %d entries", moved)
		} else if i == 0 && (moved != maxMoves || after.Hurried == before.Hurried) {
			t.Errorf("%d carried, %d hurried out: the room was not scarce", moved, after.Hurried-before.Hurried)
		}
	}
	checkAll(t, v.c)
}

// TestGhosts holds the two queues to their order and their lengths.
func TestGhosts(t *testing.T) {
	var b bucket
	for g := uint32(1); g <= 20; g++ {
		b.remember(g<<4, g%2 == 0)
	}
	for g := uint32(1); g <= 20; g++ {
		wantUsed := g%2 == 0 && g > 20-2*usedGhosts
		wantUnused := g%2 == 1 && g > 20-2*unusedGhosts
		if gotUsed, gotUnused := b.recall(g << 4); gotUsed != wantUsed || gotUnused != wantUnused {
			t.Errorf("ghost %d: used %v, unused %v, want %v, %v", g, gotUsed, gotUnused, wantUsed, wantUnused)
		}
		if gotUsed, gotUnused := b.recall(g << 4); gotUsed || gotUnused {
			t.Errorf("ghost %d is there twice", g)
		}
	}
	if b != (bucket{}) {
		t.Errorf("left over: %+v", b)
	}
	if size := unsafe.Sizeof(b); size != bucketSize {
		t.Errorf("a bucket takes %d bytes", size)
	}
}

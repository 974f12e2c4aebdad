package cache

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

func newCache(t testing.TB, size int64, stale uint32) *Cache {
	t.Helper()
	c, err := New(Config{Size: size, StaleLimit: stale})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answerOf(name string) question {
	return question{entry.KindAnswer, 0, wire.MustName(name), wire.TypeA}
}

// keep stores an entry that lives 300 seconds from 1000, and says whether it was taken.
func keep(t testing.TB, c *Cache, q question, epoch uint64) bool {
	t.Helper()
	k := q.key()
	return c.Store(&k, packed(t, q, 7, 16, 1000, 300, false), 1000, epoch)
}

func has(c *Cache, q question, now uint32) bool {
	k := q.key()
	_, ok := c.Lookup(&k, now, c.NewBuf())
	return ok
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		name   string
		size   int64
		shards int
		err    error
	}{
		{"below the smallest", MinSize - 1, 0, ErrSize},
		{"smallest", MinSize, 1, nil},
		{"just below two shards", 16<<20 - 1, 1, nil},
		{"two shards", 16 << 20, 2, nil},
		{"most shards", 512 << 20, 64, nil},
		{"large", 8 << 30, 64, nil},
		{"above the largest", MaxSize + 1, 0, ErrSize},
	} {
		t.Run(test.name, func(t *testing.T) {
			if raceEnabled && test.size > 64<<20 && test.err == nil {
				t.Skip("would take that much of the heap")
			}
			c, err := New(Config{Size: test.size})
			if !errors.Is(err, test.err) {
				t.Fatalf("got error %v, want %v", err, test.err)
			}
			if err != nil {
				return
			}
			defer c.Close()
			if len(c.shards) != test.shards {
				t.Errorf("%d shards, want %d", len(c.shards), test.shards)
			}
			if got := c.Stats().Capacity; got > uint64(test.size) || got < uint64(test.size)*15/16 {
				t.Errorf("capacity %d of %d", got, test.size)
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	for _, test := range []struct {
		name  string
		stale uint32
		now   uint32
		want  bool
	}{
		{"live", 0, 1299, true},
		{"expired", 0, 1300, false},
		{"expired within the stale limit", 60, 1359, true},
		{"expired for longer", 60, 1360, false},
		{"clock set back", 0, 500, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, q := newCache(t, MinSize, test.stale), answerOf("www.example.")
			keep(t, c, q, 0)
			if got := has(c, q, test.now); got != test.want {
				t.Errorf("found: %v, want %v", got, test.want)
			}
			st := c.Stats()
			if hit := st.Hits == 1 && st.Misses == 0; hit != test.want {
				t.Errorf("counted %d hits and %d misses", st.Hits, st.Misses)
			}
		})
	}
}

// TestExpiredStays: until the stale limit what is expired goes for want of room alone, and what goes then
// is not counted as expired.
func TestExpiredStays(t *testing.T) {
	const ttl, limit = 10, 1000
	c, next := newCache(t, MinSize, limit), 0
	store := func(n int, now uint32) (first question) {
		for i := range n {
			q := answerOf(fmt.Sprintf("n%d.example.", next))
			k := q.key()
			if next++; i == 0 {
				first = q
			}
			c.Store(&k, packed(t, q, 7, 400, now, ttl, false), now, c.Epoch())
		}
		return first
	}
	first := store(100, 1000)
	store(1000, 1500) // far more than probation takes, and less than there is room for
	if !has(c, first, 1500) {
		t.Error("expired and unused, it went although there was room")
	}
	store(5000, 1600)
	if st := c.Stats(); st.Expired != 0 || st.Unused == 0 {
		t.Errorf("within the stale limit %d counted as expired, %d as unused", st.Expired, st.Unused)
	}
	store(5000, 3000)
	if st := c.Stats(); st.Expired == 0 {
		t.Error("beyond the stale limit none counted as expired")
	}
	expired := c.Stats().Expired
	last := store(1, 3000)
	c.SetStaleLimit(0)
	if has(c, last, 3000+ttl) {
		t.Error("without a stale limit the expired is found")
	}
	if store(5000, 3000+ttl); c.Stats().Expired == expired {
		t.Error("without a stale limit none counted as expired")
	}
}

func TestKeysAreApart(t *testing.T) {
	c, q := newCache(t, MinSize, 0), answerOf("www.example.")
	keep(t, c, q, 0)
	for _, other := range []question{
		{entry.KindUnvalidated, 0, q.name, q.qtype},
		{q.kind, 1, q.name, q.qtype},
		{q.kind, 0, wire.MustName("ww.example."), q.qtype},
		{q.kind, 0, q.name, wire.TypeAAAA},
	} {
		if has(c, other, 1000) {
			t.Errorf("%v is found by %v", q, other)
		}
	}
	k, other := q.key(), q.key()
	if k != other || k.With(entry.KindDenial, 0) != MakeKey(entry.KindDenial, 0, []byte(q.name), 0) {
		t.Error("keys of the same parts differ")
	}
	name := []byte(q.name)
	k = MakeKey(q.kind, 0, name, q.qtype)
	own := k.Own()
	name[1] = 'x'
	if own != other || k == other {
		t.Error("an owned key does not stand alone, or a borrowed one does")
	}
}

// TestFlush flushes one name of several in each way, and looks at what is left and at what may be
// stored by resolutions that began before and after.
func TestFlush(t *testing.T) {
	names := []string{"example.", "www.example.", "a.www.example.", "wwwexample.", "other."}
	for _, test := range []struct {
		name  string
		flush func(c *Cache)
		left  []string
		late  []string // may be stored by a resolution from before
	}{
		{"a name", func(c *Cache) { c.FlushName(wire.MustName("www.example."), 0) },
			[]string{"example.", "a.www.example.", "wwwexample.", "other."}, []string{"example.", "a.www.example.", "wwwexample.", "other."}},
		{"a name and its type", func(c *Cache) { c.FlushName(wire.MustName("www.example."), wire.TypeA) },
			[]string{"example.", "a.www.example.", "wwwexample.", "other."}, []string{"example.", "a.www.example.", "wwwexample.", "other."}},
		{"a name and another type", func(c *Cache) { c.FlushName(wire.MustName("www.example."), wire.TypeMX) },
			names, []string{"example.", "a.www.example.", "wwwexample.", "other."}},
		{"a tree", func(c *Cache) { c.FlushTree(wire.MustName("www.example.")) },
			[]string{"example.", "wwwexample.", "other."}, []string{"example.", "wwwexample.", "other."}},
		{"all", func(c *Cache) { c.FlushTree(wire.Root) }, nil, nil},
		{"by match", func(c *Cache) { c.Flush(func(e entry.Entry) bool { return len(e.QName()) > 14 }) },
			[]string{"example.", "www.example.", "wwwexample.", "other."}, nil},
		{"forgotten flushes", func(c *Cache) {
			for range maxFlushes + 1 {
				c.FlushName(wire.MustName("none."), 0)
			}
		}, names, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCache(t, 16<<20, 0)
			before := c.Epoch()
			for _, n := range names {
				keep(t, c, answerOf(n), before)
			}
			test.flush(c)
			for _, n := range names {
				q := answerOf(n)
				if got, want := has(c, q, 1000), contains(test.left, n); got != want {
					t.Errorf("%s is left: %v, want %v", n, got, want)
				}
				if got, want := keep(t, c, q, before), contains(test.late, n); got != want {
					t.Errorf("%s is stored late: %v, want %v", n, got, want)
				}
				if !keep(t, c, q, c.Epoch()) {
					t.Errorf("%s is not stored afterwards", n)
				}
			}
			checkAll(t, c)
		})
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// TestTypeZeroGoesWithAnyType: what lies under QTYPE 0 speaks of the type flushed, too.
func TestTypeZeroGoesWithAnyType(t *testing.T) {
	c := newCache(t, MinSize, 0)
	denial := question{entry.KindDenial, 0, wire.MustName("www.example."), 0}
	keep(t, c, denial, 0)
	c.FlushName(denial.name, wire.TypeA)
	if has(c, denial, 1000) {
		t.Error("a denial outlived the flush of a type at its name")
	}
}

func TestRefreshInPlace(t *testing.T) {
	for _, test := range []struct {
		name    string
		size    int
		inPlace bool
	}{{"same", 300, true}, {"shorter", 299, true}, {"much shorter", 9, true}, {"one byte form", 150, true}, {"longer", 301, false}} {
		t.Run(test.name, func(t *testing.T) {
			c, q := newCache(t, MinSize, 0), answerOf("www.example.")
			k, buf := q.key(), c.NewBuf()
			c.Store(&k, packed(t, q, 1, 300, 1000, 300, false), 1000, 0)
			written := c.Stats().RingBytes
			want := packed(t, q, 2, test.size, 1100, 300, false)
			c.Store(&k, want, 1100, 0)
			if got, ok := c.Lookup(&k, 1100, buf); !ok || string(got) != string(want) {
				t.Errorf("got %x, want %x", got, want)
			}
			st := c.Stats()
			if inPlace := st.RingBytes == written; inPlace != test.inPlace {
				t.Errorf("in place: %v, want %v", inPlace, test.inPlace)
			}
			if st.Refreshed != 1 || st.Entries != 1 {
				t.Errorf("%+v", st)
			}
			checkAll(t, c)
		})
	}
}

func TestTooLarge(t *testing.T) {
	c, q := newCache(t, MinSize, 0), answerOf("www.example.")
	k := q.key()
	const limit = MinSize / probationShare / entryShare
	for size, want := range map[int]bool{limit - 200: true, limit + 1: false} {
		if got := c.Store(&k, packed(t, q, 1, size, 1000, 300, false), 1000, 0); got != want {
			t.Errorf("%d bytes stored: %v, want %v", size, got, want)
		}
	}
	if st := c.Stats(); st.TooLarge != 1 {
		t.Errorf("counted %d", st.TooLarge)
	}
}

// TestHitAllocs: a hit allocates nothing, nor does a store, in a full cache.
func TestHitAllocs(t *testing.T) {
	c := newCache(t, MinSize, 0)
	fillMix(t, c, 0, 20000)
	buf, name := c.NewBuf(), make([]byte, 0, 256)
	q := answerOf("www.example.")
	keep(t, c, q, 0)
	k := q.key()
	if n := testing.AllocsPerRun(100, func() {
		k := MakeKey(entry.KindAnswer, 0, q.name, wire.TypeA)
		c.Prefetch(&k)
		c.PrefetchEntry(&k)
		if _, ok := c.Lookup(&k, 1000, buf); !ok {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, ok := c.Lookup(&k, 2000, buf); _ = ok }); n != 0 {
		t.Errorf("a miss allocates %v times", n)
	}
	name = mixName(name, 1)
	e, qtype := mixEntry(nil, name, 1, 1000)
	i := byte(0)
	if n := testing.AllocsPerRun(1000, func() {
		i++ // other names of the same length, so that entries leave
		e[len(e)-1] = i
		k := MakeKey(entry.KindAnswer, uint16(i), name, qtype)
		c.Store(&k, e, 1000, 0)
	}); n != 0 {
		t.Errorf("a store allocates %v times", n)
	}
}

// TestHitsWriteNothingShared: once the uses of an entry are counted to the full, hits leave all memory of
// the shards as it is, but for the counters that each thread has its own of.
func TestHitsWriteNothingShared(t *testing.T) {
	c, q := newCache(t, MinSize, 0), answerOf("www.example.")
	keep(t, c, q, 0)
	for range maxUse {
		has(c, q, 1000)
	}
	s := &c.shards[0]
	mem, clock, buckets := bytes.Clone(s.mem), s.clock.Load(), s.buckets.Load()
	k, buf := q.key(), c.NewBuf()
	for range 1000 {
		c.Prefetch(&k)
		c.PrefetchEntry(&k)
		if _, ok := c.Lookup(&k, 1000, buf); !ok {
			t.Fatal("not found")
		}
	}
	if !bytes.Equal(mem, s.mem) || clock != s.clock.Load() || buckets != s.buckets.Load() {
		t.Error("hits wrote to what readers share")
	}
}

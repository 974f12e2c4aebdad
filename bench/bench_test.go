package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"bonsai/cache"
	"bonsai/wire"
)

const (
	population = 100_000 // entries that each layout holds
	hot        = 10_000  // of them are asked for by hot lookups
	batch      = 256     // inputs are made so many at once, while the clock stands
)

var plain = &Mix{Seed: 1}

// budget is what the arena gets, for as many entries as the others hold.
var budget = sync.OnceValues(func() (int64, error) { return FittingBudget(plain, population, testNow) })

// full returns a layout that has had twice as many responses as it holds, and so forgets one for
// each that comes.
func full(tb testing.TB, k Kind) Layout {
	bytes, err := budget()
	if err != nil {
		tb.Fatal(err)
	}
	l, err := k.New(population, bytes)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.Close)
	plain.Feed(l, 0, 2*population, testNow)
	return l
}

// inputs are responses parsed ahead.
type inputs struct {
	bytes    [batch][]byte
	messages [batch]wire.Message
}

func (in *inputs) make(tb testing.TB, m *Mix, from int) {
	for i := range batch {
		in.bytes[i] = m.Response(in.bytes[i][:0], from+i)
		if err := in.messages[i].Parse(in.bytes[i]); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkInsert stores names not seen before where each takes the place of another.
func BenchmarkInsert(b *testing.B) {
	for _, k := range Kinds {
		b.Run(k.Name, func(b *testing.B) {
			l := full(b, k)
			b.Run("one", func(b *testing.B) { insert(b, l) })
			b.Run("all", func(b *testing.B) { insertAll(b, l) })
		})
	}
}

// freshName counts up over all runs, so that no name comes twice.
var freshName atomic.Int64

func init() { freshName.Store(2 * population) }

func insert(b *testing.B, l Layout) {
	b.ReportAllocs()
	var in inputs
	for i := 0; i < b.N; i++ {
		if i%batch == 0 {
			b.StopTimer()
			in.make(b, plain, int(freshName.Add(batch)))
			b.StartTimer()
		}
		l.Insert(&in.messages[i%batch], testNow)
	}
}

// insertAll makes its inputs while the clock runs: it can't stand for all threads.
func insertAll(b *testing.B, l Layout) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		l := Thread(l)
		var in inputs
		for i := batch; pb.Next(); i++ {
			if i == batch {
				in.make(b, plain, int(freshName.Add(batch)))
				i = 0
			}
			l.Insert(&in.messages[i], testNow)
		}
	})
}

// queries is a list of queries in the order they are asked.
type queries struct {
	bytes []byte
	ends  []uint32
}

func drawQueries(n int, draw func(*rng) int) *queries {
	r := rng(1)
	q := &queries{}
	for range n {
		q.bytes = plain.Query(q.bytes, draw(&r))
		q.ends = append(q.ends, uint32(len(q.bytes)))
	}
	return q
}

func (q *queries) at(i int) []byte {
	if i == 0 {
		return q.bytes[:q.ends[0]]
	}
	return q.bytes[q.ends[i-1]:q.ends[i]]
}

// BenchmarkLookup parses a query, looks it up and writes the response.
func BenchmarkLookup(b *testing.B) {
	for _, k := range Kinds {
		b.Run(k.Name, func(b *testing.B) {
			l := full(b, k)
			held := present(l)
			if len(held) < population/2 {
				b.Fatalf("%d entries of %d", len(held), population)
			}
			lists := map[string]*queries{
				"hot":    drawQueries(1<<16, func(r *rng) int { return held[r.below(hot)] }),
				"random": drawQueries(1<<18, func(r *rng) int { return held[r.below(len(held))] }),
			}
			for _, name := range []string{"hot", "random"} {
				q := lists[name]
				b.Run(name+"/one", func(b *testing.B) {
					b.ReportAllocs()
					lookUp(b, Thread(l), q, 0, b.Loop)
				})
				b.Run(name+"/all", func(b *testing.B) {
					b.ReportAllocs()
					var at atomic.Int64
					b.RunParallel(func(pb *testing.PB) { lookUp(b, Thread(l), q, int(at.Add(1))*7919, pb.Next) })
				})
			}
		})
	}
}

// present returns which of the responses fed l has.
func present(l Layout) (held []int) {
	var q wire.Query
	query, out := make([]byte, 0, 512), make([]byte, 0, 4096)
	for i := range 2 * population {
		query = plain.Query(query[:0], i)
		if q.Parse(query) != wire.QueryOK {
			continue
		}
		if _, ok := l.Lookup(out[:0], &q, testNow); ok {
			held = append(held, i)
		}
	}
	return held
}

func lookUp(b *testing.B, l Layout, list *queries, from int, next func() bool) {
	var q wire.Query
	out := make([]byte, 0, 4096)
	misses := 0
	for i := from; next(); i++ {
		if q.Parse(list.at(i%len(list.ends))) != wire.QueryOK {
			b.Error("a query of ours is broken")
			return
		}
		if _, ok := l.Lookup(out, &q, testNow+7); !ok {
			misses++
		}
	}
	if misses > 0 {
		b.Errorf("%d names that were there are not", misses)
	}
}

// BenchmarkMemory reports bytes an entry: on the Go heap after a collection, and outside it what the
// arena has ever written to. The heap's slack is not in it; the report has resident memory.
func BenchmarkMemory(b *testing.B) {
	floor := 0
	for i := range population {
		floor += Floor(plain.Response(nil, i))
	}
	bytes, err := budget()
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range Kinds {
		b.Run(k.Name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				l, err := k.New(population, bytes)
				if err != nil {
					b.Fatal(err)
				}
				plain.Feed(l, 0, population, testNow)
				used := float64(heap()) - float64(before)
				if st, ok := ArenaStats(l); ok {
					used += float64(st.Touched)
				}
				n := float64(l.Len())
				b.ReportMetric(used/n, "bytes/entry")
				b.ReportMetric(used/n-float64(floor)/population, "over-floor/entry")
				l.Close()
			}
		})
	}
}

func heap() uint64 {
	var st runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&st)
	return st.HeapAlloc
}

// few is how many allocations may come of the runtime and the test itself in thousands of runs.
const few = 30

// allocs counts the allocations of n runs. testing.AllocsPerRun rounds down, and so does not see what
// allocates less than always.
func allocs(n int, run func()) uint64 {
	run()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		run()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// TestArenaAllocs: in steady state, with eviction, neither store nor lookup allocates.
func TestArenaAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates for values that stay on the stack without it")
	}
	mix := &Mix{Seed: 5, Signed: true}
	l, err := newArena(0, 2*cache.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const n = 30_000
	mix.Feed(l, 0, n, testNow)
	before, _ := ArenaStats(l)
	if before.Unused == 0 {
		t.Fatalf("%d entries in %d bytes: not full", before.Entries, before.Capacity)
	}
	var m wire.Message
	buf, i := make([]byte, 0, 4096), n
	if got := allocs(3000, func() {
		buf = mix.Response(buf[:0], i)
		if err := m.Parse(buf); err != nil {
			t.Fatal(err)
		}
		l.Insert(&m, testNow)
		i++
	}); got > few {
		t.Errorf("%d allocations in 3000 stores", got)
	}
	if after, _ := ArenaStats(l); after.Unused-before.Unused < 1000 {
		t.Errorf("%d entries left for 3000 that came", after.Unused-before.Unused)
	}
	var q wire.Query
	out := make([]byte, 0, 4096)
	hits := 0
	i = 0
	if got := allocs(n, func() {
		buf = mix.Query(buf[:0], i)
		if q.Parse(buf) != wire.QueryOK {
			t.Fatal("a query of ours is broken")
		}
		if _, ok := l.Lookup(out, &q, testNow+7); ok {
			hits++
		}
		i++
	}); got > few {
		t.Errorf("%d allocations in %d lookups", got, n)
	}
	if hits < 1000 {
		t.Errorf("%d hits of %d", hits, n)
	}
}

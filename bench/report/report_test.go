package main

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test's own program be the child that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-child" {
		if err := serveOrders(); err != nil {
			panic(err)
		}
		return
	}
	quiet = true
	os.Exit(m.Run())
}

// TestMeasure runs the whole report small: what it measures must be there and be plausible.
func TestMeasure(t *testing.T) {
	s := &settings{out: t.TempDir(), entries: 12_800, turnover: 2, rounds: 1, layouts: []string{"growable", "packed", "arena"}}
	m, err := measureMix(s, "plain")
	if err != nil {
		t.Fatal(err)
	}
	arena, first, packed := m.of("arena"), m.of("growable"), m.of("packed")
	heap := func(r *result) float64 { return r.full.Heap / float64(r.full.Len) }
	if !(heap(arena) < heap(packed) && heap(packed) < heap(first)) {
		t.Errorf("Go heap an entry: arena %.0f, packed %.0f, growable %.0f", heap(arena), heap(packed), heap(first))
	}
	if heap(packed) < m.floor {
		t.Errorf("packed takes %.0f bytes, the floor is %.0f", heap(packed), m.floor)
	}
	for _, r := range m.list {
		if r.fresh.Len < s.entries*9/10 || r.full.Len < s.entries*9/10 || r.full.Len > s.entries*12/10 {
			t.Errorf("%s: %d entries, later %d, of %d", r.name, r.fresh.Len, r.full.Len, s.entries)
		}
		if r.churn.CPU <= 0 || r.time("hot") <= 0 || r.time("random/2") <= 0 {
			t.Errorf("%s: not timed: %+v %+v", r.name, r.churn, r.find)
		}
	}
	// The race detector lets pools forget, so that what takes its buffers from one allocates.
	if !raceEnabled && (first.churn.Allocs < 3 || arena.churn.Allocs > 0.1) {
		t.Errorf("allocations an insert: growable %.2f, arena %.2f", first.churn.Allocs, arena.churn.Allocs)
	}
	if text := m.table(s) + tableOfTargets(m.targets()); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error(text)
	}
	if err := m.plots(s); err != nil {
		t.Error(err)
	}
}

// TestBlockLists runs the report on block lists small: nothing is lost or answered wrong, and all is weighed.
func TestBlockLists(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of other processes is known on Linux alone")
	}
	b := &blocking{dir: t.TempDir(), names: 3000, reloads: 2, rate: 200, calm: 200 * time.Millisecond, settle: time.Millisecond}
	results, err := b.measure()
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.size == 0 || r.full.resident == 0 || r.full.peak < r.full.resident || r.peak.peak == 0 || r.start <= 0 || r.fastest <= 0 || r.slowest < r.fastest {
		t.Errorf("not measured: %+v", r)
	}
	for _, o := range []outcome{r.calm, r.reloading} {
		if o.asked == 0 || o.lost > 0 || o.wrong > 0 || o.p50 <= 0 || o.longest < o.p99 {
			t.Errorf("queries: %+v", o)
		}
	}
	text := b.table(results)
	for _, word := range []string{"3000 names", "resident bytes a name", "until a reload holds", "queries during reloads"} {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in %s", word, text)
		}
	}
}

// TestListedNames: as many as are asked for, each once, and such as lists have.
func TestListedNames(t *testing.T) {
	b := &blocking{names: 30_000}
	seen := map[string]bool{}
	for i, name := range b.listedNames {
		if i != len(seen) || seen[name] || len(name) > 60 || strings.HasPrefix(name, "-") {
			t.Fatalf("name %d is %s", i, name)
		}
		seen[name] = true
	}
	if len(seen) != b.names {
		t.Errorf("%d names", len(seen))
	}
	if list := b.queries(); len(list) != questions || ids%len(list) != 0 {
		t.Errorf("%d questions", len(list))
	}
}

// TestZipf holds the sampler to the distribution, s below, at and above 1.
func TestZipf(t *testing.T) {
	const n, draws = 1000, 2_000_000
	for _, s := range []float64{0, 0.8, 1, 1.3} {
		z, r := newZipf(n, s), random(3)
		count := make([]int, n)
		for range draws {
			count[z.draw(&r)]++
		}
		sum := 0.0
		for i := range n {
			sum += math.Pow(float64(i+1), -s)
		}
		chi := 0.0
		for i, c := range count {
			want := draws * math.Pow(float64(i+1), -s) / sum
			chi += (float64(c) - want) * (float64(c) - want) / want
		}
		// 999 degrees of freedom: mean 999, deviation 45.
		if chi < 999-6*45 || chi > 999+6*45 {
			t.Errorf("s=%v: chi square %.0f", s, chi)
		}
	}
}

// TestTraces: the queries that count are the same whatever is beside them.
func TestTraces(t *testing.T) {
	const names, queries = 500, 5000
	plain := newTrace("plain", names, queries, 0.9)
	for kind, foreigners := range map[string]int{"flood": queries, "scan": queries} {
		tr := newTrace(kind, names, queries, 0.9)
		var counted []uint32
		seen := map[uint32]int{}
		for _, id := range tr.ids {
			if id&foreign == 0 {
				counted = append(counted, id)
			} else {
				seen[id]++
			}
		}
		if len(counted) != queries {
			t.Fatalf("%s: %d queries count", kind, len(counted))
		}
		for i := range counted {
			if counted[i] != plain.ids[i] {
				t.Fatalf("%s: query %d is another", kind, i)
			}
		}
		if n := len(tr.ids) - queries; math.Abs(float64(n-foreigners)) > 0.1*float64(foreigners) {
			t.Errorf("%s: %d queries beside %d", kind, n, queries)
		}
		for id, n := range seen {
			if kind == "flood" && n != 1 || n > 2 {
				t.Fatalf("%s: %x is asked %d times", kind, id, n)
			}
		}
	}
}

func unit(n int) *sizes {
	s := &sizes{factor: 1}
	for range n {
		s.of = append(s.of, 1)
	}
	return s
}

// play returns which of the queries hit.
func play(p policy, ids string) string {
	var b strings.Builder
	for _, c := range ids {
		id := uint32(c - 'a')
		if p.has(id) {
			b.WriteByte('+')
		} else {
			b.WriteByte('.')
			p.store(id)
		}
	}
	return b.String()
}

// TestPolicies plays short games whose outcome was worked out by hand.
func TestPolicies(t *testing.T) {
	const n = 26
	for _, c := range []struct {
		name, ids, want string
		p               policy
	}{
		{"FIFO", "abcadab", "...+...", newQueue(n, unit(n), 3, false)},
		{"LRU", "abcadab", "...+.+.", newQueue(n, unit(n), 3, true)},
		// The hand spares a and takes b; then c, for it stands behind b.
		{"SIEVE", "abcadeacb", "...+..+..", newSieve(n, unit(n), 3)},
		// b leaves unused and is remembered; it comes back to main and stays there while others pass.
		{"S3-FIFO", "abcdefghijkabbb", "...........++++", newS3FIFO(n, unit(n), 11)},
		{"S3-FIFO, ghost", "abcdaefgha", "....." + "....+", newS3FIFO(n, unit(n), 3)},
	} {
		if got := play(c.p, c.ids); got != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.ids, got, c.want)
		}
	}
}

// TestNextUse: with one size and no expiry it is Belady's, which no other beats; and what it counts as
// kept fits.
func TestNextUse(t *testing.T) {
	tr := newTrace("drift", 2000, 60_000, 0.8)
	m := &memory{sizes: unit(2000).of, growable: 1, packed: 1}
	c := contest{t: tr, next: following(tr), ttl: "none", room: 150, rate: 5}
	best, err := c.run("next use", m)
	if err != nil {
		t.Fatal(err)
	}
	if want := belady(tr, 150); math.Abs(best-want) > 1e-9 {
		t.Errorf("%.3f %%, want %.3f", best, want)
	}
	for _, way := range []string{"FIFO", "LRU", "SIEVE", "S3-FIFO"} {
		rate, err := c.run(way, m)
		if err != nil {
			t.Fatal(err)
		}
		if rate >= best || rate < best/3 {
			t.Errorf("%s %.2f %%, next use %.2f", way, rate, best)
		}
	}
}

// belady is the same by brute force.
func belady(t *trace, room int) float64 {
	next, kept := following(t), map[uint32]uint32{}
	hits, asked := 0, 0
	for i, id := range t.ids {
		_, hit := kept[id]
		kept[id] = next[i]
		if len(kept) > room {
			var out, far uint32
			for name, at := range kept {
				if at > far || at == far && name > out {
					out, far = name, at
				}
			}
			delete(kept, out)
		}
		if i >= len(t.ids)/2 {
			asked++
			if hit {
				hits++
			}
		}
	}
	return 100 * float64(hits) / float64(asked)
}

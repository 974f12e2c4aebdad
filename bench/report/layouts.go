package main

import (
	"fmt"
	"slices"
	"strings"

	"bonsai/bench"
)

// result is what was measured of one layout with one mix.
type result struct {
	name  string
	fresh figures              // memory, holding as many as it can, none forgotten
	full  figures              // memory, after its turnover
	fill  figures              // inserts while there is room
	churn figures              // inserts in steady state, medians of the rounds
	find  map[string][]figures // lookups by kind, a round each
	gc    figures              // a collection with the layout full
}

// mixResult is all layouts with one mix, measured in one run.
type mixResult struct {
	mix    string
	floor  float64
	budget int64
	list   []*result
}

func (m *mixResult) of(name string) *result {
	for _, r := range m.list {
		if r.name == name {
			return r
		}
	}
	return nil
}

// lookups are the ways to look up: how many names by how many threads.
var lookups = []struct {
	name    string
	hot     int
	threads int
}{
	{"hot", 10_000, 1}, {"random", 0, 1}, {"one", 1, 1},
	{"hot/2", 10_000, 2}, {"random/2", 0, 2}, {"one/2", 1, 2},
}

// lookupCount is how many lookups a thread does in a round.
const lookupCount = 40_000

// measureMix measures the layouts with one mix. Their processes live side by side and take turns, so
// that a busy machine is busy for all.
func measureMix(s *settings, mix string) (*mixResult, error) {
	m := &mixResult{mix: mix, floor: meanFloor(mix == "signed", s.entries)}
	budget, err := bench.FittingBudget(newMix(mix == "signed"), s.entries, now)
	if err != nil {
		return nil, err
	}
	m.budget = budget
	var children []*child
	defer func() {
		for _, c := range children {
			c.stop()
		}
	}()
	for _, name := range s.layouts {
		c, err := start()
		if err != nil {
			return nil, err
		}
		children = append(children, c)
		r := &result{name: name, find: map[string][]figures{}}
		m.list = append(m.list, r)
		if _, err := c.do(order{Do: "begin", Layout: name, Signed: mix == "signed", Entries: s.entries, Budget: budget}); err != nil {
			return nil, err
		}
	}
	each := func(what string, do func(c *child, r *result) error) error {
		for i, c := range children {
			progress("%s: %s %s", mix, what, m.list[i].name)
			if err := do(c, m.list[i]); err != nil {
				return fmt.Errorf("%s: %w", m.list[i].name, err)
			}
		}
		return nil
	}
	return m, measureAll(s, each)
}

func meanFloor(signed bool, n int) float64 {
	mix, buf, sum := newMix(signed), []byte(nil), 0
	for i := range n {
		buf = mix.Response(buf[:0], i)
		sum += bench.Floor(buf)
	}
	return float64(sum) / float64(n)
}

// measureAll does what is measured, in order, each with all layouts.
func measureAll(s *settings, each func(string, func(*child, *result) error) error) error {
	err := each("fill", func(c *child, r *result) (err error) {
		if r.fill, err = c.do(order{Do: "insert", To: s.entries}); err != nil {
			return err
		}
		r.fresh, err = c.do(order{Do: "memory"})
		return err
	})
	if err != nil {
		return err
	}
	churn := map[*result][]figures{}
	for lap := 1; lap < s.turnover; lap++ {
		err := each(fmt.Sprintf("lap %d", lap), func(c *child, r *result) error {
			f, err := c.do(order{Do: "insert", From: lap * s.entries, To: (lap + 1) * s.entries})
			churn[r] = append(churn[r], f)
			return err
		})
		if err != nil {
			return err
		}
	}
	err = each("weigh", func(c *child, r *result) (err error) {
		// The first half still fills what the layout has to spare.
		laps := churn[r]
		r.churn = medians(laps[len(laps)/2:])
		if r.full, err = c.do(order{Do: "memory"}); err != nil {
			return err
		}
		if r.gc, err = c.do(order{Do: "collect"}); err != nil {
			return err
		}
		_, err = c.do(order{Do: "present", To: s.turnover * s.entries})
		return err
	})
	for round := 0; err == nil && round < s.rounds; round++ {
		for _, l := range lookups {
			err = each(fmt.Sprintf("look up %s, round %d", l.name, round+1), func(c *child, r *result) error {
				f, err := c.do(order{Do: "lookup", Hot: l.hot, Threads: l.threads, Count: lookupCount, From: round})
				r.find[l.name] = append(r.find[l.name], f)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return err
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

func medians(list []figures) (f figures) {
	pick := func(get func(*figures) float64) float64 {
		var all []float64
		for i := range list {
			all = append(all, get(&list[i]))
		}
		return median(all)
	}
	f.CPU = pick(func(f *figures) float64 { return f.CPU })
	f.Wall = pick(func(f *figures) float64 { return f.Wall })
	f.Allocs = pick(func(f *figures) float64 { return f.Allocs })
	f.GC = pick(func(f *figures) float64 { return f.GC })
	for i := range list {
		f.Pause = max(f.Pause, list[i].Pause)
	}
	return f
}

// time returns the median time of a lookup in ns.
func (r *result) time(kind string) float64 { return medians(r.find[kind]).CPU }

// against returns the median of the rounds' ratios of our time to another's: rounds are neighbours in
// time, so that what slows one slows the other.
func (r *result) against(other *result, kind, otherKind string) float64 {
	var ratios []float64
	for i := range r.find[kind] {
		ratios = append(ratios, r.find[kind][i].CPU/other.find[otherKind][i].CPU)
	}
	return median(ratios)
}

// table writes all figures of a mix.
func (m *mixResult) table(s *settings) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## The %s mix, %d entries\n\nFloor %.1f bytes an entry; the arena's budget %.1f MiB; full: after %d times the entries; GOGC=%d.\n\n",
		m.mix, s.entries, m.floor, float64(m.budget)/(1<<20), s.turnover, gcPercent)
	b.WriteString("Bytes an entry:\n\n| layout | resident, returned | over floor | resident, kept | full: entries | returned | kept | Go heap |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range m.list {
		n, full := float64(r.fresh.Len), float64(r.full.Len)
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %d | %.1f | %.1f | %.1f |\n", r.name, r.fresh.Returned/n, r.fresh.Returned/n-m.floor,
			r.fresh.Kept/n, r.full.Len, r.full.Returned/full, r.full.Kept/full, r.full.Heap/full)
	}
	b.WriteString("\nInserts, collector included, and collections with the layout full:\n\n| layout | ns, filling | ns, full | a second of CPU | allocations | collector's share | ms CPU a collection | longest stop, µs |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range m.list {
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.0f | %.2f | %.1f %% | %.1f | %.0f |\n", r.name, r.fill.CPU, r.churn.CPU, 1e9/r.churn.CPU,
			r.churn.Allocs, 100*r.churn.GC, 1e3*r.gc.GC, 1e6*max(r.churn.Pause, r.gc.Pause))
	}
	b.WriteString("\nLookups with response, ns of CPU of a thread:\n\n| layout |")
	for _, l := range lookups {
		fmt.Fprintf(&b, " %s |", l.name)
	}
	b.WriteString(" allocations |\n|---|" + strings.Repeat("--:|", len(lookups)+1) + "\n")
	for _, r := range m.list {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, l := range lookups {
			fmt.Fprintf(&b, " %.0f |", r.time(l.name))
		}
		fmt.Fprintf(&b, " %.2f |\n", medians(r.find["random"]).Allocs)
	}
	return b.String() + "\n"
}

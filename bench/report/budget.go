package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/bench"
)

// steps are the shares of a budget at which it is weighed, in percent.
var steps = []int{1, 5, 25, 50, 90, 100}

// tight is how many bytes an entry a large budget may cost beyond one that just fits.
const tight = 2

// reportBudget fills a large budget with the plain mix and weighs it on the way.
func reportBudget(s *settings, fitting *mixResult) (string, []target, error) {
	c, err := start()
	if err != nil {
		return "", nil, err
	}
	defer c.stop()
	if _, err := c.do(order{Do: "begin", Layout: "arena", Budget: s.budget}); err != nil {
		return "", nil, err
	}
	var b strings.Builder
	var targets []target
	fmt.Fprintf(&b, "## A budget of %d MiB, filled (arena, plain mix)\n\n| filled to | entries | resident MiB | bytes an entry |\n|---|--:|--:|--:|\n", s.budget>>20)
	at, weighedFit := 0, false
	for _, step := range steps {
		full := s.budget / 100 * int64(step)
		for {
			o := order{Do: "fill", Budget: full, From: at}
			fit := !weighedFit && fitting != nil
			if fit {
				o.To = s.entries
			}
			f, err := c.do(o)
			if err != nil {
				return "", nil, err
			}
			at = f.Len
			progress("budget: %d %%, %d inserted", step, at)
			w, err := c.do(order{Do: "memory"})
			if err != nil {
				return "", nil, err
			}
			name := fmt.Sprintf("%d %%", step)
			if fit && at >= s.entries {
				weighedFit = true
				name = fmt.Sprintf("%d entries", s.entries)
				if a := fitting.of("arena"); a != nil {
					just := a.fresh.Returned / float64(a.fresh.Len)
					targets = append(targets, target{what: fmt.Sprintf("bytes an entry beyond a budget that just fits, %d entries", s.entries), got: w.Returned/float64(w.Len) - just, bound: tight})
				}
			}
			fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f |\n", name, w.Len, w.Returned/(1<<20), w.Returned/float64(w.Len))
			if name == fmt.Sprintf("%d %%", step) {
				break
			}
		}
	}
	return b.String() + "\n", targets, nil
}

// gcSeconds is how long the collector is watched.
const gcSeconds = 10

// reportCollector compares what the collector takes while the cache is empty and while it is full.
func reportCollector(s *settings) (string, []target, error) {
	names := []string{"empty", fmt.Sprintf("%d entries", s.gcFill)}
	var got [2]figures
	var b strings.Builder
	fmt.Fprintf(&b, "## The collector at %d stores a second (arena, plain mix, garbage as the miss path makes it)\n\n| cache | collector, share of a CPU | longest stop, µs | entries after |\n|---|--:|--:|--:|\n", missRate)
	for i, n := range []int{0, s.gcFill} {
		c, err := start()
		if err != nil {
			return "", nil, err
		}
		defer c.stop()
		if _, err := c.do(order{Do: "begin", Layout: "arena", Budget: int64(s.gcFill+missRate*gcSeconds)*110 + 64<<20}); err != nil {
			return "", nil, err
		}
		progress("collector: fill with %d", n)
		if n > 0 {
			if _, err := c.do(order{Do: "fill", Budget: 1 << 60, To: n}); err != nil {
				return "", nil, err
			}
		}
		if got[i], err = c.do(order{Do: "miss", From: n, Seconds: gcSeconds}); err != nil {
			return "", nil, err
		}
		fmt.Fprintf(&b, "| %s | %.2f %% | %.0f | %d |\n", names[i], 100*got[i].GC, 1e6*got[i].Pause, got[i].Len)
	}
	return b.String() + "\n", []target{{what: "the collector's CPU with " + names[1] + " against empty", got: got[1].GC / got[0].GC, bound: 1.2}}, nil
}

// soakSlack is what the process may take beyond its budget.
const soakSlack = 64 << 20

// soak fills the budget, turns it over ten times and for as long as asked while others look up, and
// fails when the process takes more than budget and slack.
func soak(s *settings) error {
	kind, err := bench.KindNamed("arena")
	if err != nil {
		return err
	}
	debug.SetGCPercent(gcPercent)
	l, err := kind.New(0, s.budget)
	if err != nil {
		return err
	}
	defer l.Close()
	var inserted, found, asked atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	wg.Go(func() {
		v := &subject{layout: bench.Thread(l), mix: newMix(true)}
		for i := 0; !stop.Load(); i += batch {
			v.draw(i)
			for j := range v.messages {
				v.layout.Insert(&v.messages[j], now)
			}
			inserted.Store(int64(i + batch))
		}
	})
	for t := range 2 {
		wg.Go(func() { soakLookups(bench.Thread(l), random(t), &inserted, &asked, &found, &stop) })
	}
	return watch(s, l, &inserted, &asked, &found)
}

func watch(s *settings, l bench.Layout, inserted, asked, found *atomic.Int64) error {
	var worst int64
	began := time.Now()
	var turned float64
	for second := 1; time.Since(began) < s.soak || turned < 10; second++ {
		time.Sleep(time.Second)
		st, _ := bench.ArenaStats(l)
		perEntry := float64(st.Used) / max(1, float64(st.Entries))
		turned = float64(inserted.Load()) * perEntry / float64(s.budget)
		rss := resident()
		worst = max(worst, rss)
		if second%10 == 0 {
			progress("soak: %d inserted (%.1f times the capacity), %d entries, %d of %d lookups found, resident %.1f MiB of %d",
				inserted.Load(), turned, st.Entries, found.Load(), asked.Load(), float64(rss)/(1<<20), s.budget>>20)
		}
		if rss > s.budget+soakSlack {
			return fmt.Errorf("%d bytes resident, budget %d and %d", rss, s.budget, soakSlack)
		}
		if found.Load() == 0 && second > 60 {
			return errors.New("nothing is found")
		}
	}
	fmt.Printf("budget %d MiB, most resident %.1f MiB, %.1f times the capacity inserted\n", s.budget>>20, float64(worst)/(1<<20), turned)
	return nil
}

package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/plot/plotter"

	"bonsai/bench"
)

const (
	// rateNames is by how many names the rate of a trace grows by one query a second: 5,000 for two
	// million names.
	rateNames = 400
	// warmUp is the share of a trace that is not counted.
	warmUp = 0.5
)

// contest is one trace with one way of TTLs and one size of cache.
type contest struct {
	t     *trace
	next  []uint32
	ttl   string
	share int // of all bytes, percent
	room  float64
	rate  float64 // queries a second that count
}

// ways are what is compared, each a layout with an eviction.
var ways = []string{"growable LRU", "packed LRU", "FIFO", "LRU", "SIEVE", "S3-FIFO", "this store", "next use"}

// memory is what names take.
type memory struct {
	sizes    []uint16 // bytes of each name in the arena, index included
	all      float64  // of all
	growable float64  // bytes an entry against the arena's, as resident
	packed   float64
}

// weighNames finds what each name takes in the arena, and measures layouts 1 and 6 beside it.
func weighNames(s *settings) (m memory, err error) {
	r, err := bench.NewReplay(newMix(false), 1<<30)
	if err != nil {
		return m, err
	}
	defer r.Close()
	const sample = 100_000
	own := 0.0
	for i := range sample {
		r.Ask(i, now, 3600)
		own += float64(r.EntrySize(i))
	}
	st := r.Stats()
	overhead := (float64(st.Used) - own) / sample
	for i := range s.names {
		m.sizes = append(m.sizes, uint16(float64(r.EntrySize(i))+overhead+0.5))
		m.all += float64(m.sizes[i])
	}
	var bytes [3]float64
	for i, name := range []string{"growable", "packed", "arena"} {
		c, err := start()
		if err != nil {
			return m, err
		}
		defer c.stop()
		if _, err := c.do(order{Do: "begin", Layout: name, Entries: sample, Budget: 1 << 30}); err != nil {
			return m, err
		}
		if _, err := c.do(order{Do: "insert", To: sample}); err != nil {
			return m, err
		}
		f, err := c.do(order{Do: "memory"})
		if err != nil {
			return m, err
		}
		bytes[i] = f.Returned / float64(f.Len)
	}
	m.growable, m.packed = bytes[0]/bytes[2], bytes[1]/bytes[2]
	return m, nil
}

// policyOf makes one of ways, nil where it is none of names and bytes alone.
func (c *contest) policyOf(way string, m *memory) policy {
	n, arena := c.t.names, &sizes{m.sizes, 1}
	switch way {
	case "growable LRU":
		return newQueue(n, &sizes{m.sizes, m.growable}, c.room, true)
	case "packed LRU":
		return newQueue(n, &sizes{m.sizes, m.packed}, c.room, true)
	case "FIFO":
		return newQueue(n, arena, c.room, false)
	case "LRU":
		return newQueue(n, arena, c.room, true)
	case "SIEVE":
		return newSieve(n, arena, c.room)
	case "S3-FIFO":
		return newS3FIFO(n, arena, c.room)
	}
	return nil
}

// run returns the hit rate of one way, of the queries that count.
func (c *contest) run(way string, m *memory) (float64, error) {
	switch way {
	case "this store":
		r, err := bench.NewReplay(newMix(false), int64(c.room))
		if err != nil {
			return 0, err
		}
		defer r.Close()
		return c.count(func(_ int, id, at, ttl uint32) bool { return r.Ask(int(id), at, ttl) }), nil
	case "next use":
		n := newNextUse(c.t.names, &sizes{m.sizes, 1}, c.room)
		expires := make([]uint32, c.t.names)
		due := c.clock()
		return c.count(func(i int, id, at, ttl uint32) bool {
			hit := n.in[id] && expires[id] > at
			if !hit {
				expires[id] = at + ttl
			}
			next := c.next[i]
			if next != never && due[next] >= expires[id] {
				next = never
			}
			if n.in[id] {
				n.expects(id, next)
			} else {
				n.keep(id, next)
			}
			return hit
		}), nil
	}
	p := c.policyOf(way, m)
	expires := make([]uint32, c.t.names)
	return c.count(func(_ int, id, at, ttl uint32) bool {
		there := p.has(id)
		if there && expires[id] > at {
			return true
		}
		expires[id] = at + ttl
		if !there {
			p.store(id)
		}
		return false
	}), nil
}

// clock returns the second of each query.
func (c *contest) clock() []uint32 {
	due, counted := make([]uint32, len(c.t.ids)), 0
	for i, id := range c.t.ids {
		due[i] = now + uint32(float64(counted)/c.rate)
		if id&foreign == 0 {
			counted++
		}
	}
	return due
}

func (c *contest) count(ask func(place int, id, at, ttl uint32) bool) float64 {
	counted, asked, hits := 0, 0, 0
	begin := int(warmUp * float64(len(c.t.ids)))
	for i, q := range c.t.ids {
		id := q &^ foreign
		hit := ask(i, id, now+uint32(float64(counted)/c.rate), lifetime(c.ttl, id))
		if q&foreign != 0 {
			continue
		}
		counted++
		if i >= begin {
			asked++
			if hit {
				hits++
			}
		}
	}
	return 100 * float64(hits) / float64(asked)
}

// runAll runs the ways chosen, side by side.
func (c *contest) runAll(m *memory, chosen []string) (map[string]float64, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	rates, failed := map[string]float64{}, error(nil)
	for _, way := range chosen {
		wg.Go(func() {
			rate, err := c.run(way, m)
			mu.Lock()
			defer mu.Unlock()
			rates[way] = rate
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return rates, failed
}

// outcomeOf is what a contest gave.
type outcomeOf struct {
	kind, ttl string
	s         float64
	share     int
	rates     map[string]float64
}

func reportHitRates(s *settings) error {
	m, err := weighNames(s)
	if err != nil {
		return err
	}
	var all []outcomeOf
	begun := time.Now()
	for _, kind := range s.kinds {
		for _, exponent := range s.exponents {
			t := newTrace(kind, s.names, s.queries, exponent)
			next := following(t)
			for _, ttl := range lifetimes {
				for _, share := range s.shares {
					c := contest{t: t, next: next, ttl: ttl, share: share, room: m.all * float64(share) / 100, rate: float64(s.names) / rateNames}
					progress("hit rate: %v, TTL %s, %d %%", t, ttl, share)
					rates, err := c.runAll(&m, s.ways)
					if err != nil {
						return err
					}
					all = append(all, outcomeOf{kind, ttl, exponent, share, rates})
					if err := s.save("hitrate.md", hitRateText(s, &m, all, begun)); err != nil {
						return err
					}
				}
			}
		}
	}
	if err := plotHitRates(s, all); err != nil {
		return err
	}
	return s.write("hitrate.md", hitRateText(s, &m, all, begun))
}

func hitRateText(s *settings, m *memory, all []outcomeOf, begun time.Time) string {
	var b strings.Builder
	b.WriteString(header("Hit rate at equal memory"))
	if n, of := len(all), len(s.kinds)*len(s.exponents)*len(lifetimes)*len(s.shares); n < of {
		fmt.Fprintf(&b, "**Not whole: %d of %d rows, after %v.**\n\n", n, of, time.Since(begun).Round(time.Second))
	}
	fmt.Fprintf(&b, "%d names, %d queries of the plain trace at %d a second; the first %d %% are not counted. All names take %.1f MiB in the arena, index included; an entry takes %.2f times that in growable and %.2f times in packed, as resident and measured here.\n\n",
		s.names, s.queries, s.names/rateNames, int(100*warmUp), m.all/(1<<20), m.growable, m.packed)
	b.WriteString(hitRateNotes)
	b.WriteString("## Against what is to be reached\n\n" + tableOfTargets(hitRateTargets(all)))
	b.WriteString("## Hit rates, percent\n\n| trace | s | TTL | cache |")
	for _, way := range s.ways {
		b.WriteString(" " + way + " |")
	}
	b.WriteString("\n|---|--:|---|--:|" + strings.Repeat("--:|", len(s.ways)) + "\n")
	for _, o := range all {
		fmt.Fprintf(&b, "| %s | %.1f | %s | %d %% |", o.kind, o.s, o.ttl, o.share)
		for _, way := range s.ways {
			fmt.Fprintf(&b, " %.2f |", o.rates[way])
		}
		b.WriteString("\n")
	}
	return b.String()
}

const hitRateNotes = `- growable LRU and packed LRU are what those layouts make of the same bytes; all others have the arena's
  entries, and FIFO, LRU, SIEVE and S3-FIFO are given its index at no more than it takes itself. "This
  store" is the cache package, its budget the same bytes.
- next use forgets the name whose next query is furthest away, a query after expiry counting as none.
  With sizes and TTLs that is a reference and no bound.
- What has expired is a miss; its place is used again by the same name.
- drift: after every 1000 queries a name becomes the most popular and all others slip a rank. flood: a
  name never asked before or after, beside each query. scan: beside every second query a new name and
  one that was new 100 names ago. Flood and scan take no time and are not counted.

`

// hitRateTargets compares this store with LRU on every trace, and flood and scan with the plain trace.
func hitRateTargets(all []outcomeOf) []target {
	worst, where := 100.0, ""
	cost := map[string]target{}
	for _, o := range all {
		name := fmt.Sprintf("%s, s=%.1f, TTL %s, %d %%", o.kind, o.s, o.ttl, o.share)
		if d := o.rates["this store"] - o.rates["LRU"]; d < worst {
			worst, where = d, name
		}
		if o.kind != "flood" && o.kind != "scan" {
			continue
		}
		for _, plain := range all {
			if plain.kind == "plain" && plain.s == o.s && plain.ttl == o.ttl && plain.share == o.share {
				d := plain.rates["this store"] - o.rates["this store"]
				if t, ok := cost[o.kind]; !ok || d > t.got {
					cost[o.kind] = target{what: "points that it costs, at most, " + name, got: d, bound: 3}
				}
			}
		}
	}
	list := []target{{what: "points over LRU, at least, " + where, got: worst, least: true}}
	for _, kind := range []string{"flood", "scan"} {
		if t, ok := cost[kind]; ok {
			list = append(list, t)
		}
	}
	return list
}

// plotHitRates draws hit rate against memory for the plain trace.
func plotHitRates(s *settings, all []outcomeOf) error {
	for _, exponent := range s.exponents {
		for i, ttl := range lifetimes {
			var curves []curve
			for _, way := range s.ways {
				var points plotter.XYs
				for _, o := range all {
					if o.kind == "plain" && o.s == exponent && o.ttl == ttl {
						points = append(points, plotter.XY{X: float64(o.share), Y: o.rates[way]})
					}
				}
				if len(points) > 0 {
					curves = append(curves, curve{way, points})
				}
			}
			if len(curves) == 0 {
				continue
			}
			file := fmt.Sprintf("hitrate-%.1f-%d.svg", exponent, i)
			title := fmt.Sprintf("Hit rate against memory, Zipf s=%.1f, TTL %s", exponent, ttl)
			if err := s.lineChart(file, title, "memory, percent of all bytes", "hits, percent", curves); err != nil {
				return err
			}
		}
	}
	return nil
}

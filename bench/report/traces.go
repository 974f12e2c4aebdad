package main

import (
	"fmt"
	"math"
)

// zipf draws ranks from 0 with probability as 1/(rank+1)^s, for any s ≥ 0, by Walker's alias method:
// one column a rank, each cut in two.
type zipf struct {
	cut   []float64 // below it a column is its own rank
	alias []uint32
}

func newZipf(n int, s float64) *zipf {
	z := &zipf{cut: make([]float64, n), alias: make([]uint32, n)}
	sum := 0.0
	for i := range z.cut {
		z.cut[i] = math.Pow(float64(i+1), -s)
		sum += z.cut[i]
	}
	var small, large []uint32
	for i := range z.cut {
		z.cut[i] *= float64(n) / sum
		if z.cut[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		low, high := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		z.alias[low] = high
		z.cut[high] -= 1 - z.cut[low]
		if z.cut[high] < 1 {
			large = large[:len(large)-1]
			small = append(small, high)
		}
	}
	for _, i := range append(small, large...) {
		z.cut[i] = 1
	}
	return z
}

func (z *zipf) draw(r *random) int {
	i := r.below(len(z.cut))
	if r.unit() < z.cut[i] {
		return i
	}
	return int(z.alias[i])
}

// trace is a list of queries: which name, and whether it is one of those counted.
type trace struct {
	kind  string
	s     float64
	ids   []uint32 // foreign set for what only disturbs
	names int      // how many different ones there may be
}

// foreign marks queries of a flood or a scan. They take no time: the others come as fast as without.
const foreign = 1 << 31

const (
	// driftEvery is after how many queries a name becomes the most popular, and all others slip a rank.
	driftEvery = 1000
	// scanDistance is after how many names of a scan one is asked again.
	scanDistance = 100
)

// newTrace makes a trace of a kind. Flood and scan are half of all queries, beside those of the plain
// trace.
func newTrace(kind string, names, queries int, s float64) *trace {
	z, r := newZipf(names, s), random(1)
	t := &trace{kind: kind, s: s, names: names}
	shuffled := make([]uint32, names) // so that popular names are not neighbours
	for i := range shuffled {
		j := r.below(i + 1)
		shuffled[i] = shuffled[j]
		shuffled[j] = uint32(i)
	}
	noise := random(2)
	for i := range queries {
		rank := z.draw(&r)
		if kind == "drift" {
			rank = (rank + names - i/driftEvery%names) % names
		}
		t.ids = append(t.ids, shuffled[rank])
		switch {
		case kind == "flood":
			t.ids = append(t.ids, foreign|uint32(t.names))
			t.names++
		case kind == "scan" && noise.below(2) == 0:
			t.ids = append(t.ids, foreign|uint32(t.names))
			t.names++
			if again := t.names - 1 - scanDistance; again >= names {
				t.ids = append(t.ids, foreign|uint32(again))
			}
		}
	}
	return t
}

func (t *trace) String() string { return fmt.Sprintf("%s, s=%.1f", t.kind, t.s) }

// lifetimes are the ways that TTLs are drawn, by name.
var lifetimes = []string{"none", "30–600 s", "30 s–1 day"}

// week is as long as any entry lives.
const week = 7 * 86400

func lifetime(how string, id uint32) uint32 {
	r := random(uint64(id)*0x9E3779B97F4A7C15 + 7)
	r.next()
	switch how {
	case "30–600 s":
		return 30 + uint32(r.below(571))
	case "30 s–1 day":
		return uint32(30 * math.Pow(86400/30, r.unit()))
	}
	return week
}

package main

import (
	"fmt"
	"strings"
)

// target is something to reach, and what was reached.
type target struct {
	what  string
	got   float64
	bound float64
	least bool // got is to be at least bound, else at most
	unit  string
}

func (t *target) reached() bool {
	if t.least {
		return t.got >= t.bound
	}
	return t.got <= t.bound
}

func tableOfTargets(list []target) string {
	var b strings.Builder
	b.WriteString("| to reach | bound | reached | |\n|---|--:|--:|---|\n")
	for i := range list {
		t := &list[i]
		sign, verdict := "≤", "yes"
		if t.least {
			sign = "≥"
		}
		if !t.reached() {
			verdict = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s %.4g%s | %.3g%s | %s |\n", t.what, sign, t.bound, t.unit, t.got, t.unit, verdict)
	}
	return b.String() + "\n"
}

// targets compares the arena with the layouts that were measured beside it.
func (m *mixResult) targets() (list []target) {
	arena, first, packed, rrs := m.of("arena"), m.of("growable"), m.of("packed"), m.of("rr-map")
	if arena == nil {
		return nil
	}
	bytes := func(r *result) float64 { return r.fresh.Returned / float64(r.fresh.Len) }
	fullBytes := func(r *result) float64 { return r.full.Returned / float64(r.full.Len) }
	if m.mix == "plain" {
		list = append(list,
			target{what: "arena, resident bytes an entry over the floor", got: bytes(arena) - m.floor, bound: 20},
			target{what: "the same, full", got: fullBytes(arena) - m.floor, bound: 20})
	}
	if first != nil {
		list = append(list,
			target{what: "resident bytes against growable", got: bytes(arena) / bytes(first), bound: 0.12},
			target{what: "the same, full", got: fullBytes(arena) / fullBytes(first), bound: 0.12},
			target{what: "insert rate, full, against growable", got: first.churn.CPU / arena.churn.CPU, bound: 6, least: true},
			target{what: "lookup, hot, time against growable", got: arena.against(first, "hot", "hot"), bound: 0.35},
			target{what: "lookup, random, time against growable", got: arena.against(first, "random", "random"), bound: 0.45})
	}
	if packed != nil {
		list = append(list,
			target{what: "resident bytes against packed", got: bytes(arena) / bytes(packed), bound: 0.45},
			target{what: "the same, full", got: fullBytes(arena) / fullBytes(packed), bound: 0.45})
	}
	if rrs != nil {
		list = append(list,
			target{what: "lookup, hot, time against rr-map", got: arena.against(rrs, "hot", "hot"), bound: 0.25},
			target{what: "lookup, random, time against rr-map", got: arena.against(rrs, "random", "random"), bound: 0.25})
	}
	list = append(list,
		target{what: "allocations an insert (the run's own among them)", got: arena.churn.Allocs, bound: 0.01},
		target{what: "allocations a lookup (the run's own among them)", got: medians(arena.find["random"]).Allocs, bound: 0.01},
		target{what: "two threads against one, hot names", got: 2 / arena.against(arena, "hot/2", "hot"), bound: 1.8, least: true},
		target{what: "two threads against one, a single name", got: 2 / arena.against(arena, "one/2", "one"), bound: 1.8, least: true},
		target{what: "two threads against one, random names", got: 2 / arena.against(arena, "random/2", "random"), bound: 1.5, least: true})
	return list
}

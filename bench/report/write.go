package main

import (
	"fmt"
	"strings"
)

// notShown is what the figures of the layouts do not say.
const notShown = `## What the numbers do not show

- Times are CPU time: of the calling thread for lookups, of all threads less the making of input for
  inserts. Waiting for a CPU is not in them. The machine was shared, so that caches and memory were,
  too: compare figures of one run with each other, by ratio, and not with those of another run.
- "Two threads against one" divides CPU times. Where other programs take the second CPU, the two
  threads met less often on shared cache lines than on an idle machine.
- Parsing of the query, folding, hashing, locks and the writing of the response are timed for all;
  parsing of responses before an insert is not.
- Queries are made anew before each batch of 256 and so are warm, as from a socket. What they find is
  in random order.
- The layouts on the heap are each a map of 64 shards with first in, first out, the cheapest eviction
  there is. They do not expire anything.
- Time stands still while entries are stored: all that count are live. Names are made up, and their
  sizes are those of the mix and not of any resolver's traffic.
- "Full" of the arena holds more or fewer entries than the others, for it counts bytes and not entries.
- The arena groups records into RRsets in memory that it uses again; the daemon's miss path allocates.
- The soak holds the cache without the daemon around it.
`

func reportLayouts(s *settings) error {
	var tables strings.Builder
	var lists []string
	var plain *mixResult
	if s.sections["layouts"] {
		for _, mix := range s.mixes {
			m, err := measureMix(s, mix)
			if err != nil {
				return err
			}
			if mix == "plain" {
				plain = m
			}
			tables.WriteString(m.table(s))
			lists = append(lists, fmt.Sprintf("### %s mix\n\n%s", mix, tableOfTargets(m.targets())))
			if err := m.plots(s); err != nil {
				return err
			}
		}
	}
	var others []target
	if s.sections["budget"] {
		text, targets, err := reportBudget(s, plain)
		if err != nil {
			return err
		}
		tables.WriteString(text)
		others = append(others, targets...)
	}
	if s.sections["gc"] {
		text, targets, err := reportCollector(s)
		if err != nil {
			return err
		}
		tables.WriteString(text)
		others = append(others, targets...)
	}
	if len(others) > 0 {
		lists = append(lists, "### The arena alone\n\n"+tableOfTargets(others))
	}
	return s.write("report.md", header("Layouts of a cached response")+"## Against what is to be reached\n\n"+strings.Join(lists, "")+tables.String()+notShown)
}

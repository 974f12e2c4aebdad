package main

import (
	"errors"
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

// report is what was measured so far.
type report struct {
	tables strings.Builder
	lists  []string // of what is to be reached, one a mix
	others []target // of the arena alone
}

// text returns the report, which says so where more is to come.
func (r *report) text(whole bool) string {
	lists := r.lists
	if len(r.others) > 0 {
		lists = append(lists[:len(lists):len(lists)], "### The arena alone\n\n"+tableOfTargets(r.others))
	}
	begin := header("Layouts of a cached response")
	if !whole {
		begin += "**Not whole: the run was not over.**\n\n"
	}
	return begin + "## Against what is to be reached\n\n" + strings.Join(lists, "") + r.tables.String() + notShown
}

// reportLayouts measures section by section, and saves after each, so that a run that is interrupted
// leaves what it has measured.
func reportLayouts(s *settings) error {
	var r report
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
			r.tables.WriteString(m.table(s))
			r.lists = append(r.lists, fmt.Sprintf("### %s mix\n\n%s", mix, tableOfTargets(m.targets())))
			if err := errors.Join(m.plots(s), s.save("report.md", r.text(false))); err != nil {
				return err
			}
		}
	}
	for _, section := range []struct {
		name    string
		measure func() (string, []target, error)
	}{
		{"budget", func() (string, []target, error) { return reportBudget(s, plain) }},
		{"gc", func() (string, []target, error) { return reportCollector(s) }},
	} {
		if !s.sections[section.name] {
			continue
		}
		text, targets, err := section.measure()
		if err != nil {
			return err
		}
		r.tables.WriteString(text)
		r.others = append(r.others, targets...)
		if err := s.save("report.md", r.text(false)); err != nil {
			return err
		}
	}
	return s.write("report.md", r.text(true))
}

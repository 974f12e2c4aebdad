// Command report measures all layouts of package bench, each in a process of its own, and writes a
// table and plots to a folder, beside what is to be reached.
//
//	go run ./bench/report -out DIR             layouts: memory, inserts, lookups, collections
//	go run ./bench/report -out DIR -hitrate    what the memory buys: hit rate at equal bytes
//	go run ./bench/report -out DIR -lists      block lists of millions of names, and unbound with the same
//	go run ./bench/report -soak 10m            the cache full to its budget, under load
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"bonsai/bench"
)

// settings are the flags.
type settings struct {
	out       string
	entries   int
	turnover  int
	rounds    int
	layouts   []string
	mixes     []string
	sections  map[string]bool
	budget    int64
	gcFill    int
	hitrate   bool
	lists     bool
	listed    int
	names     int
	queries   int
	kinds     []string
	exponents []float64
	shares    []int
	ways      []string
	soak      time.Duration
}

func main() {
	s, isChild := parse()
	if err := run(s, isChild); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(s *settings, isChild bool) error {
	switch {
	case isChild:
		return serveOrders()
	case s.soak > 0:
		return soak(s)
	case s.out == "":
		return fmt.Errorf("-out names the folder to write to")
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	switch {
	case s.hitrate:
		return reportHitRates(s)
	case s.lists:
		return reportBlockLists(s)
	}
	return reportLayouts(s)
}

func parse() (s *settings, isChild bool) {
	s = &settings{sections: map[string]bool{}}
	child := flag.Bool("child", false, "")
	var layouts, mixes, sections, kinds, exponents, shares, chosen string
	var budgetMiB int64
	flag.StringVar(&s.out, "out", "", "`folder` to write to")
	flag.IntVar(&s.entries, "entries", 1_000_000, "how many `entries` each layout holds")
	flag.IntVar(&s.turnover, "turnover", 10, "a cache is full after so many `times` its entries")
	flag.IntVar(&s.rounds, "rounds", 5, "how often each lookup is `repeated`, the layouts in turn")
	flag.StringVar(&layouts, "layouts", "", "`names` of layouts, all if none")
	flag.StringVar(&mixes, "mixes", "plain,signed", "`mixes` of responses")
	flag.StringVar(&sections, "sections", "layouts,budget,gc", "`parts` of the report")
	flag.Int64Var(&budgetMiB, "budget", 3<<10, "the budget filled step by step, and in a soak, in `MiB`")
	flag.IntVar(&s.gcFill, "gc-entries", 10_000_000, "`entries` that the collector is not to notice")
	flag.BoolVar(&s.hitrate, "hitrate", false, "report hit rates at equal memory")
	flag.BoolVar(&s.lists, "lists", false, "report what block lists cost")
	flag.IntVar(&s.listed, "listed", 2_000_000, "`names` of a block list")
	flag.IntVar(&s.names, "names", 400_000, "`names` of the hit rate's traces; 2000000 in the full report")
	flag.IntVar(&s.queries, "queries", 4_000_000, "`queries` of each trace; 20000000 in the full report")
	flag.StringVar(&kinds, "traces", "plain,drift,flood,scan", "`kinds` of traces")
	flag.StringVar(&exponents, "zipf", "0.8,0.9,1.0", "`exponents` of the names' popularity")
	flag.StringVar(&shares, "shares", "5,10,20", "cache sizes in `percent` of all bytes")
	flag.StringVar(&chosen, "ways", "", "`layouts and evictions` whose hit rates are compared, all if none")
	flag.DurationVar(&s.soak, "soak", 0, "how `long` the full cache is held under load")
	flag.Usage = func() {
		flag.VisitAll(func(f *flag.Flag) {
			if name, usage := flag.UnquoteUsage(f); usage != "" {
				fmt.Fprintf(flag.CommandLine.Output(), "  -%s %s\n\t%s (%s)\n", f.Name, name, usage, f.DefValue)
			}
		})
	}
	flag.Parse()
	for _, k := range bench.Kinds {
		if layouts == "" || contains(layouts, k.Name) {
			s.layouts = append(s.layouts, k.Name)
		}
	}
	for _, way := range ways {
		if chosen == "" || contains(chosen, way) {
			s.ways = append(s.ways, way)
		}
	}
	s.mixes = strings.Split(mixes, ",")
	for _, name := range strings.Split(sections, ",") {
		s.sections[name] = true
	}
	s.kinds = strings.Split(kinds, ",")
	for _, text := range strings.Split(exponents, ",") {
		var v float64
		fmt.Sscan(text, &v)
		s.exponents = append(s.exponents, v)
	}
	for _, text := range strings.Split(shares, ",") {
		var v int
		fmt.Sscan(text, &v)
		s.shares = append(s.shares, v)
	}
	s.budget = budgetMiB << 20
	return s, *child
}

func contains(list, name string) bool {
	for _, n := range strings.Split(list, ",") {
		if n == name {
			return true
		}
	}
	return false
}

// header says where the figures are from.
func header(title string) string {
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return fmt.Sprintf("# %s\n\nCommit %s, %s, %s/%s, %d CPUs (%s), %s.\n\n    go run ./bench/report %s\n\n",
		title, strings.TrimSpace(string(commit)), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), machine(),
		time.Now().UTC().Format("2006-01-02 15:04 MST"), command())
}

// command is how this program was called, less where it writes to.
func command() string {
	args := append([]string(nil), os.Args[1:]...)
	for i := range args {
		if i > 0 && strings.TrimLeft(args[i-1], "-") == "out" {
			args[i] = "DIR"
		}
	}
	return strings.Join(args, " ")
}

// quiet keeps progress from being told.
var quiet bool

func progress(format string, args ...any) {
	if quiet {
		return
	}
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// write writes a file that is whole, and prints it.
func (s *settings) write(name, text string) error {
	fmt.Print(text)
	return s.save(name, text)
}

// save writes a file, of which there may be more to come.
func (s *settings) save(name, text string) error {
	return os.WriteFile(filepath.Join(s.out, name), []byte(text), 0o644)
}

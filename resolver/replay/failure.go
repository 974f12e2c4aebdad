package replay

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Failure tells what went wrong at a step. It is an error whose text has the step, what was
// expected and got in dig's form, and every upstream query so far.
type Failure struct {
	File        string
	Step        *Step // nil: at the end
	Why         string
	Differences []Difference
	Want        *Entry   // nil where no message was expected
	Got         *dns.Msg // nil where none came
	Upstream    []Upstream
}

// maxShown bounds how many upstream queries the text has.
const maxShown = 200

// Error returns the text, of several lines.
func (f *Failure) Error() string {
	var b strings.Builder
	where, line := "the end", 0
	if f.Step != nil {
		where, line = f.Step.String(), f.Step.Line
	}
	fmt.Fprintf(&b, "%s:%d: %s: %s\n", filepath.Base(f.File), line, where, f.Why)
	for _, d := range f.Differences {
		fmt.Fprintf(&b, "  %s:\n", d.What)
		writeDifference(&b, d)
	}
	if f.Want != nil {
		words := slices.Sorted(maps.Keys(f.Want.Match))
		for _, e := range f.Want.EDE {
			words = append(words, "ede="+e)
		}
		fmt.Fprintf(&b, "expected (MATCH %s):\n%s", strings.Join(words, " "), indent(f.Want.text()))
	}
	if f.Got != nil {
		fmt.Fprintf(&b, "got:\n%s", indent(f.Got.String()))
	}
	fmt.Fprintf(&b, "upstream queries: %d\n", len(f.Upstream))
	for i, u := range f.Upstream {
		if i == maxShown {
			b.WriteString("  …\n")
			break
		}
		fmt.Fprintf(&b, "  %s\n", u)
	}
	return b.String()
}

// writeDifference shows lines that only one side has: - expected, + got.
func writeDifference(b *strings.Builder, d Difference) {
	want, got := strings.Split(d.Want, "\n"), strings.Split(d.Got, "\n")
	for _, l := range want {
		mark := "-"
		if slices.Contains(got, l) {
			mark = " "
		}
		fmt.Fprintf(b, "    %s %s\n", mark, l)
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			fmt.Fprintf(b, "    + %s\n", l)
		}
	}
}

// text returns the entry's message in dig's form.
func (e *Entry) text() string {
	if e.Raw != nil {
		return fmt.Sprintf("%x\n", e.Raw)
	}
	return e.Message.String()
}

func indent(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) != "" {
			b.WriteString("    " + strings.TrimRight(l, "\n") + "\n")
		}
	}
	return b.String()
}

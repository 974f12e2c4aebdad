package policy

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"bonsai/wire"
)

func TestReadList(t *testing.T) {
	b := NewNameSetBuilder()
	report, err := b.ReadList(strings.NewReader("# comment\nads.example\n0.0.0.0 Track.example more.example # two\n\n127.0.0.1 localhost\n" +
		"*.wild.example\n! note\nbad..name\ntwo words\n.\n||filter.example^\n@@||filter.example^$important\n" +
		"address=/dnsmasq.example/\nrpz.example CNAME .\n/regular[0-9]+/\nlast.example"))
	if err != nil {
		t.Fatal(err)
	}
	if report.Names != 5 || report.Bad != 8 || len(report.Errors) != 3 {
		t.Errorf("report %+v", report)
	}
	for i, err := range report.Errors {
		if want := fmt.Sprintf("line %d: ", 8+i); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := b.Build()
	for name, want := range map[string]bool{
		"ads.example": true, "x.ads.example": true, "adsx.example": false, "track.example": true, "more.example": true,
		"wild.example": true, "a.wild.example": true, "example": false, ".": false, "localhost": false, "last.example": true,
		"filter.example": false, "dnsmasq.example": false, "rpz.example": false,
	} {
		if got := s.Covers(wire.MustName(name)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if s.Len() != 5 {
		t.Errorf("%d names", s.Len())
	}
}

// A line too long is a bad one and no more, wherever it ends.
func TestReadListLongLine(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		end  string
	}{
		"over the limit": {maxListLine + 1, "\n"}, "over the buffer": {3*listBuffer + 1, "\n"}, "as long as the buffer": {listBuffer, "\n"},
		"the last": {2 * listBuffer, ""}, "the last, over the limit": {maxListLine + 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewNameSetBuilder()
			defer b.Discard()
			report, err := b.ReadList(strings.NewReader("a.example\n" + strings.Repeat("x", c.size) + c.end + "\n\nb.example"))
			if c.end == "" {
				report, err = b.ReadList(strings.NewReader("a.example\nb.example\n" + strings.Repeat("x", c.size)))
			}
			if err != nil || report.Names != 2 || report.Bad != 1 || !errors.Is(report.Errors[0], errLongLine) {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

func TestReadListThatIsNone(t *testing.T) {
	for name, content := range map[string]string{
		"page": "<!DOCTYPE html>\n<html><body>\n<h1>404 Not Found</h1>\n", "binary": "\x1f\x8b\x08\x00\xff\xfe", "filters": "||ads.example^\n",
		"UTF-8": "bücher.example\n",
	} {
		b := NewNameSetBuilder()
		if report, err := b.ReadList(strings.NewReader(content)); !errors.Is(err, errNoList) {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
	b := NewNameSetBuilder()
	defer b.Discard()
	if report, err := b.ReadList(strings.NewReader("# nothing yet\n\n")); err != nil || report.Names != 0 {
		t.Errorf("an empty list: %+v, %v", report, err)
	}
	broken := io.MultiReader(strings.NewReader("a.example\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := b.ReadList(broken); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "after 1 names") {
		t.Errorf("a list that breaks off: %v", err)
	}
}

// Reading allocates nothing a line: a list has millions.
func TestReadListAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	lines := strings.Repeat("0.0.0.0 Ads.Tracker-1.example # a comment\nplain.example\n", 1000)
	b := NewNameSetBuilder()
	defer b.Discard()
	if got := testing.AllocsPerRun(10, func() { b.ReadList(strings.NewReader(lines)) }); got > 20 {
		t.Errorf("%v allocations for 2000 lines", got)
	}
}

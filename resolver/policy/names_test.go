package policy

import (
	"fmt"
	"strings"
	"testing"

	"bonsai/wire"
)

func TestReadList(t *testing.T) {
	b := NewNameSetBuilder()
	report, err := b.ReadList(strings.NewReader("# comment\nads.example\n0.0.0.0 Track.example more.example # two\n\n127.0.0.1 localhost\n" +
		"*.wild.example\n! note\nbad..name\ntwo words\n.\nlast.example"))
	if err != nil {
		t.Fatal(err)
	}
	if report.Names != 5 || report.Bad != 3 || len(report.Errors) != 3 || !strings.HasPrefix(report.Errors[0].Error(), "line 8: ") {
		t.Errorf("report %+v", report)
	}
	s := b.Build()
	for name, want := range map[string]bool{
		"ads.example": true, "x.ads.example": true, "adsx.example": false, "track.example": true, "more.example": true,
		"wild.example": true, "a.wild.example": true, "example": false, ".": false, "localhost": false, "last.example": true,
	} {
		if got := s.Covers(wire.MustName(name)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if s.Len() != 5 {
		t.Errorf("%d names", s.Len())
	}
}

func TestReadListLongLine(t *testing.T) {
	b := NewNameSetBuilder()
	if _, err := b.ReadList(strings.NewReader("a.example\n" + strings.Repeat("x", maxListLine+1))); err == nil {
		t.Error("a line without end is read")
	}
}

// TestNameSetSize holds the bytes a name.
func TestNameSetSize(t *testing.T) {
	const n = 100_000
	b := NewNameSetBuilder()
	for i := range n {
		b.Add(wire.MustName(fmt.Sprintf("host%d.example", i)))
	}
	s := b.Build()
	if s.Bytes() > 12*n {
		t.Errorf("%d bytes for %d names", s.Bytes(), n)
	}
	for i := range n {
		if !s.Has(wire.MustName(fmt.Sprintf("host%d.example", i))) {
			t.Fatalf("name %d is lost", i)
		}
		if s.Has(wire.MustName(fmt.Sprintf("guest%d.example", i))) {
			t.Fatalf("name %d is there and was never added", i)
		}
	}
}

func BenchmarkNameSetCovers(b *testing.B) {
	builder := NewNameSetBuilder()
	for i := range 2_000_000 {
		builder.Add(wire.MustName(fmt.Sprintf("host%d.example%d.test", i, i%1000)))
	}
	s := builder.Build()
	names := make([]wire.Name, 1<<16)
	for i := range names {
		names[i] = wire.MustName(fmt.Sprintf("www.site%d.example.com", i))
	}
	for i := 0; b.Loop(); i++ {
		if s.Covers(names[i&(len(names)-1)]) {
			b.Fatal("covered")
		}
	}
	b.ReportMetric(float64(s.Bytes())/float64(s.Len()), "bytes/name")
}

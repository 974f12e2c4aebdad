package policy

import (
	"fmt"
	"strings"
	"testing"

	"bonsai/wire"
)

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

// A builder that is given the same names again and again makes the same set.
func TestNameSetHasEachNameOnce(t *testing.T) {
	b := NewNameSetBuilder()
	for i := range 3 * chunkSize {
		b.Add(wire.MustName(fmt.Sprintf("host%d.example", i%chunkSize)))
	}
	s := b.Build()
	if s.Len() != chunkSize || s.Bytes() > 12*chunkSize {
		t.Errorf("%d names in %d bytes, want %d", s.Len(), s.Bytes(), chunkSize)
	}
	for i := range chunkSize {
		if !s.Covers(wire.MustName(fmt.Sprintf("www.host%d.example", i))) {
			t.Fatalf("name %d is lost", i)
		}
	}
	if s := b.Build(); s.Len() != 0 || s.Covers(wire.MustName("host1.example")) {
		t.Error("the builder was not emptied")
	}
}

// Names of any number of labels are found by those with any other.
func TestNameSetLabels(t *testing.T) {
	deep := strings.Repeat("a.", 126) + "b"
	b := NewNameSetBuilder()
	for _, name := range []string{"top", "two.labels", deep} {
		b.Add(wire.MustName(name))
	}
	s := b.Build()
	for name, want := range map[string]bool{
		"top": true, "x.y.z.top": true, "two.labels": true, "one.two.labels": true, "labels": false, deep: true,
		deep[2:]: false, "b": false, ".": false,
	} {
		if got := s.Covers(wire.MustName(name)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

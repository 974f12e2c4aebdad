package validate

import (
	"slices"
	"testing"

	"bonsai/wire"
)

func TestKeyTags(t *testing.T) {
	w := newWorld(t, "zone .")
	v, err := New(Config{Anchors: append(BuiltinAnchors(), BuiltinAnchors()...)})
	if err != nil {
		t.Fatal(err)
	}
	if got := v.KeyTags(wire.Root); !slices.Equal(got, []uint16{20326, 38696}) {
		t.Errorf("got %v", got)
	}
	if got := v.SignalName(wire.Root); got != wire.MustName("_ta-4f66-9728.") {
		t.Errorf("got %s", got)
	}
	if got := v.SignalName(wire.MustName("example.")); got != "" {
		t.Errorf("got %s", got)
	}
	record := w.zones["."].keys[0].record
	a, err := anchorOf(record)
	if err != nil {
		t.Fatal(err)
	}
	v.SetTrust([]Anchor{a}, nil)
	if got := v.KeyTags(wire.Root); !slices.Equal(got, []uint16{record.KeyTag()}) {
		t.Errorf("got %v, want %d", got, record.KeyTag())
	}
}

func TestSentinel(t *testing.T) {
	v, err := New(Config{Anchors: BuiltinAnchors()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, qtype string
		want        bool
	}{
		{"root-key-sentinel-is-ta-20326.example.", "A", false},
		{"root-key-sentinel-not-ta-20326.example.", "A", true},
		{"root-key-sentinel-is-ta-12345.example.", "AAAA", true},
		{"root-key-sentinel-not-ta-12345.example.", "AAAA", false},
		{"ROOT-KEY-SENTINEL-NOT-TA-20326.example.", "A", true},
		{"root-key-sentinel-not-ta-20326.example.", "TXT", false},
		{"x.root-key-sentinel-not-ta-20326.example.", "A", false},
		{"root-key-sentinel-is-ta-1234.example.", "A", false},
		{"root-key-sentinel-is-ta-012345.example.", "A", false},
		{"root-key-sentinel-is-ta-00001.example.", "A", true},
		{"root-key-sentinel-is-ta-99999.example.", "A", false},
		{"root-key-sentinel-is-ta-+1234.example.", "A", false},
		{"root-key-sentinel-is-ta-.example.", "A", false},
		{".", "A", false},
	} {
		qtype, _ := wire.ParseType(c.qtype)
		if got := v.SentinelFails(wire.MustName(c.name), qtype); got != c.want {
			t.Errorf("%s %s: got %v", c.name, c.qtype, got)
		}
	}
}

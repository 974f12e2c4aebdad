package validate

import (
	"os"
	"strings"
	"testing"
)

func TestBuiltinAnchors(t *testing.T) {
	got := BuiltinAnchors()
	want := parseAnchors(t, `. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
. IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16`)
	compareAnchors(t, got, want)
}

// TestBuiltinAnchorsPackaged compares with what the distribution ships.
func TestBuiltinAnchorsPackaged(t *testing.T) {
	text, err := os.ReadFile("/usr/share/dns/root.ds")
	if err != nil {
		t.Skip("no dns-root-data here: ", err)
	}
	compareAnchors(t, BuiltinAnchors(), parseAnchors(t, string(text)))
}

func compareAnchors(t *testing.T, got, want []Anchor) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d anchors, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Zone != want[i].Zone || got[i].Type != want[i].Type || string(got[i].RDATA) != string(want[i].RDATA) {
			t.Errorf("anchor %d: got %x, want %x", i, got[i].RDATA, want[i].RDATA)
		}
	}
}

func parseAnchors(t *testing.T, text string) []Anchor {
	t.Helper()
	anchors, err := ParseAnchors(strings.NewReader(text), "anchors")
	if err != nil {
		t.Fatal(err)
	}
	return anchors
}

func TestParseAnchorsErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"other type", "; comment\n. IN DS 1 8 2 00\nexample. IN A 192.0.2.1\n", "anchors:3: A is neither DS nor DNSKEY"},
		{"bad digest", ". IN DS 1 8 2 00\n. IN DS 1 8 2 XYZ\n. IN DS 1 8 2 00", "anchors:2: "},
		{"short", "\n\n. IN DS 1", "anchors:3: "},
		{"class", ". CH DS 1 8 2 00", "anchors:1: a trust anchor of class CH"},
		{"no zone key", ". IN DNSKEY 0 3 8 AwEAAQ==", "anchors:1: DNSKEY "},
		{"revoked", "\n. IN DNSKEY 384 3 8 AwEAAQ==", "anchors:2: DNSKEY "},
		{"owner", "a..b. IN DS 1 8 2 00", "anchors:1: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseAnchors(strings.NewReader(c.text), "anchors")
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "line:") {
				t.Errorf("got %v, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestParseAnchorsEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", "; nothing\n\n"} {
		if got := parseAnchors(t, text); got != nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

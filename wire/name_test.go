package wire

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	for _, test := range []struct{ text, want string }{
		{".", "\x00"},
		{"com", "\x03com\x00"},
		{"www.Example.COM.", "\x03www\x07Example\x03COM\x00"},
		{`a\.b.c`, "\x03a.b\x01c\x00"},
		{`\000\255.x`, "\x02\x00\xff\x01x\x00"},
		{`\\.\"`, "\x01\\\x01\"\x00"},
		{label63 + ".x", "\x3f" + label63 + "\x01x\x00"},
		{"", ""},
		{"..", ""},
		{"a..b", ""},
		{".a", ""},
		{label63 + "a", ""},
		{label63 + "a.x", ""},
		{`a\`, ""},
		{`a\25`, ""},
		{`a\256`, ""},
		{`a\2x5`, ""},
		{strings.Repeat(label63+".", 4), ""},
		{strings.Repeat(label63+".", 3) + strings.Repeat("a", 61), strings.Repeat("\x3f"+label63, 3) + "\x3d" + strings.Repeat("a", 61) + "\x00"},
		{strings.Repeat(label63+".", 3) + strings.Repeat("a", 62), ""},
	} {
		got, err := ParseName(test.text)
		if string(got) != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%q: got %q %v, want %q", test.text, got, err, test.want)
		}
		if err == nil {
			if again, err := ParseName(got.String()); again != got {
				t.Errorf("%q: written %q, read again %q %v", test.text, got.String(), again, err)
			}
			if !got.Valid() || NameLen([]byte(got)) != len(got) {
				t.Errorf("%q is not valid", got)
			}
		}
	}
}

func TestNameValid(t *testing.T) {
	for _, bad := range []Name{"", "\x01", "\x01a", "\x00\x00", "\x01a\x00x", "\x40" + Name(strings.Repeat("a", 64)) + "\x00", "\xc0\x0c",
		Name(strings.Repeat("\x01a", 127)) + "\x01a\x00"} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}
	longest := Name(strings.Repeat("\x01a", 127)) + "\x00"
	if !longest.Valid() || longest.Labels() != 127 || NameLen([]byte(longest)) != 255 {
		t.Errorf("the longest name is not valid")
	}
	if Compare(longest, longest.Parent()) != 1 {
		t.Error("Compare of the longest names")
	}
}

func TestNameRelations(t *testing.T) {
	n := MustName
	if a, b := n("Www.Example.COM"), n("www.example.com."); !a.Equal(b) || a.Canonical() != b || a.Labels() != 3 || a.Parent() != n("Example.COM") {
		t.Error(a, b)
	}
	for _, test := range []struct {
		name, zone  Name
		sub, below  bool
		ancestorLen int
	}{
		{n("www.Example.com"), n("example.COM"), true, true, 2},
		{n("example.com"), n("example.com"), true, false, 2},
		{n("com"), n("example.com"), false, false, 1},
		{n("badexample.com"), n("example.com"), false, false, 1},
		{n("a.b"), Root, true, true, 0},
		{Root, Root, true, false, 0},
		{Root, n("com"), false, false, 0},
		{n("\\007example.com"), n("example.com"), false, false, 1}, // a label that ends like a name
	} {
		if got := test.name.IsSubdomainOf(test.zone); got != test.sub {
			t.Errorf("%v IsSubdomainOf %v: %t", test.name, test.zone, got)
		}
		if got := test.name.IsBelow(test.zone); got != test.below {
			t.Errorf("%v IsBelow %v: %t", test.name, test.zone, got)
		}
		if got := CommonAncestor(test.name, test.zone).Labels(); got != test.ancestorLen {
			t.Errorf("CommonAncestor of %v and %v has %d labels", test.name, test.zone, got)
		}
	}
	if n("com").IsSubdomainOf("") {
		t.Error("a name is below no name")
	}
	if !n("*.com").IsWildcard() || n("a*.com").IsWildcard() || Root.IsWildcard() {
		t.Error("IsWildcard")
	}
	if got := n("a.b.c").Suffix(2); got != n("b.c") || got.Label() != "b" || Root.Label() != "" || Root.Parent() != Root || n("a").Suffix(-1) != Root {
		t.Error("Suffix, Label or Parent", got)
	}
}

func TestNameCompare(t *testing.T) {
	order := []string{"example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example.", "\\001.z.example.", "*.z.example.", "\\200.z.example."}
	for i := range order { // RFC 4034 §6.1's own list
		for j := range order {
			want := max(-1, min(1, i-j))
			if got := Compare(MustName(order[i]), MustName(order[j])); got != want {
				t.Errorf("Compare(%s, %s) is %d", order[i], order[j], got)
			}
		}
	}
}

func TestNameEdits(t *testing.T) {
	n := MustName
	if got, ok := n("b.c").Prepend("a.x"); !ok || got != n(`a\.x.b.c`) {
		t.Error("Prepend", got)
	}
	for _, bad := range []string{"", strings.Repeat("a", 64)} {
		if _, ok := n("b.c").Prepend(bad); ok {
			t.Errorf("Prepend of %q", bad)
		}
	}
	long := Name(strings.Repeat("\x01a", 126)) + "\x00" // 253 octets
	if got, ok := long.Prepend("a"); !ok || len(got) != 255 {
		t.Error("Prepend up to 255 octets")
	}
	if _, ok := long.Prepend("aa"); ok {
		t.Error("Prepend past 255 octets")
	}
	if got, ok := n("a.Old.example").ReplaceSuffix(n("old.example"), n("new")); !ok || got != n("a.new") {
		t.Error("ReplaceSuffix", got)
	}
	if _, ok := n("a.other").ReplaceSuffix(n("old.example"), n("new")); ok {
		t.Error("ReplaceSuffix of a name elsewhere")
	}
	if _, ok := long.ReplaceSuffix(n("a"), n("aaaaa")); ok {
		t.Error("ReplaceSuffix past 255 octets") // RFC 6672 §2.2
	}
}

// TestCompressedNames reads names with pointers of all kinds.
func TestCompressedNames(t *testing.T) {
	pkt := []byte("\x03com\x00" + "\x01a\xc0\x00" + "\x01b\xc0\x05" + "\xc0\x09" + "\x01c\x01d\x00") // at 0, 5, 9, 13, 15
	for _, test := range []struct {
		off  int
		want Name
		end  int
	}{
		{0, "\x03com\x00", 5},
		{5, "\x01a\x03com\x00", 9},
		{9, "\x01b\x01a\x03com\x00", 13},
		{13, "\x01b\x01a\x03com\x00", 15},
		{15, "\x01c\x01d\x00", 20},
	} {
		got, end, err := ReadName(pkt, test.off)
		if err != nil || got != test.want || end != test.end {
			t.Errorf("at %d: got %q %d %v, want %q %d", test.off, got, end, err, test.want, test.end)
		}
		if n, walked, ok := walkName(pkt, test.off); !ok || n != len(test.want) || walked != test.end {
			t.Errorf("walkName at %d: %d %d %t", test.off, n, walked, ok)
		}
		for _, other := range []int{0, 5, 9, 13, 15} {
			want, _, _ := ReadName(pkt, other)
			if sameName(pkt, test.off, other) != (want == got) {
				t.Errorf("sameName(%d, %d)", test.off, other)
			}
		}
	}
	var x Expander
	if got, ok := x.Name(pkt, 13); !ok || got != "\x01b\x01a\x03com\x00" || x.buf == nil {
		t.Errorf("got %q", got)
	}
}

// TestPointers: a pointer leads back, and not too many follow each other.
func TestPointers(t *testing.T) {
	for name, pkt := range map[string][]byte{
		"itself":   {0xC0, 0},
		"forward":  {0xC0, 2, 0},
		"loop":     {1, 'a', 0xC0, 0},
		"cut":      {1, 'a', 0xC0},
		"no end":   {1, 'a'},
		"label 01": {0x40, 'a', 0},
		"label 10": {0x80, 'a', 0},
	} {
		if n, _, err := ReadName(pkt, 0); err == nil {
			t.Errorf("%s: read %q", name, n)
		}
		dst := []byte("x")
		if out, _, err := AppendName(dst, pkt, 0); err == nil || string(out) != "x" {
			t.Errorf("%s: appended %q", name, out)
		}
	}
	chain := []byte{0, 0}
	for i := range maxPointers + 1 {
		at := max(0, 2*i)
		chain = append(chain, 0xC0|byte(at>>8), byte(at))
	}
	if _, _, err := ReadName(chain, 2*maxPointers); err != nil {
		t.Errorf("%d pointers: %v", maxPointers, err)
	}
	if _, _, err := ReadName(chain, 2*maxPointers+2); err == nil {
		t.Errorf("%d pointers are read", maxPointers+1)
	}
}

package wire

import "testing"

func TestNames(t *testing.T) {
	a, b := MustName("Www.Example.COM"), MustName("www.example.com.")
	if !a.Equal(b) || a.Canonical() != b || a.Labels() != 3 || a.Parent() != MustName("Example.COM") {
		t.Fatal(a, b)
	}
	if !a.IsSubdomainOf(MustName("com")) || a.IsSubdomainOf(MustName("xample.com")) || !a.IsSubdomainOf(Root) {
		t.Fatal("IsSubdomainOf")
	}
	order := []string{"example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example.", "\\001.z.example.", "*.z.example.", "\\200.z.example."}
	for i := 1; i < len(order); i++ { // RFC 4034 §6.1's own list
		if Compare(MustName(order[i-1]), MustName(order[i])) != -1 || Compare(MustName(order[i]), MustName(order[i-1])) != 1 {
			t.Fatal(order[i-1], order[i])
		}
	}
	if got := CommonAncestor(MustName("a.b.c"), MustName("x.B.c")); !got.Equal(MustName("b.c")) {
		t.Fatal(got)
	}
}

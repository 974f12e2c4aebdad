package zonecut

import (
	"os"
	"strings"
	"testing"
)

func TestParseHints(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // servers and addresses, or
		err        string // what the error must name
	}{
		{"both families", ". 3600 NS NS.Example.\nns.example. 3600 A 192.0.2.1\nns.example. AAAA 2001:db8::1\n",
			"ns.example. 192.0.2.1:53 [2001:db8::1]:53", ""},
		{"order and comments", "; x\n. NS b.\n. IN NS a.\na. A 192.0.2.1\nb. A 192.0.2.2\n",
			"b. 192.0.2.2:53 a. 192.0.2.1:53", ""},
		{"no address dropped", ". NS a.\n. NS b.\nb. A 192.0.2.2\n", "b. 192.0.2.2:53", ""},
		{"twice", ". NS a.\n. NS A.\na. A 192.0.2.2\n", "a. 192.0.2.2:53", ""},
		{"empty", "", "", "file.hints: no NS"},
		{"other owner", "example. NS a.\na. A 192.0.2.1\n", "", "example."},
		{"syntax", ". NS a.\na. A 192.0.2\n", "", "line: 2"},
		{"include", "$INCLUDE /etc/passwd\n", "", "file.hints"},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers, err := ParseHints(strings.NewReader(c.text), "file.hints")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got error %v, want one naming %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range servers {
				got = append(got, s.Name.String())
				for _, a := range s.Addrs {
					got = append(got, a.String())
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestBuiltinHints(t *testing.T) {
	servers := BuiltinHints()
	if len(servers) != 13 {
		t.Fatalf("got %d servers, want 13", len(servers))
	}
	for _, s := range servers {
		if len(s.Addrs) != 2 || !s.Addrs[0].Addr().Is4() || !s.Addrs[1].Addr().Is6() {
			t.Errorf("%v: got %v, want an address of each family", s.Name, s.Addrs)
		}
	}
	// Debian's dns-root-data has the same file; where it is installed, both agree.
	f, err := os.Open("/usr/share/dns/root.hints")
	if err != nil {
		t.Skip("no root.hints of the system to compare with")
	}
	defer f.Close()
	theirs, err := ParseHints(f, f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs) != len(servers) {
		t.Errorf("the system's hints have %d servers", len(theirs))
	}
}

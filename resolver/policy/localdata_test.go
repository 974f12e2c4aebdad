package policy

import (
	"net/netip"
	"strings"
	"testing"

	"bonsai/wire"
)

func TestLocalData(t *testing.T) {
	data := LocalData{}
	for _, line := range []string{"Host.example. 600 A 192.0.2.1", "host.example. 300 IN A 192.0.2.2", "host.example. TXT \"a\" \"b\""} {
		if err := data.Add(line); err != nil {
			t.Fatal(line, err)
		}
	}
	if errs := data.AddHosts("127.0.0.1 localhost # loopback\n\n::ffff:192.0.2.9  nine.example nine\nbroken line\n2001:db8::1\n2001:db8::1 bad..name\n"); len(errs) != 3 ||
		!strings.HasPrefix(errs[0].Error(), "line 4: \"broken\"") || !strings.HasPrefix(errs[2].Error(), "line 6: \"bad..name\"") {
		t.Errorf("errors %v", errs)
	}
	order := NewOrder(&Config{Allow: prefixes("127.0.0.0/8"), LocalData: data})
	for _, c := range []struct {
		name    string
		qtype   wire.Type
		local   bool
		records int
		ttl     uint32
	}{
		{"host.example", wire.TypeA, true, 2, 300},
		{"HOST.example", wire.TypeTXT, true, 1, 3600},
		{"host.example", wire.TypeAAAA, true, 0, 0},
		{"host.example", wire.TypeANY, true, 2, 300},
		{"below.host.example", wire.TypeA, false, 0, 0},
		{"nine.example", wire.TypeA, true, 1, 60},
		{"9.2.0.192.in-addr.arpa", wire.TypePTR, true, 1, 60},
		{"example", wire.TypeA, false, 0, 0},
	} {
		t.Run(c.name+" "+c.qtype.String(), func(t *testing.T) {
			o := order.Judge(&Request{Query: query(t, c.name, c.qtype, wire.ClassIN, true), Client: netip.MustParseAddr("127.0.0.1"), Now: 5})
			if (o.Action == Answer) != c.local {
				t.Fatalf("got %+v", o)
			}
			if !c.local {
				return
			}
			content, err := o.Entry.Unpack(5)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, s := range content.Answer {
				n = max(n, len(s.RDATA))
				if c.qtype != wire.TypeANY && s.TTL != c.ttl {
					t.Errorf("TTL %d, want %d", s.TTL, c.ttl)
				}
			}
			if n != c.records {
				t.Errorf("%d records, want %d", n, c.records)
			}
		})
	}
}

func TestLocalDataErrors(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     "no record",
		"host.example. A 192.0.2.300":          "zone file format",
		"host.example. CNAME x.example.":       "alias",
		"host.example. CH TXT x":               "class must be IN",
		"host.example. A":                      "data behind the type is missing",
		"host.example. 300 MX":                 "data behind the type is missing",
		"host.example. 300 TXT":                "data behind the type is missing",
		"host.example. 300 OPT":                "only for queries",
		"$GENERATE 1-2 h$ A 192.0.2.$":         "more than one record",
		"a. A 192.0.2.1\nb. A 192.0.2.2":       "more than one record",
		"$INCLUDE /etc/hosts":                  "zone file format",
		"host.example. 2147483648 A 192.0.2.1": "TTL is above",
	} {
		if err := (LocalData{}).Add(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
}

func TestReverseName(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.10":  "10.2.0.192.in-addr.arpa.",
		"2001:db8::1": "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.",
	} {
		if got := ReverseName(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

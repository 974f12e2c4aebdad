package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// configured reads a configuration file in a folder with other files.
func configured(t *testing.T, yaml string, files map[string]string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	files["bonsai.yaml"] = yaml
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return configure(nil, filepath.Join(dir, "bonsai.yaml"))
}

func TestListsAndHosts(t *testing.T) {
	c, err := configured(t, `
hosts-files: hosts
allow-lists: [good]
block-lists:
  - ads
  - {file: refused, action: refuse, ede: censored}
  - {file: away, action: address, addrs: [192.0.2.66, "2001:db8::66"], ede: filtered}
  - {file: nothing, action: nodata}
`, map[string]string{
		"hosts":   "192.0.2.9 printer.lan printer\nnonsense\n",
		"good":    "www.unsigned.lab\n",
		"ads":     "unsigned.lab\na b\n0.0.0.0 www.ed25519.lab\n..\n%%%% x\n",
		"refused": "refused.example\n", "away": "*.away.example\n", "nothing": "nothing.example # a comment\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Notices) != 2 || !strings.Contains(c.Notices[0], "hosts: bad lines skipped: 1, such as line 2") ||
		!strings.Contains(strings.Join(c.Notices, "\n"), "ads: bad lines skipped: 3, such as line 2") {
		t.Errorf("notices: %q", c.Notices)
	}
	d := start(t, func(running *Config) {
		running.LocalData, running.BlockLists, running.AllowLists = c.LocalData, c.BlockLists, c.AllowLists
	})
	for _, row := range []struct {
		name  string
		qtype uint16
		rcode int
		ede   int // -1 for none
		want  string
	}{
		{"printer.lan.", dns.TypeA, dns.RcodeSuccess, -1, "192.0.2.9"},
		{"9.2.0.192.in-addr.arpa.", dns.TypePTR, dns.RcodeSuccess, -1, "printer.lan."},
		{"www.unsigned.lab.", dns.TypeA, dns.RcodeSuccess, -1, "203.0.113"},
		{"other.unsigned.lab.", dns.TypeA, dns.RcodeNameError, 15, ""},
		{"www.ed25519.lab.", dns.TypeA, dns.RcodeNameError, 15, ""},
		{"a.refused.example.", dns.TypeA, dns.RcodeRefused, 16, ""},
		{"b.away.example.", dns.TypeA, dns.RcodeSuccess, 17, "192.0.2.66"},
		{"b.away.example.", dns.TypeAAAA, dns.RcodeSuccess, 17, "2001:db8::66"},
		{"b.away.example.", dns.TypeMX, dns.RcodeSuccess, 17, ""},
		{"nothing.example.", dns.TypeA, dns.RcodeSuccess, 15, ""},
	} {
		got := query(t, d.addr(), "udp", row.name, row.qtype, nil)
		answer := ""
		for _, rr := range got.Answer {
			answer += rr.String()
		}
		if got.Rcode != row.rcode || !strings.Contains(answer, row.want) || row.want == "" && answer != "" ||
			slices.Contains(ede(got), max(row.ede, 0)) != (row.ede >= 0) {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestBadLists(t *testing.T) {
	for yaml, want := range map[string]string{
		"block-lists: [absent]":                                 "absent",
		"block-lists: ads":                                      "is not a list",
		"block-lists: [{action: refuse}]":                       "write file: NAME",
		"block-lists: [{file: ads, action: explode}]":           "explode",
		"block-lists: [{file: ads, action: address}]":           "go together",
		"block-lists: [{file: ads, addrs: [192.0.2.1]}]":        "go together",
		"block-lists: [{file: ads, ede: loud}]":                 "loud",
		"block-lists: [{fill: ads}]":                            "no key \"fill\"",
		"hosts-files: absent":                                   "absent",
		"rate-limit: -1":                                        "rate-limit",
		"stale-limit: 300000":                                   "stale-limit",
		"block-lists: [{file: ads, action: address, addrs: x}]": "\"x\" is not an IP address",
	} {
		_, err := configured(t, yaml+"\n", map[string]string{"ads": "ads.example\n"})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "bonsai.yaml:1:") {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

// A client that sends more than it may is dropped, and every second query of it sent over to TCP; in
// shadow mode it is only counted. Whoever has a cookie is not limited.
func TestRateLimit(t *testing.T) {
	ask := func(at netip.AddrPort, n int) (answered, truncated int) {
		for range n {
			m := new(dns.Msg)
			m.SetQuestion("localhost.", dns.TypeA)
			got, _, err := (&dns.Client{Timeout: 200e6}).Exchange(m, at.String())
			switch {
			case err != nil:
			case got.Truncated:
				truncated++
			default:
				answered++
			}
		}
		return answered, truncated
	}
	d := start(t, func(c *Config) { c.RateLimit.QPS, c.RateLimit.Burst = 1, 4 })
	before := rates.Slipped.Load()
	answered, truncated := ask(d.addr(), 12)
	if answered < 4 || answered > 8 || truncated < 2 || rates.Slipped.Load()-before != uint64(truncated) {
		t.Errorf("of 12 queries %d answered, %d truncated", answered, truncated)
	}
	_, page := get(t, d, metricsPath)
	if got := value(t, page, `bonsai_rate_limited_total{action="slipped"}`); got < float64(truncated) {
		t.Errorf("%v slipped in the metrics", got)
	}
	if got := query(t, d.addr(), "tcp", "localhost.", dns.TypeA, nil); len(got.Answer) != 1 {
		t.Errorf("over TCP: %v", got)
	}
	d = start(t, func(c *Config) { c.RateLimit.QPS, c.RateLimit.Burst, c.RateLimit.Only = 1, 1, true })
	before = rates.WouldLimit.Load()
	if answered, truncated := ask(d.addr(), 10); answered != 10 || truncated != 0 || rates.WouldLimit.Load() == before {
		t.Errorf("in shadow mode %d answered, %d truncated", answered, truncated)
	}
}

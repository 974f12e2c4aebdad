package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"bonsai/resolver/policy"
	"bonsai/wire"
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

// What is wrong is told with the line where it stands: of the item, and of two keys the later one.
func TestLinesOfProblems(t *testing.T) {
	for yaml, want := range map[string]string{
		"block-lists:\n  - ads\n  - {file: ads, ede: loud}\n":                       ":3: block-lists: ",
		"allow-lists:\n  - ads\n  - ads\n  - absent\n":                              ":4: allow-lists: ",
		"hosts-files: [ads,\n  absent]\n":                                           ":2: hosts-files: ",
		"allow:\n  - 127.0.0.0/8\n  - here\n":                                       ":3: allow: ",
		"local-data:\n  - \"a.example. 60 A 192.0.2.1\"\n  - \"a.example. 60 A\"\n": ":3: local-data: ",
		"trust-anchor:\n  - ads\n":                                                  ":2: trust-anchor: ",
		"ipv4: false\nlisten: 127.0.0.1:53\nipv6: false\n":                          ":3: ipv6: ",
		"cache-max-ttl: 60\ncache-min-ttl: 61\n":                                    ":2: cache-min-ttl: ",
		"stub-zones:\n  - {name: a.example, addrs: 192.0.2.1}\nforward-zones:\n  - {name: b.example, addrs: 192.0.2.1}\n  - {name: A.example, addrs: 192.0.2.1}\n": ":5: stub-zones: a.example. is configured twice, and was in line 2",
		"control: absent/socket\n":   ":1: control: ",
		"control: ads/socket\n":      "ads is no folder",
		"cache-file: absent/cache\n": "make the folder",
	} {
		_, err := configured(t, yaml, map[string]string{"ads": "ads.example\n"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}

// What lists and rules decide is counted for each of them, over reloads; and a list that can't be read
// leaves the old one in place.
func TestListMetrics(t *testing.T) {
	files := map[string]string{
		"ads": "unsigned.lab\n%%\nads.example\n", "good": "www.unsigned.lab\n", "hosts": "192.0.2.9 printer.lan\nnonsense\n",
	}
	dir := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		put(name, content)
	}
	if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("more/ads", "alias.ecdsa.lab\nmore.example\n")
	put("bonsai.yaml", "hosts-files: hosts\nallow-lists: good\nblock-lists: [ads, {file: more/ads, action: refuse, ede: filtered}]\n")
	d := start(t, nil)
	lab := *d.reloader.config
	d.reloader.configure = func() (*Config, error) {
		c, err := configure(nil, filepath.Join(dir, "bonsai.yaml"))
		if err != nil {
			return nil, err
		}
		fromFile := *c
		*c = lab
		c.LocalData, c.Lists, c.Notices = fromFile.LocalData, fromFile.Lists, fromFile.Notices
		c.BlockLists, c.AllowLists, c.ListSums = fromFile.BlockLists, fromFile.AllowLists, fromFile.ListSums
		return c, nil
	}
	reload := func(want []string) {
		t.Helper()
		if changed, _, err := d.reload(); err != nil || !slices.Equal(changed, want) {
			t.Fatalf("changed %q, %v", changed, err)
		}
	}
	check := func(rows map[string]float64) {
		t.Helper()
		_, page := get(t, d, metricsPath)
		for metric, want := range rows {
			if got := value(t, page, metric); got != want {
				t.Errorf("%s is %v, want %v", metric, got, want)
			}
		}
		problems, err := promlint.New(strings.NewReader(page)).Lint()
		if len(problems) > 0 || err != nil {
			t.Errorf("%v, %v", problems, err)
		}
	}
	reload([]string{"local-data or hosts-files", "block-lists or allow-lists"})
	for _, name := range []string{"x.unsigned.lab.", "x.ads.example.", "www.unsigned.lab.", "more.example.", "printer.lan."} {
		query(t, d.addr(), "udp", name, dns.TypeA, nil)
	}
	want := map[string]float64{
		`bonsai_list_names{kind="block",list="ads"}`: 2, `bonsai_list_names{kind="block",list="ads (2)"}`: 2,
		`bonsai_list_bad_lines{kind="block",list="ads"}`: 1, `bonsai_list_bad_lines{kind="hosts",list="hosts"}`: 1,
		`bonsai_list_bad_lines{kind="block",list="ads (2)"}`: 0,
		`bonsai_list_hits_total{kind="block",list="ads"}`:    2, `bonsai_list_hits_total{kind="block",list="ads (2)"}`: 1,
		`bonsai_list_hits_total{kind="allow",list="good"}`:                 1,
		`bonsai_policy_decisions_total{action="answer",rule="block"}`:      2,
		`bonsai_policy_decisions_total{action="fail",rule="block"}`:        1,
		`bonsai_policy_decisions_total{action="answer",rule="local-data"}`: 1,
	}
	check(want)
	old := d.reloader.config.BlockLists[0].Names
	reload(nil) // the same again
	if d.reloader.config.BlockLists[0].Names != old {
		t.Error("lists that are what they were are in memory twice")
	}
	check(want)
	put("ads", "other.example\n")
	reload([]string{"block-lists or allow-lists"})
	query(t, d.addr(), "udp", "other.example.", dns.TypeA, nil)
	want[`bonsai_list_names{kind="block",list="ads"}`] = 1
	want[`bonsai_list_bad_lines{kind="block",list="ads"}`] = 0
	want[`bonsai_list_hits_total{kind="block",list="ads"}`] = 3
	want[`bonsai_policy_decisions_total{action="answer",rule="block"}`] = 3
	check(want)
	for name, content := range map[string]string{"ads": "<html>\n<p>gone\n", "good": ""} {
		if content == "" {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		} else {
			put(name, content)
		}
		if _, _, err := d.reload(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if got := query(t, d.addr(), "udp", "other.example.", dns.TypeA, nil); got.Rcode != dns.RcodeNameError {
			t.Errorf("the old list is gone: %v", got)
		}
		put(name, files[name])
	}
}

// A change of settings takes no count away.
func TestCountersOutliveReloads(t *testing.T) {
	d := start(t, nil)
	query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil)
	before := d.resolver.Current().Parts()
	if before.Validate.Secure == 0 || before.Iterate.Resolutions == 0 || before.Denial.Size == 0 {
		t.Fatalf("nothing was counted: %+v", before)
	}
	retired := d.resolver.Current()
	d.again(func(c *Config) { c.Rotate = !c.Rotate })
	if _, _, err := d.reload(); err != nil {
		t.Fatal(err)
	}
	if got := d.resolver.Current().Parts(); got.Validate != before.Validate || got.Iterate != before.Iterate || got.Denial.Size != before.Denial.Size {
		t.Errorf("after a reload %+v, before it %+v", got, before)
	}
	retired.Close()
	if got := d.resolver.Current().Parts(); got.Validate != before.Validate || got.Iterate != before.Iterate {
		t.Errorf("after the old resolver ended %+v, before %+v", got, before)
	}
}

// An alias that leads to a blocked name is blocked, though it is cached and in a signed zone, and with the
// list gone it is as it was: a change of lists flushes nothing.
func TestBlockedAlias(t *testing.T) {
	const name, target = "start.ed25519.lab.", "hop.rsa.lab."
	d := start(t, nil)
	ask := func() *dns.Msg {
		t.Helper()
		return query(t, d.addr(), "udp", name, dns.TypeA, func(m *dns.Msg) { m.IsEdns0().SetDo() })
	}
	first := ask()
	if !first.AuthenticatedData || len(first.Answer) != 6 {
		t.Fatalf("two aliases, an address, signatures: %v", first)
	}
	before := misses(d)
	for round, c := range []struct {
		listed, allowed string
		blocked         bool
	}{
		{target, "", true}, {"", "", false}, {target, target, false}, {target, name, true}, {name, target, true}, {"lab.", target, true}, {"", "", false},
	} {
		d.again(func(c2 *Config) {
			c2.BlockLists, c2.AllowLists = nil, nil
			c2.ListSums[0]++
			if c.listed != "" {
				c2.BlockLists = []policy.List{{Names: nameSet(c.listed), EDE: wire.EDEBlocked}}
			}
			if c.allowed != "" {
				c2.AllowLists = []*policy.NameSet{nameSet(c.allowed)}
			}
		})
		if _, _, err := d.reload(); err != nil {
			t.Fatal(err)
		}
		got := ask()
		blocked := got.Rcode == dns.RcodeNameError && !got.AuthenticatedData && len(got.Answer) == 0 && slices.Contains(ede(got), 15)
		if blocked != c.blocked || !blocked && (!got.AuthenticatedData || len(got.Answer) != 6) {
			t.Errorf("round %d, %+v: %v", round, c, got)
		}
	}
	if n := misses(d) - before; n != 0 {
		t.Errorf("%d misses: a change of lists flushed something", n)
	}
}

func nameSet(names ...string) *policy.NameSet {
	b := policy.NewNameSetBuilder()
	for _, name := range names {
		b.Add(wire.MustName(name))
	}
	return b.Build()
}

// A client that sends more than it may is dropped, and every second query of it sent over to TCP; in
// shadow mode it is only counted. (TestRateLimit of the resolver has clients with cookies.)
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
	answered, truncated := ask(d.addr(), 12)
	if answered < 4 || answered > 8 || truncated < 2 || d.reloader.rates.Slipped.Load() != uint64(truncated) {
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
	if answered, truncated := ask(d.addr(), 10); answered != 10 || truncated != 0 || d.reloader.rates.WouldLimit.Load() == 0 {
		t.Errorf("in shadow mode %d answered, %d truncated", answered, truncated)
	}
	_, page = get(t, d, metricsPath)
	for action, least := range map[string]float64{"counted": 1, "dropped": 0, "slipped": 0} {
		if got := value(t, page, `bonsai_rate_limited_total{action="`+action+`"}`); got < least || least == 0 && got > 0 {
			t.Errorf("in shadow mode %v %s", got, action)
		}
	}
}

// What rules deny is denied to those, too, who want proofs (DO): there is none, and none that is compact.
func TestDeniedWithDO(t *testing.T) {
	d := start(t, func(c *Config) { c.BlockLists = []policy.List{{Names: nameSet("ads.example"), EDE: wire.EDEBlocked}} })
	for _, name := range []string{"ads.example.", "x.ads.example.", "x.invalid.", "1.0.0.10.in-addr.arpa."} {
		for _, do := range []bool{false, true} {
			got := query(t, d.addr(), "udp", name, dns.TypeA, func(m *dns.Msg) {
				if do {
					m.IsEdns0().SetDo()
				}
			})
			if got.Rcode != dns.RcodeNameError || got.AuthenticatedData {
				t.Errorf("%s, DO %v: %v", name, do, got)
			}
		}
	}
}

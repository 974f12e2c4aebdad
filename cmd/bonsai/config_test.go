package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"bonsai/resolver/iterate"
	"bonsai/wire"

	"github.com/miekg/dns"
)

// write makes a file in a new folder and returns its name.
func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const someHints = ". NS a.root.\na.root. A 192.0.2.1\n"

func TestFile(t *testing.T) {
	hints := write(t, "named.root", someHints)
	file := write(t, "bonsai.yaml", `# comment
listen:
  - 127.0.0.1:5301
  - "[::1]:5301"
root-hints: `+hints+`
dnssec: off
qname-minimisation: off
allow: [0.0.0.0/0, "::/0"]
allow-snoop: 192.0.2.7
refuse:
- 198.51.100.0/24
cache-size: 1 GiB
threads: 010
metrics: 127.0.0.1:9153
log-level: WARN
special-use: no
sha1: validate
ipv6: off
query-localhost: on
edns-buffer-size: 4096
domain-insecure: [Example.ORG, "test."]
harden-glue: false
cache-min-ttl: 5
cache-max-ttl: 3600
minimal-responses: false
private-address: [10.0.0.0/8, 192.168.1.1/16]
private-domain: example.org
local-data:
  - "host.example. 60 A 192.0.2.5"
  - 'host.example. TXT "a text"'
exclude-port: [5353, 6000-6010]
forward-zones:
  - name: "."
    addrs: [192.0.2.1, 2001:db8::1@5353, 192.0.2.9:54]
    first: true
    tcp: yes
stub-zones:
  - name: "example.com"
    hosts: [ns.example.net]
    prime: true
`)
	c, err := configure(nil, file)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.RootHints[0].Name; got != "\x01a\x04root\x00" {
		t.Errorf("hints for %s", got)
	}
	got := map[string]any{
		"listen": c.Listen, "dnssec": c.Validate, "qname-minimisation": c.Minimisation, "allow": c.Allow,
		"allow-snoop": c.AllowSnoop, "refuse": c.Refuse, "cache-size": c.CacheSize, "threads": c.Threads,
		"metrics": c.Metrics, "log-level": c.LogLevel, "special-use": c.SpecialUse, "sha1": c.SHA1,
		"ipv4": c.IPv4, "ipv6": c.IPv6, "query-localhost": c.QueryLocalhost, "edns-buffer-size": c.EDNSSize,
		"domain-insecure": c.Insecure, "harden-glue": c.HardenGlue, "cache-min-ttl": c.MinTTL,
		"cache-max-ttl": c.MaxTTL, "minimal-responses": c.MinimalResponses, "private-address": c.PrivateAddress,
		"private-domain": c.PrivateDomain, "exclude-port": c.ExcludedPorts,
	}
	want := map[string]any{
		"listen": []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:5301"), netip.MustParseAddrPort("[::1]:5301")},
		"dnssec": false, "qname-minimisation": iterate.Off, "allow": prefixes("0.0.0.0/0", "::/0"),
		"allow-snoop": prefixes("192.0.2.7/32"), "refuse": prefixes("198.51.100.0/24"),
		"cache-size": int64(1 << 30), "threads": 10, "metrics": netip.MustParseAddrPort("127.0.0.1:9153"),
		"log-level": slog.LevelWarn, "special-use": false, "sha1": true, "ipv4": true, "ipv6": false,
		"query-localhost": true, "edns-buffer-size": uint16(4096),
		"domain-insecure": []wire.Name{wire.MustName("example.org"), wire.MustName("test")},
		"harden-glue":     false, "cache-min-ttl": uint32(5), "cache-max-ttl": uint32(3600),
		"minimal-responses": false, "private-address": prefixes("10.0.0.0/8", "192.168.0.0/16"),
		"private-domain": []wire.Name{wire.MustName("example.org")},
		"exclude-port":   []PortRange{{5353, 5353}, {6000, 6010}},
	}
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s: got %v, want %v", key, got[key], want[key])
		}
	}
	if sets := c.LocalData[wire.MustName("host.example")]; len(sets) != 2 {
		t.Errorf("local data %v", c.LocalData)
	}
	zones := fmt.Sprint(c.Zones)
	for _, part := range []string{"192.0.2.1:53", "[2001:db8::1]:5353", "192.0.2.9:54"} {
		if !strings.Contains(zones, part) {
			t.Errorf("zones %s lack %s", zones, part)
		}
	}
	if f, s := c.Zones[0], c.Zones[1]; !f.Forward || !f.First || !f.TCP || f.Prime || f.Zone != wire.Root ||
		s.Forward || !s.Prime || s.First || s.Zone != wire.MustName("example.com") ||
		s.Servers[0].Name != wire.MustName("ns.example.net") {
		t.Errorf("zones %+v", c.Zones)
	}
}

// The least cache that the configuration takes is one that a daemon starts with.
func TestLeastCache(t *testing.T) {
	size, err := cacheSize("1088KiB")
	if err != nil {
		t.Fatal(err)
	}
	d := start(t, func(c *Config) { c.CacheSize = size })
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); got.Rcode != dns.RcodeSuccess {
		t.Errorf("got %v", got)
	}
}

// Over TLS a server's port is 853 unless it is given (RFC 7858 §3.1), and the name behind # is that of its
// certificate, wherever in the item tls stands.
func TestZonesOverTLS(t *testing.T) {
	c, err := configure(nil, write(t, "bonsai.yaml", `
forward-zones:
  - name: .
    addrs: ["192.0.2.1#DNS.example", "2001:db8::1@8853#dns.example", 192.0.2.3]
    tls: true
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[netip.AddrPort]string{
		netip.MustParseAddrPort("192.0.2.1:853"): "dns.example", netip.MustParseAddrPort("[2001:db8::1]:8853"): "dns.example",
		netip.MustParseAddrPort("192.0.2.3:853"): "",
	}
	if z := c.Zones[0]; !reflect.DeepEqual(z.TLS, want) || len(z.Servers[0].Addrs) != 3 {
		t.Errorf("got %+v", z)
	}
}

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, s := range texts {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

func TestEmptyFileIsTheDefaults(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "comment": "# nothing\n", "null": "~\n", "end": "---\n"} {
		t.Run(name, func(t *testing.T) {
			c, err := configure(nil, write(t, "bonsai.yaml", content))
			if err != nil {
				t.Fatal(err)
			}
			c.Files = nil // it is one itself
			if want := defaults(); !reflect.DeepEqual(c, want) {
				t.Errorf("got %+v, want %+v", c, want)
			}
		})
	}
}

func TestFlagWinsOverFile(t *testing.T) {
	file := write(t, "bonsai.yaml", "cache-size: 64MiB\nallow: [10.0.0.0/8, 192.0.2.0/24]\nthreads: 3\n")
	cmd, err := parseCommand([]string{"--config", file, "--cache-size=2MiB", "--allow", "::1", "--allow=127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := configure(cmd.flags, cmd.config)
	if err != nil {
		t.Fatal(err)
	}
	if c.CacheSize != 2<<20 || c.Threads != 3 || !reflect.DeepEqual(c.Allow, prefixes("::1/128", "127.0.0.1/32")) {
		t.Errorf("got %d, %d, %v", c.CacheSize, c.Threads, c.Allow)
	}
}

func TestEmptyAnchorFileValidatesNothing(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "newline": "\n", "comment": "; none\n"} {
		t.Run(name, func(t *testing.T) {
			c, err := configure(map[string]given{"trust-anchor": {values: []string{write(t, "anchors", content)}}}, "")
			if err != nil || len(c.Anchors) != 0 {
				t.Errorf("anchors %v, %v", c.Anchors, err)
			}
		})
	}
	if len(defaults().Anchors) != 2 {
		t.Error("the built-in anchors are gone")
	}
}

// Files that a file names are looked for beside it; those that a flag names, where one is.
func TestRelativeNames(t *testing.T) {
	file := write(t, "bonsai.yaml", "root-hints: named.root\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "named.root"), []byte(someHints), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configure(nil, file)
	if err != nil || len(c.RootHints) != 1 {
		t.Errorf("%v, %v", c.RootHints, err)
	}
	if _, err := configure(map[string]given{"root-hints": {values: []string{"named.root"}}}, ""); err == nil {
		t.Error("a flag's name was looked for beside the file")
	}
}

// Each message names file, line and key, and what would be right.
func TestWrongFiles(t *testing.T) {
	cases := []struct {
		name, content string
		want          []string // in the message; the file's name and the line come first
		line          int
	}{
		{"unknown key", "\nlisten: 127.0.0.1:53\ncash-size: 1GiB\n", []string{`"cash-size"`, `did you mean "cache-size"?`}, 3},
		{"American", "qname-minimization: off\n", []string{`did you mean "qname-minimisation"?`}, 1},
		{"underscore", "cache_size: 1\n", []string{`did you mean "cache-size"?`}, 1},
		{"nothing like it", "frobnicate: 1\n", []string{`"frobnicate"`, "README"}, 1},
		{"no YAML", "listen: [127.0.0.1:53\nthreads: 1\n", []string{"is not YAML"}, 2},
		{"open list", "listen: [127.0.0.1:53\n", []string{"is not YAML"}, 1},
		{"tab", "listen:\n\t- 127.0.0.1:53\n", []string{"is not YAML", "not tabs"}, 2},
		{"tab first", "\tlisten: 127.0.0.1:53\n", []string{"is not YAML", "not tabs"}, 1},
		{"colons", "threads: 1\nallow: [::1/128]\nipv6: true\n", []string{"is not YAML", `quotes, such as "::1/128"`}, 2},
		{"colons first", "allow: [::1/128]\n", []string{"is not YAML"}, 1},
		{"two values", "threads: 1\nlisten: 'a' 'b'\nipv6: true\n", []string{"is not YAML"}, 2},
		{"no UTF-8", "threads: 1\nidentity: \xff\n", []string{"is not YAML"}, 2},
		{"control character", "threads: 1\nidentity: \x01\n", []string{"is not YAML"}, 2},
		{"list of settings", "- listen\n", []string{"is not a mapping", "key: value"}, 1},
		{"two documents", "threads: 1\n---\nthreads: 2\n", []string{"second document"}, 2},
		{"twice", "threads: 1\ncache-size: 1GiB\nthreads: 2\n", []string{"threads", "given twice", "line 1"}, 3},
		{"no value", "threads:\n", []string{"threads", "has no value", "threads: N"}, 1},
		{"list for one", "threads: [1, 2]\n", []string{"threads", "takes one value"}, 1},
		{"mapping for value", "listen: {a: b}\n", []string{"listen", "mapping", "ADDR:PORT"}, 1},
		{"mapping in list", "listen:\n  - 127.0.0.1:53\n  - a: b\n", []string{"listen", "no plain value"}, 3},
		{"address without port", "listen: 192.0.2.1\n", []string{"listen", `"192.0.2.1"`, "192.0.2.1:53"}, 1},
		{"port alone", "listen: :53\n", []string{"0.0.0.0:53 or [::]:53"}, 1},
		{"host name", "listen: localhost:53\n", []string{"127.0.0.1:53 or [::1]:53"}, 1},
		{"bad size", "cache-size: lots\n", []string{"cache-size", `"lots"`, "256MiB"}, 1},
		{"decimal unit", "cache-size: 1GB\n", []string{"GiB"}, 1},
		{"tiny", "cache-size: 10KiB\n", []string{"at least 1088KiB"}, 1},
		{"just too small", "cache-size: 1MiB\n", []string{"at least 1088KiB"}, 1},
		{"too large", "cache-size: 1000GiB\n", []string{"at most 255GiB"}, 1},
		{"negative", "cache-size: -1\n", []string{"not a size"}, 1},
		{"huge", "cache-size: 99999999999GiB\n", []string{"not a size"}, 1},
		{"word", "dnssec: maybe\n", []string{"dnssec", `"maybe"`, "off or validate"}, 1},
		{"truth", "ipv6: perhaps\n", []string{"ipv6", "neither true nor false"}, 1},
		{"number", "threads: many\n", []string{"threads", "from 1 to 1024"}, 1},
		{"number too small", "edns-buffer-size: 100\n", []string{"from 512 to 4096"}, 1},
		{"prefix", "allow: 10.0.0.0/33\n", []string{"allow", "192.0.2.0/24"}, 1},
		{"name", "domain-insecure: a..b\n", []string{"domain-insecure", "example.org"}, 1},
		{"record", "local-data: 'host. A nothing'\n", []string{"local-data", "192.0.2.1"}, 1},
		{"missing file", "\ntrust-anchor: /no/such/file\n", []string{"trust-anchor", "/no/such/file", "no such file"}, 2},
		{"DNS64", "dns64-prefix: 64:ff9b::/96\n", []string{"dns64-prefix", "not supported", "remove"}, 1},
		{"no family", "ipv4: false\nipv6: false\n", []string{"ipv6", "leave one"}, 2},
		{"TTL above a week", "cache-max-ttl: 604801\n", []string{"cache-max-ttl", "604800"}, 0},
		{"TTLs crossed", "cache-min-ttl: 60\ncache-max-ttl: 30\n", []string{": cache-min-ttl: 60 is above cache-max-ttl, 30"}, 1},
		{"zones no list", "forward-zones: 192.0.2.1\n", []string{"forward-zones", "addrs"}, 1},
		{"zone without name", "forward-zones:\n  - addrs: [192.0.2.1]\n", []string{"without a name"}, 2},
		{"zone without servers", "stub-zones:\n  - name: example.org\n", []string{"example.org.", "addrs"}, 2},
		{"zone's unknown key", "stub-zones:\n  - name: example.org\n    adrs: [192.0.2.1]\n", []string{`did you mean "addrs"?`}, 3},
		{"zone's address", "stub-zones:\n  - name: example.org\n    addrs: [here]\n", []string{"stub-zones.addrs", "192.0.2.1@5353"}, 3},
		{"name without tls", "forward-zones:\n  - name: .\n    addrs: [\"192.0.2.1#dns.example\"]\n", []string{"forward-zones.addrs", "tls: true"}, 3},
		{"no name for tls", "forward-zones:\n  - name: .\n    tls: true\n    addrs: [\"192.0.2.1#\"]\n", []string{"forward-zones.addrs", "192.0.2.1#dns.example"}, 4},
		{"hosts over tls", "forward-zones:\n  - {name: ., tls: true, hosts: [dns.example]}\n", []string{"forward-zones.hosts", "192.0.2.1#dns.example"}, 2},
		{"tls and prime", "stub-zones:\n  - {name: ., tls: true, prime: true, addrs: [192.0.2.1]}\n", []string{"tls and prime"}, 2},
		{"tls what", "stub-zones:\n  - {name: ., tls: perhaps, addrs: [192.0.2.1]}\n", []string{"stub-zones.tls", "true"}, 2},
		{"no certificates", "tls-ca: /dev/null\n", []string{"tls-ca", "BEGIN CERTIFICATE"}, 1},
		{"zone twice", "stub-zones:\n  - {name: a.example, addrs: [192.0.2.1]}\n  - {name: A.example, addrs: [192.0.2.2]}\n", []string{"a.example.", "twice"}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, "bonsai.yaml", c.content)
			_, err := configure(nil, file)
			if err == nil {
				t.Fatal("no error")
			}
			message := err.Error()
			place := file + ":"
			if c.line > 0 {
				place = fmt.Sprintf("%s:%d:", file, c.line)
			}
			if !strings.HasPrefix(message, place) {
				t.Errorf("%q does not begin with %q", message, place)
			}
			if strings.Contains(message, "\n") {
				t.Errorf("%q is more than one line", message)
			}
			for _, part := range c.want {
				if !strings.Contains(message, part) {
					t.Errorf("%q lacks %q", message, part)
				}
			}
		})
	}
}

// Everything wrong is said at once.
func TestSeveralProblems(t *testing.T) {
	file := write(t, "bonsai.yaml", "threads: 0\nlissen: x\ndnssec: perhaps\n")
	_, err := configure(map[string]given{"cache-size": {values: []string{"x"}}}, file)
	if err == nil || strings.Count(err.Error(), "\n") != 3 || !strings.Contains(err.Error(), "--cache-size: ") {
		t.Errorf("got %v", err)
	}
}

func TestMissingFile(t *testing.T) {
	_, err := configure(nil, "/no/such/bonsai.yaml")
	if err == nil || !strings.Contains(err.Error(), "/no/such/bonsai.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestCommandLine(t *testing.T) {
	cases := []struct {
		args string
		want string // in the error; "" for none
	}{
		{"", ""},
		{"--listen 127.0.0.1:53 --listen [::1]:53", ""},
		{"lab --once --listen 127.0.0.1:5300", ""},
		{"check --config x", ""},
		{"check", "check needs --config FILE"},
		{"lba", "did you mean lab?"},
		{"frobnicate", "there is no command frobnicate"},
		{"--lisen 127.0.0.1:53", "did you mean --listen?"},
		{"--qname-minimization off", "did you mean --qname-minimisation?"},
		{"--ipv6 off", "key of the configuration file"},
		{"-x", "flags begin with --"},
		{"--listen", "flag needs an argument: --listen"},
		{"lab --root-hints x", "no flag of bonsai lab"},
		{"lab --ipv6 off", "key of the configuration file"},
		{"check x.yaml", "write bonsai check --config x.yaml"},
		{"--listen 127.0.0.1:53 127.0.0.1:54", `"127.0.0.1:54" is neither a flag nor`},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			_, err := parseCommand(strings.Fields(c.args))
			switch {
			case err == nil && c.want == "":
			case err == nil || c.want == "" || !strings.Contains(err.Error(), c.want):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The command line is what others script against.
func TestEveryFlagIsThere(t *testing.T) {
	want := "listen root-hints trust-anchor dnssec qname-minimisation allow allow-snoop cache-size threads " +
		"metrics log-level validation-time clock-file control"
	var got []string
	for _, s := range settings {
		if s.flag {
			got = append(got, s.key)
		}
		if setters := [...]bool{s.set != nil, s.setZones != nil, s.setItems != nil || s.views}; setters != [...]bool{true, false, false} &&
			setters != [...]bool{false, true, false} && setters != [...]bool{false, false, true} {
			t.Errorf("%s has no setter, or two", s.key)
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("flags %v", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"", "abc", 3}, {"listen", "lisen", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, s := range []string{"listen: 127.0.0.1:53\n", "a: &x [*x]\n", "forward-zones:\n - {name: ., addrs: [::1]}\n", "? {a: b}\n: c\n", "<<: {threads: 1}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if strings.Contains(content, "/") {
			t.Skip("names a file")
		}
		r := reader{file: "fuzz", said: map[string]given{}}
		r.read([]byte(content))
		c := defaults()
		for key := range r.said {
			if key == "root-hints" || key == "trust-anchor" || key == "clock-file" {
				delete(r.said, key)
			}
		}
		c.apply(r.said, "fuzz", "")
	})
}

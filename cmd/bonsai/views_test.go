package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// forwarderOf runs a resolver that gives every A query this address until the test ends, and NXDOMAIN to
// names that begin with "no". It returns where it listens.
func forwarderOf(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.RecursionAvailable = true
		if q.Question[0].Qtype == dns.TypeA && !strings.HasPrefix(strings.ToLower(q.Question[0].Name), "no") {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: net.ParseIP(address)}}
		} else {
			soa, _ := dns.NewRR("unsigned.lab. 300 IN SOA ns.unsigned.lab. host.unsigned.lab. 1 2 3 4 300")
			m.Ns, m.Rcode = []dns.RR{soa}, dns.RcodeNameError
		}
		w.WriteMsg(m)
	})}
	done := make(chan error, 1)
	go func() { done <- s.ActivateAndServe() }()
	t.Cleanup(func() { s.Shutdown(); <-done })
	return netip.MustParseAddrPort(conn.LocalAddr().String())
}

// asClient asks from an address of this machine and returns the first address of the answer, or the RCODE.
func asClient(t *testing.T, d *daemon, from, name string) string {
	t.Helper()
	c := &dns.Client{Timeout: 15 * time.Second, Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}}
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	m.SetEdns0(1232, false)
	got, _, err := c.Exchange(m, d.addr().String())
	if err != nil {
		if strings.Contains(err.Error(), "bind") {
			t.Skip("this machine has but one loopback address: ", err)
		}
		t.Fatalf("%s from %s: %v", name, from, err)
	}
	for _, rr := range got.Answer {
		if a, ok := rr.(*dns.A); ok {
			return a.A.String()
		}
	}
	return strings.TrimSpace(fmt.Sprint(dns.RcodeToString[got.Rcode], " ", strings.Trim(fmt.Sprint(ede(got)), "[]")))
}

// viewed reads a configuration and lets edit add to what start says.
func viewed(t *testing.T, content string) func(*Config) {
	t.Helper()
	c, err := configure(nil, write(t, "bonsai.yaml", content))
	if err != nil {
		t.Fatal(err)
	}
	return func(to *Config) {
		to.Views, to.ViewSums, to.Lists = c.Views, c.ViewSums, c.Lists
		to.Zones, to.BlockLists, to.ListSums = c.Zones, c.BlockLists, c.ListSums
	}
}

const viewsOfTwo = `
views:
  - name: lan
    clients: [127.1.0.0/16]
    forward-zones:
      - {name: unsigned.lab, addrs: [203.0.113.201]}
  - name: kids
    clients: [127.1.2.0/24, 127.2.0.1]
    block-lists: [%[1]s]
  - name: other
    clients: [127.3.0.0/16]
    local-data: ["www.ecdsa.lab. A 192.0.2.99"]
    forward-zones:
      - {name: unsigned.lab, addrs: [203.0.113.202]}
`

// Each client gets what its view says, the most specific prefix deciding; what a view's forwarders say is
// nobody else's, whoever asks first.
func TestViews(t *testing.T) {
	list := write(t, "games.txt", "ed25519.lab\n")
	path := socketPath(t)
	elsewhere := map[netip.AddrPort]netip.AddrPort{
		netip.MustParseAddrPort("203.0.113.201:53"): forwarderOf(t, "10.0.0.1"),
		netip.MustParseAddrPort("203.0.113.202:53"): forwarderOf(t, "10.0.0.2"),
		netip.MustParseAddrPort("203.0.113.203:53"): forwarderOf(t, "10.0.0.3"),
	}
	edit := viewed(t, fmt.Sprintf(viewsOfTwo, list))
	d := startWith(t, elsewhere, func(c *Config) { edit(c); c.Control = path })
	public := asClient(t, d, "127.0.0.1", "www.unsigned.lab.")
	if !strings.HasPrefix(public, "198.51.100.") && !strings.HasPrefix(public, "192.0.2.") && !strings.HasPrefix(public, "203.0.113.") {
		t.Fatalf("without a view: %s", public)
	}
	blocked := "NXDOMAIN 15"
	check := func(rows [][3]string) {
		t.Helper()
		for _, row := range rows {
			if got := asClient(t, d, row[0], row[1]); got != row[2] {
				t.Errorf("%s asks for %s: %s, want %s", row[0], row[1], got, row[2])
			}
		}
	}
	rows := [][3]string{
		{"127.1.0.1", "www.unsigned.lab.", "10.0.0.1"},
		{"127.3.0.1", "www.unsigned.lab.", "10.0.0.2"},
		{"127.1.2.1", "www.unsigned.lab.", public}, // kids, not lan: more specific
		{"127.0.0.1", "www.unsigned.lab.", public},
		{"127.1.0.1", "nothing.unsigned.lab.", "NXDOMAIN"},
		{"127.1.2.1", "www.ed25519.lab.", blocked},
		{"127.2.0.1", "www.ed25519.lab.", blocked},
		{"127.3.0.1", "www.ecdsa.lab.", "192.0.2.99"},
	}
	for range 2 { // cold, and again from the cache
		check(rows)
	}
	for _, from := range []string{"127.0.0.1", "127.1.0.1", "127.2.0.2"} {
		if got := asClient(t, d, from, "www.ed25519.lab."); strings.HasPrefix(got, "NXDOMAIN") {
			t.Errorf("%s is blocked: %s", from, got)
		}
	}
	mustCtl(t, path, []string{"lan", "203.0.113.201"}, "explain", "fresh.unsigned.lab", "A", "127.1.0.1")
	mustCtl(t, path, []string{"kids", "block"}, "explain", "www.ed25519.lab", "A", "127.1.2.9")
	mustCtl(t, path, []string{"203.0.113.201"}, "lookup", "www.unsigned.lab", "127.1.0.1")
	if out := mustCtl(t, path, nil, "explain", "www.ed25519.lab", "A"); strings.Contains(out, "block") {
		t.Errorf("without a view:\n%s", out)
	}
	if _, err := ctl(t, path, "explain", "www.ed25519.lab", "A", "me"); err == nil || !strings.Contains(err.Error(), `"me"`) {
		t.Errorf("a client that is no address: %v", err)
	}
	_, page := get(t, d, metricsPath)
	if got := value(t, page, `bonsai_view_queries_total{view="kids"}`); got != 6 {
		t.Errorf("%v queries of kids", got)
	}
	if got := value(t, page, `bonsai_policy_decisions_total{action="answer",rule="block"}`); got != 4 {
		t.Errorf("%v blocked", got)
	}
}

// A reload replaces the views. What other realms have cached stays, and so does what is not changed in one.
func TestReloadViews(t *testing.T) {
	list := write(t, "games.txt", "ed25519.lab\n")
	elsewhere := map[netip.AddrPort]netip.AddrPort{
		netip.MustParseAddrPort("203.0.113.201:53"): forwarderOf(t, "10.0.0.1"),
		netip.MustParseAddrPort("203.0.113.202:53"): forwarderOf(t, "10.0.0.2"),
		netip.MustParseAddrPort("203.0.113.203:53"): forwarderOf(t, "10.0.0.3"),
	}
	content := fmt.Sprintf(viewsOfTwo, list)
	d := startWith(t, elsewhere, viewed(t, content))
	ask := func(from, name string) string { return asClient(t, d, from, name) }
	reload := func(content string, want ...string) {
		t.Helper()
		d.again(viewed(t, content))
		if changed, _, err := d.reload(); err != nil || !slices.Equal(changed, want) {
			t.Fatalf("changed %q, want %q; %v", changed, want, err)
		}
	}
	public := ask("127.0.0.1", "www.unsigned.lab.")
	for _, from := range []string{"127.1.0.1", "127.3.0.1"} {
		ask(from, "www.unsigned.lab.")
		ask(from, "www.rsa.lab.")
	}
	before := misses(d)
	reload(content)
	reload(strings.Replace(content, "203.0.113.201", "203.0.113.203", 1), "views")
	if got := ask("127.1.0.1", "www.unsigned.lab."); got != "10.0.0.3" {
		t.Errorf("another forwarder: %s", got)
	}
	if n := misses(d) - before; n != 1 {
		t.Errorf("%d misses behind the reload, want that of the view's changed zone", n)
	}
	for _, row := range [][3]string{
		{"127.3.0.1", "www.unsigned.lab.", "10.0.0.2"}, {"127.0.0.1", "www.unsigned.lab.", public}, {"127.1.2.1", "www.unsigned.lab.", public},
	} {
		if got := ask(row[0], row[1]); got != row[2] {
			t.Errorf("%s: %s, want %s", row[0], got, row[2])
		}
	}
	ask("127.1.0.1", "www.rsa.lab.")
	if n := misses(d) - before; n != 1 {
		t.Errorf("%d misses, and nothing else has changed", n)
	}
	// A list alone: nobody resolves anew.
	if err := os.WriteFile(list, []byte("unsigned.lab\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload(strings.Replace(content, "203.0.113.201", "203.0.113.203", 1), "views (lists)")
	if got := ask("127.2.0.1", "www.unsigned.lab."); got != "NXDOMAIN 15" {
		t.Errorf("blocked by the new list: %s", got)
	}
	// Without views all get what all others get, and a view of another name finds nothing of a former one.
	reload("threads: 1\n", "views", "views (lists)")
	if got := ask("127.1.0.1", "www.unsigned.lab."); got != public {
		t.Errorf("the view is gone: %s", got)
	}
	reload(strings.ReplaceAll(content, "- name: lan", "- name: lan2"), "views", "views (lists)")
	if got := ask("127.1.0.1", "www.unsigned.lab."); got != "10.0.0.1" {
		t.Errorf("a view of another name: %s", got)
	}
}

// What a view does not choose is the file's, also after the file has changed.
func TestViewInherits(t *testing.T) {
	d := start(t, viewed(t, "views:\n  - {name: a, clients: [127.1.0.0/16], special-use: true}\n"))
	if got := asClient(t, d, "127.1.0.1", "www.ecdsa.lab."); strings.Contains(got, "REFUSED") {
		t.Fatal(got)
	}
	d.again(func(c *Config) { c.Refuse = prefixes("127.0.0.0/8") })
	if _, _, err := d.reload(); err != nil {
		t.Fatal(err)
	}
	if got := asClient(t, d, "127.1.0.1", "www.ecdsa.lab."); got != "REFUSED 18" {
		t.Errorf("refused to all: %s", got)
	}
}

func TestViewsRefused(t *testing.T) {
	for _, c := range []struct {
		name, content string
		line          int
		want          []string
	}{
		{"no list", "views: lan\n", 1, []string{"views", "is not a list", "clients"}},
		{"no mapping", "views:\n  - lan\n", 2, []string{"views", "no mapping"}},
		{"no name", "views:\n  - clients: [192.0.2.0/24]\n", 2, []string{"views.name", "without a name"}},
		{"nobody", "views:\n  - name: a\n", 2, []string{"views.clients", "192.0.2.0/24"}},
		{"bad prefix", "views:\n  - name: a\n    clients:\n      - 192.0.2.0/24\n      - 192.0.2.0/33\n", 5, []string{"views.clients", "192.0.2.0/33"}},
		{"twice", "views:\n  - {name: a, clients: [192.0.2.0/24]}\n  - {name: a, clients: [192.0.3.0/24]}\n", 3, []string{"views.name", `"a"`, "two views"}},
		{"same clients", "views:\n  - {name: a, clients: [192.0.2.0/24]}\n  - {name: b, clients: [192.0.2.1/24]}\n", 3, []string{"views.clients", "192.0.2.0/24", `"a"`}},
		{"not for views", "views:\n  - name: a\n    clients: 192.0.2.0/24\n    cache-size: 1GiB\n", 4, []string{"views", "cache-size", "forward-zones"}},
		{"bad value", "views:\n  - name: a\n    clients: 192.0.2.0/24\n    special-use: perhaps\n", 4, []string{"special-use", "neither true nor false"}},
		{"bad zone", "views:\n  - name: a\n    clients: 192.0.2.0/24\n    forward-zones:\n      - {name: a.example, addrs: [here]}\n", 5, []string{"forward-zones.addrs", "192.0.2.1@5353"}},
		{"zone twice", "views:\n  - name: a\n    clients: 192.0.2.0/24\n    stub-zones:\n      - {name: a.example, addrs: [192.0.2.1]}\n      - {name: a.example, addrs: [192.0.2.2]}\n", 6, []string{"stub-zones", "twice"}},
		{"missing list", "views:\n  - name: a\n    clients: 192.0.2.0/24\n    block-lists: [/no/such]\n", 4, []string{"block-lists", "/no/such"}},
		{"key twice", "views:\n  - name: a\n    name: b\n    clients: 192.0.2.0/24\n", 3, []string{"name", "given twice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, "bonsai.yaml", c.content)
			_, err := configure(nil, file)
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s:%d:", file, c.line)) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v; want one line of %s:%d", err, filepath.Base(file), c.line)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		})
	}
}

// A cache file gives each realm back what it had, if it is the same view's with the same zones.
func TestCacheFileOfViews(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache")
	elsewhere := map[netip.AddrPort]netip.AddrPort{
		netip.MustParseAddrPort("203.0.113.201:53"): forwarderOf(t, "10.0.0.1"),
		netip.MustParseAddrPort("203.0.113.202:53"): forwarderOf(t, "10.0.0.2"),
	}
	content := "views:\n  - name: lan\n    clients: [127.1.0.0/16]\n    forward-zones:\n      - {name: unsigned.lab, addrs: [203.0.113.201]}\n"
	first := startWith(t, elsewhere, viewed(t, content))
	asClient(t, first, "127.1.0.1", "www.unsigned.lab.")
	if _, err := first.saveCache(file); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		content string
		misses  uint64
		want    string
	}{{content, 0, "10.0.0.1"}, {strings.Replace(content, "113.201", "113.202", 1), 1, "10.0.0.2"}} {
		edit := viewed(t, row.content)
		d := startWith(t, elsewhere, func(c *Config) { edit(c); c.CacheFile = file })
		if got := asClient(t, d, "127.1.0.1", "www.unsigned.lab."); got != row.want || misses(d) != row.misses {
			t.Errorf("%s after %d misses, want %s after %d", got, misses(d), row.want, row.misses)
		}
	}
}

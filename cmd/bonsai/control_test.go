package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// socketPath is short enough for a Unix socket, whatever the test is called.
func socketPath(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("modes of sockets are Unix's")
	}
	dir, err := os.MkdirTemp("", "bonsai")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "control")
}

// ctl runs bonsai ctl against a daemon.
func ctl(t *testing.T, path string, args ...string) (out string, err error) {
	t.Helper()
	c, err := parseCommand(append([]string{"ctl", "--control", path}, args...))
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = runCtl(context.Background(), c, &b)
	return b.String(), err
}

func startControlled(t *testing.T, edit func(*Config)) (*daemon, string) {
	t.Helper()
	path := socketPath(t)
	d := start(t, func(c *Config) {
		c.Control = path
		if edit != nil {
			edit(c)
		}
	})
	return d, path
}

func mustCtl(t *testing.T, path string, want []string, args ...string) string {
	t.Helper()
	out, err := ctl(t, path, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	for _, part := range want {
		if !strings.Contains(out, part) {
			t.Errorf("%v: no %q in\n%s", args, part, out)
		}
	}
	return out
}

func TestControlCommands(t *testing.T) {
	d, path := startControlled(t, nil)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	ask := func(name string) *dns.Msg { return query(t, d.addr(), "udp", name, dns.TypeA, nil) }
	for _, name := range []string{"www.ecdsa.lab.", "www.unsigned.lab.", "nothing.ecdsa.lab.", "www.bogus.lab."} {
		ask(name)
	}
	mustCtl(t, path, []string{"version", "cache entries", "INFO"}, "status")
	stats := mustCtl(t, path, []string{`bonsai_queries_total{transport="udp"} 4`}, "stats")
	if !regexp.MustCompile(`(?m)^bonsai_response_duration_seconds\{path="miss",quantile="0.999"\} [0-9.e-]*[1-9]`).MatchString(stats) {
		t.Errorf("misses took no time in\n%s", stats)
	}
	mustCtl(t, path, []string{"lab., for ", "., for ", "192.0.2.", "RTT"}, "lookup", "www.ecdsa.lab")
	dump := mustCtl(t, path, []string{"; answer www.ecdsa.lab. A NOERROR secure", "203.0.113.80", "RRSIG", "; delegation lab.", "; end"}, "dump")
	if below := mustCtl(t, path, []string{"www.unsigned.lab."}, "dump", "unsigned.lab"); strings.Contains(below, "ecdsa") || len(below) >= len(dump) {
		t.Errorf("a dump below unsigned.lab. is\n%s", below)
	}
	before := misses(d)
	mustCtl(t, path, []string{"forgotten"}, "flush", "www.ecdsa.lab", "A")
	ask("www.unsigned.lab.")
	if n := misses(d) - before; n != 0 {
		t.Errorf("%d misses for what was not flushed", n)
	}
	ask("www.ecdsa.lab.")
	if n := misses(d) - before; n != 1 {
		t.Errorf("%d misses for what was flushed", n)
	}
	mustCtl(t, path, nil, "flush-bogus")
	if out := mustCtl(t, path, nil, "dump", "bogus.lab"); strings.Contains(out, "unvalidated") || strings.Contains(out, "failure") {
		t.Errorf("after flush-bogus: %s", out)
	}
	mustCtl(t, path, nil, "flush-negative")
	if out := mustCtl(t, path, []string{"www.ecdsa.lab."}, "dump", "ecdsa.lab"); strings.Contains(out, "nothing.ecdsa.lab.") {
		t.Errorf("after flush-negative: %s", out)
	}
	mustCtl(t, path, nil, "flush-tree", "lab")
	if out := mustCtl(t, path, nil, "dump", "lab"); strings.Count(out, "\n") > 2 {
		t.Errorf("after flush-tree lab: %s", out)
	}
	mustCtl(t, path, []string{"DEBUG"}, "loglevel", "debug")
	if d.level.Level().String() != "DEBUG" {
		t.Error(d.level.Level())
	}
	d.again(func(c *Config) { c.MaxTTL = 60 })
	mustCtl(t, path, []string{"changed: cache-max-ttl"}, "reload")
	d.reloader.configure = func() (*Config, error) { return nil, fmt.Errorf("bonsai.yaml:7: broken") }
	if _, err := ctl(t, path, "reload"); err == nil || !strings.Contains(err.Error(), "nothing was changed: bonsai.yaml:7: broken") {
		t.Errorf("a broken reload: %v", err)
	}
}

func TestControlNTA(t *testing.T) {
	d, path := startControlled(t, nil)
	ask := func() int { return query(t, d.addr(), "udp", "www.bogus.lab.", dns.TypeA, nil).Rcode }
	if ask() != dns.RcodeServerFailure {
		t.Fatal("bogus.lab. is not bogus")
	}
	mustCtl(t, path, nil, "nta", "add", "bogus.lab", "2h")
	if ask() != dns.RcodeSuccess {
		t.Error("the negative trust anchor does nothing")
	}
	mustCtl(t, path, []string{"bogus.lab.\tfor "}, "nta", "list")
	d.again(func(c *Config) { c.Insecure = nil }) // as the file has it
	if _, _, err := d.reload(); err != nil || ask() != dns.RcodeSuccess {
		t.Errorf("a reload took it away, or %v", err)
	}
	mustCtl(t, path, nil, "nta", "remove", "bogus.lab")
	if ask() != dns.RcodeServerFailure {
		t.Error("it is still there")
	}
	mustCtl(t, path, nil, "nta", "add", "bogus.lab", "1s")
	for try := 0; ask() != dns.RcodeServerFailure; try++ {
		if try == 300 {
			t.Fatal("it does not end")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, args := range [][]string{{"nta", "add", "bogus.lab", "9000h"}, {"nta", "add", "bogus.lab", "soon"}, {"nta", "remove", "x.lab"},
		{"nta", "grow"}, {"nta", "list", "it"}, {"flush"}, {"flush", "a b..c"}, {"explain", "x", "NOTATYPE"}, {"loglevel", "loud"}, {"explod"}} {
		if out, err := ctl(t, path, args...); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}

func TestExplain(t *testing.T) {
	d, path := startControlled(t, func(c *Config) {
		if err := setLocalData(c, []string{"printer.lan. 60 A 192.0.2.200"}, ""); err != nil {
			t.Fatal(err)
		}
	})
	mustCtl(t, path, []string{"NOERROR", "from     rule local-data", "192.0.2.200"}, "explain", "printer.lan", "A")
	mustCtl(t, path, []string{"NOERROR, secure", "from     resolution", "203.0.113.80", "trust    . DS trust anchor, DNSKEY secure",
		"trust    ecdsa.lab. DS secure", "path     of this resolution", "udp for lab.:", "signed   www.ecdsa.lab. A by ecdsa.lab."},
		"explain", "www.ecdsa.lab", "A")
	mustCtl(t, path, []string{"from     cache (answer)", "s left", "path     of the resolution"}, "explain", "www.ecdsa.lab", "A")
	mustCtl(t, path, []string{"insecure", "trust    unsigned.lab. DS none, "}, "explain", "www.unsigned.lab", "A")
	mustCtl(t, path, []string{"NXDOMAIN, secure", "denial of the name", "SOA"}, "explain", "nothing.ecdsa.lab", "A")
	query(t, d.addr(), "udp", "www.expired.lab.", dns.TypeA, nil)
	mustCtl(t, path, []string{"SERVFAIL", "from     cached failure", "cause    ", "expired", "path     of the resolution"},
		"explain", "www.expired.lab", "A")

	out := mustCtl(t, path, nil, "--json", "explain", "www.expired.lab", "A")
	var x explained
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	if x.Source != "cached failure" || x.RCODE != "SERVFAIL" || len(x.EDE) == 0 || x.EDE[0].Code != 7 || len(x.Path) == 0 || x.Path[0].Server == "" {
		t.Errorf("as JSON: %+v", x)
	}
	// What the ring no longer holds is said to be gone.
	for i := range recentResolutions + 1 {
		query(t, d.addr(), "udp", fmt.Sprintf("n%d.bench.", i), dns.TypeA, nil)
	}
	mustCtl(t, path, []string{"from     cache", "no longer remembered"}, "explain", "www.ecdsa.lab", "A")
}

// Clients that are broken or hostile: they get an error or are cut off, and others are served.
func TestHostileControlClients(t *testing.T) {
	d, path := startControlled(t, nil)
	dial := func() net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// A body of 1 GiB: refused after 64 KiB.
	c := dial()
	fmt.Fprintf(c, "POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{\"args\":[\"", 1<<30)
	chunk := bytes.Repeat([]byte("x"), 1<<16)
	written := 0
	for ; written < 1<<30; written += len(chunk) {
		if _, err := c.Write(chunk); err != nil {
			break
		}
	}
	if written > 64<<20 {
		t.Errorf("%d bytes were taken", written)
	}
	c.Close()
	// Nonsense, and other methods and paths.
	for _, text := range []string{"GET /status HTTP/1.1\r\nHost: x\r\n\r\n", "nonsense\r\n\r\n", "POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n[1]"} {
		c := dial()
		io.WriteString(c, text)
		head := make([]byte, 64)
		n, _ := c.Read(head)
		if !strings.HasPrefix(string(head[:n]), "HTTP/1.1 4") {
			t.Errorf("%q got %q", text, head[:n])
		}
		c.Close()
	}
	// As many as may that say nothing: the next is closed at once, and goes on once they are gone.
	var silent []net.Conn
	for range controlConnections {
		silent = append(silent, dial())
	}
	time.Sleep(50 * time.Millisecond)
	c = dial()
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("one too many was let in")
	}
	c.Close()
	for _, c := range silent {
		c.Close()
	}
	// One that asks for a dump and never reads.
	for i := range 300 {
		query(t, d.addr(), "udp", fmt.Sprintf("n%d.signed-bench.", i), dns.TypeA, nil)
	}
	unread := dial()
	defer unread.Close()
	io.WriteString(unread, "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n{\"args\":[]}")
	for try := 0; ; try++ {
		if _, err := ctl(t, path, "status"); err == nil {
			break
		} else if try == 100 {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); got.Rcode != dns.RcodeSuccess {
		t.Errorf("queries meanwhile: %v", got)
	}
}

func TestControlSocketIsOnesOwn(t *testing.T) {
	_, path := startControlled(t, nil)
	if _, err := listenControl(path); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Errorf("taken from a living one: %v", err)
	}
	file := write(t, "control", "precious")
	if _, err := listenControl(file); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file in the way: %v", err)
	}
	left := socketPath(t)
	l, err := net.Listen("unix", left)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	again, err := listenControl(left)
	if err != nil {
		t.Fatalf("one that a dead process left: %v", err)
	}
	again.Close()
	if _, err := ctl(t, left, "status"); err == nil || !strings.Contains(err.Error(), left) {
		t.Errorf("nobody there: %v", err)
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"bonsai/resolver/exchange"
	"bonsai/resolver/lab"
)

// raceDetector says that the race detector's memory is in every figure.
var raceDetector bool

// asBonsai makes the test's own binary be bonsai, so that tests of the process run what they compile.
const asBonsai = "BONSAI_TEST_AS_BONSAI"

func TestMain(m *testing.M) {
	if os.Getenv(asBonsai) != "" {
		main()
		return
	}
	status := m.Run()
	if releaseDir != "" {
		os.RemoveAll(releaseDir)
	}
	os.Exit(status)
}

// releaseDir has what release has built, until the tests end.
var releaseDir string

// release is bonsai as it is released, built for the first test that needs it. The tests' own binary may
// be built with cgo, and then not all its threads can be locked in.
var release = sync.OnceValues(func() (path string, err error) {
	if releaseDir, err = os.MkdirTemp("", "bonsai"); err != nil {
		return "", err
	}
	path = filepath.Join(releaseDir, "bonsai")
	build := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, os.Chmod(releaseDir, 0o755) // another user, too, may run it
})

// internet is one lab for all tests that only ask it.
var internet = sync.OnceValues(func() (*lab.World, error) { return lab.New(lab.Config{}) })

// start runs a daemon in this process on the lab until the test ends.
func start(t *testing.T, edit func(*Config)) *daemon {
	t.Helper()
	return startWith(t, nil, edit)
}

// startWith is start where servers at these addresses are reached elsewhere, and the lab's in the lab.
func startWith(t *testing.T, elsewhere map[netip.AddrPort]netip.AddrPort, edit func(*Config)) *daemon {
	t.Helper()
	w, err := internet()
	if err != nil {
		t.Fatal(err)
	}
	c := defaults()
	c.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	c.Metrics = netip.MustParseAddrPort("127.0.0.1:0")
	c.CacheSize = 8 << 20
	if err := inLab(c, w); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(c)
	}
	return startOn(t, c, &moved{w, elsewhere})
}

// startOn runs a daemon in this process until the test ends. transport nil: the system's sockets.
func startOn(t *testing.T, c *Config, transport exchange.Transport) *daemon {
	t.Helper()
	d, err := newDaemon(c, transport, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return d
}

// moved is a network where some servers lie at other addresses than they say.
type moved struct {
	exchange.Transport
	elsewhere map[netip.AddrPort]netip.AddrPort
}

func (m *moved) DialUDP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	if at, ok := m.elsewhere[server]; ok {
		return new(net.Dialer).DialContext(ctx, "udp", at.String())
	}
	return m.Transport.DialUDP(ctx, local, server)
}

func (m *moved) DialTCP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	if at, ok := m.elsewhere[server]; ok {
		return new(net.Dialer).DialContext(ctx, "tcp", at.String())
	}
	return m.Transport.DialTCP(ctx, local, server)
}

// query asks for a name and sets RD and AD; edit may change the query.
func query(t *testing.T, at netip.AddrPort, network, name string, qtype uint16, edit func(*dns.Msg)) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	m.AuthenticatedData = true
	m.SetEdns0(1232, false)
	if edit != nil {
		edit(m)
	}
	c := &dns.Client{Net: network, Timeout: 15 * time.Second, UDPSize: 1232}
	got, _, err := c.Exchange(m, at.String())
	if err != nil {
		t.Fatalf("%s over %s: %v", name, network, err)
	}
	return got
}

// ede returns the extended errors of a response.
func ede(m *dns.Msg) (codes []int) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				codes = append(codes, int(e.InfoCode))
			}
		}
	}
	return codes
}

func TestAnswers(t *testing.T) {
	d := start(t, nil)
	for _, network := range []string{"udp", "tcp"} {
		got := query(t, d.addr(), network, "wWw.EcDsA.lab.", dns.TypeA, nil)
		if got.Rcode != dns.RcodeSuccess || !got.AuthenticatedData || !got.RecursionAvailable || len(got.Answer) != 2 ||
			got.Question[0].Name != "wWw.EcDsA.lab." {
			t.Errorf("over %s: %v", network, got)
		}
	}
	got := query(t, d.addr(), "udp", "big.ecdsa.lab.", dns.TypeTXT, nil)
	if !got.Truncated || got.Len() > 1232 {
		t.Errorf("large TXT over UDP: %v", got)
	}
	got = query(t, d.addr(), "tcp", "big.ecdsa.lab.", dns.TypeTXT, nil)
	if got.Truncated || len(got.Answer) != 1 {
		t.Errorf("large TXT over TCP: %v", got)
	}
}

// Every row of the lab's table is as it should be, validated and not.
func TestLabOnce(t *testing.T) {
	for _, mode := range []string{"validate", "off"} {
		t.Run(mode, func(t *testing.T) {
			out, err := bonsai("lab", "--once", "--listen", "127.0.0.1:0", "--dnssec", mode).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestAccess(t *testing.T) {
	d := start(t, func(c *Config) {
		c.Allow = prefixes("192.0.2.0/24")
	})
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); got.Rcode != dns.RcodeRefused ||
		!slices.Contains(ede(got), int(dns.ExtendedErrorCodeProhibited)) {
		t.Errorf("a stranger got %v", got)
	}
	d = start(t, func(c *Config) { c.Refuse = prefixes("127.0.0.0/8") })
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); got.Rcode != dns.RcodeRefused {
		t.Errorf("one who is refused got %v", got)
	}
}

func TestSnooping(t *testing.T) {
	norecurse := func(m *dns.Msg) { m.RecursionDesired = false }
	d := start(t, nil)
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, norecurse); got.Rcode != dns.RcodeRefused {
		t.Errorf("RD=0 got %v", got)
	}
	d = start(t, func(c *Config) { c.AllowSnoop = prefixes("127.0.0.1/32") })
	query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil)
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, norecurse); len(got.Answer) != 2 {
		t.Errorf("RD=0 from one who may snoop got %v", got)
	}
}

func TestLocalDataAndIdentity(t *testing.T) {
	d := start(t, func(c *Config) {
		c.Identity = "lab-resolver"
		if err := setLocalData(c, []string{"printer.lan. 60 A 192.0.2.200"}, ""); err != nil {
			t.Fatal(err)
		}
	})
	if got := query(t, d.addr(), "udp", "printer.lan.", dns.TypeA, nil); len(got.Answer) != 1 {
		t.Errorf("local data: %v", got)
	}
	got := query(t, d.addr(), "udp", "id.server.", dns.TypeTXT, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS })
	if len(got.Answer) != 1 || !strings.Contains(got.Answer[0].String(), "lab-resolver") {
		t.Errorf("id.server: %v", got)
	}
}

// An empty anchor file: nothing is validated, not even what is plainly bogus.
func TestNoAnchors(t *testing.T) {
	d := start(t, func(c *Config) { c.Anchors = nil })
	for _, name := range []string{"www.bogus.lab.", "www.ecdsa.lab."} {
		if got := query(t, d.addr(), "udp", name, dns.TypeA, nil); got.Rcode != dns.RcodeSuccess || got.AuthenticatedData {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDNSSECOff(t *testing.T) {
	d := start(t, func(c *Config) { c.Validate = false })
	for _, name := range []string{"www.bogus.lab.", "www.expired.lab.", "www.ecdsa.lab."} {
		if got := query(t, d.addr(), "udp", name, dns.TypeA, nil); got.Rcode != dns.RcodeSuccess || got.AuthenticatedData {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestValidationTime(t *testing.T) {
	d := start(t, func(c *Config) { c.ValidationTime = time.Now().Unix() + 200*24*3600 })
	if got := query(t, d.addr(), "udp", ".", dns.TypeDNSKEY, nil); got.Rcode != dns.RcodeServerFailure ||
		!slices.Contains(ede(got), int(dns.ExtendedErrorCodeSignatureExpired)) {
		t.Errorf("200 days on: %v", got)
	}
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); got.Rcode != dns.RcodeServerFailure ||
		!slices.Contains(ede(got), int(dns.ExtendedErrorCodeSignatureExpired)) {
		t.Errorf("200 days on: %v", got)
	}
	if got := query(t, d.addr(), "udp", "www.unsigned.lab.", dns.TypeA, func(m *dns.Msg) { m.CheckingDisabled = true }); len(got.Answer) != 1 {
		t.Errorf("200 days on, without checking: %v", got)
	}
}

// setClock writes a clock file, in Unix seconds.
func setClock(t *testing.T, file string, to int64) {
	t.Helper()
	if err := os.WriteFile(file+".new", fmt.Append(nil, to), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// TTLs go by the clock file, at once.
func TestClockFileMovesTTLs(t *testing.T) {
	now := time.Now().Unix()
	file := write(t, "clock", fmt.Sprint(now))
	d := start(t, func(c *Config) { c.ClockFile = file })
	for _, step := range []struct{ at, ttl int64 }{{0, 3600}, {1, 3599}, {3000, 600}, {3001, 599}, {7200, 3600}, {7300, 3500}} {
		setClock(t, file, now+step.at)
		got := query(t, d.addr(), "udp", "www.unsigned.lab.", dns.TypeA, nil)
		if len(got.Answer) != 1 || int64(got.Answer[0].Header().Ttl) != step.ttl {
			t.Errorf("at %d s: %v, want TTL %d", step.at, got.Answer, step.ttl)
		}
	}
}

// What has expired is served for as long as stale-limit says, which a reload changes; and not at all with
// serve-stale off, which also takes away what is cached of it.
func TestStaleLimit(t *testing.T) {
	const day, name = 86400, "www.unsigned.lab."
	now := time.Now().Unix()
	file := write(t, "clock", fmt.Sprint(now))
	d := start(t, func(c *Config) { c.ClockFile, c.StalePatience = file, 1 })
	reload := func(edit func(*Config)) {
		t.Helper()
		d.again(edit)
		if _, waiting, err := d.reload(); err != nil || len(waiting) > 0 {
			t.Fatalf("waiting for a restart: %q, %v", waiting, err)
		}
	}
	if got := query(t, d.addr(), "udp", name, dns.TypeA, nil); len(got.Answer) != 1 || got.Answer[0].Header().Ttl != 3600 {
		t.Fatalf("at first: %v", got)
	}
	reload(func(c *Config) { c.IPv4 = false }) // by which the lab's servers are reached
	for _, step := range []struct {
		at     int64 // seconds after the end
		edit   func(*Config)
		served bool
	}{
		{10, nil, true}, {day - 10, nil, true}, {day + 10, nil, false},
		{day + 20, func(c *Config) { c.StaleLimit = 3 * day }, true}, {3*day - 10, nil, true}, {3*day + 10, nil, false},
		{100, func(c *Config) { c.StaleLimit = day }, true},
		{200, func(c *Config) { c.ServeStale = false }, false}, {300, func(c *Config) { c.ServeStale = true }, true},
		{400, func(c *Config) { c.StaleLimit = 0 }, false},
	} {
		setClock(t, file, now+3600+step.at)
		if step.edit != nil {
			reload(step.edit)
		}
		got := query(t, d.addr(), "udp", name, dns.TypeA, nil)
		served := got.Rcode == dns.RcodeSuccess && len(got.Answer) == 1 && got.Answer[0].Header().Ttl == 30 && slices.Contains(ede(got), 3)
		if served != step.served || !served && got.Rcode != dns.RcodeServerFailure {
			t.Errorf("%d s after the end: %v", step.at, got)
		}
	}
}

// freeAddress returns an address that nothing listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// get reads a page of the metrics endpoint.
func get(t *testing.T, d *daemon, path string) (status int, body string) {
	t.Helper()
	return fetch(t, "http://"+d.metrics.Addr().String()+path)
}

// fetch reads a page.
func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(content)
}

// value finds a metric, with its labels as Prometheus writes them.
func value(t *testing.T, page, metric string) float64 {
	t.Helper()
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, metric+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Errorf("no metric %s", metric)
	return -1
}

func TestMetrics(t *testing.T) {
	d := start(t, nil)
	query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil)
	for range 3 {
		query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil)
	}
	query(t, d.addr(), "tcp", "nothing.ecdsa.lab.", dns.TypeA, nil)
	// A response is counted once it is sent: the client may be faster.
	counted := func() bool {
		_, page := get(t, d, metricsPath)
		return value(t, page, `bonsai_response_duration_seconds_count{path="miss"}`) == 2
	}
	for range 100 {
		if counted() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	status, page := get(t, d, metricsPath)
	if status != http.StatusOK {
		t.Fatal(status)
	}
	for metric, want := range map[string]float64{
		`bonsai_queries_total{transport="udp"}`:                        4,
		`bonsai_queries_total{transport="tcp"}`:                        1,
		`bonsai_responses_total{rcode="NOERROR"}`:                      4,
		`bonsai_responses_total{rcode="NXDOMAIN"}`:                     1,
		`bonsai_cache_lookups_total{result="hit"}`:                     3,
		`bonsai_cache_lookups_total{result="miss"}`:                    2,
		`bonsai_cache_lookups_total{result="stale"}`:                   0,
		`bonsai_response_duration_seconds_count{path="hit"}`:           3,
		`bonsai_response_duration_seconds_count{path="miss"}`:          2,
		`bonsai_cache_evictions_total{reason="unused"}`:                0,
		`bonsai_resolutions_inflight`:                                  0,
		`bonsai_upstream_timeouts_total`:                               0,
		`bonsai_build_info{version="` + versionNumber() + `"}`:         1,
		`bonsai_upstream_queries_total{family="ipv4",transport="tcp"}`: 0,
	} {
		if got := value(t, page, metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	for _, metric := range []string{"bonsai_cache_entries", "bonsai_cache_used_bytes", "bonsai_cache_capacity_bytes",
		"bonsai_cache_entry_bytes", "bonsai_cache_resident_bytes", `bonsai_cache_inserts_total{key="new"}`, "bonsai_upstream_rtt_seconds_count", "process_cpu_seconds_total",
		"process_resident_memory_bytes", "go_goroutines"} {
		if runtime.GOOS != "linux" && strings.HasPrefix(metric, "process_") {
			continue
		}
		if got := value(t, page, metric); got <= 0 {
			t.Errorf("%s is %v", metric, got)
		}
	}
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestReadyAndOtherPages(t *testing.T) {
	d := start(t, nil)
	query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil)
	if status, body := get(t, d, readyPath); status != http.StatusOK || body != "ready\n" {
		t.Errorf("%d %q", status, body)
	}
	if status, _ := get(t, d, "/"); status != http.StatusNotFound {
		t.Errorf("/ is %d", status)
	}
	r, err := http.Post("http://"+d.metrics.Addr().String()+metricsPath, "text/plain", nil)
	if err != nil || r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v, %v", r, err)
	}
	d.ready.Store(false)
	if status, _ := get(t, d, readyPath); status != http.StatusServiceUnavailable {
		t.Errorf("%d while stopping", status)
	}
}

// One client per transport, as people have them.
func TestDigAndKdig(t *testing.T) {
	d := start(t, nil)
	port := strconv.Itoa(int(d.addr().Port()))
	cases := []struct {
		name string
		args []string
		want []string
	}{
		{"dig", []string{"+notcp", "www.ecdsa.lab", "A", "+adflag"}, []string{"status: NOERROR", "ra ad", "203.0.113.80"}},
		{"dig", []string{"+tcp", "www.rsa.lab", "A", "+dnssec"}, []string{"status: NOERROR", "RRSIG"}},
		{"dig", []string{"big.ecdsa.lab", "TXT"}, []string{"status: NOERROR", "(TCP)"}},
		{"dig", []string{"www.bogus.lab", "A"}, []string{"status: SERVFAIL", "EDE: 6"}},
		{"dig", []string{"+tcp", "nothing.rsa.lab", "A"}, []string{"status: NXDOMAIN", "SOA"}},
		{"kdig", []string{"+notcp", "start.ed25519.lab", "A"}, []string{"status: NOERROR", "hop.rsa.lab.", "203.0.113.84"}},
		{"kdig", []string{"+tcp", "web.ecdsa.lab", "HTTPS"}, []string{"status: NOERROR", "alpn=h2,h3"}},
		{"kdig", []string{"+tcp", "+keepopen", "www.ecdsa.lab", "A", "www.ecdsa.lab", "AAAA"}, []string{"203.0.113.81", "2001:db8:80::1"}},
	}
	for _, c := range cases {
		t.Run(c.name+" "+strings.Join(c.args, " "), func(t *testing.T) {
			tool, err := exec.LookPath(c.name)
			if err != nil {
				t.Skipf("%s is not here", c.name)
			}
			out, err := exec.Command(tool, append([]string{"@127.0.0.1", "-p", port}, c.args...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, part := range c.want {
				if !strings.Contains(string(out), part) {
					t.Errorf("no %q in %s", part, out)
				}
			}
		})
	}
}

// delv validates by itself what the daemon passes on, down from the lab's anchor.
func TestDelvAgrees(t *testing.T) {
	tool, err := exec.LookPath("delv")
	if err != nil {
		t.Skip("delv is not here")
	}
	w, err := internet()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(w.Anchors())
	anchor := write(t, "anchor", fmt.Sprintf("trust-anchors { %q static-ds %s %s %s %q; };\n", fields[0], fields[4], fields[5], fields[6], fields[7]))
	d := start(t, nil)
	for _, c := range []struct{ name, qtype, want string }{
		{"www.ecdsa.lab", "A", "; fully validated"},
		{"any.wild.rsa.lab", "A", "; fully validated"},
		{"www.ed25519.lab", "A", "; fully validated"},
		{"nothing.rsa.lab", "A", "; negative response, fully validated"},
		{"www.ecdsa.lab", "MX", "; negative response, fully validated"},
		{"www.unsigned.lab", "A", "; unsigned answer"},
		{"www.plain.optout", "A", "; unsigned answer"},
		{"www.bogus.lab", "A", "resolution failed"},
		{"www.expired.lab", "A", "resolution failed"},
	} {
		t.Run(c.name+" "+c.qtype, func(t *testing.T) {
			out, _ := exec.Command(tool, "@127.0.0.1", "-p", strconv.Itoa(int(d.addr().Port())), "-a", anchor, "+root=.",
				c.name, c.qtype).CombinedOutput()
			if !strings.Contains(string(out), c.want) {
				t.Errorf("no %q in %s", c.want, out)
			}
		})
	}
}

// process is bonsai as a process of its own.
type process struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	lines  chan string // of standard error
	early  []string    // those until it was ready
}

// command prepares to run bonsai with arguments.
func bonsai(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asBonsai+"=1")
	return cmd
}

// launch starts bonsai and returns where it listens.
func launch(t *testing.T, args ...string) (p *process, at netip.AddrPort) {
	t.Helper()
	return launchCommand(t, bonsai(args...))
}

// launchRelease is launch for the binary of release.
func launchRelease(t *testing.T, args ...string) (p *process, at netip.AddrPort) {
	t.Helper()
	binary, err := release()
	if err != nil {
		t.Skipf("bonsai can't be built here: %v", err)
	}
	return launchCommand(t, exec.Command(binary, args...))
}

// launchCommand starts bonsai and returns where it listens.
func launchCommand(t *testing.T, cmd *exec.Cmd) (p *process, at netip.AddrPort) {
	t.Helper()
	p = &process{cmd: cmd, stderr: &bytes.Buffer{}, lines: make(chan string, 100)}
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(pipe); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	ready := regexp.MustCompile(`msg=ready listen=\[([^ \]]+:\d+)`)
	for line := range p.lines {
		if m := ready.FindStringSubmatch(line); m != nil {
			return p, netip.MustParseAddrPort(m[1])
		}
		p.early = append(p.early, line)
		t.Log(line)
	}
	t.Fatal("bonsai ended before it was ready")
	return nil, at
}

// silentHints are root hints whose only server is this machine, where nothing answers: the process
// asks nobody.
func silentHints(t *testing.T) string {
	return write(t, "named.root", ". NS a.root.\na.root. A 127.0.0.1\n")
}

func TestSignalsStopIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM there")
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			p, at := launch(t, "--listen", "127.0.0.1:0", "--root-hints", silentHints(t))
			if got := query(t, at, "udp", "localhost.", dns.TypeA, nil); got.Rcode != dns.RcodeSuccess {
				t.Errorf("localhost.: %v", got)
			}
			stopped := make(chan error, 1)
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			go func() { stopped <- p.cmd.Wait() }()
			select {
			case err := <-stopped:
				if err != nil {
					t.Errorf("%v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it goes on")
			}
			t.Logf("stopped in %v", time.Since(begin))
		})
	}
}

// A query under way when the daemon is told to stop gets its answer, or the daemon gives up on it.
func TestStopsUnderLoad(t *testing.T) {
	w, err := internet()
	if err != nil {
		t.Fatal(err)
	}
	c := defaults()
	c.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	if err := inLab(c, w); err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(c, w, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	conn, err := net.Dial("udp", d.addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := w.Queries()
	for id := range uint16(50) {
		m := new(dns.Msg)
		m.SetQuestion(fmt.Sprintf("%d.dead.lab.", id), dns.TypeA)
		packed, _ := m.Pack()
		if _, err := conn.Write(packed); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		if w.Queries() > before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	begin := time.Now()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	t.Logf("stopped in %v", time.Since(begin))
}

// What can't be started says why in one line, and exits with 1 and nothing left behind.
func TestFailsToStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	hints := silentHints(t)
	badYAML := write(t, "bonsai.yaml", "listen: 127.0.0.1:0\nlisten-on: x\n")
	badHints := write(t, "named.root", "nonsense\n")
	badAnchor := write(t, "anchor", ". DS 1 2\n")
	cases := []struct {
		name string
		args []string
		want []string
	}{
		{"port taken", []string{"--listen", taken.Addr().String(), "--root-hints", hints}, []string{taken.Addr().String()}},
		{"metrics port taken", []string{"--listen", "127.0.0.1:0", "--metrics", taken.Addr().String(), "--root-hints", hints}, []string{taken.Addr().String(), "metrics"}},
		{"no such address", []string{"--listen", "192.0.2.1:5353", "--root-hints", hints}, []string{"192.0.2.1:5353"}},
		{"unknown key", []string{"--config", badYAML}, []string{badYAML + ":2:", `"listen-on"`}},
		{"no file", []string{"--config", "/no/such.yaml"}, []string{"/no/such.yaml"}},
		{"hints", []string{"--root-hints", badHints}, []string{"--root-hints", badHints}},
		{"no hints", []string{"--root-hints", "/no/hints"}, []string{"--root-hints", "/no/hints"}},
		{"anchor", []string{"--trust-anchor", badAnchor}, []string{"--trust-anchor", badAnchor + ":1"}},
		{"clock", []string{"--clock-file", badHints}, []string{"--clock-file", badHints}},
		{"flag", []string{"--threads", "0"}, []string{"--threads", "from 1 to 1024"}},
		{"unknown flag", []string{"--lissen", "x"}, []string{"--lissen", "--listen"}},
		{"check", []string{"check", "--config", badYAML}, []string{badYAML + ":2:"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cmd := bonsai(c.args...)
			var out, errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("%v, not exit status 1", err)
			}
			if strings.Count(errOut.String(), "\n") != 1 || out.Len() != 0 {
				t.Errorf("not one line: %q %q", errOut.String(), out.String())
			}
			for _, part := range c.want {
				if !strings.Contains(errOut.String(), part) {
					t.Errorf("no %q in %q", part, errOut.String())
				}
			}
		})
	}
}

func TestCheckAndVersion(t *testing.T) {
	good := write(t, "bonsai.yaml", "listen: 127.0.0.1:53\ncache-size: 64MiB\n")
	out, err := bonsai("check", "--config", good).CombinedOutput()
	if err != nil || string(out) != good+": ok\n" {
		t.Errorf("check: %v, %s", err, out)
	}
	out, err = bonsai("--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "bonsai ") {
		t.Errorf("--version: %v, %s", err, out)
	}
	for _, args := range [][]string{{"--help"}, {"lab", "--help"}, {"check", "-h"}, {"ctl", "--help"}} {
		out, err = bonsai(args...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "bonsai ") {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	// What a thing does stands in a column of its own, below a long name, and on as many lines as it takes.
	for _, args := range [][]string{{"--help"}, {"ctl", "--help"}} {
		out, _ = bonsai(args...).CombinedOutput()
		_, list, _ := strings.Cut(string(out), "\n\n")
		for line := range strings.Lines(list) {
			line = strings.TrimSuffix(line, "\n")
			long := !strings.HasPrefix(line, "   ") && len(line) > 2+nameWidth+1 && line[2+nameWidth] != ' '
			if line != "" && (len(line) > helpWidth || !long && (len(line) < 2+nameWidth+2 || line[2+nameWidth] != ' ' || line[2+nameWidth+1] == ' ')) {
				t.Errorf("%v: %q", args, line)
			}
		}
	}
	out, _ = bonsai("ctl", "--help").CombinedOutput()
	all := strings.Join(strings.Fields(string(out)), " ")
	for _, c := range controlCommands {
		if !strings.Contains(all, strings.TrimSpace(c.name+" "+c.args)+" "+c.does) {
			t.Errorf("help of ctl has no %s: %s", c.name, out)
		}
	}
}

// An idle process is small. How soon the first answer comes is told, not judged: machines differ.
func TestIdle(t *testing.T) {
	if runtime.GOOS != "linux" || raceDetector {
		t.Skip("the figure is of Linux, without the race detector")
	}
	begin := time.Now()
	p, at := launch(t, "--listen", "127.0.0.1:0", "--root-hints", silentHints(t), "--metrics", "127.0.0.1:0")
	query(t, at, "udp", "localhost.", dns.TypeA, nil)
	t.Logf("first answer after %v", time.Since(begin))
	kib := resident(t, p)
	t.Logf("%d KiB resident", kib)
	if kib > mostIdle {
		t.Errorf("%d KiB resident, more than %d", kib, mostIdle)
	}
}

// mostIdle is what an idle process may have resident, in KiB.
const mostIdle = 25 << 10

// resident returns the memory of a process, in KiB. It is Linux's alone.
func resident(t *testing.T, p *process) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	kib, _ := strconv.Atoi(string(m[1]))
	return kib
}

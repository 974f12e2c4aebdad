package main

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// systemd's protocol, with this test as systemd: sockets handed over, readiness, signs of life, stopping.
func TestSupervised(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("systemd is Linux's")
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	stream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	// A query that comes before bonsai does waits in the socket.
	early, err := net.Dial("udp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	m := new(dns.Msg)
	m.SetQuestion("localhost.", dns.TypeA)
	packed, _ := m.Pack()
	if _, err := early.Write(packed); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(socketPath(t)), "notify")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	udp, err := packets.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := stream.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	// The shell's process becomes bonsai's, so that LISTEN_PID is right.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0], "--root-hints", silentHints(t))
	cmd.Env = append(os.Environ(), asBonsai+"=1", "LISTEN_FDS=2", "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=100000")
	cmd.ExtraFiles = []*os.File{udp, tcp}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	udp.Close()
	tcp.Close()
	await := func(state string) {
		t.Helper()
		buf := make([]byte, 256)
		notify.SetReadDeadline(time.Now().Add(30 * time.Second))
		for {
			n, err := notify.Read(buf)
			if err != nil {
				t.Fatalf("no %s: %v", state, err)
			}
			if string(buf[:n]) == state {
				return
			}
		}
	}
	await("READY=1")
	await("WATCHDOG=1")
	buf := make([]byte, 512)
	early.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := early.Read(buf); err != nil || n < 12 {
		t.Errorf("the early query: %d bytes, %v", n, err)
	}
	for network, addr := range map[string]net.Addr{"udp": packets.LocalAddr(), "tcp": stream.Addr()} {
		if got := query(t, netip.MustParseAddrPort(addr.String()), network, "localhost.", dns.TypeA, nil); len(got.Answer) != 1 {
			t.Errorf("over %s: %v", network, got)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await("STOPPING=1")
}

// Signs of life come twice in the time that systemd waits for one, and none comes while the parts that
// queries go through hang.
func TestWatchdogSeesHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		var signs atomic.Int64
		go func() {
			buf := make([]byte, 64)
			for {
				n, err := theirs.Read(buf)
				if err != nil {
					return
				}
				if string(buf[:n]) != "WATCHDOG=1" {
					t.Errorf("told %q", buf[:n])
				}
				signs.Add(1)
			}
		}()
		s := &supervisor{conn: ours, interval: 15 * time.Second}
		ctx, cancel := context.WithCancel(context.Background())
		healthy, hang := atomic.Bool{}, make(chan struct{})
		healthy.Store(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.watch(ctx, func() bool {
				if !healthy.Load() {
					<-hang // as at a lock that nobody gives back
				}
				return true
			})
		}()
		expect := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := signs.Swap(0); got != want {
				t.Errorf("%s: %d signs of life, want %d", when, got, want)
			}
		}
		time.Sleep(5*time.Minute + time.Second)
		expect("in five minutes", 20)
		healthy.Store(false)
		time.Sleep(5 * time.Minute)
		expect("while it hangs", 0)
		healthy.Store(true)
		close(hang)
		time.Sleep(time.Second)
		expect("free again", 2) // the one that hung, and one that was due meanwhile
		cancel()
		<-done
		theirs.Close()
	})
}

// distMetric finds metrics in a file of dist.
var distMetric = regexp.MustCompile(`\b(?:bonsai|process)_[a-z0-9_]+[a-z]`)

// Alerts and dashboard name metrics that there are, and promtool has nothing against the rules.
func TestDist(t *testing.T) {
	d := start(t, nil)
	query(t, d.addr(), "udp", "www.bogus.lab.", dns.TypeA, nil)
	query(t, d.addr(), "udp", "localhost.", dns.TypeA, nil) // a rule decides
	_, page := get(t, d, metricsPath)
	for _, name := range []string{"alerts.yaml", "dashboard.json"} {
		content, err := os.ReadFile(filepath.Join("dist", name))
		if err != nil {
			t.Fatal(err)
		}
		named := distMetric.FindAllString(string(content), -1)
		if len(named) < 7 {
			t.Errorf("%s names only %v", name, named)
		}
		for _, metric := range named {
			if base := strings.TrimSuffix(metric, "_bucket"); !strings.Contains(page, "# TYPE "+base+" ") {
				t.Errorf("%s names %s, which is no metric", name, metric)
			}
		}
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here")
	}
	if out, err := exec.Command(tool, "test", "rules", filepath.Join("dist", "alerts_test.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// slowServer is authoritative for all names, and takes its time.
type slowServer struct {
	addr  string
	asked sync.Map // of names: *atomic.Int64
}

func newSlowServer(t *testing.T, delay time.Duration) *slowServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowServer{addr: conn.LocalAddr().String()}
	ended := make(chan struct{})
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		n, _ := s.asked.LoadOrStore(strings.ToLower(q.Question[0].Name), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		select {
		case <-time.After(delay):
		case <-ended:
		}
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 3600}, A: net.IPv4(192, 0, 2, 1)}}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() {
		close(ended)
		_ = server.Shutdown()
	})
	return s
}

func (s *slowServer) times(name string) int64 {
	n, ok := s.asked.Load(name)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

// activated is bonsai behind systemd-socket-activate, over and over: the shell that starts one after the
// other keeps the socket, as systemd does.
type activated struct {
	cmd   *exec.Cmd
	at    netip.AddrPort
	lines chan string
}

const oneAfterTheOther = `for i in $(seq "$1"); do
	sh -c 'shift; echo "pid=$$" >&2; LISTEN_PID=$$ exec "$@"' sh "$@"
done`

func activate(t *testing.T, network string, times int, config string) *activated {
	t.Helper()
	need(t, "systemd-socket-activate")
	binary, err := release()
	if err != nil {
		t.Skip(err)
	}
	a := &activated{at: netip.MustParseAddrPort(freeAddress(t)), lines: make(chan string, 1000)}
	args := []string{"--listen", a.at.String(), "sh", "-c", oneAfterTheOther, "sh", strconv.Itoa(times), binary, "--config", config}
	if network == "udp" {
		args = append([]string{"--datagram"}, args...)
	}
	a.cmd = exec.Command("systemd-socket-activate", args...)
	pipe, err := a.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // shell and bonsai end along with it
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL); _ = a.cmd.Wait() })
	go func() {
		defer close(a.lines)
		for s := bufio.NewScanner(pipe); s.Scan(); {
			a.lines <- s.Text()
		}
	}()
	a.await(t, `^Listening on`)
	return a
}

// await returns what the expression's group is in the next line that it fits.
func (a *activated) await(t *testing.T, expression string) string {
	t.Helper()
	form := regexp.MustCompile(expression)
	late := time.After(time.Minute)
	for {
		select {
		case line, ok := <-a.lines:
			if !ok {
				t.Fatalf("it ended before %s", expression)
			}
			if m := form.FindStringSubmatch(line); m != nil {
				return m[len(m)-1]
			}
			if strings.Contains(line, "level=ERROR") {
				t.Error(line)
			}
		case <-late:
			t.Fatalf("no %s", expression)
		}
	}
}

// clients ask without end: half for names that are known, half for new ones that are slow to be had.
type clients struct {
	answered, closed atomic.Int64
	failed           chan error
	stop             context.CancelFunc
	wait             sync.WaitGroup
}

// ask lets n clients ask one question after the other, each waited for for long and sent once. A TCP
// connection that is closed without a response is opened once more (RFC 7766 §6.2.4).
func ask(network string, at netip.AddrPort, n int) *clients {
	ctx, cancel := context.WithCancel(context.Background())
	c := &clients{failed: make(chan error, n), stop: cancel}
	for id := range n {
		c.wait.Go(func() {
			client := &dns.Client{Net: network, Timeout: 30 * time.Second}
			for i := 0; ctx.Err() == nil; i++ {
				m := new(dns.Msg)
				m.SetQuestion("known.slow.example.", dns.TypeA)
				if id%2 == 0 {
					m.SetQuestion(fmt.Sprintf("n%d-%d.slow.example.", id, i), dns.TypeA)
				}
				got, _, err := client.Exchange(m, at.String())
				if network == "tcp" && err != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
					c.closed.Add(1)
					got, _, err = client.Exchange(m, at.String())
				}
				if err != nil || got.Rcode != dns.RcodeSuccess || len(got.Answer) != 1 {
					c.failed <- fmt.Errorf("%s: %v, %v", m.Question[0].Name, got, err)
					return
				}
				c.answered.Add(1)
			}
		})
	}
	return c
}

// more waits until as many more are answered.
func (c *clients) more(t *testing.T, n int64) {
	t.Helper()
	for goal := c.answered.Load() + n; c.answered.Load() < goal; {
		select {
		case err := <-c.failed:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
}

// Over upgrades that systemd keeps the socket for no query is lost, and what was cached is not asked for
// again.
func TestUpgradeLosesNothing(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			const upgrades = 4
			server := newSlowServer(t, 50*time.Millisecond)
			s := newSite(t)
			s.write(t, "etc/bonsai.yaml", "root-hints: named.root\ndnssec: off\nquery-localhost: true\ncache-file: ../state/cache\n"+
				"stub-zones:\n  - name: slow.example\n    addrs: ['"+server.addr+"']\n")
			a := activate(t, network, upgrades+1, s.config)
			c := ask(network, a.at, 8)
			defer c.wait.Wait()
			defer c.stop()
			for i := range upgrades {
				pid, err := strconv.Atoi(a.await(t, `^pid=(\d+)`))
				if err != nil {
					t.Fatal(err)
				}
				a.await(t, `msg=ready`)
				c.more(t, 100)
				begin := time.Now()
				if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				a.await(t, `msg="cache saved"`)
				t.Logf("upgrade %d: stopped and saved in %v", i, time.Since(begin).Round(time.Millisecond))
			}
			a.await(t, `msg=ready`)
			c.more(t, 100)
			c.stop()
			c.wait.Wait()
			select {
			case err := <-c.failed:
				t.Error(err)
			default:
			}
			if n := server.times("known.slow.example."); n != 1 {
				t.Errorf("what was cached was asked for %d times", n)
			}
			t.Logf("%d queries answered over %d upgrades; %d connections closed without a response and opened again", c.answered.Load(), upgrades, c.closed.Load())
		})
	}
}

// Told to stop while more than it can ever answer is under way, the process ends by itself, in order and in
// the five seconds that are promised; how long it took is told.
func TestTerminatesUnderLoad(t *testing.T) {
	server := newSlowServer(t, time.Hour) // silent
	s := newSite(t)
	s.configure(t, "dnssec: off\nquery-localhost: true\nstub-zones:\n  - name: slow.example\n    addrs: ['"+server.addr+"']\n")
	p, at := launchRelease(t, "--config", s.config)
	const queries = 300 // half of them over TCP, of which one client may have 200
	var conns []net.Conn
	for i := range queries {
		conn, err := net.Dial([]string{"udp", "tcp"}[i%2], at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		m := new(dns.Msg)
		m.SetQuestion(fmt.Sprintf("n%d.slow.example.", i), dns.TypeA)
		if err := (&dns.Conn{Conn: conn}).WriteMsg(m); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for try := 0; !strings.Contains(mustCtl(t, s.path("state/control"), nil, "status"), fmt.Sprintf("resolutions inflight     %d\n", queries)); try++ {
		if try == 300 {
			t.Fatalf("the queries are not under way: %s", mustCtl(t, s.path("state/control"), nil, "status"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	begin := time.Now()
	p.stop(t)
	took := time.Since(begin)
	t.Logf("stopped %v after SIGTERM, with %d queries under way", took.Round(time.Millisecond), queries)
	if took > time.Minute {
		t.Error("it did not end by itself")
	}
}

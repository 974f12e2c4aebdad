package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// server is a resolver in a process of its own that answers at addr.
type server struct {
	cmd    *exec.Cmd
	addr   netip.AddrPort
	exited chan struct{} // closed when the process has ended
}

// startTimeout is how long a resolver may take to answer, and to take a list anew.
const startTimeout = 10 * time.Minute

// serveAt starts a resolver that listens at addr and waits until probe is answered with rcode. It returns how
// long that took.
func serveAt(addr netip.AddrPort, probe string, rcode int, program string, args ...string) (*server, time.Duration, error) {
	s := &server{cmd: exec.Command(program, args...), addr: addr, exited: make(chan struct{})}
	var said bytes.Buffer // told where it does not come up
	s.cmd.Stderr = &said
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, 0, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	took, err := s.await(begin, probe, rcode)
	if err != nil {
		s.stop()
		err = fmt.Errorf("%w: %s", err, said.Bytes())
	}
	return s, took, err
}

// await asks for a name until the answer has an RCODE, and returns the time since begin.
func (s *server) await(begin time.Time, name string, rcode int) (time.Duration, error) {
	c := &dns.Client{Timeout: 100 * time.Millisecond}
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	for time.Since(begin) < startTimeout {
		if got, _, err := c.Exchange(m, s.addr.String()); err == nil && got.Rcode == rcode {
			return time.Since(begin), nil
		}
		select {
		case <-s.exited:
			return 0, fmt.Errorf("%s ended", s.cmd.Path)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return 0, fmt.Errorf("%s does not answer for %s with %s", s.cmd.Path, name, dns.RcodeToString[rcode])
}

// once asks one question and holds the answer against what is right.
func (s *server) once(q asked) error {
	m := new(dns.Msg)
	if err := m.Unpack(q.query); err != nil {
		return err
	}
	got, _, err := (&dns.Client{Timeout: patience}).Exchange(m, s.addr.String())
	if err == nil && got.Rcode != q.rcode {
		err = fmt.Errorf("%s: %s", m.Question[0].Name, dns.RcodeToString[got.Rcode])
	}
	return err
}

// reload makes the resolver read its files anew.
func (s *server) reload() error { return s.cmd.Process.Signal(syscall.SIGHUP) }

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// freeAddr returns an address of this machine at which nobody listens.
func freeAddr() (netip.AddrPort, error) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer c.Close()
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(c.LocalAddr().(*net.UDPAddr).Port)), nil
}

// asked is a question and the RCODE that is right.
type asked struct {
	query []byte
	rcode int
}

func newAsked(name string, rcode int) asked {
	query, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	if err != nil {
		panic(err)
	}
	return asked{query, rcode}
}

// patience is how long a query may take before it is lost.
const patience = 5 * time.Second

// load is queries at a steady rate, and what became of them.
type load struct {
	conn     *net.UDPConn
	list     []asked // as many as divide the number of IDs
	rate     int     // queries a second
	sent     [ids]atomic.Int64
	stop     atomic.Bool
	ended    chan struct{} // closed when the sender has ended
	total    int           // sent, for who waits for the end
	read     chan struct{} // closed when the receiver has ended
	answered atomic.Int64
	latency  []time.Duration
	wrong    int
}

// ids is how many IDs queries have.
const ids = 1 << 16

// readBuffer is for what comes at once after a stall, in bytes: what does not fit is no loss of the server's.
const readBuffer = 4 << 20

// begin sends queries of the list in turn until the load is ended. A patience holds fewer than there are IDs.
func (s *server) begin(list []asked, rate int) (*load, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.addr))
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(readBuffer)
	l := &load{conn: conn, list: list, rate: rate, ended: make(chan struct{}), read: make(chan struct{})}
	go l.send()
	go l.receive()
	return l, nil
}

func (l *load) send() {
	defer close(l.ended)
	query, begin := make([]byte, 0, 512), time.Now()
	for !l.stop.Load() {
		due := int(time.Since(begin).Seconds() * float64(l.rate))
		for ; l.total < due; l.total++ {
			query = append(query[:0], l.list[l.total%len(l.list)].query...)
			query[0], query[1] = byte(l.total>>8), byte(l.total)
			l.sent[l.total%ids].Store(time.Now().UnixNano())
			_, _ = l.conn.Write(query) // what is not sent is lost
		}
		time.Sleep(time.Millisecond)
	}
}

func (l *load) receive() {
	defer close(l.read)
	response := make([]byte, 4096)
	for {
		n, err := l.conn.Read(response)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || n < 12:
			continue // such as an ICMP message while nobody listens
		}
		id := int(response[0])<<8 | int(response[1])
		sent := l.sent[id].Swap(0)
		if sent == 0 {
			continue // a second one
		}
		l.latency = append(l.latency, time.Duration(time.Now().UnixNano()-sent))
		if int(response[3]&0xF) != l.list[id%len(l.list)].rcode {
			l.wrong++
		}
		l.answered.Add(1)
	}
}

// outcome is what became of queries.
type outcome struct {
	asked, lost, wrong int
	p50, p99, longest  time.Duration
}

// end waits for the last responses.
func (l *load) end() outcome {
	l.stop.Store(true)
	<-l.ended
	for last := time.Now().Add(patience); int(l.answered.Load()) < l.total && time.Now().Before(last); {
		time.Sleep(time.Millisecond)
	}
	l.conn.Close()
	<-l.read
	o := outcome{asked: l.total, wrong: l.wrong}
	l.latency = slices.DeleteFunc(l.latency, func(d time.Duration) bool { return d > patience })
	o.lost = l.total - len(l.latency)
	if n := len(l.latency); n > 0 {
		slices.Sort(l.latency)
		o.p50, o.p99, o.longest = l.latency[n/2], l.latency[n*99/100], l.latency[n-1]
	}
	return o
}

package exchange

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// fakeNet is a Transport to scripted servers in memory. All of it works in a bubble of
// testing/synctest.
type fakeNet struct {
	t       *testing.T
	mu      sync.Mutex
	servers map[netip.AddrPort]*fakeServer
	dialErr map[bool]error // by family, true for IPv4: what the system says to every dial
	ports   []uint16       // local ports of UDP dials
	locals  []netip.Addr
	open    int // TCP connections
	dials   int // of TCP
	sockets []*fakeUDP
	reuse   bool // UDP sockets may be reused
	served  sync.WaitGroup
}

// fakeServer is one scripted server. Its functions get the raw query and return raw messages; none
// is silence.
type fakeServer struct {
	udp   func(q []byte) [][]byte
	tcp   func(q []byte) [][]byte
	delay time.Duration
	// perConn closes a TCP connection after so many queries; 0: never.
	perConn int
	// refuse makes TCP dials fail, hang makes them wait.
	refuse, hang bool
	// icmp makes UDP reads fail, as an ICMP port unreachable does.
	icmp bool
	// tls makes TCP connections TLS.
	tls *tls.Config

	net      *fakeNet
	mu       sync.Mutex
	udpSeen  [][]byte
	tcpSeen  [][]byte
	udpTimes []time.Time
}

func newFakeNet(t *testing.T) *fakeNet {
	n := &fakeNet{t: t, servers: map[netip.AddrPort]*fakeServer{}, dialErr: map[bool]error{}}
	return n
}

func addr(s string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(s), 53) }

func (n *fakeNet) add(a string, s *fakeServer) *fakeServer {
	s.net = n
	n.servers[addr(a)] = s
	return s
}

// client makes a Client on the fake net that ends with the test.
func (n *fakeNet) client(config Config) *Client {
	config.Transport = n
	c := New(config)
	n.t.Cleanup(c.Close)
	return c
}

func (n *fakeNet) server(server netip.AddrPort) (*fakeServer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.dialErr[server.Addr().Is4()]; err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	if s := n.servers[server]; s != nil {
		return s, nil
	}
	return &fakeServer{net: n}, nil // nobody there: silence
}

func (n *fakeNet) DialUDP(_ context.Context, local, server netip.AddrPort) (net.Conn, error) {
	s, err := n.server(server)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.ports = append(n.ports, local.Port())
	n.locals = append(n.locals, local.Addr())
	u := &fakeUDP{server: s, in: make(chan []byte, 64), changed: make(chan struct{}, 1)}
	n.sockets = append(n.sockets, u)
	n.mu.Unlock()
	if n.reuse {
		return reusableUDP{u}, nil
	}
	return u, nil
}

type reusableUDP struct{ *fakeUDP }

func (reusableUDP) Reusable() {}

// openSockets counts the UDP sockets that are not closed.
func (n *fakeNet) openSockets() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range n.sockets {
		u.mu.Lock()
		if !u.closed {
			count++
		}
		u.mu.Unlock()
	}
	return count
}

func (n *fakeNet) DialTCP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	s, err := n.server(server)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.dials++
	n.mu.Unlock()
	s.mu.Lock()
	hang, refuse := s.hang, s.refuse || s.tcp == nil && s.udp == nil
	s.mu.Unlock()
	switch {
	case hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case refuse:
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	ours, theirs := net.Pipe()
	if s.tls != nil {
		theirs = tls.Server(newBuffered(theirs), s.tls)
	}
	n.mu.Lock()
	n.open++
	n.mu.Unlock()
	n.served.Go(func() {
		s.serve(theirs)
		n.mu.Lock()
		n.open--
		n.mu.Unlock()
	})
	return ours, nil
}

// serve answers on one connection, each query after the server's delay, in order of readiness.
func (s *fakeServer) serve(conn net.Conn) {
	var writes sync.Mutex
	var replies sync.WaitGroup
	defer conn.Close()
	defer replies.Wait()
	for i := 1; ; i++ {
		var prefix [2]byte
		if _, err := io.ReadFull(conn, prefix[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(prefix[:]))
		if _, err := io.ReadFull(conn, q); err != nil {
			return
		}
		s.mu.Lock()
		s.tcpSeen = append(s.tcpSeen, q)
		answer := s.tcp
		if answer == nil {
			answer = s.udp
		}
		delay, last := s.delay, i == s.perConn
		s.mu.Unlock()
		replies.Go(func() {
			time.Sleep(delay)
			for _, m := range answer(q) {
				writes.Lock()
				_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
				writes.Unlock()
			}
		})
		if last {
			return
		}
	}
}

// set changes the script.
func (s *fakeServer) set(f func(s *fakeServer)) {
	s.mu.Lock()
	f(s)
	s.mu.Unlock()
}

func (s *fakeServer) counts() (udp, tcp int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.udpSeen), len(s.tcpSeen)
}

// fakeUDP is a connected datagram socket.
type fakeUDP struct {
	net.Conn // nil: only the methods below are used
	server   *fakeServer
	in       chan []byte
	changed  chan struct{}
	mu       sync.Mutex
	deadline time.Time
	closed   bool
	waiting  bool // for a response
	overlaps int  // queries sent while another was waiting
}

func (u *fakeUDP) Write(q []byte) (int, error) {
	s := u.server
	q = append([]byte(nil), q...)
	u.mu.Lock()
	if u.waiting {
		u.overlaps++
	}
	u.waiting = true
	u.mu.Unlock()
	s.mu.Lock()
	s.udpSeen = append(s.udpSeen, q)
	s.udpTimes = append(s.udpTimes, time.Now())
	answer, delay, icmp := s.udp, s.delay, s.icmp
	s.mu.Unlock()
	if icmp {
		time.AfterFunc(delay, func() { u.in <- nil })
		return len(q), nil
	}
	if answer != nil {
		time.AfterFunc(delay, func() {
			for _, m := range answer(q) {
				if m == nil {
					m = []byte{}
				}
				select {
				case u.in <- m:
				default: // the socket's buffer is full
				}
			}
		})
	}
	return len(q), nil
}

func (u *fakeUDP) Read(b []byte) (int, error) {
	for {
		u.mu.Lock()
		wait, closed := time.Until(u.deadline), u.closed
		u.mu.Unlock()
		if closed {
			return 0, net.ErrClosed
		}
		if wait <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(wait)
		select {
		case m := <-u.in:
			timer.Stop()
			u.mu.Lock()
			u.waiting = false
			u.mu.Unlock()
			if m == nil {
				return 0, os.NewSyscallError("read", syscall.ECONNREFUSED)
			}
			return copy(b, m), nil
		case <-u.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (u *fakeUDP) SetReadDeadline(t time.Time) error {
	u.mu.Lock()
	u.deadline = t
	u.mu.Unlock()
	select {
	case u.changed <- struct{}{}:
	default:
	}
	return nil
}

func (u *fakeUDP) SetDeadline(t time.Time) error { return u.SetReadDeadline(t) }

func (u *fakeUDP) Close() error {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	return nil
}

// A reaction makes messages of a query.
type reaction func(q []byte) [][]byte

// reply is a plain answer of one A record, changed by edit.
func reply(edit ...func(m *dns.Msg)) reaction {
	return func(q []byte) [][]byte { return [][]byte{answerTo(q, edit...)} }
}

// raw is reply with its bytes changed at the end.
func raw(edit func(b []byte) []byte, edits ...func(m *dns.Msg)) reaction {
	return func(q []byte) [][]byte { return [][]byte{edit(answerTo(q, edits...))} }
}

func answerTo(q []byte, edit ...func(m *dns.Msg)) []byte {
	var query dns.Msg
	if err := query.Unpack(q); err != nil {
		panic(err)
	}
	m := new(dns.Msg).SetReply(&query)
	m.Authoritative = true
	if m.Question[0].Qtype == dns.TypeA {
		m.Answer = append(m.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
			A:   net.IPv4(192, 0, 2, 1),
		})
	}
	if query.IsEdns0() != nil {
		m.SetEdns0(1232, true)
	}
	for _, f := range edit {
		f(m)
	}
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func noOPT(m *dns.Msg) { m.Extra = nil }

func rcode(code int) func(m *dns.Msg) {
	return func(m *dns.Msg) {
		m.Rcode = code // the upper bits go into the OPT
		m.Answer = nil
	}
}

func hasOPT(q []byte) bool {
	var m wire.Message
	return m.Parse(q) == nil && m.EDNS.Present
}

// ask is one A question to a server.
func ask(server, name string) *Ask {
	return &Ask{Server: addr(server), Zone: wire.MustName("example."), Name: wire.MustName(name), Type: wire.TypeA}
}

// mustDo asks and wants an answer.
func mustDo(t *testing.T, c *Client, a *Ask) *Reply {
	t.Helper()
	r, err := c.Do(context.Background(), a)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	return r
}

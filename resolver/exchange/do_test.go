package exchange

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// listen starts a server on loopback sockets, UDP and TCP on one port. Each query is answered with
// what answer makes of it, and client told of each datagram's sender, one at a time.
func listen(t testing.TB, host string, answer reaction, client func(netip.AddrPort)) netip.AddrPort {
	var mu sync.Mutex
	var u net.PacketConn
	var l net.Listener
	for try := 0; l == nil; try++ {
		var err error
		if u, err = net.ListenPacket("udp", net.JoinHostPort(host, "0")); err != nil {
			t.Skipf("no loopback socket: %v", err)
		}
		if l, err = net.Listen("tcp", u.LocalAddr().String()); err != nil {
			_ = u.Close()
			if try == 20 {
				t.Fatalf("no port is free for both UDP and TCP: %v", err)
			}
		}
	}
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		b, _ := q.Pack()
		mu.Lock()
		defer mu.Unlock()
		for _, m := range answer(b) {
			_, _ = w.Write(m)
		}
	})}
	done := make(chan struct{}, 2)
	go func() { _ = s.ActivateAndServe(); done <- struct{}{} }()
	go func() {
		defer func() { done <- struct{}{} }()
		b := make([]byte, 2048)
		for {
			n, from, err := u.(*net.UDPConn).ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			mu.Lock()
			client(from)
			for _, m := range answer(b[:n]) {
				_, _ = u.(*net.UDPConn).WriteToUDPAddrPort(m, from)
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = u.Close()
		_ = l.Close()
		<-done
		<-done
	})
	return netip.MustParseAddrPort(u.LocalAddr().String())
}

func loopbackAsk(server netip.AddrPort) *Ask {
	return &Ask{Server: server, Zone: wire.MustName("example."), Name: wire.MustName("www.example."), Type: wire.TypeA}
}

// TestLoopback asks over the system's own sockets.
func TestLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, tcp := range []bool{false, true} {
			from := make(chan uint16, 100)
			server := listen(t, host, reply(), func(a netip.AddrPort) { from <- a.Port() })
			c := New(Config{QueryLocalhost: true, ExcludedPorts: []PortRange{{1024, 40000}}})
			for range 20 {
				a := loopbackAsk(server)
				a.TCP = tcp
				r, err := c.Do(context.Background(), a)
				if err != nil {
					t.Fatalf("%s, TCP %v: %v", host, tcp, err)
				}
				if len(r.Records) != 1 || r.Records[0].Type != wire.TypeA || r.TCP != tcp || !r.EDNS || r.RTT <= 0 || r.Server != server {
					t.Errorf("got %+v", r)
				}
				if cap(r.Message.Bytes) > len(r.Message.Bytes) {
					t.Errorf("%d bytes in room for %d", len(r.Message.Bytes), cap(r.Message.Bytes))
				}
			}
			c.Close()
			ports := map[uint16]bool{}
			for len(from) > 0 {
				ports[<-from] = true
			}
			for port := range ports {
				if port <= 40000 {
					t.Errorf("sent from port %d, which is excluded", port)
				}
			}
			if !tcp && len(ports) < 15 {
				t.Errorf("20 queries came from %d ports", len(ports))
			}
		}
	}
}

// TestLoopbackTruncated goes from UDP to TCP on real sockets.
func TestLoopbackTruncated(t *testing.T) {
	seen := 0
	server := listen(t, "127.0.0.1", func(q []byte) [][]byte {
		if seen++; seen == 1 {
			return truncatedReply(q)
		}
		return reply()(q)
	}, func(netip.AddrPort) {})
	c := New(Config{QueryLocalhost: true, Outgoing: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	defer c.Close()
	r, err := c.Do(context.Background(), loopbackAsk(server))
	if err != nil || !r.TCP {
		t.Fatalf("got %+v, %v", r, err)
	}
}

// TestLoopbackRefused: a closed port is told by ICMP, at once.
func TestLoopbackRefused(t *testing.T) {
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback socket: %v", err)
	}
	server := netip.MustParseAddrPort(u.LocalAddr().String())
	_ = u.Close()
	c := New(Config{QueryLocalhost: true})
	defer c.Close()
	_, err = c.Do(context.Background(), loopbackAsk(server))
	if !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	a := loopbackAsk(server)
	a.TCP = true
	if _, err = c.Do(context.Background(), a); !errors.Is(err, ErrUnreachable) {
		t.Errorf("over TCP: got %v", err)
	}
}

// TestLoopbackEmpty: an empty datagram is a mismatch, not the end of a file.
func TestLoopbackEmpty(t *testing.T) {
	seen := 0
	server := listen(t, "127.0.0.1", func(q []byte) [][]byte {
		if seen++; seen == 1 {
			return [][]byte{{}}
		}
		return reply()(q)
	}, func(netip.AddrPort) {})
	c := New(Config{QueryLocalhost: true})
	defer c.Close()
	r, err := c.Do(context.Background(), loopbackAsk(server))
	if err != nil || !r.TCP || c.Stats().Mismatches != 1 {
		t.Fatalf("got %+v, %v, %+v", r, err, c.Stats())
	}
}

// TestSocket holds the methods of a net.Conn that Do has no use for.
func TestSocket(t *testing.T) {
	server := listen(t, "127.0.0.1", reply(), func(netip.AddrPort) {})
	conn, err := openUDP(netip.MustParseAddrPort("127.0.0.1:0"), server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	local := netip.MustParseAddrPort(conn.LocalAddr().String())
	if conn.RemoteAddr().String() != server.String() || local.Addr() != server.Addr() || local.Port() == 0 {
		t.Errorf("got %v and %v, want loopback and %v", conn.LocalAddr(), conn.RemoteAddr(), server)
	}
	if _, err := openUDP(local, server); !isPortTaken(err) {
		t.Errorf("a port in use: got %v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := conn.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: got %v", err)
	}
}

// flipQR answers with the query itself, as the cheapest server there is.
func flipQR(q []byte) [][]byte {
	q[2] |= 0x80
	return [][]byte{q}
}

// TestDoAllocs bounds what one question costs in memory.
func TestDoAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	n := &instantNet{}
	c := New(Config{Transport: n, Cookies: true})
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := ask("192.0.2.53", "www.example.")
	got := testing.AllocsPerRun(1000, func() {
		if _, err := c.Do(ctx, a); err != nil {
			t.Fatal(err)
		}
	})
	if got > 2 { // the Reply and its bytes
		t.Errorf("got %v allocations, want 2", got)
	}
	got = testing.AllocsPerRun(1000, func() {
		r, err := c.Do(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		c.Release(r)
	})
	if got > 1 {
		t.Errorf("with Release: got %v allocations, want 1", got)
	}
}

// instantNet answers each query in place, with the query itself.
type instantNet struct{ conn instantConn }

func (n *instantNet) DialUDP(context.Context, netip.AddrPort, netip.AddrPort) (net.Conn, error) {
	return &n.conn, nil
}

func (n *instantNet) DialTCP(context.Context, netip.AddrPort, netip.AddrPort) (net.Conn, error) {
	return nil, net.ErrClosed
}

type instantConn struct {
	net.Conn
	answer func(q []byte) []byte
	buf    [512]byte
	n      int
}

func (i *instantConn) Write(b []byte) (int, error) {
	if i.answer != nil {
		i.n = copy(i.buf[:], i.answer(b))
		return len(b), nil
	}
	i.n = copy(i.buf[:], b)
	i.buf[2] |= 0x80
	return i.n, nil
}
func (i *instantConn) Read(b []byte) (int, error)      { return copy(b, i.buf[:i.n]), nil }
func (i *instantConn) SetReadDeadline(time.Time) error { return nil }
func (i *instantConn) Close() error                    { return nil }

func BenchmarkDo(b *testing.B) {
	b.Run("instant", func(b *testing.B) {
		c := New(Config{Transport: &instantNet{}, Cookies: true})
		defer c.Close()
		a := ask("192.0.2.53", "www.example.")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(context.Background(), a); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("loopback", func(b *testing.B) {
		benchmarkLoopback(b, wire.MustName("an-example."))
	})
	// A zone of so few letters that each query has a socket of its own.
	b.Run("loopback, own socket", func(b *testing.B) {
		benchmarkLoopback(b, wire.MustName("a-1."))
	})
}

// benchmarkLoopback has the server's share in it.
func benchmarkLoopback(b *testing.B, zone wire.Name) {
	server := listen(b, "127.0.0.1", flipQR, func(netip.AddrPort) {})
	c := New(Config{QueryLocalhost: true})
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := &Ask{Server: server, Zone: zone, Name: "\x08somewhat" + zone, Type: wire.TypeA}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Do(ctx, a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	c := New(Config{Transport: &instantNet{}})
	defer c.Close()
	var servers []netip.AddrPort
	for i := range 26 {
		s := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), 53)
		servers = append(servers, s)
		_, _ = c.Do(context.Background(), loopbackAsk(s))
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Choose(wire.Root, servers, nil)
	}
}

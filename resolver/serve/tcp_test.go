package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// stream is a client's end of a TCP connection.
type stream struct {
	t testing.TB
	net.Conn
}

func dialTCP(t testing.TB, to netip.AddrPort) stream {
	t.Helper()
	nc, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { nc.Close() })
	return stream{t, nc}
}

func (c stream) send(messages ...[]byte) {
	c.t.Helper()
	var all []byte
	for _, m := range messages {
		all = append(all, frame(m)...)
	}
	if _, err := c.Write(all); err != nil {
		c.t.Fatal(err)
	}
}

func (c stream) receive() []byte {
	c.t.Helper()
	m, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c stream) read() ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	m := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(c, m)
	return m, err
}

// closed fails unless the server has closed the connection with nothing more to read.
func (c stream) closed() {
	c.t.Helper()
	if m, err := c.read(); err == nil {
		c.t.Errorf("got %x, want the connection closed", m)
	} else if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		c.t.Errorf("got %v, want the connection closed", err)
	}
}

// tcpCases hold for the path that tries sockets, and for the one that any net.Conn can take.
var tcpCases = []struct {
	name   string
	listen string
	config Config
	gated  bool
	run    func(*testing.T, *Server, *scripted, netip.AddrPort)
}{
	{name: "one by one", listen: "127.0.0.1", run: testTCPOneByOne},
	{name: "over IPv6", listen: "::1", run: testTCPOneByOne},
	{name: "wildcard of both families", listen: "::", run: testTCPSeen},
	{name: "what the handler sees", listen: "127.0.0.1", run: testTCPSeen},
	{name: "pipelined", listen: "127.0.0.1", run: testTCPPipelined},
	{name: "out of order", listen: "127.0.0.1", gated: true, run: testTCPOutOfOrder},
	{name: "byte by byte", listen: "127.0.0.1", run: testTCPByteByByte},
	{name: "long messages", listen: "127.0.0.1", run: testTCPLong},
	{name: "silence", listen: "127.0.0.1", run: testTCPSilence},
	{name: "not DNS", listen: "127.0.0.1", run: testTCPNotDNS},
	{name: "shed", listen: "127.0.0.1", config: Config{MaxInflight: 3}, gated: true, run: testTCPShed},
	{name: "misses in flight", listen: "127.0.0.1", config: Config{MaxTCPInflight: 4}, gated: true, run: testTCPInflight},
	{name: "half closed", listen: "127.0.0.1", gated: true, run: testTCPHalfClosed},
	{name: "never reads", listen: "127.0.0.1", config: Config{TCPWrite: 50 * time.Millisecond}, run: testTCPNeverReads},
}

func TestTCP(t *testing.T) {
	for _, path := range paths {
		for _, tc := range tcpCases {
			t.Run(path.name+"/"+tc.name, func(t *testing.T) {
				h := &scripted{}
				if tc.gated {
					h.gate = make(chan struct{})
				}
				c := tc.config
				c.Portable = path.portable
				c.Listen = []netip.AddrPort{local(t, tc.listen)}
				s := start(t, c, h)
				to := s.Addrs()[0]
				if to.Addr().IsUnspecified() {
					to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
				}
				tc.run(t, s, h, to)
			})
		}
	}
}

func testTCPOneByOne(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	for i, label := range []string{"hit", "miss", "big", "hit"} {
		q := query(uint16(i), label)
		c.send(q)
		checkEcho(t, c.receive()[:len(q)], q)
	}
	if got, want := s.Stats().TCP, (Flow{Queries: 4, Responses: 4, Hits: 3, Misses: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	c.Close()
	eventually(t, "the connection is forgotten", func() bool {
		st := s.Stats()
		return st.Connections == ConnectionStats{Accepted: 1} && st.HitTime.Count() == 3 && st.MissTime.Count() == 1
	})
}

func testTCPSeen(t *testing.T, _ *Server, h *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	q := query(1, "hit")
	c.send(q)
	c.receive()
	want := Exchange{Query: q, Client: addrPortOf(c.LocalAddr()), Local: to.Addr(), Transport: TCP, Keepalive: 100}
	if seen := h.exchanges(); len(seen) != 1 || fmt.Sprint(seen[0]) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

func testTCPPipelined(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	var queries [][]byte
	for i := range uint16(1000) {
		queries = append(queries, query(i, fmt.Sprintf("hit-%d", i)))
	}
	c.send(queries...)
	for _, q := range queries {
		checkEcho(t, c.receive(), q) // hits keep their order
	}
	if got, want := s.Stats().TCP, (Flow{Queries: 1000, Responses: 1000, Hits: 1000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func testTCPOutOfOrder(t *testing.T, _ *Server, h *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	c.send(query(1, "miss"), query(2, "hit"), query(3, "miss"), query(4, "hit"))
	for _, id := range []uint16{2, 4} {
		checkEcho(t, c.receive(), query(id, "hit"))
	}
	close(h.gate)
	got := []uint16{idOf(c.receive()), idOf(c.receive())}
	if slices.Sort(got); !slices.Equal(got, []uint16{1, 3}) {
		t.Errorf("got answers to %v, want 1 and 3", got)
	}
}

func testTCPByteByByte(t *testing.T, _ *Server, _ *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	q, r := query(1, "hit"), query(2, "miss")
	for _, b := range append(frame(q), frame(r)...) {
		c.Write([]byte{b})
	}
	checkEcho(t, c.receive(), q)
	checkEcho(t, c.receive(), r)
}

func testTCPLong(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	for _, label := range []string{"hit", "miss"} {
		for _, size := range []int{readSize - 3, readSize - 2, readSize - 1, readSize, 1<<16 - 1} {
			long := append(query(1, label), make([]byte, size)...)[:size]
			c.send(query(2, "hit"), long, query(3, "hit"))
			var got []int
			for range 3 {
				r := c.receive()
				got = append(got, len(r))
				if len(r) == size {
					checkEcho(t, r, long)
				}
			}
			short := len(query(2, "hit"))
			if slices.Sort(got); !slices.Equal(got, []int{short, short, size}) {
				t.Errorf("got responses of %v bytes, want two of %d and one of %d", got, short, size)
			}
		}
	}
	eventually(t, "nothing is owed", func() bool { return s.pending.Load() == 0 })
}

func testTCPSilence(t *testing.T, _ *Server, _ *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	c.send(query(1, "drop"), query(2, "none"), query(3, "hit"), query(4, "drop"))
	checkEcho(t, c.receive(), query(3, "hit"))
}

func testTCPNotDNS(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	for _, bad := range []string{"\x00\x00", "\x00\x0b01234567890"} {
		c := dialTCP(t, to)
		c.Write(append(frame(query(1, "hit")), bad...))
		checkEcho(t, c.receive(), query(1, "hit"))
		c.closed()
	}
	eventually(t, "count", func() bool { return s.Stats().Connections.Malformed == 2 })
}

func testTCPShed(t *testing.T, s *Server, h *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	for i := range uint16(8) {
		c.send(query(i, "miss"))
	}
	for range 5 {
		if r := c.receive(); !isServfail(r) {
			t.Errorf("got %x before any miss was answered, want SERVFAIL", r)
		}
	}
	close(h.gate)
	for range 3 {
		if r := c.receive(); isServfail(r) {
			t.Error("got SERVFAIL, want an answer")
		}
	}
	if got, want := s.Stats().TCP, (Flow{Queries: 8, Responses: 8, Misses: 3, Shed: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// testTCPInflight: with four misses in flight nothing more is read, and nothing is shed.
func testTCPInflight(t *testing.T, s *Server, h *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	const n = 20
	for i := range uint16(n) {
		c.send(query(i, "miss"))
	}
	eventually(t, "four in flight", func() bool { return s.Stats().Inflight == 4 })
	if got := len(h.exchanges()); got != 4 {
		t.Errorf("got %d queries taken, want 4", got)
	}
	close(h.gate)
	for range n {
		if isServfail(c.receive()) {
			t.Error("got SERVFAIL, want an answer")
		}
	}
	if got, want := s.Stats().TCP, (Flow{Queries: n, Responses: n, Misses: n}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// testTCPHalfClosed: who says that no more queries come still gets all answers.
func testTCPHalfClosed(t *testing.T, _ *Server, h *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	c.send(query(1, "miss"), query(2, "hit"))
	c.Conn.(*net.TCPConn).CloseWrite()
	checkEcho(t, c.receive(), query(2, "hit"))
	close(h.gate)
	checkEcho(t, c.receive(), query(1, "miss"))
	c.closed()
}

// testTCPNeverReads: the client loses its connection, and meanwhile costs little memory.
func testTCPNeverReads(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dialTCP(t, to)
	c.Conn.(*net.TCPConn).SetReadBuffer(4096)
	burst := bytes.Repeat(frame(query(1, "big")), 300)
	for range 1000 {
		if got := s.pending.Load(); got > 2*maxPending {
			t.Fatalf("got %d bytes waiting for one client, want at most %d", got, 2*maxPending)
		}
		if _, err := c.Write(burst); err != nil {
			break
		}
	}
	eventually(t, "the connection is closed", func() bool {
		st := s.Stats().Connections
		return st.Unread == 1 && st.Open == 0
	})
	eventually(t, "nothing is owed", func() bool { return s.pending.Load() == 0 })
}

func TestShutdownAnswersWhatIsInHand(t *testing.T) {
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			h := &scripted{gate: make(chan struct{})}
			s := start(t, Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}, Portable: path.portable}, h)
			u, c, idle := dial(t, s.Addrs()[0]), dialTCP(t, s.Addrs()[0]), dialTCP(t, s.Addrs()[0])
			u.send(query(1, "miss"))
			c.send(query(2, "miss"))
			eventually(t, "both in flight", func() bool { return s.Stats().Inflight == 2 })
			down := make(chan error)
			go func() { down <- s.Shutdown(context.Background()) }()
			idle.closed()
			close(h.gate)
			checkEcho(t, u.receive(), query(1, "miss"))
			checkEcho(t, c.receive(), query(2, "miss"))
			c.closed()
			if err := <-down; err != nil {
				t.Error(err)
			}
			if _, err := net.Dial("tcp", s.Addrs()[0].String()); err == nil {
				t.Error("got a connection after the shutdown")
			}
			if err := s.Serve(context.Background()); err != ErrStopped {
				t.Errorf("got %v from Serve after Shutdown, want %v", err, ErrStopped)
			}
		})
	}
}

func TestShutdownAbandons(t *testing.T) {
	h := &scripted{gate: make(chan struct{})} // which nobody opens
	s := start(t, Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}}, h)
	u, c := dial(t, s.Addrs()[0]), dialTCP(t, s.Addrs()[0])
	u.send(query(1, "miss"))
	c.send(query(2, "miss"))
	eventually(t, "both in flight", func() bool { return s.Stats().Inflight == 2 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); err != ErrAbandoned {
		t.Errorf("got %v, want %v", err, ErrAbandoned)
	}
	c.closed()
	if got := s.Stats().Inflight; got != 0 {
		t.Errorf("got %d in flight, want none: the handler heeds its context", got)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	s, err := New(Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}}, &scripted{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.Serve(ctx) }()
	c := dial(t, s.Addrs()[0])
	c.send(query(1, "hit"))
	c.receive()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestServeReportsALostSocket(t *testing.T) {
	s, err := New(Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}}, &scripted{})
	if err != nil {
		t.Fatal(err)
	}
	s.sockets[0].conn.Close()
	if err := s.Serve(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

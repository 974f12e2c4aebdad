package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"
)

func hasIPv6() bool {
	conn, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// client is a connected UDP socket: it hears only what comes from the very address it sends to.
type client struct {
	t testing.TB
	*net.UDPConn
}

func dial(t testing.TB, to netip.AddrPort) client {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return client{t, conn}
}

func (c client) send(message []byte) {
	c.t.Helper()
	if _, err := c.Write(message); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) receive() []byte {
	c.t.Helper()
	buf := make([]byte, 1<<16)
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := c.Read(buf)
	if err != nil {
		c.t.Fatal(err)
	}
	return buf[:n]
}

// nothing fails if a datagram is there. It is called when all that could come has come.
func (c client) nothing() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := c.Read(make([]byte, 1<<16)); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("got %d bytes and error %v, want nothing", n, err)
	}
}

// udpCases hold for the path of batches and for the portable one.
var udpCases = []struct {
	name   string
	listen string
	config Config
	gated  bool
	run    func(*testing.T, *Server, *scripted, netip.AddrPort)
}{
	{name: "hit", listen: "127.0.0.1", run: testHit},
	{name: "hit over IPv6", listen: "::1", run: testHit},
	{name: "miss", listen: "127.0.0.1", run: testMiss},
	{name: "miss over IPv6", listen: "::1", run: testMiss},
	{name: "silence", listen: "127.0.0.1", run: testSilence},
	{name: "hits pass misses", listen: "127.0.0.1", gated: true, run: testHitsPassMisses},
	{name: "shed", listen: "127.0.0.1", config: Config{MaxInflight: 3}, gated: true, run: testShed},
	{name: "long response", listen: "127.0.0.1", run: testLongResponse},
	{name: "longest query", listen: "127.0.0.1", run: testLongestQuery},
	{name: "what the handler sees", listen: "127.0.0.1", run: testSeen},
	{name: "what the handler sees over IPv6", listen: "::1", run: testSeen},
	{name: "wildcard", listen: "0.0.0.0", run: testWildcard},
	{name: "wildcard of both families", listen: "::", run: testWildcard},
	{name: "several workers", listen: "127.0.0.1", config: Config{Workers: 4}, run: testSpread},
}

func TestUDP(t *testing.T) {
	for _, path := range paths {
		for _, tc := range udpCases {
			t.Run(path.name+"/"+tc.name, func(t *testing.T) {
				h := &scripted{}
				if tc.gated {
					h.gate = make(chan struct{})
				}
				c := tc.config
				c.Portable = path.portable
				c.Workers = max(c.Workers, 1)
				c.Listen = []netip.AddrPort{local(t, tc.listen)}
				s := start(t, c, h)
				tc.run(t, s, h, s.Addrs()[0])
			})
		}
	}
}

func testHit(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dial(t, to)
	for i := range uint16(3) {
		q := query(i, "hit")
		c.send(q)
		checkEcho(t, c.receive(), q)
	}
	eventually(t, "counts", func() bool { return s.Stats().UDP == Flow{Queries: 3, Responses: 3, Hits: 3} })
	if st := s.Stats(); st.HitTime.Count() != 3 || st.Batches != 3 {
		t.Errorf("got %d durations in %d batches, want 3 in 3", st.HitTime.Count(), st.Batches)
	}
}

func testMiss(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dial(t, to)
	for i := range uint16(3) {
		q := query(i, "miss")
		c.send(q)
		checkEcho(t, c.receive(), q)
	}
	eventually(t, "counts", func() bool {
		st := s.Stats()
		return st.UDP == Flow{Queries: 3, Responses: 3, Misses: 3} && st.MissTime.Count() == 3 && st.Inflight == 0
	})
}

func testSilence(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dial(t, to)
	c.send(query(1, "drop"))
	c.send(query(2, "none"))
	c.send(nil)
	eventually(t, "all dealt with", func() bool {
		st := s.Stats()
		return st.UDP == Flow{Queries: 3, Misses: 1, Dropped: 2} && st.Inflight == 0
	})
	c.send(query(3, "hit"))
	checkEcho(t, c.receive(), query(3, "hit"))
	c.nothing()
}

// testHitsPassMisses also shows that a missed query is copied: many come after it in the same buffers.
func testHitsPassMisses(t *testing.T, _ *Server, h *scripted, to netip.AddrPort) {
	c := dial(t, to)
	const n = 200
	for i := range uint16(n) {
		c.send(query(i, fmt.Sprintf("miss-%d", i)))
		q := query(i, fmt.Sprintf("hit-%d", i))
		c.send(q)
		checkEcho(t, c.receive(), q)
	}
	close(h.gate)
	seen := map[uint16]bool{}
	for range n {
		r := c.receive()
		seen[idOf(r)] = true
		checkEcho(t, r, query(idOf(r), fmt.Sprintf("miss-%d", idOf(r))))
	}
	if len(seen) != n {
		t.Errorf("got answers to %d misses, want %d", len(seen), n)
	}
}

func testShed(t *testing.T, s *Server, h *scripted, to netip.AddrPort) {
	c := dial(t, to)
	for i := range uint16(8) {
		c.send(query(i, "miss"))
	}
	for range 5 {
		if r := c.receive(); !isServfail(r) {
			t.Errorf("got %x before any miss was answered, want SERVFAIL", r)
		}
	}
	if got := s.Stats(); got.Inflight != 3 || got.MaxInflight != 3 {
		t.Errorf("got %d of %d in flight, want 3 of 3", got.Inflight, got.MaxInflight)
	}
	close(h.gate)
	for range 3 {
		if r := c.receive(); isServfail(r) {
			t.Errorf("got SERVFAIL, want an answer")
		}
	}
	eventually(t, "counts", func() bool { return s.Stats().UDP == Flow{Queries: 8, Responses: 8, Misses: 3, Shed: 5} })
	eventually(t, "slots free", func() bool { return s.Stats().Inflight == 0 })
	c.send(query(9, "miss"))
	checkEcho(t, c.receive(), query(9, "miss"))
}

func testLongResponse(t *testing.T, _ *Server, _ *scripted, to netip.AddrPort) {
	c := dial(t, to)
	c.send(query(1, "big"))
	if r := c.receive(); len(r) != 5000 || idOf(r) != 1 {
		t.Errorf("got %d bytes, want 5000", len(r))
	}
}

func testLongestQuery(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	c := dial(t, to)
	fits := query(1, "hit")
	fits = append(fits, bytes.Repeat([]byte{7}, maxUDPQuery-len(fits))...)
	c.send(append(fits, 7))
	c.send(bytes.Repeat(fits, 20))
	c.send(fits)
	checkEcho(t, c.receive(), fits)
	c.nothing()
	eventually(t, "counts", func() bool { return s.Stats().Oversized == 2 && s.Stats().UDP.Queries == 1 })
}

func testSeen(t *testing.T, _ *Server, h *scripted, to netip.AddrPort) {
	c := dial(t, to)
	q := query(1, "hit")
	c.send(q)
	c.receive()
	seen := h.exchanges()
	want := Exchange{Query: q, Client: c.LocalAddr().(*net.UDPAddr).AddrPort(), Local: to.Addr(), Transport: UDP}
	if len(seen) != 1 || fmt.Sprint(seen[0]) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

// testWildcard asks several addresses of a wildcard socket, hits and misses.
func testWildcard(t *testing.T, _ *Server, h *scripted, to netip.AddrPort) {
	addrs := []string{"127.0.0.1"}
	if hasManyLoopbacks {
		addrs = append(addrs, "127.0.0.2", "127.1.2.3")
	}
	if to.Addr().Is6() {
		addrs = append(addrs, "::1")
	}
	for _, a := range addrs {
		c := dial(t, netip.AddrPortFrom(netip.MustParseAddr(a), to.Port()))
		for _, label := range []string{"hit", "miss"} {
			q := query(1, label)
			c.send(q)
			checkEcho(t, c.receive(), q)
			seen := h.exchanges()
			last := seen[len(seen)-1]
			if last.Local.String() != a || last.Client != addrPortOf(c.LocalAddr()) {
				t.Errorf("got a query from %v to %v, want from %v to %v", last.Client, last.Local, c.LocalAddr(), a)
			}
		}
	}
}

func testSpread(t *testing.T, s *Server, _ *scripted, to netip.AddrPort) {
	for i := range uint16(100) {
		c := dial(t, to)
		q := query(i, "hit")
		c.send(q)
		checkEcho(t, c.receive(), q)
		c.Close()
	}
	// With 100 clients, one socket of four is left out once in 10^12 times.
	for i, u := range s.sockets {
		if u.count.queries.Load() == 0 {
			t.Errorf("socket %d of %d got no query", i, len(s.sockets))
		}
	}
}

// TestUDPFull sends more at once than a batch takes, and mixes all that can happen to a query.
func TestUDPFull(t *testing.T) {
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			h := &scripted{}
			s, err := New(Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}, Portable: path.portable, Workers: 1}, h)
			if err != nil {
				t.Fatal(err)
			}
			c := dial(t, s.Addrs()[0])
			c.SetReadBuffer(1 << 20) // for all responses
			labels := []string{"hit", "miss", "drop", "none", "hit", "miss", "x", "big"}
			const n = 160 // more than two batches
			for i := range uint16(n) {
				c.send(query(i, labels[i%8]))
			}
			// All lie in the socket's buffer before the first is read.
			served := make(chan error)
			go func() { served <- s.Serve(context.Background()) }()
			var got []uint16
			for range n * 5 / 8 {
				r := c.receive()
				got = append(got, idOf(r))
				if verb(r) == 'b' {
					r = r[:len(query(0, "big"))]
				}
				checkEcho(t, r, query(idOf(r), labels[idOf(r)%8]))
			}
			slices.Sort(got)
			if got = slices.Compact(got); len(got) != n*5/8 {
				t.Errorf("got %d different answers, want %d", len(got), n*5/8)
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
			want := Flow{Queries: n, Responses: n * 5 / 8, Hits: n * 3 / 8, Misses: n * 3 / 8, Dropped: n / 4}
			if st := s.Stats(); st.UDP != want {
				t.Errorf("got %+v, want %+v", st.UDP, want)
			}
		})
	}
}

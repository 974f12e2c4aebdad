package exchange

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// plainOnly answers queries without OPT, and those with one by other.
func plainOnly(other reaction) reaction {
	return func(q []byte) [][]byte {
		if hasOPT(q) {
			return other(q)
		}
		return reply()(q)
	}
}

func flip(at int, mask byte) func(b []byte) []byte {
	return func(b []byte) []byte { b[at] ^= mask; return b }
}

func bareHeader(code byte) reaction {
	return func(q []byte) [][]byte { return [][]byte{{q[0], q[1], 0x80, code, 0, 0, 0, 0, 0, 0, 0, 0}} }
}

func truncatedReply(q []byte) [][]byte {
	return reply(func(m *dns.Msg) { m.Truncated, m.Answer = true, nil })(q)
}

var nothing reaction = func([]byte) [][]byte { return nil }

// TestServers asks servers of all kinds one question.
func TestServers(t *testing.T) {
	tests := []struct {
		name     string
		server   *fakeServer
		udp, tcp int   // queries it gets
		err      error // what Do returns
		overTCP  bool  // the reply came over TCP
		plain    bool  // and answers a query without EDNS
		rcode    wire.RCODE
	}{
		{name: "good", server: &fakeServer{udp: reply()}, udp: 1},
		{name: "silent", server: &fakeServer{}, udp: 1, err: ErrTimeout},
		{name: "port unreachable", server: &fakeServer{icmp: true}, udp: 1, err: ErrUnreachable},
		{name: "without EDNS, ignores OPT", server: &fakeServer{udp: reply(noOPT)}, udp: 1},

		{name: "FORMERR without OPT", server: &fakeServer{udp: plainOnly(reply(rcode(dns.RcodeFormatError), noOPT))}, udp: 2, plain: true},
		{name: "NOTIMP", server: &fakeServer{udp: plainOnly(reply(rcode(dns.RcodeNotImplemented), noOPT))}, udp: 2, plain: true},
		{name: "NOTIMP with OPT", server: &fakeServer{udp: plainOnly(reply(rcode(dns.RcodeNotImplemented)))}, udp: 2, plain: true},
		{name: "BADVERS", server: &fakeServer{udp: plainOnly(reply(rcode(dns.RcodeBadVers)))}, udp: 2, plain: true},
		{name: "FORMERR with OPT", server: &fakeServer{udp: reply(rcode(dns.RcodeFormatError))}, udp: 1, rcode: wire.RCODEFormErr},
		{name: "FORMERR always", server: &fakeServer{udp: reply(rcode(dns.RcodeFormatError), noOPT)}, udp: 2, plain: true, rcode: wire.RCODEFormErr},
		{name: "silent to OPT", server: &fakeServer{udp: plainOnly(nothing)}, udp: 1, err: ErrTimeout},
		{name: "SERVFAIL", server: &fakeServer{udp: reply(rcode(dns.RcodeServerFailure))}, udp: 1, rcode: wire.RCODEServFail},
		{name: "REFUSED", server: &fakeServer{udp: reply(rcode(dns.RcodeRefused))}, udp: 1, rcode: wire.RCODERefused},

		{name: "TC", server: &fakeServer{udp: truncatedReply, tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "TC, cut in a record", server: &fakeServer{udp: raw(func(b []byte) []byte { b[2] |= 2; return b[:len(b)-30] }), tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "TC and TCP refused", server: &fakeServer{udp: truncatedReply, refuse: true}, udp: 1, err: ErrUnreachable},
		{name: "TC and TCP hangs", server: &fakeServer{udp: truncatedReply, hang: true}, udp: 1, err: ErrTimeout},
		{name: "TC and TCP silent", server: &fakeServer{udp: truncatedReply, tcp: nothing}, udp: 1, tcp: 1, err: ErrTimeout},
		{name: "TC over TCP", server: &fakeServer{udp: truncatedReply}, udp: 1, tcp: 1, err: ErrMalformed},
		{name: "longer than offered", server: &fakeServer{udp: raw(func(b []byte) []byte { return append(b, make([]byte, 1232)...) }), tcp: reply()}, udp: 1, tcp: 1, overTCP: true},

		{name: "other ID", server: &fakeServer{udp: raw(flip(0, 1)), tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "other case", server: &fakeServer{udp: raw(flip(13, 0x20)), tcp: raw(flip(13, 0x20))}, udp: 1, tcp: 1, overTCP: true},
		{name: "other name", server: &fakeServer{udp: raw(flip(13, 1)), tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "other name over TCP too", server: &fakeServer{udp: raw(flip(13, 1))}, udp: 1, tcp: 1, err: ErrMismatch},
		{name: "other class", server: &fakeServer{udp: reply(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "no question", server: &fakeServer{udp: reply(func(m *dns.Msg) { m.Question = nil; m.Answer = nil }), tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "a query", server: &fakeServer{udp: raw(flip(2, 0x80)), tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "empty datagram", server: &fakeServer{udp: func([]byte) [][]byte { return [][]byte{nil} }, tcp: reply()}, udp: 1, tcp: 1, overTCP: true},
		{name: "mismatch and TCP refused", server: &fakeServer{udp: raw(flip(0, 1)), refuse: true}, udp: 1, err: ErrMismatch},
		{name: "bare FORMERR", server: &fakeServer{udp: plainOnly(bareHeader(1))}, udp: 1, tcp: 2, overTCP: true, plain: true},
		{name: "bare FORMERR and TCP refused", server: &fakeServer{udp: plainOnly(bareHeader(1)), refuse: true}, udp: 2, plain: true},

		{name: "malformed", server: &fakeServer{udp: raw(func(b []byte) []byte { return b[:len(b)-3] })}, udp: 1, err: ErrMalformed},
		{name: "malformed OPT", server: &fakeServer{udp: raw(func(b []byte) []byte { b[len(b)-1] = 9; return b })}, udp: 1, err: ErrMalformed},
		{name: "counts of what is not there", server: &fakeServer{udp: raw(func(b []byte) []byte { b[6], b[7] = 0xFF, 0xFF; return b })}, udp: 1, err: ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				s := n.add("192.0.2.53", tt.server)
				c := n.client(Config{})
				r, err := c.Do(context.Background(), ask("192.0.2.53", "www.example."))
				if udp, tcp := s.counts(); udp != tt.udp || tcp != tt.tcp {
					t.Errorf("queries: got %d over UDP, %d over TCP, want %d and %d", udp, tcp, tt.udp, tt.tcp)
				}
				if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Fatalf("got error %v, want %v", err, tt.err)
				}
				if err != nil {
					return
				}
				if r.TCP != tt.overTCP || r.EDNS == tt.plain || r.RCODE() != tt.rcode {
					t.Errorf("got TCP %v, EDNS %v, %v; want %v, %v, %v", r.TCP, r.EDNS, r.RCODE(), tt.overTCP, !tt.plain, tt.rcode)
				}
				if tt.rcode == 0 && len(r.Section(wire.Answer)) != 1 {
					t.Errorf("got %d records, want 1", len(r.Section(wire.Answer)))
				}
			})
		})
	}
}

// TestPlainForThisQueryOnly: that a server stumbled over EDNS is not held against it.
func TestPlainForThisQueryOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: plainOnly(reply(rcode(dns.RcodeFormatError), noOPT))})
		c := n.client(Config{})
		mustDo(t, c, ask("192.0.2.53", "a.example."))
		s.set(func(s *fakeServer) { s.udp = reply() })
		if r := mustDo(t, c, ask("192.0.2.53", "b.example.")); !r.EDNS {
			t.Error("the next query went without EDNS")
		}
	})
}

// TestMismatchLeavesRecord: packets that are not believed change nothing that is known of the
// server but the transport, and that after three in a minute, for a minute.
func TestMismatchLeavesRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: reply(), delay: 10 * time.Millisecond})
		c := n.client(Config{})
		mustDo(t, c, ask("192.0.2.53", "a.example."))
		before, _ := c.Server(addr("192.0.2.53"))
		s.set(func(s *fakeServer) { s.udp, s.tcp = raw(flip(0, 1)), reply() })
		for i := range 3 {
			if info, _ := c.Server(addr("192.0.2.53")); info.TCPFirst {
				t.Fatalf("TCP first after %d mismatches", i)
			}
			time.Sleep(19 * time.Second)
			mustDo(t, c, ask("192.0.2.53", "b.example."))
		}
		after, _ := c.Server(addr("192.0.2.53"))
		if after.SRTT != before.SRTT || after.RTTVar != before.RTTVar || after.Fails != 0 || after.LameZones != 0 {
			t.Errorf("got %+v, want the record of before: %+v", after, before)
		}
		if !after.TCPFirst {
			t.Error("not TCP first after three mismatches in a minute")
		}
		udp, _ := s.counts()
		mustDo(t, c, ask("192.0.2.53", "c.example."))
		time.Sleep(59 * time.Second)
		mustDo(t, c, ask("192.0.2.53", "d.example."))
		if now, _ := s.counts(); now != udp {
			t.Error("asked over UDP within the minute of TCP first")
		}
		time.Sleep(2 * time.Second)
		s.set(func(s *fakeServer) { s.udp = reply() })
		if r := mustDo(t, c, ask("192.0.2.53", "e.example.")); r.TCP {
			t.Error("still TCP first after a minute")
		}
		if got := c.Stats().Mismatches; got != 3 {
			t.Errorf("got %d mismatches counted, want 3", got)
		}
	})
}

// TestMismatchesApart: three mismatches in more than a minute are three accidents.
func TestMismatchesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.53", &fakeServer{udp: raw(flip(0, 1)), tcp: reply()})
		c := n.client(Config{})
		for range 6 {
			mustDo(t, c, ask("192.0.2.53", "a.example."))
			time.Sleep(31 * time.Second)
		}
		if info, _ := c.Server(addr("192.0.2.53")); info.TCPFirst {
			t.Error("TCP first, though never three mismatches in a minute")
		}
	})
}

// TestDrawnAnew: each query has an ID, a port and a letter case of its own.
func TestDrawnAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: reply()})
		c := n.client(Config{})
		const rounds = 200
		for range rounds {
			mustDo(t, c, ask("192.0.2.53", "a-name-with-many-letters.example."))
		}
		ids, ports, names := map[string]int{}, map[uint16]int{}, map[string]int{}
		for i, q := range s.udpSeen {
			ids[string(q[:2])]++
			names[string(q[12:questionEnd(q)])]++
			ports[n.ports[i]]++
		}
		// 200 draws of 65536 or 64512 meet about 0.3 times; 10 would be a fault of the generator.
		if len(ids) < rounds-10 || len(ports) < rounds-10 || len(names) < rounds-10 {
			t.Errorf("of %d queries: %d IDs, %d ports, %d spellings", rounds, len(ids), len(ports), len(names))
		}
	})
}

func TestRetryOffersLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: reply()})
		c := n.client(Config{EDNSSize: 4096})
		for retry, want := range []uint16{4096, 1232, 512, 512} {
			a := ask("192.0.2.53", "a.example.")
			a.Retry = retry
			mustDo(t, c, a)
			var m wire.Message
			if err := m.Parse(s.udpSeen[retry]); err != nil || m.EDNS.UDPSize != want || !m.EDNS.DO {
				t.Errorf("retry %d: got size %d, DO %v (%v), want %d", retry, m.EDNS.UDPSize, m.EDNS.DO, err, want)
			}
		}
	})
}

func TestFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: reply()})
		c := n.client(Config{})
		mustDo(t, c, ask("192.0.2.53", "a.example."))
		a := ask("192.0.2.53", "a.example.")
		a.RD, a.CD = true, true
		mustDo(t, c, a)
		for i, want := range []uint16{0, wire.FlagRD | wire.FlagCD} {
			var m wire.Message
			if err := m.Parse(s.udpSeen[i]); err != nil || m.Flags != want {
				t.Errorf("query %d: got flags %#x (%v), want %#x", i, m.Flags, err, want)
			}
		}
	})
}

// TestCancel: a Do ends with its context, at once, and that says nothing of the server.
func TestCancel(t *testing.T) {
	for _, over := range []string{"UDP", "TCP", "dial"} {
		t.Run(over, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				n.add("192.0.2.53", &fakeServer{udp: nothing, hang: over == "dial"})
				c := n.client(Config{})
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(100*time.Millisecond, cancel)
				start := time.Now()
				a := ask("192.0.2.53", "a.example.")
				a.TCP = over != "UDP"
				_, err := c.Do(ctx, a)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want the context's error", err)
				}
				if took := time.Since(start); took != 100*time.Millisecond {
					t.Errorf("took %v, want 100ms", took)
				}
				if info, _ := c.Server(addr("192.0.2.53")); info.Fails != 0 {
					t.Errorf("got %d timeouts counted, want 0", info.Fails)
				}
			})
		})
	}
}

type testBudget struct{ queries, bytes, connections int }

var errSpent = errors.New("spent")

func (b *testBudget) Query() error {
	if b.queries--; b.queries < 0 {
		return errSpent
	}
	return nil
}

func (b *testBudget) Received(n int) error {
	if b.bytes -= n; b.bytes < 0 {
		return errSpent
	}
	return nil
}

func (b *testBudget) Connect(server netip.AddrPort) error {
	if b.connections--; b.connections < 0 {
		return errSpent
	}
	return nil
}

func TestBudget(t *testing.T) {
	tests := []struct {
		name     string
		budget   testBudget
		server   *fakeServer
		udp, tcp int
		spent    bool
	}{
		{"enough", testBudget{2, 1000, 1}, &fakeServer{udp: truncatedReply, tcp: reply()}, 1, 1, false},
		{"no query", testBudget{0, 1000, 1}, &fakeServer{udp: reply()}, 0, 0, true},
		{"one query and TC", testBudget{1, 1000, 1}, &fakeServer{udp: truncatedReply, tcp: reply()}, 1, 0, true},
		{"one query and FORMERR", testBudget{1, 1000, 1}, &fakeServer{udp: reply(rcode(1), noOPT)}, 1, 0, true},
		{"bytes", testBudget{2, 20, 1}, &fakeServer{udp: reply()}, 1, 0, true},
		{"connections", testBudget{2, 1000, 0}, &fakeServer{udp: truncatedReply, tcp: reply()}, 1, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				s := n.add("192.0.2.53", tt.server)
				c := n.client(Config{})
				a := ask("192.0.2.53", "a.example.")
				a.Budget = &tt.budget
				_, err := c.Do(context.Background(), a)
				if errors.Is(err, ErrBudget) != tt.spent || errors.Is(err, errSpent) != tt.spent {
					t.Errorf("got %v, want spent: %v", err, tt.spent)
				}
				if udp, tcp := s.counts(); udp != tt.udp || tcp != tt.tcp {
					t.Errorf("queries: got %d and %d, want %d and %d", udp, tcp, tt.udp, tt.tcp)
				}
				if info, _ := c.Server(addr("192.0.2.53")); info.Fails != 0 {
					t.Error("the end of a budget counted against the server")
				}
			})
		})
	}
}

// TestTrace: each exchange of packets is told, in order.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.53", &fakeServer{udp: plainOnly(reply(rcode(1), noOPT)), delay: 5 * time.Millisecond})
		n.add("192.0.2.54", &fakeServer{udp: truncatedReply, tcp: reply()})
		n.add("192.0.2.55", &fakeServer{})
		c := n.client(Config{})
		var got []Event
		for _, server := range []string{"192.0.2.53", "192.0.2.54", "192.0.2.55"} {
			a := ask(server, "a.example.")
			a.Trace = func(e Event) { got = append(got, e) }
			_, _ = c.Do(context.Background(), a)
		}
		want := []Event{
			{EDNS: true, RTT: 5 * time.Millisecond, RCODE: wire.RCODEFormErr},
			{RTT: 5 * time.Millisecond},
			{EDNS: true, Err: ErrMalformed},
			{EDNS: true, TCP: true},
			{EDNS: true, RTT: unknownRTO, Err: ErrTimeout},
		}
		if len(got) != len(want) {
			t.Fatalf("got %d events, want %d: %+v", len(got), len(want), got)
		}
		for i, w := range want {
			g := got[i]
			if g.EDNS != w.EDNS || g.TCP != w.TCP || g.RTT != w.RTT || g.RCODE != w.RCODE || !errors.Is(g.Err, w.Err) {
				t.Errorf("event %d: got %+v, want %+v", i, g, w)
			}
		}
	})
}

// TestBadName: what is no name is not asked.
func TestBadName(t *testing.T) {
	n := newFakeNet(t)
	n.add("192.0.2.53", &fakeServer{udp: reply()})
	c := n.client(Config{})
	for _, name := range []wire.Name{"", "\x03www", "\x40", "\x03www\x00\x00", "\xc0\x0c"} {
		a := ask("192.0.2.53", "www.example.")
		a.Name = name
		if _, err := c.Do(context.Background(), a); !errors.Is(err, wire.ErrName) {
			t.Errorf("%q: got %v", string(name), err)
		}
	}
	if len(n.ports) != 0 {
		t.Errorf("%d packets were sent", len(n.ports))
	}
}

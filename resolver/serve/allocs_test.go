package serve

import (
	"io"
	"net"
	"net/netip"
	"testing"
)

// allocations returns how many are made, by the whole process, for one round of queries and answers.
// The client allocates nothing, so they are the server's.
func allocations(round func()) float64 {
	for range 100 { // pools fill, stacks grow
		round()
	}
	return testing.AllocsPerRun(100, round)
}

// TestHitAllocs: from datagram to datagram, and from message to message, a hit allocates nothing.
func TestHitAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, path := range paths {
		for _, listen := range []string{"127.0.0.1", "0.0.0.0", "::1", "::"} {
			t.Run(path.name+"/"+listen, func(t *testing.T) {
				s := start(t, Config{Listen: []netip.AddrPort{local(t, listen)}, Portable: path.portable, Workers: 1}, reflector{})
				to := s.Addrs()[0]
				if to.Addr().IsUnspecified() {
					to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
				}
				if got := allocations(udpRound(t, to, 20)); got != 0 {
					t.Errorf("UDP: got %v allocations for 20 hits, want none", got)
				}
				if got := allocations(tcpRound(t, to, 20)); got != 0 {
					t.Errorf("TCP: got %v allocations for 20 hits, want none", got)
				}
			})
		}
	}
}

// udpRound returns a function that sends n queries and waits for the answers.
func udpRound(t testing.TB, to netip.AddrPort, n int) func() {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	q, in := query(1, "hit"), make([]byte, 2048)
	return func() {
		for range n {
			conn.Write(q)
		}
		for range n {
			if _, err := conn.Read(in); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// tcpRound returns a function that sends n queries on a connection that stays open, and waits for the
// answers.
func tcpRound(t testing.TB, to netip.AddrPort, n int) func() {
	conn, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var out []byte
	for range n {
		out = append(out, frame(query(1, "hit"))...)
	}
	in := make([]byte, n*(len(frame(query(1, "hit")))+len(reflectedRecord)))
	return func() {
		conn.Write(out)
		if _, err := io.ReadFull(conn, in); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMissAllocs: what a miss costs besides its handler is kept for the next one.
func TestMissAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := start(t, Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}, Workers: 1}, missing{})
	if got := allocations(udpRound(t, s.Addrs()[0], 20)); got > 1 {
		t.Errorf("got %v allocations for 20 misses, want none", got)
	}
}

// missing is a reflector that answers nothing by Hit.
type missing struct{ reflector }

func (missing) NewWorker() Worker { return missing{} }

func (missing) Hit(_ []Exchange, results []Result) {
	for i := range results {
		results[i] = Missed
	}
}

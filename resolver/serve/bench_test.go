package serve

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// The benchmarks go from the whole to the parts. Those of the whole have a client in the same process,
// whose work they count, too; per query, as all of them.

// BenchmarkUDP: with one query in flight it shows what a wake-up costs, with 64 what a full batch does.
func BenchmarkUDP(b *testing.B) {
	for _, kind := range []struct {
		name    string
		handler Handler
	}{{"hit", reflector{}}, {"miss", missing{}}} {
		for _, path := range paths {
			for _, window := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/%s/%d", kind.name, path.name, window), func(b *testing.B) {
					s := start(b, Config{Listen: []netip.AddrPort{local(b, "127.0.0.1")}, Portable: path.portable, Workers: 1}, kind.handler)
					perQuery(b, window, udpRound(b, s.Addrs()[0], window))
				})
			}
		}
	}
}

// BenchmarkUDPWildcard: what it costs to say where a response comes from.
func BenchmarkUDPWildcard(b *testing.B) {
	s := start(b, Config{Listen: []netip.AddrPort{local(b, "0.0.0.0")}, Workers: 1}, reflector{})
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.Addrs()[0].Port())
	perQuery(b, 64, udpRound(b, to, 64))
}

func BenchmarkTCP(b *testing.B) {
	for _, path := range paths {
		for _, window := range []int{1, 20, 200} {
			b.Run(fmt.Sprintf("%s/%d", path.name, window), func(b *testing.B) {
				s := start(b, Config{Listen: []netip.AddrPort{local(b, "127.0.0.1")}, Portable: path.portable}, reflector{})
				perQuery(b, window, tcpRound(b, s.Addrs()[0], window))
			})
		}
	}
}

// BenchmarkTCPFrames: messages in, framed responses out, without system calls.
func BenchmarkTCPFrames(b *testing.B) {
	s, err := New(Config{Listeners: []net.Listener{newMemoryListener()}}, reflector{})
	if err != nil {
		b.Fatal(err)
	}
	c, sc := newConn(s, &sink{}), s.scratches.get()
	stream := bytes.Repeat(frame(query(1, "hit")), 64)
	perQuery(b, 64, func() {
		for pos := 0; pos < len(stream); {
			n, _ := sc.answer(c, stream[pos:], 64, 0)
			pos += n
		}
	})
}

// BenchmarkMissHandover: a query copied, a goroutine woken, the slot given back.
func BenchmarkMissHandover(b *testing.B) {
	s, err := New(Config{Listeners: []net.Listener{newMemoryListener()}}, missing{})
	if err != nil {
		b.Fatal(err)
	}
	to := make(waiter)
	x := &Exchange{Query: query(1, "miss")}
	perQuery(b, 1, func() {
		s.misses.take()
		s.misses.start(x, "", to, 0)
		<-to
	})
}

type waiter chan struct{}

func (c waiter) reply(_ *runner, release func()) {
	release()
	c <- struct{}{}
}

// perQuery runs rounds of n queries, and reports the time for each query.
func perQuery(b *testing.B, n int, round func()) {
	b.Helper()
	round()
	b.ReportAllocs()
	rounds := 0
	for b.Loop() {
		round()
		rounds++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds*n), "ns/query")
}

package serve

import (
	"net"
	"net/netip"
	"testing"
)

// newTestBatch returns a batch on a socket that nothing else reads, and a client that fills it.
func newTestBatch(b *testing.B) (*batch, func()) {
	s, err := New(Config{Listen: []netip.AddrPort{local(b, "127.0.0.1")}, Workers: 1}, reflector{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.closeSockets)
	u := s.sockets[0]
	raw, err := u.udp.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	m := newBatch(u)
	m.raw = raw
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.Addrs()[0]))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	q := query(1, "hit")
	return m, func() {
		for range batchSize {
			conn.Write(q)
		}
	}
}

// BenchmarkBatch: datagrams in memory in, responses in memory out, without system calls.
func BenchmarkBatch(b *testing.B) {
	m, fill := newTestBatch(b)
	fill()
	m.raw.Read(func(fd uintptr) bool {
		n, _ := receiveBatch(fd, m.in[:])
		return n == batchSize
	})
	perQuery(b, batchSize, func() {
		k := m.parse(batchSize)
		m.worker.Hit(m.view[:k], m.results[:k])
		for i := range k {
			m.queue(i)
		}
		m.queued = 0
		m.arm(batchSize)
	})
}

// BenchmarkKernel: what the system takes to receive a batch and to send it back, besides what it takes
// to send it here. The client does not read; its responses are dropped.
func BenchmarkKernel(b *testing.B) {
	m, fill := newTestBatch(b)
	perQuery(b, batchSize, func() {
		b.StopTimer()
		fill()
		b.StartTimer()
		m.raw.Read(func(fd uintptr) bool {
			n, _ := receiveBatch(fd, m.in[:])
			k := m.parse(n)
			for i := range k {
				m.view[i].Response = m.view[i].Query
				m.queue(i)
			}
			m.flush(fd)
			m.arm(n)
			return true
		})
	})
}

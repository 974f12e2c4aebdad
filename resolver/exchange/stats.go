package exchange

import "sync/atomic"

type counters struct {
	queries    [2][2]atomic.Uint64 // by transport (UDP, TCP) and family (IPv4, IPv6)
	timeouts   atomic.Uint64
	mismatches atomic.Uint64
	toTCP      atomic.Uint64
}

// Stats is what the client has counted since it was made.
type Stats struct {
	UDPv4, UDPv6, TCPv4, TCPv6 uint64 // queries sent
	Timeouts                   uint64
	Mismatches                 uint64 // datagrams not believed
	TCPFallbacks               uint64 // questions that went over from UDP to TCP
}

// Stats returns the counters; they are read one by one, not at one instant.
func (c *Client) Stats() Stats {
	n := &c.counters
	return Stats{
		UDPv4: n.queries[0][0].Load(), UDPv6: n.queries[0][1].Load(),
		TCPv4: n.queries[1][0].Load(), TCPv6: n.queries[1][1].Load(),
		Timeouts: n.timeouts.Load(), Mismatches: n.mismatches.Load(), TCPFallbacks: n.toTCP.Load(),
	}
}

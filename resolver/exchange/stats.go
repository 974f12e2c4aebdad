package exchange

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// RTTBounds are the upper bounds of Stats.RTT's buckets; the last bucket has none.
var RTTBounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second,
}

// What a query goes by.
const (
	overUDP = iota
	overTCP
	overTLS
	transports
)

type counters struct {
	queries     [transports][2]atomic.Uint64 // by transport and family (IPv4, IPv6)
	replies     [transports]atomic.Uint64
	timeouts    atomic.Uint64
	mismatches  atomic.Uint64
	toTCP       atomic.Uint64
	connections atomic.Uint64
	sockets     atomic.Uint64
	cookies     atomic.Uint64
	busy        atomic.Uint64
	rtt         [len(RTTBounds) + 1]atomic.Uint64
	rttSum      atomic.Int64
}

func (n *counters) sent(transport int, server netip.Addr) {
	n.queries[transport][familyIndex(server)].Add(1)
}

func (n *counters) replied(rtt time.Duration, transport int) {
	n.replies[transport].Add(1)
	if transport != overUDP {
		return
	}
	i := 0
	for i < len(RTTBounds) && rtt > RTTBounds[i] {
		i++
	}
	n.rtt[i].Add(1)
	n.rttSum.Add(int64(rtt))
}

// Stats is what the client has counted since it was made.
type Stats struct {
	UDPv4, UDPv6, TCPv4, TCPv6, TLSv4, TLSv6 uint64 // queries sent
	UDPReplies, TCPReplies, TLSReplies       uint64 // believed
	Timeouts                                 uint64
	Mismatches                               uint64 // packets not believed
	TCPFallbacks                             uint64 // questions that went over from UDP to TCP
	TCPConnections                           uint64 // opened, those of TLS among them
	UDPSockets                               uint64 // opened
	Cookies                                  uint64 // server cookies learned
	Busy                                     uint64 // Asks refused, for too many waited for the server

	RTT    [len(RTTBounds) + 1]uint64 // believed UDP responses by round-trip time, each in one bucket
	RTTSum time.Duration
}

// Stats returns the counters; they are read one by one, not at one instant.
func (c *Client) Stats() Stats {
	n := &c.counters
	s := Stats{
		UDPv4: n.queries[overUDP][0].Load(), UDPv6: n.queries[overUDP][1].Load(),
		TCPv4: n.queries[overTCP][0].Load(), TCPv6: n.queries[overTCP][1].Load(),
		TLSv4: n.queries[overTLS][0].Load(), TLSv6: n.queries[overTLS][1].Load(),
		UDPReplies: n.replies[overUDP].Load(), TCPReplies: n.replies[overTCP].Load(), TLSReplies: n.replies[overTLS].Load(),
		Timeouts: n.timeouts.Load(), Mismatches: n.mismatches.Load(), TCPFallbacks: n.toTCP.Load(),
		TCPConnections: n.connections.Load(), UDPSockets: n.sockets.Load(),
		Cookies: n.cookies.Load(), Busy: n.busy.Load(), RTTSum: time.Duration(n.rttSum.Load()),
	}
	for i := range n.rtt {
		s.RTT[i] = n.rtt[i].Load()
	}
	return s
}

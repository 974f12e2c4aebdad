package serve

import (
	"math"
	"math/bits"
	"net/netip"
	"sync/atomic"
	"time"
)

// Stats is a snapshot of a server's counters. Counts run from the server's start.
type Stats struct {
	UDP, TCP Flow
	// Inflight is the number of misses being worked on, of MaxInflight that may be.
	Inflight, MaxInflight int
	// HitTime and MissTime are how long queries stayed in the server: from the return of the call
	// that received them to the return of the call that sent the response.
	HitTime, MissTime Histogram

	Batches     uint64 // receive calls on UDP sockets that returned something
	BadSource   uint64 // datagrams dropped: nothing may be sent back to where they claim to be from
	Oversized   uint64 // datagrams dropped: longer than any query over UDP may be
	SendErrors  uint64 // responses over UDP that the system refused to send
	ReadErrors  uint64 // failed receive calls on UDP sockets
	KernelDrops uint64 // datagrams that the kernel dropped, mostly because a receive buffer was full
	Sockets     []SocketStats
	Connections ConnectionStats
}

// Flow counts queries and what became of them.
type Flow struct {
	Queries   uint64 // messages given to the handler
	Responses uint64 // responses handed to the system
	Hits      uint64 // answered by Worker.Hit
	Misses    uint64 // given to Handler.Miss
	Shed      uint64 // given to Handler.Shed
	Dropped   uint64 // without response by decision of Worker.Hit
}

// SocketStats describes one UDP socket.
type SocketStats struct {
	Addr netip.AddrPort
	// ReceiveBuffer and SendBuffer are the sizes that the system grants, in bytes as it counts them;
	// 0 where it does not say.
	ReceiveBuffer, SendBuffer int
	KernelDrops               uint64
}

// ConnectionStats counts TCP connections.
type ConnectionStats struct {
	Open          int
	Accepted      uint64 // served, for however long
	Refused       uint64 // closed at once: MaxTCP in use and none of them idle
	RefusedClient uint64 // closed at once: the client has MaxTCPPerClient
	Evicted       uint64 // closed while idle, to make room
	Idle          uint64 // closed after TCPIdle
	Slow          uint64 // closed: a message took longer than TCPRead
	Unread        uint64 // closed: the client did not take its responses
	Malformed     uint64 // closed: what came cannot be DNS
}

// Histogram counts durations in buckets that grow by a quarter of a power of two.
type Histogram struct {
	Counts [HistogramBuckets]uint64
	Sum    time.Duration
}

const (
	histogramMin = 9 // the first bucket takes all below 1<<histogramMin ns
	histogramMax = 35

	// HistogramBuckets is the number of buckets of a Histogram. The last has no upper bound.
	HistogramBuckets = (histogramMax-histogramMin)*4 + 2
)

// HistogramBound returns the least duration that lies above bucket i; it doubles every four buckets.
// i is less than HistogramBuckets-1.
func HistogramBound(i int) time.Duration {
	if i == 0 {
		return 1 << histogramMin
	}
	exp, quarter := histogramMin+(i-1)/4, (i-1)%4
	return time.Duration(5+quarter) << (exp - 2)
}

func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < 1<<histogramMin {
		return 0
	}
	exp := bits.Len64(n) - 1
	return min((exp-histogramMin)*4+int(n>>(exp-2)&3)+1, HistogramBuckets-1)
}

// Count returns how many durations were counted.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns a bound that at least the share q of the durations lies below, 0 where there are
// none. It is at most a quarter too high, but for durations beyond the last bound.
func (h *Histogram) Quantile(q float64) time.Duration {
	count := h.Count()
	if count == 0 {
		return 0
	}
	want, seen := uint64(math.Ceil(q*float64(count))), uint64(0)
	for i := range HistogramBuckets - 1 {
		if seen += h.Counts[i]; seen >= want && seen > 0 {
			return HistogramBound(i)
		}
	}
	return HistogramBound(HistogramBuckets - 2)
}

// durations is the histogram being counted.
type durations struct {
	counts [HistogramBuckets]atomic.Uint64
	sum    atomic.Int64
}

// add counts n times d.
func (h *durations) add(d time.Duration, n int) {
	h.counts[bucketOf(d)].Add(uint64(n))
	h.sum.Add(int64(d) * int64(n))
}

func (h *durations) addTo(sum *Histogram) {
	for i := range h.counts {
		sum.Counts[i] += h.counts[i].Load()
	}
	sum.Sum += time.Duration(h.sum.Load())
}

// flow is the Flow being counted, by one goroutine mostly: it shares no cache line with another.
type flow struct {
	_                                                     [64]byte
	queries, responses, hits, misses, shed, dropped       atomic.Uint64
	batches, badSource, oversized, sendErrors, readErrors atomic.Uint64
	hitTime                                               durations
	_                                                     [64]byte
}

func (f *flow) addTo(s *Stats, sum *Flow) {
	sum.Queries += f.queries.Load()
	sum.Responses += f.responses.Load()
	sum.Hits += f.hits.Load()
	sum.Misses += f.misses.Load()
	sum.Shed += f.shed.Load()
	sum.Dropped += f.dropped.Load()
	s.Batches += f.batches.Load()
	s.BadSource += f.badSource.Load()
	s.Oversized += f.oversized.Load()
	s.SendErrors += f.sendErrors.Load()
	s.ReadErrors += f.readErrors.Load()
	f.hitTime.addTo(&s.HitTime)
}

// closings counts why connections ended, by cause.
type closings [numCauses]atomic.Uint64

// cause is why a connection ended.
type cause uint8

const (
	causeClient cause = iota // it was the client's wish, or its network's
	causeIdle
	causeSlow
	causeUnread
	causeMalformed
	causeEvicted
	causeDrain
	numCauses
)

package policy

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"bonsai/wire"
)

// RateLimit bounds the queries a second of each client, which is an IPv4 address or an IPv6 /56.
type RateLimit struct {
	QPS   int  // queries a second; 0: no limit
	Burst int  // queries at once; 0: as many as QPS
	Slip  int  // every n-th limited query is answered with TC instead of dropped; 0: none is
	Only  bool // count what would be limited, and let it pass
}

// limitBuckets is the number of clients told apart: more of them share buckets, and then a client is
// limited less than it might be, never more.
const limitBuckets = 1 << 16

// RateTable remembers what clients sent, and counts what the limit did. Its owner keeps it when the
// policy is made anew, so that nobody has a burst again. It is for any number of goroutines.
//
// There is one word a bucket: 24 bits that tell its clients apart, and 40 bits of the time at which the
// client will have used up what it sent, in ticks. By that time alone it is known how much it may still
// send (the generic cell rate algorithm).
type RateTable struct {
	Dropped, Slipped, WouldLimit atomic.Uint64

	clock   func() time.Duration
	seed    maphash.Seed
	slips   atomic.Uint32
	buckets atomic.Pointer[[limitBuckets]atomic.Uint64] // nil before there is a limit
}

// NewRateTable makes an empty table. clock is monotonic.
func NewRateTable(clock func() time.Duration) *RateTable {
	return &RateTable{clock: clock, seed: maphash.MakeSeed()}
}

const (
	tickBits       = 10 // a tick is 1024 ns
	ticksPerSecond = int(time.Second) >> tickBits
	timeBits       = 40 // thirteen days: what looks later than anything can be is older than now
	timeMask       = 1<<timeBits - 1
)

// rateLimit is for queries whose source may be forged: those over TCP and those with a good server
// cookie pass (RFC 7873 §5.2.3). A dropped query's real client comes back over TCP when it slips.
type rateLimit struct {
	limit   RateLimit
	table   *RateTable
	buckets *[limitBuckets]atomic.Uint64
	each    uint64 // ticks that a query takes up
	ahead   uint64 // ticks that the time of a client's bucket may lie ahead for one more to pass
}

func newRateLimit(limit RateLimit, table *RateTable) *rateLimit {
	if limit.Burst == 0 {
		limit.Burst = limit.QPS
	}
	limit.Burst = min(limit.Burst, 0xFFFF)
	if table.buckets.Load() == nil {
		table.buckets.CompareAndSwap(nil, new([limitBuckets]atomic.Uint64))
	}
	l := &rateLimit{limit: limit, table: table, buckets: table.buckets.Load(), each: uint64(max(1, ticksPerSecond/limit.QPS))}
	l.ahead = l.each * uint64(limit.Burst-1)
	return l
}

func (l *rateLimit) Judge(r *Request) Outcome {
	if r.Verified || l.take(r.Client) {
		return Outcome{}
	}
	switch {
	case l.limit.Only:
		l.table.WouldLimit.Add(1)
		return Outcome{}
	case l.limit.Slip > 0 && l.table.slips.Add(1)%uint32(l.limit.Slip) == 0:
		l.table.Slipped.Add(1)
		return Outcome{Action: Truncate, EDE: wire.NoEDE, Rule: "rate-limit"}
	}
	l.table.Dropped.Add(1)
	return Outcome{Action: Drop, EDE: wire.NoEDE, Rule: "rate-limit"}
}

// take spends one query of what a client may send. What is limited writes nothing.
func (l *rateLimit) take(client netip.Addr) bool {
	h := l.hash(client)
	bucket, tag := &l.buckets[h%limitBuckets], h>>timeBits
	now := uint64(l.table.clock()) >> tickBits & timeMask
	for {
		old, due := bucket.Load(), now
		if old>>timeBits == tag && (old-now)&timeMask <= l.ahead+l.each {
			due = old & timeMask
		}
		if (due-now)&timeMask > l.ahead {
			return false
		}
		if bucket.CompareAndSwap(old, tag<<timeBits|(due+l.each)&timeMask) {
			return true
		}
	}
}

func (l *rateLimit) hash(client netip.Addr) uint64 {
	b := client.As16()
	n := 16
	if !client.Is4() {
		n = 7 // RFC 6177 §2: a site has a /48 to a /56
	}
	return maphash.Bytes(l.table.seed, b[:n])
}

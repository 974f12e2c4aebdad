package policy

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"

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

// rateLimit keeps a token bucket a client, in one word each: 24 bits that tell clients of a bucket
// apart, 16 bits of tokens, 24 bits of the time they were counted at, in 64ths of a second.
//
// It is for queries whose source may be forged: those over TCP and those with a good server cookie
// pass (RFC 7873 §5.2.3). A dropped query's real client comes back over TCP when it slips.
type rateLimit struct {
	limit   RateLimit
	clock   func() uint64 // 64ths of a second
	seed    maphash.Seed
	buckets [limitBuckets]atomic.Uint64
	slips   atomic.Uint32
	stats   *RateStats
}

// RateStats counts what a limit did.
type RateStats struct{ Dropped, Slipped, WouldLimit atomic.Uint64 }

func newRateLimit(limit RateLimit, clock func() uint64, stats *RateStats) *rateLimit {
	if limit.Burst == 0 {
		limit.Burst = limit.QPS
	}
	limit.Burst = min(limit.Burst, 0xFFFF)
	return &rateLimit{limit: limit, clock: clock, seed: maphash.MakeSeed(), stats: stats}
}

func (l *rateLimit) Judge(r *Request) Outcome {
	if r.Verified || l.take(r.Client) {
		return Outcome{}
	}
	switch {
	case l.limit.Only:
		l.stats.WouldLimit.Add(1)
		return Outcome{}
	case l.limit.Slip > 0 && l.slips.Add(1)%uint32(l.limit.Slip) == 0:
		l.stats.Slipped.Add(1)
		return Outcome{Action: Truncate, EDE: wire.NoEDE, Rule: "rate-limit"}
	}
	l.stats.Dropped.Add(1)
	return Outcome{Action: Drop, EDE: wire.NoEDE, Rule: "rate-limit"}
}

const (
	tagMask  = 1<<24 - 1
	timeMask = 1<<24 - 1
)

// take spends one token of a client, if it has one.
func (l *rateLimit) take(client netip.Addr) bool {
	h := l.hash(client)
	bucket, tag := &l.buckets[h%limitBuckets], h>>40
	now := l.clock()
	for {
		old := bucket.Load()
		tokens := uint64(l.limit.Burst)
		if old>>40 == tag && old != 0 {
			elapsed := (now - old) & timeMask
			tokens = min(tokens, old>>24&0xFFFF+elapsed*uint64(l.limit.QPS)/64)
			if elapsed*uint64(l.limit.QPS) < 64 {
				now = old & timeMask // less than a token's time: let it add up
			}
		}
		ok := tokens > 0
		if ok {
			tokens--
		}
		if bucket.CompareAndSwap(old, tag<<40|tokens<<24|now&timeMask) {
			return ok
		}
	}
}

func (l *rateLimit) hash(client netip.Addr) uint64 {
	b := client.As16()
	n := 16
	if !client.Is4() {
		n = 7 // RFC 6177 §2: a site has a /48 to a /56
	}
	return maphash.Bytes(l.seed, b[:n])
}

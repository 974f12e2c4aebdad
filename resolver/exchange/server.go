package exchange

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Times of the server table.
const (
	// unknownRTO is the first timeout of a server never heard of. RFC 6298 §2.1 says 1 s for TCP's
	// sake; most servers answer within 300 ms, and a client waits while a dead one is found out.
	unknownRTO = 376 * time.Millisecond
	// minRTO leaves a busy server room to be late (RFC 6298 §2.4 says 1 s; see unknownRTO).
	minRTO = 150 * time.Millisecond
	// maxRTO bounds the wait for one response whatever was measured.
	maxRTO = 3 * time.Second
	// deadAfter consecutive timeouts make a server dead: asked only where nothing else is left, or
	// to find out whether it is back.
	deadAfter = 3
)

// server is what we know of one address. Its fields are guarded by its shard's lock.
type server struct {
	addr  netip.AddrPort
	shard *shard

	srtt, rttvar time.Duration // RFC 6298 §2; srtt is 0 until something was measured
	fails        uint8         // consecutive timeouts
	failedAt     time.Duration // when the last of them was counted
	triedAt      time.Duration // when a query was last sent
	used         time.Duration // when last looked at, for eviction
	mismatchedAt [3]time.Duration
	mismatches   uint8
	tcpUntil     time.Duration
}

// rto is the retransmission timeout (RFC 6298 §2.3), backed off by the timeouts since the last
// response (§5.5).
func (s *server) rto() time.Duration {
	t := unknownRTO
	if s.srtt > 0 {
		t = max(minRTO, s.srtt+4*s.rttvar)
	}
	return min(maxRTO, t<<min(s.fails, 2))
}

// measured takes one round-trip time (RFC 6298 §2.2 and §2.3).
func (s *server) measured(rtt time.Duration) {
	rtt = max(rtt, time.Microsecond)
	if s.srtt == 0 {
		s.srtt, s.rttvar = rtt, rtt/2
		return
	}
	s.rttvar += ((s.srtt - rtt).Abs() - s.rttvar) / 4
	s.srtt += (rtt - s.srtt) / 8
}

const shardCount = 32

// table is the servers by address, bounded, in shards.
type table struct {
	seed   maphash.Seed
	shards [shardCount]shard
	limit  int // of one shard
}

type shard struct {
	mu      sync.Mutex
	servers map[netip.AddrPort]*server
}

func (t *table) init(limit int) {
	t.seed = maphash.MakeSeed()
	t.limit = max(1, limit/shardCount)
	for i := range t.shards {
		t.shards[i].servers = make(map[netip.AddrPort]*server)
	}
}

func (t *table) shard(a netip.AddrPort) *shard {
	return &t.shards[maphash.Comparable(t.seed, a)%shardCount]
}

// server returns the record of an address, a new one where there was none.
func (t *table) server(a netip.AddrPort, now time.Duration) *server {
	sh := t.shard(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.servers[a]
	if s == nil {
		if len(sh.servers) >= t.limit {
			sh.evict()
		}
		s = &server{addr: a, shard: sh}
		sh.servers[a] = s
	}
	s.used = now
	return s
}

// evictSample is how many records are compared to find one to forget.
const evictSample = 8

// evict forgets the least useful of a few records taken at random. One that never answered gives
// way first, so that a hostile zone's made-up addresses push out each other.
func (sh *shard) evict() {
	var worst *server
	n := 0
	for _, s := range sh.servers {
		if worst == nil || s.worthLess(worst) {
			worst = s
		}
		if n++; n == evictSample {
			break
		}
	}
	delete(sh.servers, worst.addr)
}

func (s *server) worthLess(o *server) bool {
	if (s.srtt == 0) != (o.srtt == 0) {
		return s.srtt == 0
	}
	return s.used < o.used
}

// lameTable is the servers that were lame, each for one zone.
type lameTable struct {
	mu    sync.Mutex
	until map[lameKey]time.Duration
}

type lameKey struct {
	server netip.AddrPort
	zone   string // canonical
}

func (l *lameTable) init() { l.until = make(map[lameKey]time.Duration) }

// family is what we know of IPv4 or IPv6 as a whole.
type family struct {
	mu        sync.Mutex
	repliedAt time.Duration
	fails     int           // timeouts of servers never heard of, since the last reply of any
	downUntil time.Duration // the system has no route
}

package exchange

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"bonsai/wire"
)

const shardCount = 32

// table is the servers by address, in shards and bounded: only an address that was asked gets a
// record.
type table struct {
	seed   maphash.Seed
	shards [shardCount]shard
	limit  int // records of one shard
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

// zoneHash names a zone in lameness records. It allocates only for a zone in mixed case.
func (t *table) zoneHash(zone wire.Name) uint64 {
	return maphash.String(t.seed, string(zone.Canonical()))
}

// obtain returns the record of an address, made where there was none, with its shard locked.
func (t *table) obtain(a netip.AddrPort, now time.Duration) *server {
	sh := t.shard(a)
	sh.mu.Lock()
	s := sh.servers[a]
	if s == nil {
		if len(sh.servers) >= t.limit {
			sh.evict()
		}
		s = &server{addr: a, shard: sh}
		for _, b := range a.Addr().As16() {
			s.phase += b
		}
		sh.servers[a] = s
	}
	s.used = now
	return s
}

// evictSample is how many records are compared to find one to forget.
const evictSample = 8

// evict forgets the least useful of a few records taken at random. One that never answered gives
// way first, so that a hostile zone's made-up addresses push out each other. A record that is
// forgotten while a query is on its way stays whole for those who hold it.
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
	if s.heard != o.heard {
		return !s.heard
	}
	return s.used < o.used
}

// ServerInfo is what is known of a server, at one moment.
type ServerInfo struct {
	Addr      netip.AddrPort
	SRTT      time.Duration // smoothed round-trip time, 0 where none was measured
	RTTVar    time.Duration
	RTO       time.Duration // how long the next query waits for its response
	Fails     int           // timeouts in a row
	Held      time.Duration // how long it is still left alone
	Tried     time.Duration // time since the last query
	TCPFirst  bool
	Cookie    bool // known to send DNS cookies
	LameZones int  // zones that it is known not to serve
}

func (s *server) info(now time.Duration) ServerInfo {
	i := ServerInfo{
		Addr: s.addr, SRTT: s.srtt, RTTVar: s.rttvar, RTO: s.rto(false, 0), Fails: int(s.fails),
		Held: max(0, s.holdUntil-now), Tried: now - s.triedAt,
		TCPFirst: s.tcpUntil > now, Cookie: s.cookie != nil,
	}
	for _, l := range s.lame {
		if l.until > now {
			i.LameZones++
		}
	}
	return i
}

// Server returns what is known of one address; ok is false where nothing is.
func (c *Client) Server(a netip.AddrPort) (i ServerInfo, ok bool) {
	sh := c.servers.shard(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.servers[a]
	if s == nil {
		return i, false
	}
	return s.info(c.now()), true
}

// Servers returns what is known of all addresses, in no order. It holds up queries for a shard of
// them at a time.
func (c *Client) Servers() []ServerInfo {
	var all []ServerInfo
	now := c.now()
	for i := range c.servers.shards {
		sh := &c.servers.shards[i]
		sh.mu.Lock()
		for _, s := range sh.servers {
			all = append(all, s.info(now))
		}
		sh.mu.Unlock()
	}
	return all
}

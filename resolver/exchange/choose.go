package exchange

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"bonsai/wire"
)

// lameFor is how long a server is passed over for a zone that it turned out not to serve.
const (
	lameFor   = 60 * time.Second
	lameLimit = 4096
)

// MarkLame records that the server does not serve the zone.
func (c *Client) MarkLame(server netip.AddrPort, zone wire.Name) {
	l := &c.lame
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.until) >= lameLimit {
		for k := range l.until {
			delete(l.until, k)
			break
		}
	}
	l.until[lameKey{server, string(zone.Canonical())}] = c.now() + lameFor
}

func (c *Client) isLame(server netip.AddrPort, zone wire.Name, now time.Duration) bool {
	c.lame.mu.Lock()
	defer c.lame.mu.Unlock()
	return c.lame.until[lameKey{server, string(zone)}] > now
}

// Choose picks the server of the zone to ask next among candidates, passing over those in tried and
// those that may not be asked; ok is false where none is left.
func (c *Client) Choose(zone wire.Name, candidates, tried []netip.AddrPort) (server netip.AddrPort, ok bool) {
	now := c.now()
	zone = zone.Canonical()
	best := time.Duration(0)
	for _, a := range candidates {
		if slices.Contains(tried, a) || !c.Usable(a.Addr()) {
			continue
		}
		cost := c.cost(a, zone, now)
		if !ok || cost < best {
			server, best, ok = a, cost, true
		}
	}
	return server, ok
}

func (c *Client) cost(a netip.AddrPort, zone wire.Name, now time.Duration) time.Duration {
	sh := c.servers.shard(a)
	sh.mu.Lock()
	cost := time.Duration(rand.Int64N(int64(unknownRTO)))
	if s := sh.servers[a]; s != nil {
		if s.srtt > 0 && s.fails == 0 {
			cost = s.srtt
		} else {
			cost = s.rto()
		}
	}
	sh.mu.Unlock()
	if c.isLame(a, zone, now) {
		cost += time.Minute
	}
	return cost
}

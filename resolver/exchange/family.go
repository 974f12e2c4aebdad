package exchange

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// suspectAfter timeouts in a row, of whatever servers, make a whole family suspect: its addresses
// are asked only where the other has none alive, but for a probe now and then.
const suspectAfter = 3

const (
	familyProbeEvery = 5 * time.Second
	// noRouteFor is how long a family that the system has no route for is passed over.
	noRouteFor = 10 * time.Second
)

// family is what we know of IPv4 or IPv6 as a whole: a network without one, or one that swallows
// its packets, is not found out server by server. Its fields are read and written without a lock
// that joins them, for each is a hint.
type family struct {
	repliedAt atomic.Int64 // of any server
	failedAt  atomic.Int64
	fails     atomic.Int32 // timeouts in a row, those side by side counted once
	probedAt  atomic.Int64
	downUntil atomic.Int64 // the system has no route
}

func (c *Client) family(a netip.Addr) *family {
	if a.Is4() {
		return &c.families[0]
	}
	return &c.families[1]
}

func (f *family) answered(now time.Duration) {
	f.repliedAt.Store(int64(now))
	if f.fails.Load() != 0 {
		f.fails.Store(0)
	}
	if f.downUntil.Load() != 0 {
		f.downUntil.Store(0)
	}
}

func (f *family) timedOut(sentAt, now time.Duration) {
	if at := f.failedAt.Load(); int64(sentAt) >= at && f.failedAt.CompareAndSwap(at, int64(now)) {
		f.fails.Add(1)
	}
}

// noRoute takes an error of the system's own. It says nothing of a family that has just worked: then
// it is this one address that has no route.
func (f *family) noRoute(err error, now time.Duration) {
	if replied := f.repliedAt.Load(); isNoRoute(err) && now-time.Duration(replied) >= noRouteFor {
		f.downUntil.Store(int64(now + noRouteFor))
	}
}

func (f *family) isDown(now time.Duration) bool { return int64(now) < f.downUntil.Load() }

func (f *family) isSuspect() bool { return f.fails.Load() >= suspectAfter }

// mayProbe says, once in a while, that a suspect family should be tried again.
func (f *family) mayProbe(now time.Duration) bool {
	at := f.probedAt.Load()
	return int64(now)-at >= int64(familyProbeEvery) && f.probedAt.CompareAndSwap(at, int64(now))
}

// Families says which address families seem to work. Both are true until shown otherwise, and at
// least one always is unless the configuration has just the other.
func (c *Client) Families() (ipv4, ipv6 bool) {
	now := c.now()
	ok := func(f *family) bool { return !f.isDown(now) && !f.isSuspect() }
	ipv4 = c.config.IPv4 && ok(&c.families[0])
	ipv6 = c.config.IPv6 && ok(&c.families[1])
	if !ipv4 && !ipv6 {
		return c.config.IPv4, c.config.IPv6
	}
	return ipv4, ipv6
}

package serve

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// clientBits6 is how much of an IPv6 address is a client: the network that one is usually given.
	clientBits6 = 64
	// evictSample is how many connections are looked at to find one to close for a new one.
	evictSample = 16
	// minIdleShare is what is left of TCPIdle when there is no room for another connection.
	minIdleShare = 10
	// acceptPause is how long to wait where the system has no file descriptor left, or the like.
	acceptPause = 50 * time.Millisecond
)

// accept takes the connections of one listener until the server drains.
func (s *Server) accept(l net.Listener) error {
	for {
		nc, err := l.Accept()
		switch {
		case s.draining.Load():
			if err == nil {
				nc.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			select {
			case <-s.drain:
				return nil
			case <-time.After(acceptPause):
			}
			continue
		}
		c := newConn(s, nc)
		evicted, ok := s.conns.add(c)
		if evicted != nil {
			evicted.fail(causeEvicted)
		}
		if !ok {
			nc.Close()
			continue
		}
		s.readers.Go(c.serve)
	}
}

// connTable holds the open connections, within their limits.
type connTable struct {
	max, maxClient int
	idleTime       time.Duration
	idle           atomic.Int64 // how long a connection may now be idle

	mu      sync.Mutex
	open    map[*conn]struct{}
	clients map[netip.Addr]int

	accepted, refused, refusedClient uint64
}

func (t *connTable) init(c *Config) {
	t.max, t.maxClient, t.idleTime = c.MaxTCP, c.MaxTCPPerClient, c.TCPIdle
	t.open, t.clients = map[*conn]struct{}{}, map[netip.Addr]int{}
	t.idle.Store(int64(t.idleTime))
}

// clientOf returns what counts as one client.
func clientOf(a netip.Addr) netip.Addr {
	if a.Is6() && !a.Is4In6() {
		if p, err := a.WithZone("").Prefix(clientBits6); err == nil {
			return p.Addr()
		}
	}
	return a.Unmap()
}

// add takes a connection in, at the price of an idle one where there is no room.
func (t *connTable) add(c *conn) (evicted *conn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients[c.key] >= t.maxClient {
		t.refusedClient++
		return nil, false
	}
	if len(t.open) >= t.max {
		// RFC 7766 §6.2.3: a server short of resources may close idle connections early.
		if evicted = t.longestIdle(); evicted == nil {
			t.refused++
			return nil, false
		}
		t.drop(evicted)
	}
	t.accepted++
	t.open[c] = struct{}{}
	t.clients[c.key]++
	t.setIdle()
	return evicted, true
}

// longestIdle returns, of a few connections, the one idle for longest, nil where none is idle.
func (t *connTable) longestIdle() (longest *conn) {
	n := 0
	for c := range t.open {
		if c.isIdle() && (longest == nil || c.last.Load() < longest.last.Load()) {
			longest = c
		}
		if n++; n == evictSample {
			break
		}
	}
	return longest
}

// remove takes a connection out; it may be out already.
func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(c)
	t.setIdle()
}

func (t *connTable) drop(c *conn) {
	if _, ok := t.open[c]; !ok {
		return
	}
	delete(t.open, c)
	if t.clients[c.key]--; t.clients[c.key] == 0 {
		delete(t.clients, c.key)
	}
}

// setIdle shortens the idle time as the free places become fewer than half.
func (t *connTable) setIdle() {
	free := int64(t.max - len(t.open))
	idle := min(int64(t.idleTime), int64(t.idleTime)*2*free/int64(t.max))
	t.idle.Store(max(idle, int64(t.idleTime)/minIdleShare))
}

func (t *connTable) each(f func(*conn)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		f(c)
	}
}

func (t *connTable) stats() ConnectionStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return ConnectionStats{Open: len(t.open), Accepted: t.accepted, Refused: t.refused, RefusedClient: t.refusedClient}
}

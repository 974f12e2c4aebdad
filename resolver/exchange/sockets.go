package exchange

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bonsai/wire"
)

// A UDP socket costs more to make than a query costs to send, so one may carry further queries to
// the same server, by a rule that leaves a forger no better odds than he has without:
//
//   - it is connected, on a port drawn uniformly, and carries one query at a time;
//   - only a believed response lets it carry another, at most socketUses in all and within
//     socketAge of its making;
//   - a timeout, an ICMP error or any datagram but the response ends it with nothing more read, also
//     one that came while it was idle, and the question goes on over TCP. Only an exact copy of the
//     last believed response is passed over, for networks make such;
//   - it carries only questions that a forger must guess more of than ID and port: whose zone has
//     socketLetters letters, each of which may be in either case, or whose server is known to send
//     cookies. Letters that the client chose do not count.
const (
	socketUses    = 8
	socketAge     = 500 * time.Millisecond
	socketLetters = 8

	idlePerServer = 32
	idleInAll     = 512
	sweepEvery    = 250 * time.Millisecond
	// copiesPassedOver bounds the copies of the last response that are read for one query.
	copiesPassedOver = 2
)

// socket is a connected UDP socket.
type socket struct {
	conn   net.Conn
	opened time.Duration
	uses   int
	last   []byte     // the response that was believed last
	from   netip.Addr // as configured; invalid where the system chose
}

// Reusable marks connections of a Transport that may carry more than one query. Without it each has
// its own.
type Reusable interface{ Reusable() }

// idleSockets is what Close and the sweep need to find the idle sockets, which lie with their
// servers.
type idleSockets struct {
	count   atomic.Int32
	mu      sync.Mutex
	servers []*server // that have idle sockets, or had when swept last
	timer   *time.Timer
	closed  bool
}

// maxPortDraws bounds how often a port is drawn anew because another socket holds it.
const maxPortDraws = 16

// takeSocket returns the socket for the next query.
func (x *exchange) takeSocket() (*socket, error) {
	if x.mayReuse() {
		if k := x.takeIdle(); k != nil {
			k.uses++
			x.from = k.from
			return k, nil
		}
	}
	conn, err := x.dialUDP()
	if err != nil {
		return nil, err
	}
	k := x.spare
	if x.spare = nil; k == nil {
		k = new(socket)
	}
	*k = socket{conn: conn, opened: x.start, uses: 1, from: x.from}
	return k, nil
}

// drop closes a socket and keeps its record for the next.
func (x *exchange) drop(k *socket) {
	_ = k.conn.Close()
	*k = socket{}
	x.spare = k
}

// dialUDP opens a socket on a port drawn uniformly (RFC 5452 §9.2).
func (x *exchange) dialUDP() (conn net.Conn, err error) {
	for range maxPortDraws {
		port := x.c.ports.draw(&x.draws)
		conn, err = x.c.transport.DialUDP(x.ctx, x.local(port), x.a.Server)
		if err == nil || !isPortTaken(err) && !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err == nil {
		x.c.counters.sockets.Add(1)
	}
	return conn, err
}

// mayReuse says whether the query has enough in it to guess.
func (x *exchange) mayReuse() bool {
	if x.cookie.length != 0 {
		return true
	}
	return letters(x.a.Zone) >= socketLetters && x.a.Name.IsSubdomainOf(x.a.Zone)
}

// letters counts those of a name, in either case.
func letters(n wire.Name) (count int) {
	for i := 0; i < len(n); i++ {
		if n[i]|0x20-'a' < 26 {
			count++
		}
	}
	return count
}

// takeIdle takes the server's socket that was used last, nil where there is none to use.
func (x *exchange) takeIdle() *socket {
	s := x.s
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	for n := len(s.idle); n > 0; n = len(s.idle) {
		k := s.idle[n-1]
		s.idle[n-1] = nil
		s.idle = s.idle[:n-1]
		x.c.idle.count.Add(-1)
		// RFC 7873 §5.1: a cookie is only sent from the address that it was given to.
		if x.start-k.opened < socketAge && (x.cookie.length == 0 || k.from == x.cookie.local) {
			return k
		}
		_ = k.conn.Close()
	}
	return nil
}

// settle ends the round's socket, or keeps it for another query where the response was believed.
func (x *exchange) settle(msg []byte, believed bool) {
	k := x.socket
	x.socket = nil
	_, reusable := k.conn.(Reusable)
	c := x.c
	if !believed || !reusable || k.uses >= socketUses || x.start-k.opened >= socketAge || !x.mayReuse() ||
		c.idle.count.Load() >= idleInAll {
		x.drop(k)
		return
	}
	k.last = msg
	s := x.s
	s.shard.mu.Lock()
	kept := len(s.idle) < idlePerServer
	listed := s.idleListed
	if kept {
		s.idle = append(s.idle, k)
		s.idleListed = true
	}
	s.shard.mu.Unlock()
	if !kept {
		x.drop(k)
		return
	}
	c.idle.count.Add(1)
	if !listed {
		c.idle.list(c, s)
	}
}

// list adds a server to those to sweep, and starts the sweep where it stands still.
func (i *idleSockets) list(c *Client, s *server) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.servers = append(i.servers, s)
	switch {
	case i.closed:
		i.sweep(c)
	case i.timer == nil:
		i.timer = time.AfterFunc(sweepEvery, func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.sweep(c)
		})
	case len(i.servers) == 1:
		i.timer.Reset(sweepEvery)
	}
}

// sweep closes the sockets that are too old, or all once the client is closed, and goes on while
// there are any.
func (i *idleSockets) sweep(c *Client) {
	now := c.now()
	kept := i.servers[:0]
	for _, s := range i.servers {
		s.shard.mu.Lock()
		sockets := s.idle[:0]
		for _, k := range s.idle {
			if !i.closed && now-k.opened < socketAge {
				sockets = append(sockets, k)
				continue
			}
			_ = k.conn.Close()
			i.count.Add(-1)
		}
		clear(s.idle[len(sockets):])
		s.idle = sockets
		if s.idleListed = len(sockets) > 0; s.idleListed {
			kept = append(kept, s)
		}
		s.shard.mu.Unlock()
	}
	clear(i.servers[len(kept):])
	if i.servers = kept; len(kept) > 0 && !i.closed {
		i.timer.Reset(sweepEvery)
	}
}

func (i *idleSockets) close(c *Client) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	if i.timer != nil {
		i.timer.Stop()
	}
	i.sweep(c)
}

// soon is how long a read waits before it listens for the end of its context as well, which costs
// allocations that most responses come too early for.
const soon = 20 * time.Millisecond

// askUDP sends the query and returns the first datagram that comes back, in memory of its own. It
// never reads a second one: what does not match turns the question to TCP, so that a forger has one
// guess at each query. The socket is left for settle.
func (x *exchange) askUDP() (msg []byte, err error) {
	if x.socket, err = x.takeSocket(); err != nil {
		return nil, err
	}
	if _, err := x.socket.conn.Write(x.query); err != nil {
		return nil, err
	}
	x.sent = true
	x.s.shard.mu.Lock()
	timeout := x.s.rto(x.a.RD, x.a.Retry)
	x.s.shard.mu.Unlock()
	n, err := x.receive(x.socket, timeout)
	if err != nil {
		return nil, err
	}
	msg = make([]byte, n)
	copy(msg, x.buf)
	return msg, nil
}

// receive reads one datagram into the buffer.
func (x *exchange) receive(k *socket, timeout time.Duration) (int, error) {
	now := time.Now()
	wait := min(timeout, soon)
	if err := k.conn.SetReadDeadline(now.Add(wait)); err != nil {
		return 0, err
	}
	n, err := x.readNew(k)
	if err == nil || wait == timeout || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if err := k.conn.SetReadDeadline(now.Add(timeout)); err != nil {
		return 0, err
	}
	conn := k.conn
	stop := context.AfterFunc(x.ctx, func() { _ = conn.SetReadDeadline(now) })
	n, err = x.readNew(k)
	if !stop() {
		k.uses = socketUses // its deadline may change at any time
	}
	return n, err
}

// readNew reads a datagram that is no copy of the last response.
func (x *exchange) readNew(k *socket) (n int, err error) {
	for range 1 + copiesPassedOver {
		n, err = k.conn.Read(x.buf)
		if err != nil || k.last == nil || !isCopy(x.buf[:n], k.last) {
			break
		}
	}
	return n, err
}

// isCopy says whether a packet is the response that was believed last, in which the letter case that was
// drawn for its question is not kept.
func isCopy(packet, last []byte) bool {
	if len(packet) != len(last) {
		return false
	}
	end := wire.HeaderSize
	if binary.BigEndian.Uint16(last[4:]) == 1 {
		end = questionEnd(last) - 4 // its name's
	}
	return bytes.Equal(packet[:wire.HeaderSize], last[:wire.HeaderSize]) &&
		wire.EqualFold(packet[wire.HeaderSize:end], last[wire.HeaderSize:end]) && bytes.Equal(packet[end:], last[end:])
}

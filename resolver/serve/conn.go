package serve

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readSize is the buffer for what a client sends. A connection has one only while it holds part of
	// a message.
	readSize = 8 << 10
	// maxFrame is the longest message with its length (RFC 1035 §4.2.2).
	maxFrame = 2 + 1<<16 - 1
	// minMessage is what a message has at least: its header. Less is not DNS.
	minMessage = 12
	// maxPending bounds the responses of one connection that wait for the client to read, in bytes. It
	// takes what one round of reading may yield, and what the misses in flight usually do.
	maxPending = 128 << 10
	// resumeBelow is how many bytes may wait while more queries are read.
	resumeBelow = 16 << 10
	// maxPendingTotal bounds what waits on all connections, and their buffers for long messages.
	maxPendingTotal = 16 << 20
)

// conn is one TCP connection. One goroutine reads it and answers the hits; the responses to misses
// come from other goroutines, in whatever order they are ready (RFC 7766 §6.2.1.1).
type conn struct {
	s      *Server
	nc     net.Conn
	raw    syscall.RawConn // nil where reads and writes cannot be tried without waiting
	client netip.AddrPort
	key    netip.Addr // what counts as the client
	local  netip.Addr

	// Only the reading goroutine uses these.
	buf        []byte // nil while have is 0 and nothing is being read
	have       int    // bytes in buf
	since      time.Duration
	armed      time.Duration // the deadline set, 0 for none
	done       bool
	why        cause
	onReadable func(fd uintptr) bool

	last atomic.Int64 // when the last message came or the last response was sent

	mu         sync.Mutex // never taken before that of connTable
	changed    sync.Cond  // inflight or pending fell, or failed was set
	inflight   int
	pending    *outbox // nil while nothing waits
	writing    bool    // a goroutine is sending what was pending
	failed     bool    // nothing can be sent any more
	failure    cause
	trying     []byte
	tried      int
	onWritable func(fd uintptr) bool
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc, client: addrPortOf(nc.RemoteAddr()), local: addrPortOf(nc.LocalAddr()).Addr()}
	c.client = netip.AddrPortFrom(c.client.Addr().WithZone(""), c.client.Port())
	c.local = c.local.WithZone("")
	c.key = clientOf(c.client.Addr())
	c.changed.L = &c.mu
	c.last.Store(int64(s.now()))
	if sc, ok := nc.(syscall.Conn); ok && !s.config.Portable {
		c.setRaw(sc)
	}
	return c
}

// serve reads until the connection is to end, and sees the queries in hand answered.
func (c *conn) serve() {
	var why cause
	if c.raw != nil {
		why = c.readReady()
	} else {
		why = c.readWaiting()
	}
	c.ungrab()
	c.mu.Lock()
	for c.inflight > 0 && !c.failed {
		c.changed.Wait()
	}
	c.mu.Unlock()
	c.flush(true)
	c.end(why)
}

// fail lets the reading goroutine end the connection, with nothing more sent. Only that goroutine may
// close it, and not while it is being called back by the socket: closing waits for callbacks.
func (c *conn) fail(why cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(why)
}

func (c *conn) failLocked(why cause) {
	if !c.failed {
		c.failed, c.failure = true, why
		c.nc.SetDeadline(longAgo)
		c.changed.Broadcast()
	}
}

// end closes the connection and counts why, or why it failed before.
func (c *conn) end(why cause) {
	c.mu.Lock()
	if c.failed {
		why = c.failure
	}
	c.failed = true
	c.mu.Unlock()
	c.s.closings[why].Add(1)
	c.nc.Close()
	c.s.conns.remove(c)
}

// readWaiting reads as any net.Conn can.
func (c *conn) readWaiting() cause {
	for {
		if why, ok := c.arm(); !ok {
			return why
		}
		c.grab()
		n, err := c.nc.Read(c.buf[c.have:])
		if n > 0 {
			if why, ok := c.took(n); !ok {
				return why
			}
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.armed = 0
		case err != nil:
			return causeClient
		}
		if c.have == 0 {
			c.ungrab()
		}
	}
}

// arm sees that reading ends when the connection is due to. ok is false where it is due now. The
// deadline set is left alone while it is early enough: when it passes, arm looks again.
func (c *conn) arm() (why cause, ok bool) {
	now := c.s.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	due, why := c.due(now)
	if due <= now || c.failed {
		return why, false
	}
	if c.armed == 0 || due < c.armed || c.armed <= now {
		c.armed = due
		c.nc.SetReadDeadline(c.s.epoch.Add(due))
	}
	// Behind setting the deadline, since a shutdown sets one, too.
	if c.s.draining.Load() {
		return causeDrain, false
	}
	return why, true
}

// due returns when the connection has been silent or slow for too long. c.mu is held.
func (c *conn) due(now time.Duration) (time.Duration, cause) {
	if c.have > 0 {
		return c.since + c.s.config.TCPRead, causeSlow
	}
	// RFC 7766 §6.2.3: idle is a connection with no query outstanding.
	idle := time.Duration(c.s.conns.idle.Load())
	if c.inflight > 0 || c.writing {
		return now + idle, causeIdle
	}
	return time.Duration(c.last.Load()) + idle, causeIdle
}

// isIdle says whether no response is owed to the client.
func (c *conn) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inflight == 0 && !c.writing
}

// grab gets a buffer to read into.
func (c *conn) grab() {
	if c.buf == nil {
		c.buf = c.s.buffers.Get().(*[readSize]byte)[:]
	}
}

// ungrab gives the buffer back.
func (c *conn) ungrab() {
	switch len(c.buf) {
	case 0:
	case readSize:
		c.s.buffers.Put((*[readSize]byte)(c.buf))
	default:
		c.s.pending.Add(-maxFrame)
	}
	c.buf, c.have = nil, 0
}

// grow exchanges the buffer for one that takes any message.
func (c *conn) grow() (ok bool) {
	if !c.s.charge(maxFrame) {
		return false
	}
	long, have := make([]byte, maxFrame), c.have
	copy(long, c.buf[:have])
	c.ungrab()
	c.buf, c.have = long, have
	return true
}

// took answers the messages that are complete, n bytes more having come. ok is false where the
// connection is to end.
func (c *conn) took(n int) (why cause, ok bool) {
	received := c.s.now()
	if c.have == 0 {
		c.since = received
	}
	c.have += n
	pos := 0
	for {
		size, whole := frameSize(c.buf[pos:c.have])
		switch {
		case size != 0 && size < 2+minMessage:
			return causeMalformed, false
		case !whole:
			return c.keep(pos, size, received)
		}
		room, ok := c.room()
		if !ok {
			return causeUnread, false
		}
		sc := c.s.scratches.get()
		n, hits := sc.answer(c, c.buf[pos:c.have], room, received)
		pos += n
		c.post(sc.out, received)
		if hits > 0 {
			sc.count.hitTime.add(c.s.now()-received, hits)
		}
		c.s.scratches.put(sc)
		c.flush(true)
	}
}

// keep moves an incomplete message, which begins at pos, to the front; size is what it will have, 0
// where that is not known yet.
func (c *conn) keep(pos, size int, received time.Duration) (why cause, ok bool) {
	if pos > 0 {
		c.have = copy(c.buf, c.buf[pos:c.have])
		c.since = received
	}
	if size > len(c.buf) && !c.grow() {
		return causeSlow, false
	}
	return 0, true
}

// frameSize returns the size of the first message in b with its length, 0 where that is incomplete,
// and whether all of it is there.
func frameSize(b []byte) (size int, whole bool) {
	if len(b) < 2 {
		return 0, false
	}
	size = 2 + int(binary.BigEndian.Uint16(b))
	return size, size <= len(b)
}

// room waits until more queries may be answered, and returns how many. A client that has not read
// its responses, or has too many misses in flight, is not read from.
func (c *conn) room() (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.failed && (c.inflight >= c.s.config.MaxTCPInflight || c.pendingBytes() >= resumeBelow) {
		c.changed.Wait()
	}
	return c.s.config.MaxTCPInflight - c.inflight, !c.failed
}

// miss hands a query over to another goroutine, or says that there is no room.
func (c *conn) miss(x *Exchange, received time.Duration) bool {
	if !c.s.misses.take() {
		return false
	}
	c.mu.Lock()
	c.inflight++
	c.mu.Unlock()
	c.s.misses.start(x, "", c, received)
	return true
}

// reply implements replier. The slot is given up first: the client may be slow to read.
func (c *conn) reply(r *runner, release func()) {
	release()
	if frame := r.frame(); frame != nil {
		c.s.tcpCount.responses.Add(1)
		c.post(frame, c.s.now())
		c.flush(false)
	}
	c.mu.Lock()
	c.inflight--
	c.changed.Broadcast()
	c.mu.Unlock()
}

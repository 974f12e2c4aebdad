package serve

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxIdleRunners is how many goroutines wait for the next miss. One that has worked has a stack of
	// the right size, which a new one has to grow in steps; but it costs some 10 KiB. This many are a
	// burst of four batches.
	maxIdleRunners = 256
	// keptQuery bounds the buffer that a runner keeps for copies of queries.
	keptQuery = 2048
	// missRoom is the least room for a response.
	missRoom = 2048
)

// misses runs Handler.Miss in goroutines of which at most max work at a time.
type misses struct {
	handler Handler
	ctx     context.Context
	room    int // for a response, without allocating
	max     int64
	now     func() time.Duration

	inflight atomic.Int64 // slots taken
	took     durations

	mu     sync.Mutex
	idle   []*runner
	closed bool
	wg     sync.WaitGroup
}

// replier sends the response to a miss. reply is called once, by the runner's goroutine, also where
// the response is empty, and calls release when the slot may go to another miss.
type replier interface {
	reply(r *runner, release func())
}

// runner is a goroutine that answers one miss after the other, and the miss it has in hand.
type runner struct {
	x        Exchange
	zone     string // of a link-local client
	to       replier
	received time.Duration

	query []byte // where x.Query lies
	buf   []byte // where x.Response begins, behind room for its length over TCP
	wake  chan bool
}

// take takes a slot if one is free.
func (m *misses) take() bool {
	if m.inflight.Add(1) > m.max {
		m.inflight.Add(-1)
		return false
	}
	return true
}

func (m *misses) release() { m.inflight.Add(-1) }

// start answers a copy of x in another goroutine, for which the caller took a slot.
func (m *misses) start(x *Exchange, zone string, to replier, received time.Duration) {
	r := m.runner()
	r.query = append(r.query[:0], x.Query...)
	r.x = *x
	r.x.Query = r.query
	r.x.Response = r.buf[2:2]
	r.zone, r.to, r.received = zone, to, received
	r.wake <- true
}

// runner returns an idle runner, or a new one.
func (m *misses) runner() *runner {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.idle); n > 0 {
		r := m.idle[n-1]
		m.idle = m.idle[:n-1]
		return r
	}
	r := &runner{buf: make([]byte, 2+m.room), wake: make(chan bool, 1)}
	m.wg.Go(func() { m.run(r) })
	return r
}

// frame returns the response with its length before it (RFC 1035 §4.2.2), nil where there is none.
func (r *runner) frame() []byte {
	n := len(r.x.Response)
	if n == 0 || n > maxFrame-2 {
		return nil
	}
	if 2+n > len(r.buf) || &r.x.Response[0] != &r.buf[2] {
		r.buf = append(r.buf[:2], r.x.Response...)
	}
	binary.BigEndian.PutUint16(r.buf, uint16(n))
	return r.buf[:2+n]
}

func (m *misses) run(r *runner) {
	release := m.release
	for <-r.wake {
		m.handler.Miss(m.ctx, &r.x)
		r.to.reply(r, release)
		if len(r.x.Response) > 0 {
			m.took.add(m.now()-r.received, 1)
		}
		if !m.park(r) {
			return
		}
	}
}

// park puts the runner among the idle ones, unless they are enough.
func (m *misses) park(r *runner) bool {
	r.x, r.zone, r.to = Exchange{}, "", nil
	if cap(r.query) > keptQuery {
		r.query = nil
	}
	if len(r.buf) != 2+m.room {
		r.buf = make([]byte, 2+m.room)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.idle) >= maxIdleRunners {
		return false
	}
	m.idle = append(m.idle, r)
	return true
}

// close lets the goroutines end, each after the miss it has in hand. Nothing may be started any more.
func (m *misses) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, r := range m.idle {
		r.wake <- false
	}
	m.idle = nil
}

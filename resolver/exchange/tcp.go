package exchange

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Bounds of TCP towards servers.
const (
	minTCPTimeout = 1500 * time.Millisecond // for handshake, query and a long response
	maxTCPTimeout = 4 * time.Second
	minLastTry    = 400 * time.Millisecond

	// streamTries is how many connections one Ask may use: the server may have closed the first while
	// it was idle, and the second behind the query of another.
	streamTries = 3
	// streamsPerServer and streamsInAll bound the connections that are open at once.
	streamsPerServer = 8
	streamsInAll     = 256
	// streamDepth is how many queries share a connection before another is opened (RFC 7766
	// §6.2.1.1).
	streamDepth = 32
	// streamIdle is how long a connection is kept without a query on it (RFC 7766 §6.2.3: of the
	// order of seconds).
	streamIdle = 5 * time.Second
)

var (
	errClosed      = errors.New("client closed")
	errConnections = errors.New("too many TCP connections")
	errEnded       = errors.New("the server closed the connection")
)

// streamPool is the open TCP connections. Its lock guards the state of each of them, too.
type streamPool struct {
	mu      sync.Mutex
	byPeer  map[peer][]*stream
	count   int
	closed  bool
	readers sync.WaitGroup
}

func (p *streamPool) init() { p.byPeer = make(map[peer][]*stream) }

// Close ends the connections and sockets that are kept, and waits for the goroutines of the former.
// A Do over TCP that still runs fails.
func (c *Client) Close() {
	c.idle.close(c)
	p := &c.streams
	p.mu.Lock()
	p.closed = true
	var all []*stream
	for _, streams := range p.byPeer {
		all = append(all, streams...)
	}
	p.mu.Unlock()
	for _, st := range all {
		p.end(st, errClosed)
	}
	p.readers.Wait()
}

// askTCP asks over a connection, one that is open if there is one, and returns the message that
// comes back in memory of its own.
func (x *exchange) askTCP() ([]byte, error) {
	x.s.shard.mu.Lock()
	timeout := min(maxTCPTimeout, max(minTCPTimeout, 4*x.s.rto(x.a.RD, x.a.Retry)))
	if x.doubt == ErrTimeout {
		// UDP got no answer just now: this is but a last try, of a few round trips.
		timeout = max(minLastTry, 4*x.s.srtt)
	}
	alone := x.start < x.s.aloneUntil
	x.s.shard.mu.Unlock()
	ctx, cancel := context.WithTimeout(x.ctx, timeout)
	defer cancel()
	x.sent = true
	var err error
	for try := range streamTries {
		if try > 0 {
			if err := x.spend(); err != nil {
				return nil, err
			}
		}
		var msg []byte
		var st *stream
		if st, err = x.openStream(ctx, alone || try == streamTries-1); err != nil {
			return nil, err
		}
		used := x.c.streams.answers(st) > 0
		msg, err = x.askOver(ctx, st)
		answers := x.c.streams.answers(st)
		x.c.streams.release(st, errors.Is(err, context.DeadlineExceeded) && x.ctx.Err() == nil)
		// RFC 7766 §6.2.4: a query left open when a connection ends is asked again on another, unless
		// it was the first on this one: then it is what the server ends connections for.
		if !errors.Is(err, errEnded) && !errors.Is(err, ErrMismatch) || answers == 0 {
			return msg, err
		}
		if !used {
			alone = true
			x.s.shard.mu.Lock()
			x.s.aloneUntil = x.start + aloneFor
			x.s.shard.mu.Unlock()
		}
	}
	return nil, err
}

// openStream returns a connection to the server with a place taken on it, alone there if so asked.
func (x *exchange) openStream(ctx context.Context, alone bool) (*stream, error) {
	p := &x.c.streams
	for {
		st, mine, err := p.join(x, alone)
		if err != nil {
			return nil, err
		}
		if mine {
			x.dial(ctx, st)
		}
		select {
		case <-st.ready:
			err = st.dialled
		case <-ctx.Done():
			p.release(st, false)
			return nil, ctx.Err()
		}
		if err == nil {
			x.from = st.from
			return st, nil
		}
		p.release(st, false)
		// The one who dialled may have been called off by its own client.
		if mine || !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
}

// dial opens the connection of a stream that this Ask has just put into the pool.
func (x *exchange) dial(ctx context.Context, st *stream) {
	local := x.local(0)
	st.from = local.Addr()
	conn, err := x.c.transport.DialTCP(ctx, local, x.a.Server)
	if err == nil && x.a.TLS {
		conn, err = x.c.secure(ctx, conn, x.a.TLSName)
	}
	if err == nil {
		x.c.counters.connections.Add(1)
	} else if isNoRoute(err) {
		x.sent = false
	}
	x.c.streams.opened(st, conn, err)
}

// askOver sends the query over a stream and waits for the response with its ID.
func (x *exchange) askOver(ctx context.Context, st *stream) ([]byte, error) {
	p := &x.c.streams
	call, err := p.register(st, x)
	if err != nil {
		return nil, err
	}
	if err := st.write(ctx, x.frame()); err != nil {
		p.end(st, errEnded)
	}
	select {
	case <-call.done:
		return call.msg, call.err
	case <-ctx.Done():
		p.abandon(st, call)
		return nil, ctx.Err()
	}
}

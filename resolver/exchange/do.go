package exchange

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"bonsai/wire"
)

// exchange is the state of one Do. It is pooled, with its buffers.
type exchange struct {
	c     *Client
	draws entropy
	buf   []byte // a datagram of the size offered, and one byte to tell a longer one by
	room  []byte // two bytes for TCP's length, then the query
	query []byte // as sent last, in room

	ctx        context.Context
	a          *Ask
	s          *server
	start      time.Duration // of the round
	sent       bool          // the round's query left this machine
	socket     *socket       // of the round, where it is over UDP
	spare      *socket       // a record without one
	believed   bool          // the round's response
	tcp        bool
	edns       bool
	noCookie   bool  // the server stumbles over options
	bareError  bool  // a bare header with our ID said FORMERR or NOTIMP
	doubt      error // what turned the question to TCP where the server did not
	badCookies int
	cookie     cookie     // sent with the query
	from       netip.Addr // that it was sent from
}

func newExchange(c *Client) *exchange {
	x := &exchange{
		c:    c,
		buf:  make([]byte, int(c.config.EDNSSize)+1),
		room: make([]byte, 2+queryRoom),
	}
	x.query = x.room[2:]
	return x
}

// verdict is what one exchange of packets leads to.
type verdict uint8

const (
	accept    verdict = iota
	giveUp            // the error says why
	tryTCP            // ask again over TCP
	tryPlain          // ask again without EDNS
	tryBare           // ask again with an OPT without options
	tryCookie         // ask again with the cookie just learned
)

// maxRounds bounds the queries of one Do: UDP with EDNS, without options, without EDNS, the same
// over TCP, and one more for a cookie.
const maxRounds = 7

var (
	errNotAsked  = errors.New("address may not be asked")
	errTruncated = errors.New("truncated")
	errRounds    = errors.New("no end of the server's excuses")
)

// Do asks and returns the response, or an *Error. It waits no longer than the server's timeout over
// UDP, and as long again where that leads to TCP; where a server is silent, it may wait some
// seconds for its turn besides. It ends early when ctx does.
func (c *Client) Do(ctx context.Context, a *Ask) (*Reply, error) {
	x := c.pool.Get().(*exchange)
	x.ctx, x.a = ctx, a
	r, err := x.do()
	x.ctx, x.a, x.s = nil, nil, nil
	c.pool.Put(x)
	return r, err
}

func (x *exchange) do() (*Reply, error) {
	x.tcp, x.edns, x.noCookie, x.bareError, x.badCookies, x.doubt = x.a.TCP || x.a.TLS, true, false, false, 0, nil
	if !x.c.Usable(x.a.Server.Addr()) {
		return nil, x.fail(ErrUnreachable, errNotAsked)
	}
	if !x.a.Name.Valid() {
		return nil, x.fail(ErrMalformed, wire.ErrName)
	}
	if err := x.admit(); err != nil {
		return nil, err
	}
	r, err := x.rounds()
	x.leave()
	return r, err
}

func (x *exchange) rounds() (*Reply, error) {
	for range maxRounds {
		r, v, err := x.round()
		switch v {
		case accept:
			return r, nil
		case giveUp:
			return nil, err
		case tryTCP:
			x.tcp = true
			x.c.counters.toTCP.Add(1)
		case tryPlain:
			x.edns = false
		case tryBare:
			x.noCookie = true
		}
	}
	return nil, x.fail(ErrMalformed, errRounds)
}

func (x *exchange) fail(kind, cause error) error {
	return &Error{Server: x.a.Server, TCP: x.tcp, TLS: x.a.TLS, Kind: kind, Cause: cause}
}

// round sends one query and judges what comes back.
func (x *exchange) round() (*Reply, verdict, error) {
	if err := x.ctx.Err(); err != nil {
		return nil, giveUp, x.fail(err, nil)
	}
	if err := x.spend(); err != nil {
		return nil, giveUp, err
	}
	x.compose()
	x.start, x.sent, x.believed = x.c.now(), false, false
	if x.tcp {
		msg, err := x.askTCP()
		return x.outcome(msg, err)
	}
	msg, err := x.askUDP()
	r, v, err := x.outcome(msg, err)
	if x.socket != nil {
		x.settle(msg, x.believed)
	}
	return r, v, err
}

// outcome judges what came of a query.
func (x *exchange) outcome(msg []byte, err error) (*Reply, verdict, error) {
	rtt := x.c.now() - x.start
	if err != nil {
		v, err := x.lost(err, rtt)
		x.trace(rtt, nil, len(msg), err)
		return nil, v, err
	}
	if x.a.Budget != nil {
		if cause := x.a.Budget.Received(len(msg)); cause != nil {
			err = x.fail(ErrBudget, cause)
			x.trace(rtt, nil, len(msg), err)
			return nil, giveUp, err
		}
	}
	r, v, err := x.judge(msg, rtt)
	x.trace(rtt, r, len(msg), err)
	return r, v, err
}

// spend takes one query off the budget and counts it.
func (x *exchange) spend() error {
	if x.a.Budget != nil {
		if err := x.a.Budget.Query(); err != nil {
			return x.fail(ErrBudget, err)
		}
	}
	x.c.counters.sent(x.transport(), x.a.Server.Addr())
	return nil
}

// lost takes an error of the network: it counts against the server, and against its family.
func (x *exchange) lost(err error, waited time.Duration) (verdict, error) {
	if cause := x.ctx.Err(); cause != nil {
		return giveUp, x.fail(cause, nil)
	}
	if e, ok := err.(*Error); ok {
		return giveUp, e // of the budget
	}
	now := x.c.now()
	f := x.c.family(x.a.Server.Addr())
	kind := ErrUnreachable
	switch {
	case isTimeout(err):
		kind, err = ErrTimeout, nil
		x.c.counters.timeouts.Add(1)
	case errors.Is(err, ErrMismatch):
		kind, err = ErrMismatch, nil
		x.c.counters.mismatches.Add(1)
	case isUntrusted(err):
		kind = ErrUntrusted
	}
	if !x.sent {
		f.noRoute(err, now)
	}
	x.s.shard.mu.Lock()
	if x.tcp {
		x.s.tcpFailedAt = now
	}
	// What did not leave this machine says nothing of the server. Where UDP was given up for a doubt
	// or for TC, the server is as it was.
	counts := x.sent && (!x.tcp || x.a.TCP || x.a.TLS)
	if counts {
		x.s.timedOut(x.start, now)
	}
	x.s.shard.mu.Unlock()
	if counts && kind == ErrTimeout {
		f.timedOut(x.start, now)
	}
	if x.tcp && x.bareError && x.edns {
		// A server from before EDNS, without TCP. A forged hint can win no more than a query without
		// EDNS, whose response has to match in full.
		x.tcp = false
		return tryPlain, x.fail(kind, err)
	}
	if x.socket != nil && x.socket.uses > 1 {
		x.doubt = kind
		return tryTCP, x.fail(kind, err)
	}
	if x.doubt != nil {
		return giveUp, x.fail(x.doubt, x.fail(kind, err))
	}
	return giveUp, x.fail(kind, err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// judge looks at a packet that came back.
func (x *exchange) judge(msg []byte, rtt time.Duration) (*Reply, verdict, error) {
	m := believe(x.query, msg, x.tcp)
	if m == matched && !x.tcp && len(msg) == len(x.buf) {
		m = truncated // longer than was ever offered: the rest is not here
	}
	switch m {
	case mismatched:
		x.bareError = x.bareError || isBareError(x.query, msg)
		return x.doubted()
	case truncated:
		x.replied(rtt)
		if x.tcp {
			return nil, giveUp, x.fail(ErrMalformed, errTruncated)
		}
		return nil, tryTCP, x.fail(ErrMalformed, errTruncated)
	}
	if binary.BigEndian.Uint16(msg[4:]) == 1 {
		// The letter case that was drawn is between us and the server, but owners and targets may be
		// pointers to the question (RFC 1035 §4.1.4).
		copy(msg[wire.HeaderSize:], x.a.Name)
	}
	r := x.c.replies.Get().(*Reply)
	r.Server, r.RTT, r.TCP, r.EDNS = x.a.Server, rtt, x.tcp, x.edns
	r.Records = r.records[:0]
	if err := r.Parse(msg); err != nil {
		// Without its cookie nothing shows that the server has sent it.
		if x.cookie.length != 0 && !x.tcp {
			return x.doubted()
		}
		x.replied(rtt)
		return nil, giveUp, x.fail(ErrMalformed, err)
	}
	if !x.checkCookie(r) {
		return x.doubted()
	}
	x.replied(rtt)
	return r, x.excuse(r), nil
}

// doubted takes a packet that may not be the server's.
func (x *exchange) doubted() (*Reply, verdict, error) {
	x.c.counters.mismatches.Add(1)
	err := x.fail(ErrMismatch, nil)
	if x.tcp {
		return nil, giveUp, err
	}
	x.doubt = ErrMismatch
	x.s.shard.mu.Lock()
	x.s.mismatch(x.c.now())
	x.s.shard.mu.Unlock()
	return nil, tryTCP, err
}

// excuse tells a server that stumbled over our EDNS from one that answered.
func (x *exchange) excuse(r *Reply) verdict {
	if !x.edns {
		return accept
	}
	switch r.RCODE() {
	// RFC 6891 §7: a server without EDNS says FORMERR, and can send no OPT; old ones say NOTIMP.
	// §6.1.3: BADVERS, to our version 0, comes from a broken one.
	case wire.RCODENotImp, wire.RCODEBadVers:
		return tryPlain
	case wire.RCODEFormErr:
		if !r.Message.EDNS.Present {
			return tryPlain
		}
		// One with EDNS may still stumble over an option (RFC 6891 §6.1.2 says to ignore it).
		if x.sendsCookie() && x.cookie.length == 0 {
			return tryBare
		}
	case wire.RCODEBadCookie:
		return x.badCookie()
	}
	return accept
}

// badCookie: RFC 7873 §5.3: BADCOOKIE brings the cookie to use; where that does not do, TCP does.
func (x *exchange) badCookie() verdict {
	if x.tcp || !x.sendsCookie() {
		return accept
	}
	if x.badCookies++; x.badCookies > 1 || x.cookie.length == 0 {
		return tryTCP
	}
	return tryCookie
}

// replied records a believed response.
func (x *exchange) replied(rtt time.Duration) {
	x.believed = true
	now := x.c.now()
	x.s.shard.mu.Lock()
	if !x.tcp {
		x.s.measured(rtt)
	}
	x.s.answered()
	x.s.shard.mu.Unlock()
	x.c.family(x.a.Server.Addr()).answered(now)
	x.c.counters.replied(rtt, x.transport())
}

// transport returns by what the round goes.
func (x *exchange) transport() int {
	switch {
	case x.a.TLS:
		return overTLS
	case x.tcp:
		return overTCP
	}
	return overUDP
}

func (x *exchange) trace(rtt time.Duration, r *Reply, n int, err error) {
	if x.a.Trace == nil {
		return
	}
	e := Event{Server: x.a.Server, Name: x.a.Name, Type: x.a.Type, TCP: x.tcp, TLS: x.a.TLS, EDNS: x.edns, RTT: rtt, Bytes: n, Err: err}
	if r != nil {
		e.RCODE = r.RCODE()
	}
	x.a.Trace(e)
}

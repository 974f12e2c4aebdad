package exchange

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"bonsai/wire"
)

// exchange is the state of one Do. It is pooled.
type exchange struct {
	c     *Client
	draws entropy
	buf   []byte // one datagram, and one byte more than was offered to tell a longer one by
	query []byte // the query as sent last

	ctx     context.Context
	a       *Ask
	s       *server
	tcp     bool
	edns    bool
	size    uint16 // UDP payload size offered
	cookies int    // BADCOOKIE responses so far
}

// minUDPSize is the UDP payload size that needs no EDNS (RFC 1035 §4.2.1).
const minUDPSize = 512

// queryRoom is the longest query: header, question, OPT with a cookie of full length.
const queryRoom = wire.HeaderSize + wire.MaxNameLen + 4 + wire.OPTSize + 4 + 40

func newExchange(c *Client) *exchange {
	return &exchange{
		c:     c,
		buf:   make([]byte, max(int(c.config.EDNSSize), minUDPSize)+1),
		query: make([]byte, 0, queryRoom),
	}
}

// verdict is what one exchange of packets leads to.
type verdict uint8

const (
	accept   verdict = iota
	overTCP          // ask again over TCP
	bareDNS          // ask again without EDNS
	newTry           // ask again: something about the server was learned
	giveUp           // the error says why
	verdicts         // how many there are
)

// maxRounds bounds the packets of one Do: UDP, without EDNS or with a new cookie, TCP, without EDNS
// there, and one to spare.
const maxRounds = 5

// Do asks and returns the response, or an *Error. It waits no longer than the server's timeout for
// UDP, and then for TCP where that is needed; it ends early when ctx does.
func (c *Client) Do(ctx context.Context, a *Ask) (*Reply, error) {
	if !c.Usable(a.Server.Addr()) {
		return nil, &Error{Server: a.Server, Kind: ErrUnreachable, Cause: errNotAsked}
	}
	x := c.pool.Get().(*exchange)
	x.begin(ctx, a)
	r, err := x.run()
	x.end()
	return r, err
}

var errNotAsked = errors.New("address may not be asked")

func (x *exchange) begin(ctx context.Context, a *Ask) {
	now := x.c.now()
	x.ctx, x.a = ctx, a
	x.s = x.c.servers.server(a.Server, now)
	x.tcp, x.edns, x.cookies = a.TCP, true, 0
	x.size = x.c.config.EDNSSize
	sh := x.s.shard
	sh.mu.Lock()
	if x.s.tcpUntil > now {
		x.tcp = true
	}
	sh.mu.Unlock()
}

func (x *exchange) end() {
	x.ctx, x.a, x.s = nil, nil, nil
	x.c.pool.Put(x)
}

func (x *exchange) run() (*Reply, error) {
	for range maxRounds {
		r, v, err := x.round()
		switch v {
		case accept:
			return r, nil
		case giveUp:
			return nil, err
		case overTCP:
			x.tcp = true
			x.c.counters.toTCP.Add(1)
		case bareDNS:
			x.edns = false
		}
	}
	return nil, x.fail(ErrMalformed, nil)
}

func (x *exchange) fail(kind, cause error) error {
	return &Error{Server: x.a.Server, TCP: x.tcp, Kind: kind, Cause: cause}
}

// round sends one query and judges what comes back.
func (x *exchange) round() (*Reply, verdict, error) {
	if err := x.ctx.Err(); err != nil {
		return nil, giveUp, x.fail(err, nil)
	}
	if x.a.Budget != nil {
		if err := x.a.Budget.Query(); err != nil {
			return nil, giveUp, x.fail(ErrBudget, err)
		}
	}
	x.compose()
	start := x.c.now()
	x.sent(start)
	var msg []byte
	var err error
	if x.tcp {
		msg, err = x.askTCP()
	} else {
		msg, err = x.askUDP()
	}
	rtt := x.c.now() - start
	if err != nil {
		err = x.lost(err, rtt)
		x.trace(rtt, nil, err)
		return nil, giveUp, err
	}
	if x.a.Budget != nil {
		if err := x.a.Budget.Received(len(msg)); err != nil {
			return nil, giveUp, x.fail(ErrBudget, err)
		}
	}
	return x.judge(msg, rtt)
}

// compose writes a query with a fresh ID and fresh letter case.
func (x *exchange) compose() {
	var flags uint16
	if x.a.RD {
		flags |= wire.FlagRD
	}
	if x.a.CD {
		flags |= wire.FlagCD
	}
	var size uint16
	if x.edns {
		size = x.size
	}
	var name [wire.MaxNameLen]byte
	n := copy(name[:], x.a.Name)
	x.draws.scramble(name[:n])
	x.query = wire.AppendQuery(x.query[:0], x.draws.uint16(), flags, name[:n], x.a.Type, size, nil)
}

func (x *exchange) sent(now time.Duration) {
	transport, family := 0, 0
	if x.tcp {
		transport = 1
	}
	if x.a.Server.Addr().Is6() {
		family = 1
	}
	x.c.counters.queries[transport][family].Add(1)
	sh := x.s.shard
	sh.mu.Lock()
	x.s.triedAt = now
	sh.mu.Unlock()
}

// lost turns an error of the network into one of ours, and counts a timeout against the server.
func (x *exchange) lost(err error, waited time.Duration) error {
	if cause := x.ctx.Err(); cause != nil {
		return x.fail(cause, nil)
	}
	kind := ErrUnreachable
	if isTimeout(err) {
		kind, err = ErrTimeout, nil
		x.c.counters.timeouts.Add(1)
	}
	now := x.c.now()
	sh := x.s.shard
	sh.mu.Lock()
	// Queries that waited side by side were lost to one cause, and count as one.
	if now-waited >= x.s.failedAt {
		x.s.fails = min(x.s.fails+1, 255)
		x.s.failedAt = now
	}
	sh.mu.Unlock()
	return x.fail(kind, err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// judge looks at a packet that came back.
func (x *exchange) judge(msg []byte, rtt time.Duration) (*Reply, verdict, error) {
	switch believe(x.query, msg, x.tcp) {
	case mismatched:
		x.c.counters.mismatches.Add(1)
		err := x.fail(ErrMismatch, nil)
		x.trace(rtt, nil, err)
		if x.tcp {
			return nil, giveUp, err
		}
		return nil, overTCP, err
	case truncated:
		x.replied(rtt)
		err := x.fail(ErrMalformed, errTruncated)
		x.trace(rtt, nil, err)
		if x.tcp {
			return nil, giveUp, err
		}
		return nil, overTCP, err
	}
	x.replied(rtt)
	r := &Reply{Server: x.a.Server, RTT: rtt, TCP: x.tcp, EDNS: x.edns}
	r.Records = r.records[:0]
	if err := r.Parse(msg); err != nil {
		err = x.fail(ErrMalformed, err)
		x.trace(rtt, nil, err)
		return nil, giveUp, err
	}
	x.trace(rtt, r, nil)
	return r, x.lacksEDNS(r), nil
}

var errTruncated = errors.New("truncated")

// lacksEDNS tells a server that stumbled over the OPT from one that answered (RFC 6891 §7).
func (x *exchange) lacksEDNS(r *Reply) verdict {
	if !x.edns {
		return accept
	}
	switch rcode := r.RCODE(); {
	case rcode == wire.RCODEFormErr && !r.Message.EDNS.Present, rcode == wire.RCODENotImp, rcode == wire.RCODEBadVers:
		return bareDNS
	}
	return accept
}

// replied records a believed response.
func (x *exchange) replied(rtt time.Duration) {
	sh := x.s.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	x.s.fails = 0
	if !x.tcp {
		x.s.measured(rtt)
	}
}

func (x *exchange) trace(rtt time.Duration, r *Reply, err error) {
	if x.a.Trace == nil {
		return
	}
	e := Event{Server: x.a.Server, Name: x.a.Name, Type: x.a.Type, TCP: x.tcp, EDNS: x.edns, RTT: rtt, Err: err}
	if r != nil {
		e.RCODE, e.Bytes = r.RCODE(), len(r.Message.Bytes)
	}
	x.a.Trace(e)
}

// local returns where to send from.
func (x *exchange) local(port uint16) netip.AddrPort {
	var pick netip.Addr
	n := 0
	for _, a := range x.c.config.Outgoing {
		if a.Is4() == x.a.Server.Addr().Is4() {
			// Each of the n seen so far is picked with the same odds.
			if n++; int(x.draws.uint16())%n == 0 {
				pick = a
			}
		}
	}
	return netip.AddrPortFrom(pick, port)
}

// isPortTaken says whether another port should be drawn.
func isPortTaken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES)
}

// Package exchange puts one question to one authoritative server and brings one believable
// response back.
//
// It draws ID, port and letter case, believes a response only as RFC 5452 §9.1 allows, goes over to
// TCP where the server or a doubt says so, gets along with servers that lack EDNS, and remembers of
// each address what decides the next choice: round-trip time, silence, cookies, lameness. It does
// not follow referrals, read records or judge what an answer means; that is iterate's.
//
// A Client is used by many goroutines at once. A Do runs on its caller's goroutine from the first
// byte to the last; only a TCP connection has a goroutine of its own, which Close waits for.
package exchange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"bonsai/wire"
)

// Transport is a way to reach servers. The connections it returns are used by one goroutine at a
// time for reading and by one for writing, and their deadlines may be set from any.
type Transport interface {
	// DialUDP returns a connection whose reads give one datagram each, of the server alone. local
	// is where to send from: an invalid Addr leaves the address to the system, a zero port the port.
	// A port in use is reported as syscall.EADDRINUSE and then drawn again.
	DialUDP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error)
	// DialTCP returns an open connection.
	DialTCP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error)
}

// Budget bounds what is spent for one client query. It is shared by many Asks at once.
type Budget interface {
	// Query says whether one more packet may be sent, and counts it.
	Query() error
	// Received counts bytes of a response, and says whether they may be used.
	Received(bytes int) error
}

// ConnBudget is what a Budget may offer besides: it is asked before each new TCP connection.
type ConnBudget interface {
	Connect(server netip.AddrPort) error
}

// Ask is one question to one server. It is only read, and not kept.
type Ask struct {
	Server netip.AddrPort
	Zone   wire.Name // the zone cut the server is asked for
	Name   wire.Name
	Type   wire.Type
	RD, CD bool
	TCP    bool // over TCP from the start
	// TLS says to ask over TLS alone (RFC 7858), of a server whose certificate is for TLSName; "" takes any
	// certificate.
	TLS     bool
	TLSName string
	// Retry counts how often this server has left this question unanswered in this resolution; a
	// retry offers a smaller UDP payload, for the response may be lost for its size.
	Retry int
	// Since is when the resolution began: a dead server that has left a query unanswered after that is
	// not waited for again. Zero: when Do is called.
	Since time.Time
	// Others says that there are other servers to ask: Do returns ErrWaited where a dead server had to
	// be waited for, since one of the others may have come back meanwhile.
	Others bool
	Budget Budget      // nil: no bound
	Trace  func(Event) // nil, or called for each exchange of packets, on Do's goroutine
}

// Reply is a believed response. Its Message owns its bytes, which nothing writes again; who keeps
// views of them may give the Reply itself back with Release.
type Reply struct {
	wire.Message
	Server netip.AddrPort
	RTT    time.Duration // of the exchange that gave it, without those before
	TCP    bool
	EDNS   bool // the query that it answers had an OPT

	records [8]wire.Record // holds Records where they are few
}

// Event is one exchange of packets, for a trace.
type Event struct {
	Server netip.AddrPort
	Name   wire.Name
	Type   wire.Type
	TCP    bool // or TLS
	TLS    bool
	EDNS   bool
	RTT    time.Duration // until the response, or until it was given up
	Bytes  int           // of the response
	RCODE  wire.RCODE    // of the response, where Err is nil
	Err    error
}

// PortRange is a range of ports, both ends in it.
type PortRange struct{ First, Last uint16 }

// Config is all a Client needs to know. The zero value is a good default but for Cookies.
type Config struct {
	Transport      Transport // nil: the system's sockets
	EDNSSize       uint16    // UDP payload size offered to servers; 0: 1232
	IPv4, IPv6     bool      // families to use; neither: both
	DoNotQuery     []netip.Prefix
	QueryLocalhost bool           // loopback addresses may be asked
	Outgoing       []netip.Addr   // addresses to send from; none of a family: the system's choice
	ExcludedPorts  []PortRange    // never sent from, besides those below 1024
	Cookies        bool           // send DNS cookies (RFC 7873)
	TLSRoots       *x509.CertPool // who may vouch for servers asked over TLS; nil: whom the system trusts
	Servers        int            // addresses remembered at once; 0: 16384
}

// Defaults of Config.
const (
	// DefaultEDNSSize never needs a fragment over links of 1280 bytes (RFC 9715 §3.1).
	DefaultEDNSSize = 1232
	defaultServers  = 16384
)

// What went wrong with an Ask; errors of Do wrap one of these, or the context's error.
var (
	ErrTimeout     = errors.New("no response in time")
	ErrUnreachable = errors.New("server unreachable")
	ErrMalformed   = errors.New("malformed response")
	ErrMismatch    = errors.New("response does not match the query")
	ErrUntrusted   = errors.New("the server's certificate is not trusted")
	ErrBudget      = errors.New("budget spent")
	ErrBusy        = errors.New("too many queries wait for this server")
	ErrWaited      = errors.New("the server's turn was waited for")
)

// Error is what Do returns: one of the errors above as Kind, and what caused it, nil where the
// kind says it all.
type Error struct {
	Server netip.AddrPort
	TCP    bool // or TLS
	TLS    bool
	Kind   error
	Cause  error
}

func (e *Error) Error() string {
	transport := "UDP"
	switch {
	case e.TLS:
		transport = "TLS"
	case e.TCP:
		transport = "TCP"
	}
	if e.Cause == nil {
		return fmt.Sprintf("%s over %s: %v", e.Server, transport, e.Kind)
	}
	return fmt.Sprintf("%s over %s: %v: %v", e.Server, transport, e.Kind, e.Cause)
}

// Unwrap gives kind and cause to errors.Is.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Client asks servers and remembers them.
type Client struct {
	config    Config
	transport Transport
	tls       *tls.Config
	start     time.Time
	ports     portSet
	servers   table
	families  [2]family
	streams   streamPool
	idle      idleSockets
	counters  counters
	pool      sync.Pool // of *exchange
	replies   sync.Pool // of *Reply
}

// New makes a Client. Its Close ends the TCP connections that it keeps.
func New(config Config) *Client {
	if config.EDNSSize == 0 {
		config.EDNSSize = DefaultEDNSSize
	}
	config.EDNSSize = max(config.EDNSSize, minUDPSize)
	if !config.IPv4 && !config.IPv6 {
		config.IPv4, config.IPv6 = true, true
	}
	if config.Servers <= 0 {
		config.Servers = defaultServers
	}
	c := &Client{config: config, transport: config.Transport, tls: newTLSConfig(&config), start: time.Now().Add(-longAgo)}
	if c.transport == nil {
		c.transport = systemTransport{}
	}
	c.ports.exclude(config.ExcludedPorts)
	c.servers.init(config.Servers)
	c.streams.init()
	c.pool.New = func() any { return newExchange(c) }
	c.replies.New = func() any { return new(Reply) }
	return c
}

// Release gives back a Reply that nothing refers to any more, for another Do to fill. Its bytes are
// not used again: names and RDATA that were taken from it stay good. Calling it is a saving, not a
// duty.
func (c *Client) Release(r *Reply) {
	*r = Reply{}
	c.replies.Put(r)
}

// longAgo is how old a client takes itself to be when it is made, so that the zero time is before
// all that it remembers.
const longAgo = time.Hour

// now is monotonic time. The wall clock has no say in it.
func (c *Client) now() time.Duration { return time.Since(c.start) }

// Package serve is the client side of the resolver: it owns the UDP and TCP sockets, frames
// messages, bounds what clients may use, and sends back what its Handler says. It knows nothing of
// the contents of a message.
//
//	UDP datagrams ──► batch ──► Worker.Hit ──► Answered ──► sent with the batch
//	TCP messages  ──┘                      ├─► Dropped
//	                                       └─► Missed ──► a slot is free: Handler.Miss, in a goroutine
//	                                                  └─► none is free:   Handler.Shed, at once
//
// A hit is answered by the goroutine that read it, without allocating. A miss is copied out of the
// batch and answered by another goroutine, so that no hit ever waits for a miss.
package serve

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// Transport is the way a query came.
type Transport uint8

// The transports.
const (
	UDP Transport = iota
	TCP
)

// String returns the transport's name in lower case, as metrics spell it.
func (t Transport) String() string { return [...]string{"udp", "tcp"}[t] }

// Exchange is one client query and its response.
type Exchange struct {
	// Query is the message without framing. It is borrowed until Hit, Miss or Shed returns.
	Query []byte
	// Client is who asks. An IPv4 client is never shown as IPv4-mapped, and a zone is never shown.
	Client netip.AddrPort
	// Local is the address that the query was sent to, invalid where the transport cannot tell.
	Local     netip.Addr
	Transport Transport
	// Keepalive is, over TCP, how long this connection may now stay idle, in units of 100 ms: the
	// TIMEOUT of an edns-tcp-keepalive option (RFC 7828 §3.1). It shrinks as connections run out.
	// RFC 7828 §3.2.1: over UDP, where it is 0, the option is never sent.
	Keepalive uint16
	// Response comes in as an empty slice with room to append to and goes out as the response
	// without framing. Where it goes out empty, nothing is sent. A longer response than there is
	// room for may be appended, at the price of an allocation.
	Response []byte
	// Seen and Absent are what Hit leaves for Miss to know.
	Seen   uint64
	Absent bool
}

// Result is what Worker.Hit made of one query.
type Result uint8

// The results of Worker.Hit.
const (
	Dropped  Result = iota // no response is owed
	Answered               // Response is complete
	Missed                 // Miss is to answer; Response is ignored
)

// Handler answers queries. Its methods may be called by many goroutines at once.
type Handler interface {
	// NewWorker returns a Worker for the use of one goroutine at a time.
	NewWorker() Worker
	// Miss answers a query that Hit could not, and may wait. ctx ends when a shutdown has no more
	// time to give.
	Miss(ctx context.Context, x *Exchange)
	// Shed answers, in place of Miss, a query for which there is no room: SERVFAIL, or nothing.
	// It may not wait.
	Shed(x *Exchange)
}

// Worker answers what needs no waiting.
type Worker interface {
	// Hit sets results[i], and for Answered batch[i].Response, for every query of the batch.
	// len(results) is len(batch), at least 1. It may not wait, allocates nothing, and may not keep
	// anything of the batch.
	Hit(batch []Exchange, results []Result)
}

// Config says where to listen and what clients may use. The zero value of a field means its
// default.
type Config struct {
	// Listen are the addresses to take UDP and TCP on. All of them must be bound, or New fails.
	// Port 0 chooses a port, the same for UDP and TCP. [::] takes IPv4 as well, unless 0.0.0.0 is
	// listed with the same port. Where Listen is empty and no socket is handed in, it is 127.0.0.1:53
	// and [::1]:53, and one of these whose address family the machine lacks is left out.
	Listen []netip.AddrPort
	// PacketConns and Listeners are sockets handed in ready-made (socket activation, tests). They are
	// served besides Listen, and closed with the server, or by New when it fails.
	PacketConns []net.PacketConn
	Listeners   []net.Listener

	// Workers is the number of UDP sockets, each with its goroutine, for each address of Listen,
	// where the system can share a port among them. Default: GOMAXPROCS.
	Workers int
	// UDPSize is the room for a response over UDP in bytes. Default 1232.
	UDPSize int
	// ReceiveBuffer and SendBuffer are the sizes asked for each UDP socket in bytes. The system may
	// give less: Stats tells what it gave. Default 4 MiB.
	ReceiveBuffer, SendBuffer int

	// MaxInflight bounds the misses being worked on, over all transports. Default 1024.
	MaxInflight int

	// MaxTCP and MaxTCPPerClient bound the TCP connections, in all and for each client, which is an
	// IPv4 address or an IPv6 /64. Default 1000 and 200.
	MaxTCP, MaxTCPPerClient int
	// MaxTCPInflight bounds the misses being worked on for one connection: with more, no more queries
	// are read from it. Default 64.
	MaxTCPInflight int
	// TCPIdle is how long a connection may stay without a query and without a response owed.
	// Default 10 s.
	TCPIdle time.Duration
	// TCPRead is how long a message may take from its first byte to its last. Default 5 s.
	TCPRead time.Duration
	// TCPWrite is how long the client may take to make room for responses. Default 5 s.
	TCPWrite time.Duration

	// Portable serves one datagram a call even where the system can do more (tests, comparisons).
	Portable bool
}

// DefaultListen are the addresses of a Config that names none.
var DefaultListen = []netip.AddrPort{
	netip.MustParseAddrPort("127.0.0.1:53"),
	netip.MustParseAddrPort("[::1]:53"),
}

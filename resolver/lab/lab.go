// Package lab is a small signed Internet in one process, for `bonsai lab`, tests and benchmarks.
//
// A World has a root, TLDs and zones on authoritative servers that listen on loopback sockets at
// free ports, over UDP and TCP. Its servers bear addresses of the documentation networks, such as
// 192.0.2.1, and World is the exchange.Transport that leads a query for one of these, port 53, to its
// socket: the resolver runs the code that it runs on the Internet, and nothing leaves the machine.
//
//	internet.go  which zones and servers there are; zones/ has their records
//	zone.go      a zone in memory: names, cuts, empty non-terminals
//	sign.go      keys, signatures and the NSEC and NSEC3 chains, made when a World is
//	denial.go    which of the chain proves what is not there
//	answer.go    an authoritative server's answer to a question (RFC 1034 §4.3.2)
//	synth.go     zones in which any name has an answer
//	server.go    sockets, and servers that misbehave
//	table.go     what a resolver must answer here, and a client that asks
//
// It is no name server for anything else: it has no zone transfer, no update, and trusts its clients.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"bonsai/resolver/exchange"
)

var _ exchange.Transport = (*World)(nil)

// Config says how a World is made. The zero value is ready.
type Config struct {
	// Now is the Unix time, in seconds, that signatures are made around; 0 is the present. Those
	// of a sound zone hold from an hour before until 90 days after.
	Now int64
	// Unsigned leaves out all signatures, keys and DS, for work that measures other things: a World
	// is then made in a few milliseconds.
	Unsigned bool
}

// World is a running Internet. It may be used by many goroutines at once.
type World struct {
	servers map[netip.Addr]*server
	zones   []*zone
	anchors []dns.RR
	signed  bool
	now     int64
	wait    sync.WaitGroup
}

// New makes keys, signs the zones, and starts the servers. The caller closes the World.
func New(c Config) (*World, error) {
	if c.Now == 0 {
		c.Now = time.Now().Unix()
	}
	w := &World{servers: map[netip.Addr]*server{}, signed: !c.Unsigned, now: c.Now}
	if err := w.build(c); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	for _, s := range w.servers {
		if err := s.listen(&w.wait); err != nil {
			w.Close()
			return nil, fmt.Errorf("lab: server %s: %w", s.addr, err)
		}
	}
	return w, nil
}

// Close stops all servers and waits for them.
func (w *World) Close() {
	for _, s := range w.servers {
		s.close()
	}
	w.wait.Wait()
}

// Hints returns the root hints in the format of the IANA's named.root.
func (w *World) Hints() string {
	root := w.zones[0]
	var b strings.Builder
	for _, ns := range root.apex().sets[dns.TypeNS] {
		fmt.Fprintln(&b, ns)
		for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
			for _, address := range root.set(ns.(*dns.NS).Ns, t) {
				fmt.Fprintln(&b, address)
			}
		}
	}
	return b.String()
}

// Anchors returns the trust anchor of the root, a DS record in zone format; "" where the World is
// unsigned.
func (w *World) Anchors() string {
	var b strings.Builder
	for _, rr := range w.anchors {
		fmt.Fprintln(&b, rr)
	}
	return b.String()
}

// Queries returns how many messages the servers have received, those of silent servers included.
func (w *World) Queries() uint64 {
	var n uint64
	for _, s := range w.servers {
		n += s.queries.Load()
	}
	return n
}

// DialUDP opens a socket towards the server that has this address.
func (w *World) DialUDP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	real, err := w.find("udp", server)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, local.Port()))}
	return d.DialContext(ctx, "udp", real.String())
}

// DialTCP opens a connection to the server that has this address.
func (w *World) DialTCP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	real, err := w.find("tcp", server)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", real.String())
}

// Addr returns the loopback address on which the server with this address listens.
func (w *World) Addr(server netip.Addr) (real netip.AddrPort, ok bool) {
	s, ok := w.servers[server.Unmap()]
	if !ok {
		return netip.AddrPort{}, false
	}
	return s.real, true
}

var (
	loopback   = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	errNotHere = errors.New("not an address of the lab")
)

// find maps an address to its socket. What the lab does not have is as unreachable as on the
// Internet an address without a route.
func (w *World) find(network string, server netip.AddrPort) (netip.AddrPort, error) {
	real, ok := w.Addr(server.Addr())
	if ok && server.Port() == 53 {
		return real, nil
	}
	return real, &net.OpError{Op: "dial", Net: network, Addr: net.UDPAddrFromAddrPort(server),
		Err: errors.Join(syscall.ENETUNREACH, errNotHere)}
}

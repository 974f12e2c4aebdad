package serve

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

const (
	// maxUDPQuery is the longest query taken over UDP: what we say in our OPTs that we take, and some.
	maxUDPQuery = 1280
	// lineSize is what the memory of one CPU is moved in. Buffers of a batch lie an odd number of
	// lines apart, or the first lines of all of them would fall in the same few sets of the CPU's cache.
	lineSize = 64
	// maxErrors is how many errors on end are taken before the socket is left alone for errorPause. One
	// may be about a response sent earlier, and must not keep queries waiting.
	maxErrors  = 16
	errorPause = 10 * time.Millisecond
)

// stride returns how far apart buffers of at least n bytes lie.
func stride(n int) int {
	lines := (n+lineSize-1)/lineSize | 1
	return lines * lineSize
}

// udpSocket is one UDP socket. One goroutine reads it; any may reply.
type udpSocket struct {
	s     *Server
	conn  net.PacketConn
	udp   *net.UDPConn // conn, where it is one
	bound netip.AddrPort
	local netip.Addr // of bound, without zone
	// wildcard: bound to no address, so that each datagram must tell where it was sent to, and each
	// response where it comes from.
	wildcard bool
	six      bool // an IPv6 socket, which may carry IPv4 as well
	errors   int  // of reading, on end
	count    flow
}

func (s *Server) newUDPSocket(conn net.PacketConn) *udpSocket {
	u := &udpSocket{s: s, conn: conn, bound: addrPortOf(conn.LocalAddr())}
	u.local = u.bound.Addr().WithZone("")
	if u.udp, _ = conn.(*net.UDPConn); u.udp != nil {
		u.prepare()
	}
	return u
}

// serve reads until the server drains.
func (u *udpSocket) serve() error {
	if u.udp != nil && !u.s.config.Portable {
		if done, err := u.serveBatches(); done {
			return err
		}
	}
	return u.serveSingly()
}

// serveSingly takes one datagram a call, as any system can.
func (u *udpSocket) serveSingly() error {
	worker := u.s.handler.NewWorker()
	batch, results := make([]Exchange, 1), make([]Result, 1)
	in, out := make([]byte, stride(maxUDPQuery)), make([]byte, 0, u.s.config.UDPSize)
	oob := make([]byte, ancillarySize)
	for !u.s.draining.Load() {
		n, client, local, err := u.receive(in, oob)
		received := u.s.now()
		if err != nil {
			if !u.goOn(err) {
				return u.fatal(err)
			}
			continue
		}
		u.errors = 0
		u.count.batches.Add(1)
		addr := client.Addr()
		if n > maxUDPQuery || !u.answerable(client) || !local.IsValid() {
			u.discard(n)
			continue
		}
		x := &batch[0]
		*x = Exchange{Query: in[:n:n], Local: local, Response: out[:0]}
		x.Client = netip.AddrPortFrom(addr.Unmap().WithZone(""), client.Port())
		results[0] = Dropped
		worker.Hit(batch, results)
		u.finish(x, results[0], received, addr.Zone())
	}
	return nil
}

// finish does with one query what Hit made of it.
func (u *udpSocket) finish(x *Exchange, result Result, received time.Duration, zone string) {
	u.count.queries.Add(1)
	switch result {
	case Answered:
		u.count.hits.Add(1)
		if len(x.Response) > 0 && u.send(x, zone) {
			u.count.hitTime.add(u.s.now()-received, 1)
		}
	case Missed:
		if u.s.misses.take() {
			u.count.misses.Add(1)
			u.s.misses.start(x, zone, u, received)
			return
		}
		u.count.shed.Add(1)
		x.Response = x.Response[:0]
		if u.s.handler.Shed(x); len(x.Response) > 0 {
			u.send(x, zone)
		}
	default:
		u.count.dropped.Add(1)
	}
}

// answerable says whether a response may be sent to where a datagram claims to be from. Port 0 and
// the unspecified address are nobody's, and a group is not a client.
func (u *udpSocket) answerable(client netip.AddrPort) bool {
	a := client.Addr()
	return client.Port() != 0 && a.IsValid() && !a.IsUnspecified() && !a.IsMulticast()
}

// discard counts a datagram of n bytes that is not given to the handler.
func (u *udpSocket) discard(n int) {
	if n > maxUDPQuery {
		u.count.oversized.Add(1)
	} else {
		u.count.badSource.Add(1)
	}
}

// receive reads one datagram. local is invalid where it was sent to a group.
func (u *udpSocket) receive(in, oob []byte) (n int, client netip.AddrPort, local netip.Addr, err error) {
	local = u.local
	switch {
	case u.wildcard:
		var oobn int
		n, oobn, _, client, err = u.udp.ReadMsgUDPAddrPort(in, oob)
		if err == nil {
			local = destination(oob[:oobn])
		}
	case u.udp != nil:
		n, client, err = u.udp.ReadFromUDPAddrPort(in)
	default:
		var from net.Addr
		if n, from, err = u.conn.ReadFrom(in); err == nil {
			client = addrPortOf(from)
		}
	}
	return n, client, local, err
}

// reply implements replier. The slot is kept until the response is sent: a full socket slows us down.
func (u *udpSocket) reply(r *runner, release func()) {
	if len(r.x.Response) > 0 {
		u.send(&r.x, r.zone)
	}
	release()
}

// send sends x.Response to the client, from the address that the query was sent to, and counts it.
// zone is the client's, where its address is link-local.
func (u *udpSocket) send(x *Exchange, zone string) (ok bool) {
	client := x.Client
	if zone != "" {
		client = netip.AddrPortFrom(client.Addr().WithZone(zone), client.Port())
	}
	var err error
	switch {
	case u.wildcard:
		var buf [ancillarySize]byte
		_, _, err = u.udp.WriteMsgUDPAddrPort(x.Response, appendSource(buf[:0], x.Local, u.six), client)
	case u.udp != nil:
		_, err = u.udp.WriteToUDPAddrPort(x.Response, client)
	default:
		_, err = u.conn.WriteTo(x.Response, net.UDPAddrFromAddrPort(client))
	}
	if err != nil {
		u.count.sendErrors.Add(1)
		return false
	}
	u.count.responses.Add(1)
	return true
}

// goOn says whether reading goes on after an error. It does unless the socket is closed: anything else
// may pass, and only costs a pause, lest it take a whole CPU while it lasts.
func (u *udpSocket) goOn(err error) bool {
	if u.s.draining.Load() || errors.Is(err, net.ErrClosed) {
		return false
	}
	u.count.readErrors.Add(1)
	if u.errors++; u.errors < maxErrors {
		return true
	}
	u.errors = 0
	select {
	case <-u.s.drain:
		return false
	case <-time.After(errorPause):
		return true
	}
}

// fatal tells an end that was asked for from one that was not.
func (u *udpSocket) fatal(err error) error {
	if u.s.draining.Load() {
		return nil
	}
	return err
}

// addrPortOf reads an address of package net, or of another with the same text form.
func addrPortOf(a net.Addr) netip.AddrPort {
	var p netip.AddrPort
	if has, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		p = has.AddrPort()
	} else if a != nil {
		p, _ = netip.ParseAddrPort(a.String())
	}
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

package exchange

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// maxPortDraws bounds how often a port is drawn anew because another socket holds it.
const maxPortDraws = 16

// soon is how long a read waits before it listens for the end of its context as well, which costs
// allocations that most responses come too early for.
const soon = 20 * time.Millisecond

// askUDP sends the query and returns the first datagram that comes back, in memory of its own. It
// never reads a second one: what does not match turns the question to TCP, so that a forger has one
// guess at each query.
func (x *exchange) askUDP() ([]byte, error) {
	conn, err := x.socket()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(x.query); err != nil {
		return nil, err
	}
	x.sent = true
	n, err := x.receive(conn)
	if err != nil {
		return nil, err
	}
	msg := make([]byte, n)
	copy(msg, x.buf)
	return msg, nil
}

// socket returns the socket for one query: connected, on a port drawn uniformly (RFC 5452 §9.2).
func (x *exchange) socket() (conn net.Conn, err error) {
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

// receive reads one datagram into the buffer.
func (x *exchange) receive(conn net.Conn) (int, error) {
	x.s.shard.mu.Lock()
	timeout := x.s.rto(x.a.RD)
	x.s.shard.mu.Unlock()
	now := time.Now()
	if x.ctx.Done() != nil && timeout > soon {
		if err := conn.SetReadDeadline(now.Add(soon)); err != nil {
			return 0, err
		}
		n, err := conn.Read(x.buf)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := conn.SetReadDeadline(now.Add(timeout)); err != nil {
			return 0, err
		}
		defer context.AfterFunc(x.ctx, func() { _ = conn.SetReadDeadline(now) })()
		return conn.Read(x.buf)
	}
	if err := conn.SetReadDeadline(now.Add(timeout)); err != nil {
		return 0, err
	}
	return conn.Read(x.buf)
}

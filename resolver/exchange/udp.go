package exchange

import (
	"bytes"
	"context"
	"net"
	"time"
)

// maxPortDraws bounds how often a port is drawn that another socket holds.
const maxPortDraws = 16

// dialUDP opens a socket of its own for one query, on a port drawn uniformly (RFC 5452 §9.2).
func (x *exchange) dialUDP() (conn net.Conn, err error) {
	for range maxPortDraws {
		conn, err = x.c.transport.DialUDP(x.ctx, x.local(x.c.ports.draw(&x.draws)), x.a.Server)
		if err == nil || !isPortTaken(err) {
			break
		}
	}
	return conn, err
}

// askUDP sends the query and returns the first datagram that comes back, in memory of its own. It
// reads no second one: what does not match turns the question to TCP, and a forger has one guess.
func (x *exchange) askUDP() ([]byte, error) {
	conn, err := x.dialUDP()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	sh := x.s.shard
	sh.mu.Lock()
	timeout := x.s.rto()
	sh.mu.Unlock()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	stop := endWith(x.ctx, conn)
	defer stop()
	if _, err := conn.Write(x.query); err != nil {
		return nil, err
	}
	n, err := conn.Read(x.buf)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(x.buf[:n]), nil
}

// endWith makes reads and writes of conn fail once ctx ends.
func endWith(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

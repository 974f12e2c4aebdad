package exchange

import (
	"context"
	"encoding/binary"
	"io"
	"time"
)

// tcpTimeout is the least time for a question over TCP: handshake, query and a long response.
const tcpTimeout = 1500 * time.Millisecond

type streamPool struct{}

func (*streamPool) init() {}

// Close ends the connections that are kept, and waits for their goroutines.
func (c *Client) Close() {}

// askTCP asks over a connection and returns the message that comes back.
func (x *exchange) askTCP() ([]byte, error) {
	ctx, cancel := context.WithTimeout(x.ctx, tcpTimeout)
	defer cancel()
	conn, err := x.c.transport.DialTCP(ctx, x.local(0), x.a.Server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := endWith(ctx, conn)
	defer stop()
	// RFC 7766 §8: length and message in one write.
	out := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(x.query)), uint16(len(x.query)))
	if _, err := conn.Write(append(out, x.query...)); err != nil {
		return nil, err
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(conn, int64(binary.BigEndian.Uint16(length[:]))))
}

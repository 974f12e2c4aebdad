package replay

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// DialUDP returns a connected socket to a server of the scenario. An address without one is
// unreachable at once. The port is not looked at.
func (n *Internet) DialUDP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	if err := n.reach(ctx, "udp", server); err != nil {
		return nil, err
	}
	return &datagrams{
		internet: n, local: localAddr(local, server), server: server,
		in: make(chan []byte, socketBuffer), closed: make(chan struct{}), moved: make(chan struct{}, 1),
	}, nil
}

// DialTCP returns a connection to a server of the scenario.
func (n *Internet) DialTCP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	if err := n.reach(ctx, "tcp", server); err != nil {
		return nil, err
	}
	if n.refusesTCP(server.Addr()) {
		return nil, dialError("tcp", server, syscall.ECONNREFUSED)
	}
	ours, theirs := net.Pipe()
	go n.serveTCP(theirs, server.Addr())
	return &stream{ours, localAddr(local, server), server}, nil
}

func (n *Internet) reach(ctx context.Context, network string, server netip.AddrPort) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !n.addrs[server.Addr().Unmap()] {
		return dialError(network, server, syscall.ENETUNREACH)
	}
	return nil
}

func dialError(network string, server netip.AddrPort, errno syscall.Errno) error {
	return &net.OpError{
		Op: "dial", Net: network, Addr: net.UDPAddrFromAddrPort(server), Err: os.NewSyscallError("connect", errno),
	}
}

// localAddr is the address a socket gets that was bound to none.
func localAddr(local, server netip.AddrPort) netip.AddrPort {
	addr, port := local.Addr(), local.Port()
	switch {
	case addr.IsValid() && !addr.IsUnspecified():
	case server.Addr().Is4():
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	default:
		addr = netip.IPv6Loopback()
	}
	if port == 0 {
		port = 40000
	}
	return netip.AddrPortFrom(addr, port)
}

// socketBuffer is how many datagrams wait in a socket; more are lost.
const socketBuffer = 64

// datagrams is a connected UDP socket of the scripted Internet.
type datagrams struct {
	internet      *Internet
	local, server netip.AddrPort
	in            chan []byte
	closed        chan struct{}
	once          sync.Once

	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{} // one is in it when the deadline was moved
}

func (c *datagrams) LocalAddr() net.Addr  { return net.UDPAddrFromAddrPort(c.local) }
func (c *datagrams) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(c.server) }

func (c *datagrams) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *datagrams) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.internet.receive(b, c.server.Addr().Unmap(), false, func(message []byte, _ bool) {
		select {
		case c.in <- message:
		default:
		}
	})
	return len(b), nil
}

// Read returns one datagram, cut to the length of b.
func (c *datagrams) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		deadline := c.deadline
		c.mu.Unlock()
		var expired <-chan time.Time
		if !deadline.IsZero() {
			if !time.Now().Before(deadline) {
				return 0, os.ErrDeadlineExceeded
			}
			expired = time.After(time.Until(deadline))
		}
		select {
		case m := <-c.in:
			return copy(b, m), nil
		case <-c.closed:
			return 0, net.ErrClosed
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		case <-c.moved:
		}
	}
}

func (c *datagrams) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *datagrams) SetWriteDeadline(_ time.Time) error { return nil }

func (c *datagrams) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
	return nil
}

// stream is a TCP connection of the scripted Internet.
type stream struct {
	net.Conn
	local, server netip.AddrPort
}

func (c *stream) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *stream) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.server) }

// serveTCP is the server's end of a TCP connection: RFC 1035 §4.2.2's framing, answers in the order
// in which they are ready.
func (n *Internet) serveTCP(c net.Conn, server netip.Addr) {
	out := make(chan []byte, socketBuffer)
	ended := make(chan struct{})
	go func() {
		defer c.Close()
		for {
			select {
			case frame := <-out:
				if frame == nil {
					return
				}
				if _, err := c.Write(frame); err != nil {
					return
				}
			case <-ended:
				return
			}
		}
	}()
	defer close(ended)
	send := func(message []byte, last bool) {
		frames := [][]byte{append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)}
		if last {
			frames = append(frames, nil)
		}
		for _, f := range frames {
			select {
			case out <- f:
			case <-ended:
			}
		}
	}
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, message); err != nil {
			return
		}
		n.receive(message, server, true, send)
	}
}

//go:build !linux

package serve

import (
	"net"
	"net/netip"
	"syscall"
)

// portHelp says what can be done where a port below 1024 is denied.
const portHelp = "ports below 1024 are reserved: start the program with the right to bind them, or choose " +
	"another port (--listen 127.0.0.1:5300)"

// expand returns the addresses to bind for one of the configuration. RFC 2181 §4.1 wants a response
// to come from the address that the query was sent to; where a socket cannot tell that address for
// each datagram, a wildcard stands for the addresses that the machine has now.
func expand(a netip.AddrPort, dual bool) ([]netip.AddrPort, error) {
	if !a.Addr().IsUnspecified() {
		return []netip.AddrPort{a}, nil
	}
	return expandInterfaces(a, dual)
}

// shareControl is never called: canShare says that it cannot be done.
func shareControl(_, _ string, _ syscall.RawConn) error { return nil }

func canShare(*net.UDPConn) bool { return false }

func tcpControl(_, _ string, _ syscall.RawConn) error { return nil }

func (u *udpSocket) prepare() {
	// A smaller buffer than asked for is what the system has to give.
	_ = u.udp.SetReadBuffer(u.s.config.ReceiveBuffer)
	_ = u.udp.SetWriteBuffer(u.s.config.SendBuffer)
}

func (u *udpSocket) stats() SocketStats { return SocketStats{Addr: u.bound} }

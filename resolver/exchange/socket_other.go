//go:build !linux

package exchange

import (
	"context"
	"net"
	"net/netip"
)

// openUDP opens a connected UDP socket.
func openUDP(local, server netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialUDP(context.Background(), "udp", local, server)
	if err != nil {
		return nil, err
	}
	return udpSocket{conn}, nil
}

type udpSocket struct{ *net.UDPConn }

// Reusable says that the socket may carry further queries.
func (udpSocket) Reusable() {}

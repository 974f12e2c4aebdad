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
	return d.DialUDP(context.Background(), "udp", local, server)
}

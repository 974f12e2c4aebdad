package exchange

import (
	"context"
	"net"
	"net/netip"
)

// systemTransport is the system's sockets.
type systemTransport struct{}

func (systemTransport) DialUDP(_ context.Context, local, server netip.AddrPort) (net.Conn, error) {
	return openUDP(bindAddr(local, server), server)
}

func (systemTransport) DialTCP(ctx context.Context, local, server netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialTCP(ctx, "tcp", bindAddr(local, server), server)
}

// bindAddr makes of an invalid address the unspecified one of the server's family.
func bindAddr(local, server netip.AddrPort) netip.AddrPort {
	if local.Addr().IsValid() {
		return local
	}
	if server.Addr().Is4() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), local.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), local.Port())
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// portTries is how often another port is tried where the system may choose one: UDP and TCP must
// have the same.
const portTries = 16

// BindError says which address could not be bound, and, where that is known, what can be done.
type BindError struct {
	Network string // "udp" or "tcp"
	Addr    netip.AddrPort
	Err     error
}

func (e *BindError) Error() string {
	text := fmt.Sprintf("cannot listen on %s %s: %v", e.Network, e.Addr, reason(e.Err))
	switch {
	case errors.Is(e.Err, fs.ErrPermission) && e.Addr.Port() < 1024:
		text += "; " + portHelp
	case isOne(e.Err, inUse):
		text += "; another server has this port (systemd-resolved and dnsmasq often do): stop it, or choose another address or port"
	case isOne(e.Err, notHere):
		text += "; no interface of this machine has this address"
	}
	return text
}

// Unwrap returns the cause.
func (e *BindError) Unwrap() error { return e.Err }

// reason is the system's word on an error, without the address that package net puts around it.
func reason(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Errors of binding, as Unix and as Windows number them.
var (
	inUse    = []error{syscall.EADDRINUSE, syscall.Errno(10048)}
	notHere  = []error{syscall.EADDRNOTAVAIL, syscall.Errno(10049)}
	noFamily = []error{syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.Errno(10047)}
)

func isOne(err error, of []error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

// isAbsent says whether the machine lacks the address family, or its loopback address.
func isAbsent(err error) bool { return isOne(err, noFamily) || isOne(err, notHere) }

// bind binds every address of the configuration, or none.
func (s *Server) bind() error {
	addrs, optional := s.config.Listen, false
	if len(addrs) == 0 && len(s.config.PacketConns) == 0 && len(s.config.Listeners) == 0 {
		addrs, optional = DefaultListen, true
	}
	err := s.bindAll(addrs, optional)
	if err != nil {
		s.closeSockets()
	}
	return err
}

// bindAll binds the addresses. Of optional ones those that the machine lacks are left out, as long as
// one remains.
func (s *Server) bindAll(addrs []netip.AddrPort, optional bool) error {
	for i, a := range addrs {
		dual := dualStack(a, addrs)
		bound, err := expand(a, dual)
		if err != nil {
			return &BindError{"udp", a, err}
		}
		for _, a := range bound {
			err = s.bindAddr(a, dual)
			if err == nil {
				continue
			}
			if optional && isAbsent(err) && (i < len(addrs)-1 || len(s.addrs) > 0) {
				s.absent = append(s.absent, a)
				continue
			}
			return err
		}
	}
	return nil
}

// dualStack says whether a socket on this address takes IPv4 as well.
func dualStack(a netip.AddrPort, all []netip.AddrPort) bool {
	if a.Addr() != netip.IPv6Unspecified() {
		return false
	}
	for _, other := range all {
		if other.Addr() == netip.IPv4Unspecified() && other.Port() == a.Port() {
			return false
		}
	}
	return true
}

// bindAddr binds UDP, as often as there are workers where the system can, and TCP.
func (s *Server) bindAddr(a netip.AddrPort, dual bool) error {
	for try := 0; ; try++ {
		first, err := listenUDP(a, dual, false)
		if err != nil {
			return &BindError{"udp", a, err}
		}
		bound := netip.AddrPortFrom(a.Addr(), uint16(first.LocalAddr().(*net.UDPAddr).Port))
		listener, err := listenTCP(bound, dual)
		if err != nil {
			first.Close()
			if a.Port() == 0 && isOne(err, inUse) && try < portTries {
				continue
			}
			return &BindError{"tcp", bound, err}
		}
		s.listeners = append(s.listeners, listener)
		s.addrs = append(s.addrs, bound)
		return s.addWorkers(first, bound, dual)
	}
}

// addWorkers adds the first UDP socket of an address and its likes.
func (s *Server) addWorkers(first *net.UDPConn, a netip.AddrPort, dual bool) error {
	s.sockets = append(s.sockets, s.newUDPSocket(first))
	if s.config.Workers == 1 || !canShare(first) {
		return nil
	}
	for range s.config.Workers - 1 {
		conn, err := listenUDP(a, dual, true)
		if err != nil {
			return &BindError{"udp", a, err}
		}
		s.sockets = append(s.sockets, s.newUDPSocket(conn))
	}
	return nil
}

// network returns the name that package net has for sockets on this address.
func network(name string, a netip.AddrPort, dual bool) string {
	switch {
	case dual:
		return name
	case a.Addr().Unmap().Is4():
		return name + "4"
	}
	return name + "6"
}

func listenUDP(a netip.AddrPort, dual, shared bool) (*net.UDPConn, error) {
	c := net.ListenConfig{}
	if shared {
		c.Control = shareControl
	}
	conn, err := c.ListenPacket(context.Background(), network("udp", a, dual), a.String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

func listenTCP(a netip.AddrPort, dual bool) (net.Listener, error) {
	// Probes for dead peers are needless where every connection has a deadline.
	c := net.ListenConfig{KeepAlive: -1, Control: tcpControl}
	return c.Listen(context.Background(), network("tcp", a, dual), a.String())
}

package exchange

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// udpSocket is a connected UDP socket, made with the fewest system calls and allocations that do:
// net.Dialer's costs a quarter more of CPU. It is a file to the runtime's poller.
type udpSocket struct {
	*os.File
	server netip.AddrPort
}

// sockaddrs are the arguments of bind and connect, pooled for they would be allocated.
type sockaddrs struct {
	local4, server4 unix.SockaddrInet4
	local6, server6 unix.SockaddrInet6
}

var sockaddrPool = sync.Pool{New: func() any { return new(sockaddrs) }}

// openUDP opens a connected UDP socket.
func openUDP(local, server netip.AddrPort) (net.Conn, error) {
	family := unix.AF_INET
	if server.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	a := sockaddrPool.Get().(*sockaddrs)
	if family == unix.AF_INET {
		err = connect4(fd, a, local, server)
	} else {
		err = connect6(fd, a, local, server)
	}
	sockaddrPool.Put(a)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &udpSocket{File: os.NewFile(uintptr(fd), "udp"), server: server}, nil
}

func connect4(fd int, a *sockaddrs, local, server netip.AddrPort) error {
	// RFC 9715 §3.1: never fragment, and let no ICMP message of a forger make the path look narrow.
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	a.local4 = unix.SockaddrInet4{Port: int(local.Port()), Addr: local.Addr().As4()}
	if err := unix.Bind(fd, &a.local4); err != nil {
		return os.NewSyscallError("bind", err)
	}
	a.server4 = unix.SockaddrInet4{Port: int(server.Port()), Addr: server.Addr().As4()}
	return os.NewSyscallError("connect", unix.Connect(fd, &a.server4))
}

func connect6(fd int, a *sockaddrs, local, server netip.AddrPort) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	a.local6 = unix.SockaddrInet6{Port: int(local.Port()), Addr: local.Addr().As16()}
	if err := unix.Bind(fd, &a.local6); err != nil {
		return os.NewSyscallError("bind", err)
	}
	a.server6 = unix.SockaddrInet6{Port: int(server.Port()), Addr: server.Addr().As16(), ZoneId: scope(server.Addr())}
	return os.NewSyscallError("connect", unix.Connect(fd, &a.server6))
}

// scope returns the number of a link-local address's interface.
func scope(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	i, err := net.InterfaceByName(a.Zone())
	if err != nil {
		return 0
	}
	return uint32(i.Index)
}

// Read reads one datagram. An empty one is no end.
func (s *udpSocket) Read(b []byte) (int, error) {
	n, err := s.File.Read(b)
	if err != nil && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Reusable says that the socket may carry further queries.
func (s *udpSocket) Reusable() {}

// LocalAddr asks the system.
func (s *udpSocket) LocalAddr() net.Addr {
	var local net.UDPAddr
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			switch sa, _ := unix.Getsockname(int(fd)); sa := sa.(type) {
			case *unix.SockaddrInet4:
				local = net.UDPAddr{IP: sa.Addr[:], Port: sa.Port}
			case *unix.SockaddrInet6:
				local = net.UDPAddr{IP: sa.Addr[:], Port: sa.Port}
			}
		})
	}
	return &local
}

// RemoteAddr returns the server's.
func (s *udpSocket) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(s.server) }

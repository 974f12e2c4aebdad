package serve

import (
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// portHelp says what can be done where a port below 1024 is denied.
const portHelp = "ports below 1024 are reserved: give the program the right (setcap cap_net_bind_service=+ep FILE, " +
	"or AmbientCapabilities=CAP_NET_BIND_SERVICE in its systemd unit), or lower the limit " +
	"(sysctl net.ipv4.ip_unprivileged_port_start=53), or choose another port (--listen 127.0.0.1:5300)"

// fastOpenQueue bounds the connections that send data in their SYN and have not yet been confirmed
// (RFC 7413 §5.1). It matters only where net.ipv4.tcp_fastopen lets servers do this.
const fastOpenQueue = 256

// expand returns the addresses to bind for one of the configuration.
func expand(a netip.AddrPort, _ bool) ([]netip.AddrPort, error) { return []netip.AddrPort{a}, nil }

// shareControl lets a socket share its port with those that allow it, too.
func shareControl(_, _ string, raw syscall.RawConn) (err error) {
	if failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); failed != nil {
		return failed
	}
	return err
}

// canShare makes a bound socket share its port. The first socket of an address is bound without the
// option, so that it fails where another server is bound already, though that one shares.
func canShare(conn *net.UDPConn) bool {
	raw, err := conn.SyscallConn()
	return err == nil && shareControl("", "", raw) == nil
}

func tcpControl(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		// A system without it loses one round trip of a new connection, and nothing else.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_FASTOPEN, fastOpenQueue)
	})
}

// prepare sets what a UDP socket needs, and finds out what it is.
func (u *udpSocket) prepare() {
	raw, err := u.udp.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(f uintptr) {
		fd := int(f)
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		u.six = err == nil && domain == unix.AF_INET6
		growBuffer(fd, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, u.s.config.ReceiveBuffer)
		growBuffer(fd, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, u.s.config.SendBuffer)
		// RFC 9715 §3.1: no response depends on fragments, and a forged ICMP message about the path
		// must not make the kernel cut ours (as RFC 8900 §3.7 fears).
		if u.six {
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT)
		}
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT)
		if !u.local.IsUnspecified() {
			return
		}
		if u.six {
			err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		} else {
			err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
		u.wildcard = err == nil
	})
}

// growBuffer asks for a buffer of at least size, past the system's limit where we may.
func growBuffer(fd, option, force, size int) {
	// The kernel doubles what it is asked for, and tells the double.
	if now, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil || now >= 2*size {
		return
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, size)
	}
}

// memDrops is the index of the drops in what SO_MEMINFO tells (SK_MEMINFO_DROPS).
const memDrops = 8

// stats asks the kernel. The drops are those that SO_RXQ_OVFL puts beside every datagram once there
// are any; asking for them costs the datagrams nothing.
func (u *udpSocket) stats() SocketStats {
	st := SocketStats{Addr: u.bound}
	if u.udp == nil {
		return st
	}
	raw, err := u.udp.SyscallConn()
	if err != nil {
		return st
	}
	raw.Control(func(f uintptr) {
		fd := int(f)
		st.ReceiveBuffer, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		st.SendBuffer, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
		st.KernelDrops = kernelDrops(f)
	})
	return st
}

func kernelDrops(fd uintptr) uint64 {
	var info [memDrops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(info[memDrops])
}

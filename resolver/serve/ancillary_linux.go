package serve

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A datagram to a wildcard socket comes with the address it was sent to, and a response is sent with
// the address it comes from (RFC 2181 §4.1), as ancillary data: one header and one of these:
//
//	IP_PKTINFO     interface index (4), local address (4), destination in the header (4)
//	IPV6_PKTINFO   destination (16), interface index (4)             (RFC 3542 §6.1)
const (
	ancillaryHeader = unix.SizeofCmsghdr
	ancillarySize   = ancillaryHeader + 24 // the longer of both, aligned
)

// destination returns the local address that a datagram was sent to, invalid where ancillary data
// does not tell or it was sent to a group or to all.
func destination(oob []byte) netip.Addr {
	level, kind, data := ancillary(oob)
	switch {
	case level == unix.IPPROTO_IP && kind == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		// RFC 1122 §3.2.1.3: a broadcast or group address is never a source. The kernel then names
		// an address of the interface instead.
		if [4]byte(data[4:8]) != [4]byte(data[8:12]) {
			return netip.Addr{}
		}
		return netip.AddrFrom4([4]byte(data[4:8]))
	case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		a := netip.AddrFrom16([16]byte(data[:16])).Unmap()
		if a.IsMulticast() {
			return netip.Addr{}
		}
		return a
	}
	return netip.Addr{}
}

// ancillary returns level, type and data of the first, and here only, item.
func ancillary(oob []byte) (level, kind int32, data []byte) {
	if len(oob) < ancillaryHeader {
		return 0, 0, nil
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	if n := int(h.Len); n >= ancillaryHeader && n <= len(oob) {
		data = oob[ancillaryHeader:n]
	}
	return h.Level, h.Type, data
}

// returnToSender turns received ancillary data into that of the response: the address stays, the
// interface is left to routing. (A link-local client's own address names the interface.)
func returnToSender(oob []byte) {
	level, _, data := ancillary(oob)
	if level == unix.IPPROTO_IP {
		clear(data[:4])
	} else {
		clear(data[16:20])
	}
}

// appendSource appends ancillary data that says where a response comes from. six says that the socket
// is one of IPv6, which has IPv4 addresses mapped into its own.
func appendSource(oob []byte, local netip.Addr, six bool) []byte {
	start := len(oob)
	oob = append(oob, make([]byte, ancillarySize)...)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[start]))
	data := oob[start+ancillaryHeader:]
	if six {
		h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
		h.SetLen(ancillaryHeader + unix.SizeofInet6Pktinfo)
		a := local.As16()
		copy(data, a[:])
		return oob[:start+unix.CmsgSpace(unix.SizeofInet6Pktinfo)]
	}
	h.Level, h.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
	h.SetLen(ancillaryHeader + unix.SizeofInet4Pktinfo)
	a := local.As4()
	copy(data[4:], a[:])
	return oob[:start+unix.CmsgSpace(unix.SizeofInet4Pktinfo)]
}

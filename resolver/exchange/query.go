package exchange

import (
	"encoding/binary"
	"net/netip"

	"bonsai/wire"
)

// minUDPSize is the UDP payload size that needs no EDNS (RFC 1035 §4.2.1).
const minUDPSize = 512

// optionRoom is the longest options we send: a cookie of full length, and padding.
const optionRoom = 4 + clientCookieLen + maxServerCookie + 4 + paddedTo

// queryRoom is the longest query: header, question, OPT with its options.
const queryRoom = wire.HeaderSize + wire.MaxNameLen + 4 + wire.OPTSize + optionRoom

// compose writes the next query, with ID and letter case drawn anew (RFC 5452 §4.3).
func (x *exchange) compose() {
	var flags uint16
	if x.a.RD {
		flags |= wire.FlagRD
	}
	if x.a.CD {
		flags |= wire.FlagCD
	}
	var name [wire.MaxNameLen]byte
	n := copy(name[:], x.a.Name)
	x.draws.scramble(name[:n])
	var size uint16
	if x.edns {
		size = x.payloadSize()
	}
	x.loadCookie()
	var room [optionRoom]byte
	options := x.appendCookie(room[:0])
	if x.a.TLS && x.edns {
		var zeros [paddedTo]byte
		pad := padding(wire.HeaderSize + n + 4 + wire.OPTSize + len(options))
		options = wire.AppendOption(options, wire.OptionPadding, zeros[:pad])
	}
	x.query = wire.AppendQuery(x.query[:0], x.draws.uint16(), flags, name[:n], x.a.Type, size, options)
}

// frame returns the query behind its length, as TCP carries it (RFC 1035 §4.2.2).
func (x *exchange) frame() []byte {
	binary.BigEndian.PutUint16(x.room, uint16(len(x.query)))
	return x.room[:2+len(x.query)]
}

// payloadSize returns the UDP payload size to offer: less where responses got lost, for it may be
// their size that loses them (RFC 6891 §6.2.5, RFC 9715 §3.2).
func (x *exchange) payloadSize() uint16 {
	size := x.c.config.EDNSSize
	switch {
	case x.a.Retry >= 2:
		return minUDPSize
	case x.a.Retry == 1:
		return min(size, DefaultEDNSSize)
	}
	return size
}

// local returns where to send from: of the configured addresses of the server's family any with the
// same odds (RFC 5452 §4.5), or the one that the server's cookie belongs to (RFC 7873 §5.1).
func (x *exchange) local(port uint16) netip.AddrPort {
	var pick netip.Addr
	n := uint16(0)
	for _, a := range x.c.config.Outgoing {
		if a.Is4() != x.a.Server.Addr().Is4() {
			continue
		}
		if x.cookie.length != 0 && a == x.cookie.local {
			pick = a
			break
		}
		if n++; x.draws.uint16()%n == 0 {
			pick = a
		}
	}
	x.from = pick
	return netip.AddrPortFrom(pick, port)
}

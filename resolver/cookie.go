package resolver

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"

	"github.com/dchest/siphash"

	"bonsai/wire"
)

// Lengths of RFC 7873 §4 and RFC 9018 §4, in bytes.
const (
	clientCookieLen = 8
	serverCookieLen = 16
	maxCookieLen    = 40
)

// cookieKey is the secret that server cookies are made with, drawn at start.
type cookieKey struct{ k0, k1 uint64 }

func (k *cookieKey) init() {
	var b [16]byte
	rand.Read(b[:])
	k.k0, k.k1 = binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
}

// wellFormedCookie says whether a COOKIE option has a length of RFC 7873 §4: a client cookie of 8
// bytes, alone or with a server cookie of 8 to 32.
func wellFormedCookie(c []byte) bool {
	return len(c) == clientCookieLen || len(c) >= 2*clientCookieLen && len(c) <= maxCookieLen
}

// appendOption appends a COOKIE option with a fresh server cookie (RFC 9018 §4: version 1, a
// timestamp, and SipHash-2-4 over client cookie, these and the client's address).
func (k *cookieKey) appendOption(options, client []byte, addr netip.Addr, now uint32) []byte {
	var in [clientCookieLen + 8 + 16]byte
	copy(in[:], client)
	in[clientCookieLen] = 1
	binary.BigEndian.PutUint32(in[clientCookieLen+4:], now)
	n := clientCookieLen + 8
	if addr = addr.Unmap(); addr.Is4() {
		a := addr.As4()
		n += copy(in[n:], a[:])
	} else {
		a := addr.As16()
		n += copy(in[n:], a[:])
	}
	options = binary.BigEndian.AppendUint16(options, uint16(wire.OptionCookie))
	options = binary.BigEndian.AppendUint16(options, clientCookieLen+serverCookieLen)
	options = append(options, in[:clientCookieLen+8]...)
	return binary.LittleEndian.AppendUint64(options, siphash.Hash(k.k0, k.k1, in[:n]))
}

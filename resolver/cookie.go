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

// cookieHolds says whether a query's COOKIE option, if it has one, is well formed. RFC 7873 §5.2.2: a
// query with another is FORMERR.
func cookieHolds(q *wire.Query) bool {
	if len(q.EDNS.Options) == 0 {
		return true
	}
	c, ok := q.EDNS.Option(wire.OptionCookie)
	return !ok || wellFormedCookie(c)
}

// appendOption appends a COOKIE option with a fresh server cookie (RFC 9018 §4: version 1, a
// timestamp, and SipHash-2-4 over client cookie, these and the client's address).
func (k *cookieKey) appendOption(options, client []byte, addr netip.Addr, now uint32) []byte {
	options = binary.BigEndian.AppendUint16(options, uint16(wire.OptionCookie))
	options = binary.BigEndian.AppendUint16(options, clientCookieLen+serverCookieLen)
	options = append(options, client...)
	options = append(options, 1, 0, 0, 0)
	options = binary.BigEndian.AppendUint32(options, now)
	cookie := options[len(options)-clientCookieLen-8:]
	return binary.LittleEndian.AppendUint64(options, k.hash(cookie, addr))
}

// hash is over client cookie, version, reserved bytes and timestamp, 16 bytes in all, and the
// address.
func (k *cookieKey) hash(cookie []byte, addr netip.Addr) uint64 {
	var in [clientCookieLen + 8 + 16]byte
	n := copy(in[:], cookie[:clientCookieLen+8])
	if addr = addr.Unmap(); addr.Is4() {
		a := addr.As4()
		n += copy(in[n:], a[:])
	} else {
		a := addr.As16()
		n += copy(in[n:], a[:])
	}
	return siphash.Hash(k.k0, k.k1, in[:n])
}

// Ages of a good server cookie in seconds (RFC 9018 §4.3): not over an hour, and not from more than
// five minutes ahead.
const (
	cookieAge   = 3600
	cookieAhead = 300
)

// valid says whether a COOKIE option holds a server cookie that we made for this address.
func (k *cookieKey) valid(c []byte, addr netip.Addr, now uint32) bool {
	if len(c) != clientCookieLen+serverCookieLen || c[clientCookieLen] != 1 {
		return false
	}
	age := int32(now - binary.BigEndian.Uint32(c[clientCookieLen+4:]))
	return age <= cookieAge && age >= -cookieAhead &&
		binary.LittleEndian.Uint64(c[clientCookieLen+8:]) == k.hash(c, addr)
}

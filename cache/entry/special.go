package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// isSpecial4 says whether an IPv4 address is in a special-purpose block that a public name has no
// use for (IANA registry by RFC 6890): this network, private, shared, loopback, link-local, protocol
// assignments, benchmarking, multicast and reserved. Documentation blocks are not among them.
func isSpecial4(a []byte) bool {
	switch a[0] {
	case 0, 10, 127:
		return true
	case 100:
		return a[1]&0xC0 == 64
	case 169:
		return a[1] == 254
	case 172:
		return a[1]&0xF0 == 16
	case 192:
		return a[1] == 168 || a[1] == 0 && a[2] == 0
	case 198:
		return a[1]&0xFE == 18
	}
	return a[0] >= 224
}

// isSpecial6 says the same of an IPv6 address: all outside the global unicast block 2000::/3, which
// has v4-mapped, NAT64, unique local and link-local ones, and of that block what embeds an IPv4
// address or is a protocol assignment (2001::/23, 2002::/16).
func isSpecial6(a []byte) bool {
	if a[0]>>5 != 1 {
		return true
	}
	return a[0] == 0x20 && (a[1] == 2 || a[1] == 1 && a[2]&0xFE == 0)
}

// isSpecialSet says whether an RRset of addresses, or of service bindings with address hints (RFC
// 9460 §7.3), has a special one.
func isSpecialSet(set *wire.RRset) bool {
	for _, r := range set.RDATA {
		switch set.Type {
		case wire.TypeA:
			if len(r) == 4 && isSpecial4(r) {
				return true
			}
		case wire.TypeAAAA:
			if len(r) == 16 && isSpecial6(r) {
				return true
			}
		case wire.TypeSVCB, wire.TypeHTTPS:
			if hasSpecialHint(r) {
				return true
			}
		}
	}
	return false
}

// SvcParamKeys of RFC 9460 §14.3.2.
const (
	keyIPv4Hint = 4
	keyIPv6Hint = 6
)

func hasSpecialHint(r []byte) bool {
	if len(r) < 3 {
		return false
	}
	r = r[2:]
	n := wire.NameLen(r)
	if n == 0 {
		return false
	}
	for r = r[n:]; len(r) >= 4; {
		key, n := binary.BigEndian.Uint16(r), int(binary.BigEndian.Uint16(r[2:]))
		r = r[4:]
		if n > len(r) {
			return false
		}
		hints := r[:n]
		r = r[n:]
		for ; key == keyIPv4Hint && len(hints) >= 4; hints = hints[4:] {
			if isSpecial4(hints) {
				return true
			}
		}
		for ; key == keyIPv6Hint && len(hints) >= 16; hints = hints[16:] {
			if isSpecial6(hints) {
				return true
			}
		}
	}
	return false
}

// hasSpecialAddress says whether what clients get has a special-purpose address.
func hasSpecialAddress(c *Content) bool {
	for _, sets := range [...][]wire.RRset{c.Answer, c.Additional} {
		for i := range sets {
			if isSpecialSet(&sets[i]) {
				return true
			}
		}
	}
	return false
}

package policy

import (
	"fmt"
	"net/netip"

	"bonsai/wire"
)

// hostsTTL is how long clients may keep what a hosts file says, in seconds; the file has no TTLs
// and may be edited at any time.
const hostsTTL = 60

// addHost adds one line of a hosts file: an address and its names. The address answers for all of
// them, and the first, the canonical one, answers for the address (hosts(5)).
func (l LocalData) addHost(words []string) error {
	addr, err := netip.ParseAddr(words[0])
	if err != nil || len(words) < 2 {
		return fmt.Errorf("%q is not an address followed by names", words[0])
	}
	addr = addr.Unmap().WithZone("")
	t := wire.TypeAAAA
	if addr.Is4() {
		t = wire.TypeA
	}
	for i, word := range words[1:] {
		name, err := wire.ParseName(word)
		if err != nil {
			return fmt.Errorf("%q is not a domain name", word)
		}
		l.add(name.Canonical(), t, hostsTTL, addr.AsSlice())
		if i == 0 {
			l.add(ReverseName(addr), wire.TypePTR, hostsTTL, []byte(name))
		}
	}
	return nil
}

// ReverseName returns the name that an address has under in-addr.arpa (RFC 1035 §3.5) or ip6.arpa
// (RFC 3596 §2.5).
func ReverseName(addr netip.Addr) wire.Name {
	var out []byte
	if addr.Is4() {
		a := addr.As4()
		for i := len(a) - 1; i >= 0; i-- {
			out = fmt.Appendf(out, "%d.", a[i])
		}
		return wire.MustName(string(out) + "in-addr.arpa.")
	}
	a := addr.As16()
	for i := len(a) - 1; i >= 0; i-- {
		out = fmt.Appendf(out, "%x.%x.", a[i]&0xF, a[i]>>4)
	}
	return wire.MustName(string(out) + "ip6.arpa.")
}

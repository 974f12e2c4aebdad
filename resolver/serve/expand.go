package serve

import (
	"net"
	"net/netip"
)

// expandInterfaces returns the addresses of the machine that a wildcard address stands for, with its
// port. [::] stands for IPv4 as well where it is dual.
func expandInterfaces(wildcard netip.AddrPort, dual bool) (addrs []netip.AddrPort, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		has, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range has {
			if n, ok := a.(*net.IPNet); ok && i.Flags&net.FlagUp != 0 {
				addrs = appendExpanded(addrs, wildcard, dual, n.IP, i.Name)
			}
		}
	}
	return addrs, nil
}

func appendExpanded(addrs []netip.AddrPort, wildcard netip.AddrPort, dual bool, ip net.IP, zone string) []netip.AddrPort {
	a, ok := netip.AddrFromSlice(ip)
	a = a.Unmap()
	if !ok || a.Is4() != wildcard.Addr().Is4() && !(dual && a.Is4()) {
		return addrs
	}
	if a.IsLinkLocalUnicast() && a.Is6() {
		a = a.WithZone(zone)
	}
	return append(addrs, netip.AddrPortFrom(a, wildcard.Port()))
}

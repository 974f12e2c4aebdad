package exchange

import "net/netip"

// thisNetwork is "this host on this network" (RFC 6890 §2.2.2), of which no server can be.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// Usable says whether the configuration lets the address be asked at all. Addresses that can only
// mean ourselves, many, or nobody are glue of a broken or hostile zone.
func (c *Client) Usable(a netip.Addr) bool {
	switch {
	case !a.IsValid(), a.IsUnspecified(), a.IsMulticast(), a.Is4In6():
		return false
	case a.Is4() && (!c.config.IPv4 || thisNetwork.Contains(a) || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})):
		return false
	case a.Is6() && !c.config.IPv6:
		return false
	case a.IsLoopback() && !c.config.QueryLocalhost:
		return false
	case a.IsLinkLocalUnicast() && a.Is6() && a.Zone() == "":
		return false
	}
	for _, p := range c.config.DoNotQuery {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

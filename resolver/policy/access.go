package policy

import (
	"net/netip"

	"bonsai/wire"
)

// access refuses clients outside the allowed prefixes. It is closed by default: an open resolver
// is an amplifier (RFC 5358 §4).
type access struct {
	allow, refuse []netip.Prefix
}

func newAccess(allow, refuse []netip.Prefix) *access {
	return &access{allow: allow, refuse: refuse}
}

func (a *access) Judge(r *Request) Outcome {
	// The most specific prefix that holds the client decides; refuse wins a tie.
	if longest(a.allow, r.Client) > longest(a.refuse, r.Client) {
		return Outcome{}
	}
	// RFC 8914 §4.19: Prohibited.
	return fail("access", wire.RCODERefused, wire.EDEProhibited, "")
}

// longest returns the length of the most specific prefix that holds addr, -1 for none.
func longest(prefixes []netip.Prefix, addr netip.Addr) int {
	bits := -1
	for _, p := range prefixes {
		if p.Bits() > bits && p.Contains(addr) {
			bits = p.Bits()
		}
	}
	return bits
}

// snoop keeps the cache from those who only ask what others asked: without RD nothing is resolved
// (RFC 1034 §4.3.1), and what is cached is nobody else's business unless allowed.
type snoop struct {
	allow []netip.Prefix
}

func newSnoop(allow []netip.Prefix) *snoop { return &snoop{allow: allow} }

func (s *snoop) Judge(r *Request) Outcome {
	switch {
	case r.Query.Has(wire.FlagRD):
		return Outcome{}
	case longest(s.allow, r.Client) >= 0:
		return Outcome{Action: Cached, EDE: wire.NoEDE, Rule: "snoop"}
	}
	// RFC 8914 §4.21: Not Authoritative, for a query without RD to a server that only recurses.
	return fail("snoop", wire.RCODERefused, wire.EDENotAuthoritative, "")
}

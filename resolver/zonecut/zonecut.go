// Package zonecut knows the deepest live delegation of a name, from the root hints down.
//
// A Cut is one grant: what the parent zone said of its child in one referral, NS set, glue, and DS
// or the proof of its absence, with the lease it gave them. Cuts lie in the cache as an entry kind of
// their own, so that they share its budget and its eviction and are never shown to clients.
//
// Who may write what follows from RFC 1034 §4.2.1: only the parent's referral grants and renews,
// never the child (a "ghost domain" renews itself for ever). A cut is live while its own lease and
// every ancestor's run, and while no ancestor was granted to others since.
package zonecut

import (
	"net/netip"

	"bonsai/wire"
)

// Port is where name servers are asked unless configured otherwise (RFC 1035 §4.2).
const Port = 53

// MaxLease bounds a grant, in seconds, whatever TTL the parent gave.
const MaxLease = 24 * 3600

// Server is a name server of a zone. Addrs is glue or configured, and may be empty; Name is empty
// for a server configured by address alone.
type Server struct {
	Name  wire.Name
	Addrs []netip.AddrPort
}

// Cut is a zone with who serves it. It is immutable once made.
type Cut struct {
	Zone    wire.Name
	Parent  wire.Name // the zone that granted it; the root is its own
	Servers []Server

	// DS is the DS RRset with its signatures or the NSEC or NSEC3 RRsets that prove its absence, as
	// the parent's referral gave them, Unchecked. It is empty where the referral had neither.
	DS []wire.RRset

	// Granted is when this grant began: a cut below is live only if granted since. Renewal by an
	// overlapping NS set keeps it. Expires ends it, and Renew is from when on it is to be renewed
	// where in use: all Unix seconds.
	Granted, Renew, Expires uint32

	// Source says how the cut is asked.
	Source Source
	// First is set for a configured zone whose failure sends the question the ordinary way.
	First bool
	// TCP is set for a configured zone asked over TCP only.
	TCP bool
}

// Source is where a cut comes from.
type Source uint8

// Sources of cuts.
const (
	Referral Source = iota
	Hints           // the root, not primed yet
	Stub            // configured servers, asked as authoritative ones
	Forward         // configured resolvers, asked with RD
)

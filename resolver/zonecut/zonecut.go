// Package zonecut knows the deepest live delegation of a name, from the root hints down.
//
// A Cut is one grant: what the parent zone said of its child in one referral, NS set, glue, and DS
// or the proof of its absence, with the lease it gave them. Cuts lie in the cache as an entry kind of
// their own, so that they share its budget and its eviction and are never shown to clients:
//
//	answer      the NS set; its TTL is the lease
//	authority   the DS RRset, or the NSEC or NSEC3 RRsets that prove its absence
//	additional  a record of the parent zone's name with Since and Granted, then the glue
//
// Who may write follows from RFC 1034 §4.2.1: only the parent's referral grants and renews, never
// the child (a "ghost domain" would renew itself for ever). A cut is live while its own lease and
// every ancestor's run, and while no ancestor was granted to others since it was granted itself.
package zonecut

import (
	"net/netip"

	"bonsai/wire"
)

// Port is where name servers are asked unless configured otherwise (RFC 1035 §4.2).
const Port = 53

// MaxLease bounds a grant, in seconds, whatever TTL the parent gave.
const MaxLease = 24 * 3600

// MaxServers and MaxAddrs bound what is kept of one delegation. The largest in use has 13 servers
// with two addresses each; more than these serve nobody but an attacker.
const (
	MaxServers = 32
	MaxAddrs   = 64
)

// Server is a name server of a zone. Name is canonical, and empty for one configured by address
// alone. Addrs is glue or configured, and may be empty.
type Server struct {
	Name  wire.Name
	Addrs []netip.AddrPort
	// Expires ends the glue, in Unix seconds, where that is before the cut's own end; else it is 0.
	Expires uint32
}

// Cut is a zone with who serves it. It is immutable once made.
type Cut struct {
	Zone    wire.Name // canonical
	Parent  wire.Name // the zone that granted it, canonical; a root or configured zone is its own
	Servers []Server

	// DS is the DS RRset with its signatures or the NSEC or NSEC3 RRsets that prove its absence, as
	// the parent's referral gave them, Unchecked, TTLs in seconds from when the Cut was looked up.
	// It is empty where the referral had neither or their TTL has passed.
	DS []wire.RRset

	// Granted is when the parent last gave the grant, Since from when on it has been renewed without
	// a gap and with at least one server kept. Expires ends it. All are Unix seconds.
	Granted, Since, Expires uint32

	// Asked says that the parent was asked for glue beyond what its referral brought, and need not be
	// again while the grant lasts.
	Asked bool
	// Hearsay says that a forwarder told of the delegation. It is shown to those who may see the cache,
	// and never asked.
	Hearsay bool
	// Prime says that the servers are hints: they are to be asked for the zone's NS set, which then
	// takes their place (RFC 9609 §3).
	Prime bool
	// Forward says that the servers are resolvers, to be asked with RD.
	Forward bool
	// First says that where these configured servers fail the question goes the ordinary way.
	First bool
	// TCP says that the servers are to be asked over TCP only.
	TCP bool
	// TLS, where it is not nil, says that they are to be asked over TLS only, each under the name that its
	// certificate is to be for; "" takes any.
	TLS map[netip.AddrPort]string
}

// Renew returns from when on, in Unix seconds, a cut in use is to be renewed: its last quarter.
func (c *Cut) Renew() uint32 { return c.Expires - (c.Expires-min(c.Granted, c.Expires))/4 }

// Configured is a zone whose servers are configured: asked as authoritative servers, or with Forward
// as resolvers.
type Configured struct {
	Zone    wire.Name
	Servers []Server
	Forward bool
	Prime   bool                      // ask Servers for the NS set and go on with that
	First   bool                      // where Servers fail, resolve the ordinary way
	TCP     bool                      // ask over TCP only
	TLS     map[netip.AddrPort]string // not nil: ask over TLS only, as Cut.TLS says; not with Prime
}

package iterate

import (
	"net/netip"

	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// followReferral keeps the delegation that the response is and turns to its servers.
func (r *resolution) followReferral() step {
	s := &r.said
	now := r.config.Now()
	cut := makeCut(s, r.cut.Zone, now, r.config.LaxGlue)
	r.stats.referrals.Add(1)
	r.config.Cuts.Store(cut, now, r.task.Epoch)
	if cut.Zone.Equal(r.name) && r.parentSide() && !r.isMinimised() {
		if r.renewed = r.renew != ""; !r.renewed {
			r.finishDS()
		}
		return nil
	}
	r.cut = cut
	return (*resolution).enterCut
}

// staleGrant is how old, in seconds, a grant is at least when its parent is asked whether it still
// holds because none of the servers in it is any use.
const staleGrant = 30

// canAskAgain says whether the delegation may have moved.
func (r *resolution) canAskAgain() bool {
	return !r.askedAgain && r.cut.Parent != r.cut.Zone && r.renew == "" &&
		r.config.Now() >= r.cut.Granted+staleGrant && r.ctx.Err() == nil
}

// askAgain asks the parent for the delegation whose servers are no use, and goes on where it has
// others or more addresses for them.
func (r *resolution) askAgain() step {
	r.askedAgain = true
	s, parent := r.askParent(question{r.cut.Zone, wire.TypeNS})
	if s == nil || s.below == nil || !s.below.Owner.Equal(r.cut.Zone) {
		return (*resolution).exhausted
	}
	now := r.config.Now()
	cut := makeCut(s, parent, now, r.config.LaxGlue)
	r.config.Cuts.Store(cut, now, r.task.Epoch)
	if !r.pool.lacks(cut) {
		return (*resolution).exhausted
	}
	r.note("delegation has changed")
	r.cut = cut
	return (*resolution).enterCut
}

// finishDS makes the result of a DS query that the parent answered with the referral itself, as one
// does that knows no DNSSEC: the DS RRset, if it came along, or its absence with what proof there is.
func (r *resolution) finishDS() {
	s := &r.said
	s.answer, s.target = nil, ""
	if s.ds != nil {
		s.answer = []wire.RRset{*s.ds}
	}
	r.result = r.makeResult()
}

// makeCut makes the cut of a referral given by a server of parent.
func makeCut(s *said, parent wire.Name, now uint32, laxGlue bool) *zonecut.Cut {
	cut := &zonecut.Cut{
		Zone: s.below.Owner.Canonical(), Parent: parent,
		Expires: now + min(s.below.TTL, zonecut.MaxLease),
	}
	if s.ds != nil {
		cut.DS = []wire.RRset{*s.ds}
	} else {
		cut.DS = s.proofs
	}
	scope := parent
	if laxGlue {
		scope = wire.Root
	}
	cut.Servers = makeServers(s.below, s.additional, scope, now)
	return cut
}

// makeServers puts an NS set and its glue together. RFC 2181 §5.4.1: glue is for names within the
// scope of who gives it. Those with glue come first where there are more than are kept.
func makeServers(ns *wire.RRset, glue []wire.RRset, scope wire.Name, now uint32) []zonecut.Server {
	servers := make([]zonecut.Server, 0, min(len(ns.RDATA), zonecut.MaxServers))
	addrs := 0
	for _, glued := range [...]bool{true, false} {
		for _, rdata := range ns.RDATA {
			s := zonecut.Server{Name: wire.Name(rdata).Canonical()}
			if s.Name.IsSubdomainOf(scope) {
				s.Addrs, s.Expires = glueOf(s.Name, ns.TTL, glue, now)
			}
			if (len(s.Addrs) > 0) != glued || len(servers) >= zonecut.MaxServers {
				continue
			}
			s.Addrs = s.Addrs[:min(len(s.Addrs), zonecut.MaxAddrs-addrs)]
			addrs += len(s.Addrs)
			servers = append(servers, s)
		}
	}
	return servers
}

// glueOf returns the addresses of a name server in the additional section, and when they end if that
// is before the NS set does.
func glueOf(name wire.Name, ttl uint32, glue []wire.RRset, now uint32) (addrs []netip.AddrPort, expires uint32) {
	least := ttl
	for i := range glue {
		if set := &glue[i]; (set.Type == wire.TypeA || set.Type == wire.TypeAAAA) && set.Owner.Equal(name) {
			addrs = appendAddrs(addrs, set)
			least = min(least, set.TTL)
		}
	}
	if least < ttl {
		expires = now + least
	}
	return addrs, expires
}

// appendAddrs appends the addresses of an A or AAAA RRset.
func appendAddrs(addrs []netip.AddrPort, set *wire.RRset) []netip.AddrPort {
	for _, rdata := range set.RDATA {
		if ip, ok := netip.AddrFromSlice(rdata); ok {
			addrs = append(addrs, netip.AddrPortFrom(ip, zonecut.Port))
		}
	}
	return addrs
}

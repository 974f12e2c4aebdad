package iterate

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// pool is the servers of the cut being asked: what is known of their addresses and what became of
// asking them.
type pool struct {
	servers []target

	addrs  []netip.AddrPort // all known, each once whatever names it has
	tried  []netip.AddrPort // not to be asked in this round
	silent []netip.AddrPort // asked without a response, once for each time

	avoid  []netip.AddrPort
	failed int  // queries in vain
	rounds int  // done
	heard  bool // some server sent something
	missed int  // points for name servers that turned out to have no address
	extra  int  // lookups of a second family
}

// target is one name server whose addresses may be looked up.
type target struct {
	name  wire.Name
	known [2]bool // a usable address of the family
	done  [2][ways]bool
	gone  bool // the name does not exist
}

// Families, as indices.
const (
	family4 = iota
	family6
)

var familyType = [...]wire.Type{family4: wire.TypeA, family6: wire.TypeAAAA}

// newPool makes the pool of a cut.
func newPool(cut *zonecut.Cut, avoid []netip.AddrPort, x Exchanger) *pool {
	p := new(pool)
	p.fill(cut, avoid, x)
	return p
}

// emptied returns an empty pool with the memory of one that is not used any more.
func (p *pool) emptied() pool {
	clear(p.servers)
	return pool{servers: p.servers[:0], addrs: p.addrs[:0], tried: p.tried[:0], silent: p.silent[:0]}
}

// fill begins with the servers of a cut. Their order is drawn, so that all of those without addresses
// share the work.
func (p *pool) fill(cut *zonecut.Cut, avoid []netip.AddrPort, x Exchanger) {
	*p = p.emptied()
	p.avoid, p.tried = avoid, append(p.tried, avoid...)
	for i := range cut.Servers {
		p.servers = append(p.servers, target{name: cut.Servers[i].Name})
		for _, a := range cut.Servers[i].Addrs {
			p.add(i, a, x)
		}
	}
	for i := len(p.servers) - 1; i > 0; i-- {
		j := rand.IntN(i + 1)
		p.servers[i], p.servers[j] = p.servers[j], p.servers[i]
	}
}

// add takes an address of a server if it may be asked at all, and says whether it is a new one.
func (p *pool) add(server int, a netip.AddrPort, x Exchanger) bool {
	if !x.Usable(a.Addr()) || len(p.addrs) >= zonecut.MaxAddrs {
		return false
	}
	if a.Port() == 0 {
		a = netip.AddrPortFrom(a.Addr(), zonecut.Port)
	}
	if a.Addr().Is4() {
		p.servers[server].known[family4] = true
	} else {
		p.servers[server].known[family6] = true
	}
	if slices.Contains(p.addrs, a) {
		return false
	}
	p.addrs = append(p.addrs, a)
	return true
}

// lacks says whether a cut has a server or an address that the pool has not.
func (p *pool) lacks(cut *zonecut.Cut) bool {
	for i := range cut.Servers {
		s := &cut.Servers[i]
		if !slices.ContainsFunc(p.servers, func(t target) bool { return t.name == s.Name }) {
			return true
		}
		for _, a := range s.Addrs {
			if !slices.Contains(p.addrs, a) {
				return true
			}
		}
	}
	return false
}

// silences counts how often a server was silent.
func (p *pool) silences(a netip.AddrPort) (n int) {
	for _, s := range p.silent {
		if s == a {
			n++
		}
	}
	return n
}

// nextRound lets the silent be asked again.
func (p *pool) nextRound() {
	p.rounds++
	p.tried = slices.DeleteFunc(p.tried, func(a netip.AddrPort) bool {
		return slices.Contains(p.silent, a) && !slices.Contains(p.avoid, a)
	})
}

// forgive lets a server be asked the next question.
func (p *pool) forgive(a netip.AddrPort) {
	p.tried = slices.DeleteFunc(p.tried, func(t netip.AddrPort) bool { return t == a && !slices.Contains(p.avoid, a) })
}

// again lets all be asked again, for another question.
func (p *pool) again() { p.tried = append(p.tried[:0], p.avoid...) }

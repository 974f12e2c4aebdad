package lab

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// proof collects the records that prove something absent, each once.
type proof struct {
	z       *zone
	records []dns.RR
	seen    map[string]bool
}

func (z *zone) newProof() *proof { return &proof{z: z, seen: map[string]bool{}} }

func (p *proof) add(key string, record dns.RR, sigs ...dns.RR) {
	if !p.seen[key] {
		p.seen[key] = true
		p.records = append(append(p.records, record), sigs...)
	}
}

// nsec adds the NSEC that matches or covers the name.
func (p *proof) nsec(name wire.Name) {
	owner := p.z.previous(name)
	n := p.z.nodes[owner]
	p.add(string(owner), n.sets[dns.TypeNSEC][0], n.sigs[dns.TypeNSEC]...)
}

// nsec3 adds the NSEC3 that matches the name or, where none does, that covers it.
func (p *proof) nsec3(name wire.Name) (matches bool) {
	hash := p.z.hash(name.String())
	i, found := slices.BinarySearchFunc(p.z.hashes, hash, func(h *hashed, hash string) int {
		return strings.Compare(h.hash, hash)
	})
	if !found {
		i = (i + len(p.z.hashes) - 1) % len(p.z.hashes)
	}
	h := p.z.hashes[i]
	p.add(h.hash, h.record, h.sig)
	return found
}

// matched says whether an NSEC3 for exactly this name exists.
func (z *zone) matched(name wire.Name) bool {
	hash := z.hash(name.String())
	return slices.ContainsFunc(z.hashes, func(h *hashed) bool { return h.hash == hash })
}

// closest adds the closest encloser proof of RFC 5155 §7.2.1: the deepest ancestor that has an
// NSEC3, and the cover of the name one label below it. encloser is that ancestor at the deepest.
func (p *proof) closest(name, encloser wire.Name) {
	for encloser != p.z.origin && !p.z.matched(encloser) {
		encloser = encloser.Parent()
	}
	p.nsec3(encloser)
	p.nsec3(name.Suffix(encloser.Labels() + 1))
}

// noData proves that the name, which exists, lacks a type. It also proves the absence of DS at a
// delegation (RFC 4035 §3.1.3.1, §3.1.4.1; RFC 5155 §7.2.3, §7.2.4, §7.2.7).
func (p *proof) noData(name wire.Name) {
	switch {
	case p.z.nsec3 == nil:
		p.nsec(name)
	case p.z.matched(name):
		p.nsec3(name)
	default:
		p.closest(name, name.Parent())
	}
}

// nxDomain proves that neither the name nor a wildcard for it exists (RFC 4035 §3.1.3.2, RFC 5155
// §7.2.2).
func (p *proof) nxDomain(name, encloser wire.Name) {
	wildcard, ok := encloser.Prepend("*")
	if p.z.nsec3 == nil {
		p.nsec(name)
		if ok {
			p.nsec(wildcard)
		}
		return
	}
	p.closest(name, encloser)
	if ok {
		p.nsec3(wildcard)
	}
}

// expanded proves that nothing closer than the wildcard exists (RFC 4035 §3.1.3.3, RFC 5155 §7.2.6).
func (p *proof) expanded(name, encloser wire.Name) {
	if p.z.nsec3 == nil {
		p.nsec(name)
		return
	}
	p.nsec3(name.Suffix(encloser.Labels() + 1))
}

// wildcardNoData proves that the wildcard at encloser would apply and lacks the type (RFC 4035
// §3.1.3.4, RFC 5155 §7.2.5).
func (p *proof) wildcardNoData(name, encloser wire.Name) {
	wildcard, _ := encloser.Prepend("*")
	if p.z.nsec3 == nil {
		p.nsec(name)
		p.nsec(wildcard)
		return
	}
	p.closest(name, encloser)
	p.nsec3(wildcard)
}

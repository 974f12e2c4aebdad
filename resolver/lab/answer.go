package lab

import (
	"maps"
	"slices"

	"github.com/miekg/dns"

	"bonsai/wire"
)

const (
	maxAliases = 8    // followed inside one server's zones
	ourUDPSize = 1232 // the largest response over UDP (RFC 9715 §3.1)
)

// answerer writes the response to one question from one server's zones.
type answerer struct {
	zones  []*zone
	m      *dns.Msg
	do     bool
	window window // of signatures made while answering
}

// answer returns the response to a query that has one question of class IN.
func answer(zones []*zone, query *dns.Msg, w window) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(query)
	m.RecursionAvailable = false
	m.Compress = true
	a := &answerer{zones: zones, m: m, window: w}
	if opt := query.IsEdns0(); opt != nil {
		a.do = opt.Do()
		m.SetEdns0(ourUDPSize, a.do)
	}
	q := query.Question[0]
	name, err := wire.ParseName(q.Name)
	if err != nil {
		m.Rcode = dns.RcodeFormatError
		return m
	}
	z := a.zoneOf(name.Canonical(), q.Qtype)
	if z == nil {
		m.Rcode = dns.RcodeRefused
		return m
	}
	m.Authoritative = true
	a.follow(z, name, q.Qtype)
	return m
}

// zoneOf returns the deepest zone of this server that may hold the type at the name: a DS lies
// above the cut (RFC 4035 §3.1.4.1).
func (a *answerer) zoneOf(name wire.Name, t uint16) *zone {
	var best, child *zone
	for _, z := range a.zones {
		switch {
		case !name.IsSubdomainOf(z.origin):
		case t == dns.TypeDS && name == z.origin && name != wire.Root:
			child = z
		case best == nil || z.origin.IsBelow(best.origin):
			best = z
		}
	}
	if best == nil {
		return child
	}
	return best
}

// follow answers the name, and what its aliases lead to as long as that is served here.
func (a *answerer) follow(z *zone, name wire.Name, t uint16) {
	seen := map[wire.Name]bool{}
	for len(seen) < maxAliases {
		seen[name.Canonical()] = true
		target, ok := a.step(z, name, t)
		if !ok || seen[target.Canonical()] {
			return
		}
		name = target
		if z = a.zoneOf(name.Canonical(), t); z == nil {
			return
		}
	}
}

// step is RFC 1034 §4.3.2 step 3: down from the apex, label by label. It returns the target where
// an alias ends it.
func (a *answerer) step(z *zone, name wire.Name, t uint16) (target wire.Name, alias bool) {
	if z.synth {
		a.synthesise(z, name, t)
		return "", false
	}
	canonical := name.Canonical()
	encloser := z.origin
	for labels := z.origin.Labels(); labels <= canonical.Labels(); labels++ {
		at := canonical.Suffix(labels)
		n := z.nodes[at]
		switch {
		case n == nil:
			return a.missing(z, name, encloser, t)
		case z.isCut(at) && !(at == canonical && t == dns.TypeDS):
			a.referral(z, at)
			return "", false
		case at != canonical && len(n.sets[dns.TypeDNAME]) > 0:
			return a.dname(z, name, at, t)
		}
		encloser = at
	}
	return a.found(z, z.nodes[canonical], name, t)
}

// found answers from a node, under the name that was asked for.
func (a *answerer) found(z *zone, n *node, name wire.Name, t uint16) (target wire.Name, alias bool) {
	switch {
	case len(n.sets[t]) > 0:
		a.put(&a.m.Answer, n, t, name)
		a.addresses(z, n.sets[t])
		return "", false
	case t == dns.TypeANY || t == dns.TypeRRSIG && len(n.sigs) > 0:
		a.all(n, t, name)
		return "", false
	}
	if set := n.sets[dns.TypeCNAME]; len(set) > 0 {
		a.put(&a.m.Answer, n, dns.TypeCNAME, name)
		return wire.MustName(set[0].(*dns.CNAME).Target), true
	}
	a.negative(z, func(p *proof) { p.noData(name.Canonical()) })
	return "", false
}

// all adds every RRset of a node, or all its signatures (RFC 1034 §3.7.1, RFC 4035 §3.1).
func (a *answerer) all(n *node, t uint16, owner wire.Name) {
	for _, of := range slices.Sorted(maps.Keys(n.sets)) {
		if t == dns.TypeANY {
			a.put(&a.m.Answer, n, of, owner)
			continue
		}
		for _, sig := range n.sigs[of] {
			sig = dns.Copy(sig)
			sig.Header().Name = owner.String()
			a.m.Answer = append(a.m.Answer, sig)
		}
	}
}

// missing answers for a name that is not there: from a wildcard, or with NXDOMAIN.
func (a *answerer) missing(z *zone, name, encloser wire.Name, t uint16) (target wire.Name, alias bool) {
	canonical := name.Canonical()
	wildcard, _ := encloser.Prepend("*")
	n := z.nodes[wildcard]
	if n == nil {
		a.m.Rcode = dns.RcodeNameError
		a.negative(z, func(p *proof) { p.nxDomain(canonical, encloser) })
		return "", false
	}
	if len(n.sets[t]) == 0 && len(n.sets[dns.TypeCNAME]) == 0 && t != dns.TypeANY && t != dns.TypeRRSIG {
		a.negative(z, func(p *proof) { p.wildcardNoData(canonical, encloser) })
		return "", false
	}
	a.prove(z, func(p *proof) { p.expanded(canonical, encloser) })
	return a.found(z, n, name, t)
}

// dname answers with the DNAME and the CNAME made from it (RFC 6672 §3.1).
func (a *answerer) dname(z *zone, name, owner wire.Name, t uint16) (target wire.Name, alias bool) {
	n := z.nodes[owner]
	set := n.sets[dns.TypeDNAME]
	a.put(&a.m.Answer, n, dns.TypeDNAME, owner)
	target, ok := name.ReplaceSuffix(name.Suffix(owner.Labels()), wire.MustName(set[0].(*dns.DNAME).Target))
	if !ok {
		a.m.Rcode = dns.RcodeYXDomain
		return "", false
	}
	a.m.Answer = append(a.m.Answer, &dns.CNAME{
		Hdr: dns.RR_Header{Name: name.String(), Rrtype: dns.TypeCNAME, Class: dns.ClassINET,
			Ttl: set[0].Header().Ttl},
		Target: target.String(),
	})
	return target, t != dns.TypeCNAME
}

// referral names the servers of a zone below (RFC 4035 §3.1.4: with DS or the proof that there is
// none).
func (a *answerer) referral(z *zone, cut wire.Name) {
	n := z.nodes[cut]
	a.m.Authoritative = len(a.m.Answer) > 0
	a.put(&a.m.Ns, n, dns.TypeNS, cut)
	if len(n.sets[dns.TypeDS]) > 0 {
		if a.do {
			a.put(&a.m.Ns, n, dns.TypeDS, cut)
		}
	} else {
		a.prove(z, func(p *proof) { p.noData(cut) })
	}
	a.addresses(z, n.sets[dns.TypeNS])
}

// negative adds the SOA and, for a client that wants it, a proof (RFC 2308 §3).
func (a *answerer) negative(z *zone, prove func(*proof)) {
	from := len(a.m.Ns)
	a.put(&a.m.Ns, z.apex(), dns.TypeSOA, z.origin)
	for i, rr := range a.m.Ns[from:] {
		rr = dns.Copy(rr)
		rr.Header().Ttl = z.negativeTTL()
		a.m.Ns[from+i] = rr
	}
	a.prove(z, prove)
}

func (a *answerer) prove(z *zone, with func(*proof)) {
	if !a.do || len(z.keys) == 0 {
		return
	}
	p := z.newProof()
	with(p)
	a.m.Ns = append(a.m.Ns, p.records...)
}

// put adds an RRset, with its signatures for a client that wants them. The owner is the name as
// given, which a wildcard's differs from, and the letter case of the question.
func (a *answerer) put(section *[]dns.RR, n *node, t uint16, owner wire.Name) {
	records := n.sets[t]
	if a.do {
		records = append(records[:len(records):len(records)], n.sigs[t]...)
	}
	text := owner.String()
	for _, rr := range records {
		if rr.Header().Name != text {
			rr = dns.Copy(rr)
			rr.Header().Name = text
		}
		*section = append(*section, rr)
	}
}

// addresses adds those that the zone holds for the targets of NS, MX and SRV records, glue included.
func (a *answerer) addresses(z *zone, set []dns.RR) {
	for _, rr := range set {
		var target string
		switch rr := rr.(type) {
		case *dns.NS:
			target = rr.Ns
		case *dns.MX:
			target = rr.Mx
		case *dns.SRV:
			target = rr.Target
		default:
			return
		}
		name := wire.MustName(target).Canonical()
		n := z.nodes[name]
		if n == nil {
			continue
		}
		for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
			a.put(&a.m.Extra, n, t, name)
		}
	}
}

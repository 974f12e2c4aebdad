package validate

import "bonsai/wire"

// nsec is an NSEC RRset that may serve as evidence.
type nsec struct {
	index       int // in the authority section
	owner, next wire.Name
	types       wire.Bitmap
}

// addNSEC takes a secure NSEC RRset as evidence of its zone, unless it cannot be part of it.
func (j *judgement) addNSEC(zone wire.Name, index int, set *wire.RRset) {
	n, ok := wire.ParseNSEC(set.RDATA[0])
	// RFC 4034 §4.1.1: the next name is the zone's, too, and the last one's is the apex.
	if !ok || !n.Next.IsSubdomainOf(zone) {
		return
	}
	if wire.Compare(set.Owner, n.Next) >= 0 && !n.Next.Equal(zone) {
		return
	}
	e := j.evidenceOf(evidence{zone: zone})
	e.nsecs = append(e.nsecs, nsec{index, set.Owner, n.Next, n.Types})
}

// covers says whether the NSEC proves that its zone has nothing at name. RFC 6840 §4.1: one of a
// delegation tells nothing of names below it, nor does one of a DNAME.
func (x *nsec) covers(name wire.Name) bool {
	if wire.Compare(x.owner, name) >= 0 {
		return false
	}
	last := wire.Compare(x.owner, x.next) >= 0
	if !last && wire.Compare(name, x.next) >= 0 {
		return false
	}
	below := name.IsBelow(x.owner)
	return !below || !isAncestorDelegation(x.types) && !x.types.Has(wire.TypeDNAME)
}

// isENT says whether a name that the NSEC covers is there nonetheless, as an empty non-terminal.
func (x *nsec) isENT(name wire.Name) bool { return x.next.IsBelow(name) }

// encloser returns the closest encloser of a name that the NSEC covers: its owner and next name are
// neighbours in the zone, so that no other name shares more labels.
func (x *nsec) encloser(name wire.Name) wire.Name {
	a, b := wire.CommonAncestor(name, x.owner), wire.CommonAncestor(name, x.next)
	if len(b) > len(a) {
		return b
	}
	return a
}

// byNSEC is denied by NSEC (RFC 4035 §5.4).
func (p *prover) byNSEC(name wire.Name, qtype wire.Type) (proof, string) {
	why := "no NSEC covers " + name.String()
	for i := range p.e.nsecs {
		x := &p.e.nsecs[i]
		var out proof
		switch {
		case x.owner.Equal(name):
			out, why = p.atName(name, qtype, x.types, x.index)
		case !x.covers(name):
			continue
		case x.isENT(name):
			out, why = proof{denial: NoData, used: []int{x.index}}, ""
		default:
			out, why = p.wildcardDenied(x, name, qtype)
		}
		if why == "" {
			return out, ""
		}
	}
	return proof{}, why
}

// wildcardDenied goes on from x, which covers name: the wildcard at the closest encloser must not
// be there, or not have the type.
func (p *prover) wildcardDenied(x *nsec, name wire.Name, qtype wire.Type) (proof, string) {
	out := proof{denial: NXDomain, used: []int{x.index}}
	wildcard, ok := x.encloser(name).Prepend("*")
	if !ok {
		return out, "" // too long a name cannot exist
	}
	for i := range p.e.nsecs {
		w := &p.e.nsecs[i]
		switch {
		case w.owner.Equal(wildcard):
			if !deniesType(w.types, qtype, wildcard) {
				return proof{}, "the wildcard " + wildcard.String() + " answers"
			}
			out.denial = NoData
		case !w.covers(wildcard):
			continue
		case w.isENT(wildcard):
			out.denial = NoData
		}
		if w.index != x.index {
			out.used = append(out.used, w.index)
		}
		return out, ""
	}
	return proof{}, "no NSEC denies the wildcard " + wildcard.String()
}

// wildcardByNSEC proves that the next closer name of an expanded wildcard is not there (RFC 4035
// §5.3.4).
func (p *prover) wildcardByNSEC(next wire.Name) (proof, string) {
	for i := range p.e.nsecs {
		if x := &p.e.nsecs[i]; x.covers(next) && !x.isENT(next) {
			return proof{used: []int{x.index}}, ""
		}
	}
	return proof{}, "no NSEC covers " + next.String()
}

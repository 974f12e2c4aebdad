package validate

import (
	"slices"

	"bonsai/wire"
)

// maxEvidence bounds the RRsets that are looked at for proofs: a denial needs four, and each alias
// made from a wildcard two.
const maxEvidence = 24

// gather judges what may serve as evidence in the authority section, and sorts it by zone. What cannot
// serve is not looked into, lest it cause work and fetches.
func (j *judgement) gather(target wire.Name, wild []wildcard) {
	j.found = make([]finding, len(j.r.Authority))
	left := maxEvidence
	for i := range j.r.Authority {
		set := &j.r.Authority[i]
		switch {
		case left == 0:
			return
		case set.Type == wire.TypeSOA && target.IsSubdomainOf(set.Owner):
			j.found[i] = j.judgeSet(set)
			left--
		case set.Type != wire.TypeNSEC && set.Type != wire.TypeNSEC3:
			continue
		case len(set.Sigs) == 0:
			point, _ := j.closest(set.Owner)
			j.found[i] = finding{status: wire.Bogus, reason: because(wire.EDERRSIGsMissing, point, "%s is not signed", describe(set))}
		case isRelevant(set, target, wild):
			j.found[i] = j.judgeSet(set)
			j.take(i, set)
			left--
		}
	}
}

// isRelevant says whether a zone that signed an NSEC or NSEC3 has something to say to the question.
func isRelevant(set *wire.RRset, target wire.Name, wild []wildcard) bool {
	for _, raw := range set.Sigs {
		s, ok := wire.ParseRRSIG(raw)
		if !ok {
			continue
		}
		if target.IsSubdomainOf(s.Signer) || slices.ContainsFunc(wild, func(w wildcard) bool { return w.signer.Equal(s.Signer) }) {
			return true
		}
	}
	return false
}

// take adds an RRset to the evidence of its zone.
func (j *judgement) take(i int, set *wire.RRset) {
	f := &j.found[i]
	// An NSEC expanded from a wildcard shows no neighbours of the name it is given.
	if f.status != wire.Secure || len(set.RDATA) != 1 || f.expanded(set) {
		return
	}
	if set.Type == wire.TypeNSEC {
		j.addNSEC(f.signer, i, set)
	} else {
		j.addNSEC3(f.signer, i, set)
	}
}

// tooCostly is the reason where hashes are not computed (RFC 9276 §3.2).
func tooCostly(zone wire.Name) reason {
	return because(wire.EDEUnsupportedNSEC3, zone, "NSEC3 has too many iterations")
}

// proveWildcard looks for the proof that an answer made from a wildcard needs (RFC 4035 §5.3.4).
func (j *judgement) proveWildcard(w wildcard) {
	set := &j.r.Answer[w.index]
	why := "no NSEC or NSEC3"
	for i := range j.evidence {
		e := &j.evidence[i]
		if e.zone != w.signer {
			continue
		}
		p := prover{j, e}
		if p.isCostly() {
			set.Status = wire.Insecure
			j.weaken(wire.Insecure, tooCostly(e.zone))
			return
		}
		var out proof
		if out, why = p.allowsWildcard(set.Owner, w.labels); why == "" {
			if j.verdict.Proofs == nil {
				j.verdict.Proofs = make([][]int, len(j.r.Answer))
			}
			j.verdict.Proofs[w.index] = out.used
			if out.optOut {
				set.Status = wire.Insecure
				j.weaken(wire.Insecure, noReason)
			}
			return
		}
	}
	set.Status = wire.Bogus
	j.unproven(w.signer, "%s is made from a wildcard: %s", describe(set), why)
}

// unproven lowers the verdict for want of a proof.
func (j *judgement) unproven(zone wire.Name, format string, args ...any) {
	if j.hashesSpent {
		j.weaken(wire.Indeterminate, spentReason(zone))
		return
	}
	for i := range j.found {
		if f := &j.found[i]; f.status == wire.Bogus || f.status == wire.Indeterminate {
			j.weaken(f.status, f.reason)
			return
		}
	}
	j.weaken(wire.Bogus, because(wire.EDENSECMissing, zone, format, args...))
}

// proveDenial looks for the proof that name has no RRset of QTYPE, or does not exist.
func (j *judgement) proveDenial(name wire.Name) {
	j.verdict.Denial = NoData
	if j.r.RCODE == wire.RCODENXDomain {
		j.verdict.Denial = NXDomain
	}
	top := name
	if j.r.QType == wire.TypeDS {
		top = name.Parent()
	}
	point, ok := j.closest(top)
	if !ok {
		j.denyInsecurely(noReason)
		return
	}
	why := "no NSEC or NSEC3"
	for i := range j.evidence {
		p := prover{j, &j.evidence[i]}
		if p.isCostly() && p.speaksOf(name, j.r.QType) {
			j.denyInsecurely(tooCostly(p.e.zone))
			return
		}
		out, reason := p.denies(name, j.r.QType)
		if reason == "" {
			reason = j.contradiction(&out)
		}
		if reason == "" {
			j.accept(name, &out)
			return
		}
		why = reason
	}
	zone := point
	if soa := j.secureSOA(name); soa != nil {
		zone = soa.Owner
	} else if s := j.insecureAt(top, point); s.standing < zoneSecure {
		if s.standing == zoneInsecure {
			j.denyInsecurely(s.reason)
		} else {
			j.weaken(s.standing.status(), s.reason)
		}
		return
	}
	j.unproven(zone, "%s %s: %s", name, j.r.QType, why)
}

// contradiction says how a proof does not fit the RCODE; "" where it does.
func (j *judgement) contradiction(p *proof) string {
	if j.r.RCODE == wire.RCODENXDomain {
		if p.denial == NoData && p.optOut {
			return "NXDOMAIN, and the wildcard is not denied"
		}
		return ""
	}
	if p.denial == NXDomain && p.optOut {
		// RFC 5155 §8.6: an opt-out span that covers the next closer name leaves room for an unsigned
		// delegation there. That it covers the wildcard as well, as in a small zone, denies none.
		p.denial = NoData
	}
	if p.denial == NXDomain && !p.compact {
		return "NODATA, and the name is proven not to exist"
	}
	return ""
}

// accept takes a proof. Where the RCODE is NXDOMAIN and the name is proven to exist, which some
// servers do with empty non-terminals, the proof is signed and the RCODE is not: it is put right.
func (j *judgement) accept(name wire.Name, p *proof) {
	v := &j.verdict
	v.Denial, v.Compact, v.OptOut = p.denial, p.compact && j.r.RCODE == wire.RCODENoError, p.optOut
	if p.denial == NoData {
		j.r.RCODE = wire.RCODENoError
	}
	for i := range j.found {
		// The SOA goes with the denial, and its lifetime.
		if set := &j.r.Authority[i]; set.Type == wire.TypeSOA && name.IsSubdomainOf(set.Owner) {
			j.weaken(j.found[i].status, j.found[i].reason)
		}
	}
	if p.optOut {
		// RFC 5155 §9.2: AD is not set.
		j.denyInsecurely(noReason)
		return
	}
	j.limitDenial(name)
}

// limitDenial bounds the TTL of the proofs. RFC 9077 §3: it is the lesser of the SOA's TTL and
// MINIMUM field.
func (j *judgement) limitDenial(name wire.Name) {
	soa := j.secureSOA(name)
	if soa == nil {
		return
	}
	limit := soa.TTL
	if rdata := soa.RDATA[0]; len(rdata) >= 4 {
		m := rdata[len(rdata)-4:]
		limit = min(limit, uint32(m[0])<<24|uint32(m[1])<<16|uint32(m[2])<<8|uint32(m[3]))
	}
	for i := range j.r.Authority {
		if set := &j.r.Authority[i]; set.Type == wire.TypeNSEC || set.Type == wire.TypeNSEC3 {
			set.TTL = min(set.TTL, limit)
		}
	}
}

// secureSOA returns the SOA RRset of a zone that name may be in.
func (j *judgement) secureSOA(name wire.Name) *wire.RRset {
	for i := range j.r.Authority {
		set := &j.r.Authority[i]
		if set.Type == wire.TypeSOA && set.Status == wire.Secure && len(set.RDATA) == 1 && name.IsSubdomainOf(set.Owner) {
			return set
		}
	}
	return nil
}

// denyInsecurely takes a denial that is not secure: what comes with it is no more than that.
func (j *judgement) denyInsecurely(r reason) {
	j.weaken(wire.Insecure, r)
	for i := range j.r.Authority {
		if set := &j.r.Authority[i]; set.Type == wire.TypeNSEC || set.Type == wire.TypeNSEC3 || set.Type == wire.TypeSOA {
			if set.Status != wire.Bogus && set.Status != wire.Indeterminate {
				set.Status = wire.Insecure
			}
		}
	}
}

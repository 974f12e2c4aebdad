package validate

import (
	"context"
	"slices"

	"bonsai/wire"
)

// judgement is one response being judged, with what was found on the way.
type judgement struct {
	v    *Validator
	ctx  context.Context
	f    Fetcher
	cost *Cost
	r    *wire.Response
	zone wire.Name // the cut that answered, "" if unknown
	now  uint32
	rank int // of the response: only what is below it may be fetched

	quiet       bool // nothing is fetched for what is not needed
	zones, cuts []state
	hashes      []hashed
	hashesSpent bool
	buf         []byte // scratch for signed data

	found    []finding // by index in the authority section; of what was looked at for proofs
	evidence []evidence
	verdict  Verdict
}

// wildcard is an RRset of the answer that was made from a wildcard.
type wildcard struct {
	index  int
	labels int
	signer wire.Name
}

func (j *judgement) run() Verdict {
	j.verdict = Verdict{Status: wire.Secure, EDE: wire.EDE{Code: wire.NoEDE}}
	wild := j.judgeAnswer()
	target, answered := j.target()
	denied := !answered && j.isDenial(target)
	if denied || len(wild) > 0 {
		j.gather(target, wild)
		// The deepest zone first: where both sides of a cut are served, the child's denial counts.
		slices.SortStableFunc(j.evidence, func(a, b evidence) int { return len(b.zone) - len(a.zone) })
	}
	for _, w := range wild {
		j.proveWildcard(w)
	}
	if denied {
		j.proveDenial(target)
	}
	if answered && j.verdict.Status == wire.Secure && j.r.RCODE == wire.RCODENXDomain {
		j.r.RCODE = wire.RCODENoError // the answer is signed, the RCODE is not
	}
	if j.verdict.Status == wire.Secure || j.verdict.Status == wire.Insecure {
		j.judgeRest()
	}
	return j.verdict
}

// weaken lowers the verdict to status, if that is weaker than it is.
func (j *judgement) weaken(status wire.Status, r reason) {
	strength := [...]int{wire.Secure: 4, wire.Insecure: 3, wire.Unchecked: 2, wire.Indeterminate: 1, wire.Bogus: 0}
	v := &j.verdict
	if strength[status] > strength[v.Status] || status == v.Status && (v.EDE.Code != wire.NoEDE || status == wire.Secure) {
		return
	}
	v.Status, v.EDE, v.Zone, v.Err, v.Clock = status, r.ede, r.zone, r.err, r.clock
}

// judgeAnswer judges the answer section and returns the RRsets that were made from wildcards.
func (j *judgement) judgeAnswer() (wild []wildcard) {
	r := j.r
	if r.QType != wire.TypeRRSIG {
		// Signatures of what is not there say nothing.
		r.Answer = slices.DeleteFunc(r.Answer, func(s wire.RRset) bool { return s.Type == wire.TypeRRSIG })
	}
	for i := range r.Answer {
		set := &r.Answer[i]
		if d := synthesizedFrom(r.Answer[:i], set); d != nil {
			// RFC 6672 §5.3.1: such a CNAME is not signed; the DNAME vouches for it.
			set.Status, set.TTL = d.Status, min(set.TTL, d.TTL)
			continue
		}
		f := j.judgeSet(set)
		j.weaken(f.status, f.reason)
		if f.expanded(set) {
			wild = append(wild, wildcard{i, f.labels, f.signer})
		}
	}
	return wild
}

// synthesizedFrom returns the DNAME among sets that an unsigned CNAME was made from, nil if none.
func synthesizedFrom(sets []wire.RRset, cname *wire.RRset) *wire.RRset {
	if cname.Type != wire.TypeCNAME || len(cname.Sigs) > 0 || len(cname.RDATA) != 1 {
		return nil
	}
	for i := range sets {
		d := &sets[i]
		if d.Type != wire.TypeDNAME || len(d.RDATA) != 1 || !cname.Owner.IsBelow(d.Owner) {
			continue
		}
		to, ok := cname.Owner.ReplaceSuffix(d.Owner, wire.BorrowName(d.RDATA[0]))
		if ok && to.Equal(wire.BorrowName(cname.RDATA[0])) {
			return d
		}
	}
	return nil
}

// target follows the aliases of the answer section; answered says whether it holds the RRset asked
// for at their end.
func (j *judgement) target() (name wire.Name, answered bool) {
	r := j.r
	name = r.QName
	for range len(r.Answer) + 1 {
		var alias *wire.RRset
		for i := range r.Answer {
			set := &r.Answer[i]
			if !set.Owner.Equal(name) {
				continue
			}
			if set.Type == r.QType || r.QType == wire.TypeANY {
				return name, true
			}
			if set.Type == wire.TypeCNAME && len(set.RDATA) == 1 {
				alias = set
			}
		}
		if alias == nil {
			return name, false
		}
		name = wire.BorrowName(alias.RDATA[0])
	}
	return name, false
}

// isDenial says whether the response denies something at the end of its aliases, instead of
// leaving it open.
func (j *judgement) isDenial(target wire.Name) bool {
	r := j.r
	if len(r.Answer) == 0 || r.RCODE == wire.RCODENXDomain {
		return true
	}
	for i := range r.Authority {
		if r.Authority[i].Type == wire.TypeSOA && target.IsSubdomainOf(r.Authority[i].Owner) {
			return r.RCODE == wire.RCODENoError
		}
	}
	return false
}

// containing returns the name whose zone an RRset of owner and t is in: a DS is in the parent's,
// and an NSEC3's owner is no name of the zone.
func containing(owner wire.Name, t wire.Type) wire.Name {
	if t == wire.TypeDS || t == wire.TypeNSEC3 {
		return owner.Parent()
	}
	return owner
}

// judgeSet judges one RRset, sets its status and clamps its TTL.
func (j *judgement) judgeSet(set *wire.RRset) (f finding) {
	top := containing(set.Owner, set.Type)
	point, ok := j.v.trust.Load().closest(top)
	switch {
	case !ok || set.Type == wire.TypeRRSIG: // RFC 4035 §2.2: RRSIGs are not signed themselves
		f = finding{status: wire.Insecure, reason: noReason}
	case len(set.Sigs) == 0:
		f = j.judgeUnsigned(set, top, point)
	case set.Type == wire.TypeDNSKEY:
		f = j.judgeKeys(set, point)
	default:
		f = j.judgeSigned(set, top, point)
	}
	set.Status = f.status
	return f
}

// judgeUnsigned judges an RRset without a signature that counts: insecure below an insecure
// delegation, bogus else (RFC 4035 §4.3).
func (j *judgement) judgeUnsigned(set *wire.RRset, top, point wire.Name) finding {
	s := j.insecureAt(top, point)
	switch s.standing {
	case zoneUnknown, zoneBogus, zoneInsecure:
		return finding{status: s.standing.status(), reason: s.reason}
	}
	zone := point
	if j.zone != "" && top.IsSubdomainOf(j.zone) {
		zone = j.zone
	}
	return finding{status: wire.Bogus, reason: because(wire.EDERRSIGsMissing, zone, "%s has no usable RRSIG", describe(set))}
}

// maxSigners bounds the zones that are looked into as the signers of one RRset. There is one; more
// come with errors and attacks.
const maxSigners = 4

// judgeSigned judges an RRset that has signatures.
func (j *judgement) judgeSigned(set *wire.RRset, top, point wire.Name) finding {
	t := trial{set: set}
	var doubt *state // a signer that is neither secure nor proven not to be a zone
	var signers [maxSigners]wire.Name
	for _, raw := range set.Sigs {
		s, ok := wire.ParseRRSIG(raw)
		if !ok || !admissible(set, &s) || !s.Signer.IsSubdomainOf(point) || !among(&signers, s.Signer) {
			continue
		}
		switch z := j.zoneOf(s.Signer); z.standing {
		case zoneInsecure:
			return finding{status: wire.Insecure, reason: z.reason}
		case zoneUnknown, zoneBogus:
			doubt = z
		case zoneSecure:
			t.zone = z.name
			if !j.v.config.supported(s.Algorithm) {
				t.unknown++
			} else if t.inTime(&s, j.now) && j.try(&t, &s, z.keys) {
				if out := j.overruled(set, &s); out != nil {
					return *out
				}
				clamp(set, &s, j.now)
				return finding{status: wire.Secure, reason: noReason, signer: z.name, labels: int(s.Labels)}
			}
		}
	}
	switch {
	case t.zone != "":
		return t.bogus()
	case doubt != nil:
		return finding{status: doubt.standing.status(), reason: doubt.reason}
	}
	return j.judgeUnsigned(set, top, point)
}

// among adds name to the signers unless there are too many already.
func among(signers *[maxSigners]wire.Name, name wire.Name) bool {
	for i := range signers {
		if signers[i] == "" {
			signers[i] = name
		}
		if signers[i].Equal(name) {
			return true
		}
	}
	return false
}

// overruled returns a finding where a signature is good but not of the zone that holds the RRset
// (RFC 4035 §5.3.1): it was made above the cut whose servers answered.
func (j *judgement) overruled(set *wire.RRset, s *wire.RRSIG) *finding {
	if j.zone == "" || !j.zone.IsBelow(s.Signer) || !set.Owner.IsSubdomainOf(j.zone) {
		return nil
	}
	if set.Owner.Equal(j.zone) && (set.Type == wire.TypeDS || set.Type == wire.TypeNSEC) {
		return nil // these the parent has, too
	}
	switch z := j.cut(j.zone); z.standing {
	case zoneSecure:
		return &finding{status: wire.Bogus, reason: because(wire.EDEBogus, z.name, "%s is signed by a zone above", describe(set))}
	case zoneInsecure:
		return &finding{status: wire.Insecure, reason: z.reason}
	}
	return nil
}

// spent says whether the client query's share of verifications is used up.
func (j *judgement) spent() bool {
	c := &j.v.config
	return j.cost.Failed() >= c.MaxFailed || j.cost.Verified() >= c.MaxVerified
}

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
			point, _ := j.v.trust.Load().closest(set.Owner)
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
	e := j.evidenceOf(f.signer)
	if set.Type == wire.TypeNSEC {
		e.addNSEC(i, set)
	} else {
		e.addNSEC3(i, set, j.v.config.MaxIterations)
	}
}

func (j *judgement) evidenceOf(zone wire.Name) *evidence {
	for i := range j.evidence {
		if j.evidence[i].zone == zone {
			return &j.evidence[i]
		}
	}
	j.evidence = append(j.evidence, evidence{zone: zone})
	return &j.evidence[len(j.evidence)-1]
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
		if e.costly {
			set.Status = wire.Insecure
			j.weaken(wire.Insecure, tooCostly(e.zone))
			return
		}
		p := prover{j, e}
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
	point, ok := j.v.trust.Load().closest(top)
	if !ok {
		j.denyInsecurely(noReason)
		return
	}
	why := "no NSEC or NSEC3"
	for i := range j.evidence {
		p := prover{j, &j.evidence[i]}
		if p.e.costly && p.speaksOf(name, j.r.QType) {
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

// maxAdditional bounds the RRsets of the additional section that are looked at.
const maxAdditional = 32

// judgeRest judges what nobody asked for, by what is known already, and takes out what does not
// hold. RFC 4035 §3.2.3: AD speaks for the answer and authority sections.
func (j *judgement) judgeRest() {
	j.quiet = true
	r := j.r
	moved := make([]int, len(r.Authority))
	kept := r.Authority[:0:0]
	for i := range r.Authority {
		set := &r.Authority[i]
		if set.Status == wire.Unchecked && set.Type != wire.TypeRRSIG {
			j.judgeSet(set)
		}
		if moved[i] = -1; set.Type != wire.TypeRRSIG && (set.Status == wire.Secure || set.Status == wire.Insecure) {
			moved[i] = len(kept)
			kept = append(kept, *set)
		}
	}
	r.Authority = kept
	for _, used := range j.verdict.Proofs {
		for k := range used {
			used[k] = moved[used[k]]
		}
	}
	r.Additional = slices.DeleteFunc(r.Additional, func(set wire.RRset) bool {
		return set.Type == wire.TypeRRSIG
	})
	r.Additional = r.Additional[:min(len(r.Additional), maxAdditional)]
	for i := range r.Additional {
		j.judgeSet(&r.Additional[i])
	}
	r.Additional = slices.DeleteFunc(r.Additional, func(set wire.RRset) bool {
		return set.Status != wire.Secure && set.Status != wire.Insecure
	})
}

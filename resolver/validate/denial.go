package validate

import (
	"bytes"
	"slices"

	"bonsai/wire"
)

// evidence is what one zone says by secure RRsets: its NSECs, or the NSEC3s of one salt and count of
// iterations, for a zone may be about to change them.
type evidence struct {
	zone       wire.Name // their signer
	hashed     bool
	salt       []byte
	iterations uint16
	nsecs      []nsec
	nsec3s     []nsec3
}

// evidenceOf returns the evidence that goes together with e, e itself if it is the first.
func (j *judgement) evidenceOf(e evidence) *evidence {
	for i := range j.evidence {
		have := &j.evidence[i]
		if have.zone == e.zone && have.hashed == e.hashed && have.iterations == e.iterations && bytes.Equal(have.salt, e.salt) {
			return have
		}
	}
	j.evidence = append(j.evidence, e)
	return &j.evidence[len(j.evidence)-1]
}

// sortEvidence puts that of the deepest zone first: where both sides of a cut are served, the child's
// denial counts; and within a zone what costs least.
func (j *judgement) sortEvidence() {
	slices.SortStableFunc(j.evidence, func(a, b evidence) int {
		if d := len(b.zone) - len(a.zone); d != 0 {
			return d
		}
		return int(a.iterations) - int(b.iterations)
	})
}

// isCostly says whether hashing a name takes more iterations than are computed.
func (p *prover) isCostly() bool { return int(p.e.iterations) > p.j.v.config.MaxIterations }

// proof is what evidence proves.
type proof struct {
	denial  Denial
	compact bool  // by a name that is there only to be denied (RFC 9824)
	optOut  bool  // an opt-out span covers the next closer name: secure but for unsigned delegations
	used    []int // indices in the authority section
}

// prover holds evidence against a question.
type prover struct {
	j *judgement
	e *evidence
}

// isAncestorDelegation says that an NSEC or NSEC3 is of the parent's side of a zone cut (RFC 6840
// §4.1).
func isAncestorDelegation(types wire.Bitmap) bool {
	return types.Has(wire.TypeNS) && !types.Has(wire.TypeSOA)
}

// deniesType says whether the NSEC or NSEC3 at owner proves that there is no RRset of qtype, nor an
// alias that would stand for it.
func deniesType(types wire.Bitmap, qtype wire.Type, owner wire.Name) bool {
	switch {
	// RFC 6840 §4.3: with the CNAME bit there is an answer.
	case types.Has(qtype) || types.Has(wire.TypeCNAME):
		return false
	case qtype == wire.TypeANY:
		return !types.HasOther(wire.TypeRRSIG, wire.TypeNSEC, wire.TypeNXNAME)
	case qtype == wire.TypeDS:
		// RFC 6840 §4.4: the child's side knows nothing of a DS. The root alone has no parent.
		return !types.Has(wire.TypeSOA) || owner == wire.Root
	}
	// RFC 6840 §4.1: the parent's side knows of nothing but the DS.
	return !isAncestorDelegation(types)
}

// atName is what the NSEC or NSEC3 that matches name proves.
func (p *prover) atName(name wire.Name, qtype wire.Type, types wire.Bitmap, index int) (proof, string) {
	if types.Has(wire.TypeNXNAME) {
		// RFC 9824 §3.1: the name is not there, and has no types but those of the denial itself.
		if types.HasOther(wire.TypeRRSIG, wire.TypeNSEC, wire.TypeNXNAME) {
			return proof{}, "NXNAME beside other types at " + name.String()
		}
		return proof{denial: NXDomain, compact: true, used: []int{index}}, ""
	}
	if !deniesType(types, qtype, name) {
		return proof{}, "the NSEC or NSEC3 at " + name.String() + " does not deny " + qtype.String()
	}
	return proof{denial: NoData, used: []int{index}}, ""
}

// denies proves that name has no RRset of qtype, or is not there at all. The reason is "" if so.
func (p *prover) denies(name wire.Name, qtype wire.Type) (proof, string) {
	if !p.speaksOf(name, qtype) {
		return proof{}, "denied by " + p.e.zone.String() + ", which is not its zone"
	}
	if p.e.hashed {
		return p.byNSEC3(name, qtype)
	}
	return p.byNSEC(name, qtype)
}

// speaksOf says whether the zone of the evidence may hold an RRset of this name and type. RFC 4035
// §5.2: that of a DS is the parent.
func (p *prover) speaksOf(name wire.Name, qtype wire.Type) bool {
	if !name.IsSubdomainOf(p.e.zone) {
		return false
	}
	return qtype != wire.TypeDS || name == wire.Root || len(name) > len(p.e.zone)
}

// allowsWildcard proves that an answer to owner may be made of the wildcard at its ancestor of so
// many labels.
func (p *prover) allowsWildcard(owner wire.Name, labels int) (proof, string) {
	next := owner.Suffix(labels + 1)
	if p.e.hashed {
		return p.wildcardByNSEC3(next)
	}
	return p.wildcardByNSEC(next)
}

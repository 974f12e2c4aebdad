package validate

import (
	"bonsai/wire"
)

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
	point, ok := j.closest(top)
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

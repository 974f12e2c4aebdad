package iterate

import "bonsai/wire"

// class is what a scrubbed response amounts to.
type class uint8

const (
	isAnswer    class = iota // the RRset, or the DNAME that makes too long a name
	isAlias                  // a CNAME or DNAME
	isNoData                 // RFC 2308 §2.2
	isNXDomain               // RFC 2308 §2.1
	isReferral               // to a zone below
	isEmpty                  // NOERROR and nothing that answers or denies
	isRecursive              // from some resolver's cache: RA, and no AA
	isForeign                // a denial in the name of a zone above
	isLame                   // a referral to where the question came from, or further up
	isChildSide              // a DS denied by the zone below the cut (RFC 4035 §3.1.4.1)
	isRefused                // REFUSED or NOTAUTH
	isServFail               // SERVFAIL
	isError                  // another RCODE
	isBroken                 // it contradicts itself
)

// String returns the class in words.
func (c class) String() string {
	return [...]string{
		"answer", "alias", "NODATA", "NXDOMAIN", "referral", "empty response", "answer of a resolver",
		"denial by a zone above", "lame", "DS denied by the child", "refused", "SERVFAIL", "error", "contradiction",
	}[c]
}

// isUseless says whether a response of the class says nothing of the zone.
func (c class) isUseless() bool { return c >= isRecursive }

// kind returns what a response is if it is believed.
func (s *said) kind() Kind {
	switch {
	case s.target != "":
		return Alias
	case len(s.answer) > 0:
		return Answer
	case s.rcode == wire.RCODENXDomain:
		return NXDomain
	}
	return NoData
}

// class returns the class of a response that is believed.
func (k Kind) class() class { return [...]class{isAnswer, isAlias, isNoData, isNXDomain}[k] }

// classify says what a server of zone means by its response to q. A forwarder is a resolver, and
// believed in all it says.
func (s *said) classify(zone wire.Name, q question, forwarder bool) class {
	switch {
	case s.tooLong:
		// RFC 6672 §2.2: YXDOMAIN; that of a server that forgot it is ours to set.
		return isAnswer
	case s.rcode == wire.RCODENXDomain && s.kind() == Answer:
		return isBroken
	case s.rcode == wire.RCODERefused || s.rcode == wire.RCODENotAuth:
		return isRefused
	case s.rcode == wire.RCODEServFail:
		return isServFail
	case s.rcode != wire.RCODENoError && s.rcode != wire.RCODENXDomain:
		return isError
	case forwarder:
		if s.below != nil && !s.ra && s.soa == nil && len(s.answer) == 0 {
			return isLame
		}
		return s.kind().class()
	case len(s.answer) > 0:
		return s.classifyAnswer(zone, q)
	case s.rcode == wire.RCODENXDomain:
		return s.classifyNXDomain()
	}
	return s.classifyNoAnswer(zone, q)
}

// classifyAnswer is for a response with an answer.
func (s *said) classifyAnswer(zone wire.Name, q question) class {
	if !s.aa {
		// RFC 1034 §4.3.2 step 3b: below a cut a server has, without authority, the referral.
		if s.below != nil {
			return isReferral
		}
		// Some servers put the NS set of a referral in the answer section.
		if ns := &s.answer[0]; q.t == wire.TypeNS && ns.Type == wire.TypeNS && ns.Owner.IsBelow(zone) {
			s.below = ns
			return isReferral
		}
		if s.ra {
			return isRecursive
		}
		// AA is missing. Nothing says that the data is not the zone's.
	}
	return s.kind().class()
}

// classifyNXDomain is for NXDOMAIN without an alias. It may come without SOA (RFC 2308 §2.1.1).
func (s *said) classifyNXDomain() class {
	switch {
	case !s.aa && s.ra:
		return isRecursive
	case s.soa == nil && s.foreign:
		return isForeign
	}
	return isNXDomain
}

// classifyNoAnswer tells NODATA from a referral from lameness. RFC 2308 §2.2: an SOA says NODATA, NS
// without SOA a referral; where there is neither, NSEC and NSEC3 deny, too.
func (s *said) classifyNoAnswer(zone wire.Name, q question) class {
	recursive := !s.aa && s.ra
	switch {
	case s.soa != nil:
		if q.t == wire.TypeDS && s.soa.Owner.Equal(q.name) && q.name.IsBelow(zone) {
			return isChildSide
		}
		if recursive {
			return isRecursive
		}
		return isNoData
	case s.below != nil:
		return isReferral
	case len(s.proofs) > 0 && !recursive:
		return isNoData
	case s.upward:
		return isLame
	case s.ns != nil && s.aa:
		// RFC 2308 §2.2 knows no NODATA with NS and without SOA; the zone's own servers give one.
		return isEmpty
	case s.ns != nil, s.aside && !s.aa:
		// RFC 2308 §2.2: NS and no SOA is a referral, whoever says it: here to where it came from.
		return isLame
	case recursive:
		return isRecursive
	case s.foreign:
		return isForeign
	case s.stray:
		return isBroken
	}
	return isEmpty
}

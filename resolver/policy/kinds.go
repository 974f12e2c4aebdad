package policy

import "bonsai/wire"

// kinds refuses classes and types that a resolver does not resolve.
type kinds struct{}

func (kinds) Judge(r *Request) Outcome {
	q := r.Query
	if q.QClass != wire.ClassIN {
		// Other classes have no root to start from here; a server that does not serve one says
		// REFUSED.
		return fail("class", wire.RCODERefused, wire.EDENotSupported, "class other than IN")
	}
	switch q.QType {
	case wire.TypeAXFR, wire.TypeIXFR:
		// RFC 5936 §2.2.1: a server that does not transfer refuses.
		return fail("type", wire.RCODERefused, wire.EDENotSupported, "zone transfer")
	case wire.TypeMAILA, wire.TypeMAILB:
		// RFC 1035 §3.2.3 has them as experimental or obsolete; nobody implements them.
		return fail("type", wire.RCODENotImp, wire.EDENotSupported, "obsolete type")
	case wire.TypeNXNAME:
		// RFC 9824 §3.4: a query for NXNAME is FORMERR, EDE Invalid Query Type.
		return fail("type", wire.RCODEFormErr, wire.EDEInvalidQueryType, "NXNAME")
	case wire.TypeANY:
		return Outcome{}
	}
	// RFC 6895 §3.1: type 0 is reserved and meta-types are of transports, not of data to ask for.
	if q.QType == wire.TypeNone || q.QType.IsMeta() {
		return fail("type", wire.RCODEFormErr, wire.EDEInvalidQueryType, "meta type")
	}
	return Outcome{}
}

package iterate

import (
	"errors"

	"bonsai/wire"
)

// said is what is left of a response when all is dropped that the server may not say, or that has
// nothing to do with the question.
type said struct {
	rcode  wire.RCODE
	aa, ra bool

	// answer is the RRset asked for, every RRset at QNAME for QTYPE ANY, or the alias at QNAME: a
	// CNAME, or a DNAME and the CNAME it makes. target is where an alias leads, "" for none. With
	// tooLong, answer is a DNAME that makes too long a name.
	answer  []wire.RRset
	target  wire.Name
	tooLong bool

	soa    *wire.RRset  // at or below the zone, at or above QNAME
	proofs []wire.RRset // NSEC and NSEC3 of the zone
	ns     *wire.RRset  // the zone's own NS set
	below  *wire.RRset  // the NS set of a zone below that holds QNAME
	ds     *wire.RRset  // its DS RRset

	stray   bool // there were answers, to something else
	upward  bool // there was an NS set from above the zone
	aside   bool // there was an NS set of a zone that has nothing to do with QNAME
	foreign bool // there was an SOA from above the zone

	additional []wire.RRset // all there were, up to a bound
}

// Why a response is no good whatever it says.
var (
	errSets  = errors.New("more records than a zone can need")
	errAlias = errors.New("several aliases at one name")
)

// maxProofs bounds the NSEC and NSEC3 RRsets kept of a response. RFC 5155 §7.2 needs three, a
// wildcard in the chain a few more.
const maxProofs = 16

// maxAdditional bounds the RRsets looked at in the additional section; thirteen name servers have 26.
const maxAdditional = 128

// scrub reads a response of a server of zone to q. RFC 2181 §5.4.1: what a server says of names
// outside the zone it is asked for is worth nothing, nor is, here, what it says without being asked.
// It borrows the message's bytes.
func (s *said) scrub(m *wire.Message, zone wire.Name, q question) error {
	*s = said{rcode: m.RCODE(), aa: m.Has(wire.FlagAA), ra: m.Has(wire.FlagRA)}
	var r wire.Response
	if err := m.Response(&r); err != nil {
		return errSets
	}
	if err := s.takeAnswer(r.Answer, zone, q); err != nil {
		return err
	}
	s.stray = len(s.answer) == 0 && len(r.Answer) > 0
	s.takeAuthority(r.Authority, zone, q)
	s.additional = r.Additional[:min(len(r.Additional), maxAdditional)]
	return nil
}

// isAdditional says whether RRsets of the type are of use beside an answer (RFC 1035 §3.3, RFC 2782,
// RFC 9460 §4.1).
func isAdditional(t wire.Type) bool {
	return t == wire.TypeA || t == wire.TypeAAAA || t == wire.TypeSVCB || t == wire.TypeHTTPS
}

// takeAnswer finds what the answer section says of QNAME itself.
func (s *said) takeAnswer(sets []wire.RRset, zone wire.Name, q question) error {
	direct, alias := 0, -1 // the RRsets asked for come to the front
	var dname wire.RRset
	for i := range sets {
		set := &sets[i]
		switch {
		case set.Class != wire.ClassIN || !set.Owner.IsSubdomainOf(zone):
		case set.Owner.Equal(q.name) && (set.Type == q.t || q.t == wire.TypeANY):
			sets[direct], sets[i] = sets[i], sets[direct]
			direct++
		case set.Is(q.name, wire.TypeCNAME):
			alias = i
		case set.Type == wire.TypeDNAME && q.name.IsBelow(set.Owner):
			// RFC 6672 §3.2: a server comes upon the topmost first.
			if dname.Owner == "" || len(set.Owner) < len(dname.Owner) {
				dname = *set
			}
		}
	}
	switch {
	case dname.Owner != "":
		return s.takeDNAME(&dname, q)
	case direct > 0:
		s.answer = sets[:direct:direct]
		// RFC 2181 §10.1: one CNAME a name.
		if q.t == wire.TypeCNAME && len(sets[0].RDATA) > 1 {
			return errAlias
		}
	case alias >= 0:
		// RFC 1034 §3.6.2: a CNAME stands alone; where a server has other data too, that was taken.
		s.answer = sets[alias : alias+1 : alias+1]
		if len(s.answer[0].RDATA) > 1 {
			return errAlias
		}
		s.target = wire.BorrowName(s.answer[0].RDATA[0])
	}
	return nil
}

// takeDNAME makes the CNAME of a DNAME above QNAME, whatever the server made of it.
func (s *said) takeDNAME(dname *wire.RRset, q question) error {
	// RFC 6672 §2.4: one DNAME a name.
	if len(dname.RDATA) > 1 {
		return errAlias
	}
	s.answer = []wire.RRset{*dname}
	target, ok := q.name.ReplaceSuffix(dname.Owner, wire.Name(dname.RDATA[0]))
	if !ok {
		s.tooLong = true
		return nil
	}
	// RFC 6672 §3.1: the CNAME has the TTL of the DNAME.
	s.answer = append(s.answer, wire.RRset{
		Owner: q.name, Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: dname.TTL, RDATA: [][]byte{[]byte(target)},
	})
	if q.t != wire.TypeCNAME {
		s.target = target
	}
	return nil
}

// takeAuthority finds what the authority section says of the zones that QNAME lies in.
func (s *said) takeAuthority(sets []wire.RRset, zone wire.Name, q question) {
	for i := range sets {
		set := &sets[i]
		if set.Class != wire.ClassIN {
			continue
		}
		switch set.Type {
		case wire.TypeSOA:
			s.takeSOA(set, zone, q)
		case wire.TypeNS:
			s.takeNS(set, zone, q)
		case wire.TypeNSEC, wire.TypeNSEC3:
			if set.Owner.IsSubdomainOf(zone) && len(s.proofs) < maxProofs {
				s.proofs = append(s.proofs, *set)
			}
		}
	}
	for i := range sets {
		if s.below != nil && sets[i].Is(s.below.Owner, wire.TypeDS) && sets[i].Class == wire.ClassIN {
			s.ds = &sets[i]
		}
	}
}

func (s *said) takeSOA(set *wire.RRset, zone wire.Name, q question) {
	switch {
	case zone.IsBelow(set.Owner):
		s.foreign = true
	case s.soa == nil && len(set.RDATA) == 1 && set.Owner.IsSubdomainOf(zone) && q.name.IsSubdomainOf(set.Owner):
		s.soa = set
	}
}

func (s *said) takeNS(set *wire.RRset, zone wire.Name, q question) {
	switch {
	case zone.IsBelow(set.Owner):
		s.upward = true
	case set.Owner.Equal(zone):
		s.ns = set
	case set.Owner.IsBelow(zone) && q.name.IsSubdomainOf(set.Owner):
		if s.below == nil {
			s.below = set
		}
	default:
		s.aside = true
	}
}

package validate

import (
	"context"
	"slices"

	"bonsai/wire"
)

// judgement is one response being judged, with what was found on the way.
type judgement struct {
	v     *Validator
	trust *trust // of when it began
	ctx   context.Context
	f     Fetcher
	cost  *Cost
	r     *wire.Response
	zone  wire.Name // the cut that answered, "" if unknown
	now   uint32    // Unix seconds modulo 2^32
	rank  int       // of the response: only what is below it may be fetched

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
		j.sortEvidence()
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

// closest returns the closest trust anchor at or above name, see trust.
func (j *judgement) closest(name wire.Name) (wire.Name, bool) { return j.trust.closest(name) }

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
		// RFC 4592 §4.4: a DNAME at a wildcard would make other aliases for each cache, and is rejected.
		if set.Type == wire.TypeDNAME && r.QType != wire.TypeDNAME && f.expanded(set) {
			f = finding{status: wire.Bogus, reason: because(wire.EDEBogus, f.signer, "%s is made from a wildcard", describe(set))}
			set.Status = f.status
		}
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

package iterate

import (
	"bonsai/wire"
)

// rank orders what is better than nothing.
type rank uint8

const (
	rankForeign rank = 1 + iota
	rankEmpty
	rankRecursive
)

// finish makes the result of the response at hand.
func (r *resolution) finish() step {
	r.result = r.makeResult()
	if r.cut.Forward && r.said.below != nil {
		now := r.config.Now()
		cut := makeCut(&r.said, r.cut.Zone, now, r.config.LaxGlue)
		cut.DS, cut.Hearsay = nil, true
		r.config.Cuts.Store(cut, now, r.task.Epoch)
	}
	return nil
}

// keepSpare keeps the response at hand for when no better one is found.
func (r *resolution) keepSpare(k rank) {
	if k > r.spareRank && !r.isMinimised() {
		r.spare, r.spareRank = r.makeResult(), k
	}
}

// complain remembers that the response at hand was no use, and keeps its server from being asked
// first for this zone.
func (r *resolution) complain(c class) {
	what := c.String()
	kind := troubleServer
	switch c {
	case isLame, isRefused, isRecursive, isForeign:
		kind = troubleLame
		r.stats.lame.Add(1)
		// Some servers are lame for less than the whole name, which is no fault here.
		if !r.isMinimised() {
			r.config.Exchange.MarkLame(r.server, r.cut.Zone)
		}
		if c == isRefused {
			what = r.said.rcode.String()
		}
	case isError:
		what = r.said.rcode.String()
	}
	r.trouble.add(r.server, what, kind)
}

func (r *resolution) makeResult() *Result {
	s := &r.said
	res := &Result{
		Response: wire.Response{QName: r.name, QType: r.qtype, AA: s.aa, Answer: s.answer},
		Kind:     s.kind(), Target: s.target,
		Zone: r.cut.Zone, Cut: r.cut, Lease: r.cut.Expires, Server: r.server,
	}
	switch {
	case s.tooLong:
		res.RCODE = wire.RCODEYXDomain
	case res.Kind == NXDomain:
		res.RCODE = wire.RCODENXDomain
	}
	negative := res.Kind == NoData || res.Kind == NXDomain
	if negative && s.soa != nil {
		res.Authority = append(res.Authority, *s.soa)
	}
	if negative || isExpanded(s.answer) {
		res.Authority = append(res.Authority, s.proofs...)
	}
	switch {
	case !r.config.FullResponses:
	case s.below != nil && !negative:
		res.Authority = append(res.Authority, *s.below)
	case s.ns != nil:
		res.Authority = append(res.Authority, *s.ns)
	}
	if r.config.FullResponses || r.qtype == wire.TypeSVCB || r.qtype == wire.TypeHTTPS {
		res.Additional = s.pertinent(r.cut.Zone, res)
	}
	return res
}

// rrsigLabels is where in the RDATA of an RRSIG the number of labels is (RFC 4034 §3.1).
const rrsigLabels = 3

// isExpanded says whether an answer came from a wildcard, for then its proof goes with it. RFC 4035
// §5.3.4: the RRSIG counts fewer labels than the owner has.
func isExpanded(sets []wire.RRset) bool {
	for i := range sets {
		for _, sig := range sets[i].Sigs {
			if len(sig) > rrsigLabels && int(sig[rrsigLabels]) < sets[i].Owner.Labels() {
				return true
			}
		}
	}
	return false
}

// maxPertinent bounds the RRsets of the additional section.
const maxPertinent = 32

// pertinent returns the additional RRsets that lie in the zone and that records of answer or
// authority name.
func (s *said) pertinent(zone wire.Name, res *Result) (out []wire.RRset) {
	if len(s.additional) == 0 || res.Kind == Alias {
		return nil
	}
	named := make(map[wire.Name]bool)
	collect := func(sets []wire.RRset) {
		for i := range sets {
			if sets[i].Type == wire.TypeSOA || sets[i].Type == wire.TypeNSEC {
				continue
			}
			for _, rdata := range sets[i].RDATA {
				wire.NameFields(sets[i].Type, rdata, func(off, end int, _ bool) {
					named[wire.Name(rdata[off:end]).Canonical()] = true
				})
			}
		}
	}
	collect(res.Answer)
	collect(res.Authority)
	for i := range s.additional {
		set := &s.additional[i]
		// RFC 9460 §2.5: "." as the target of a service binding is the owner itself.
		if isAdditional(set.Type) && set.Owner.IsSubdomainOf(zone) && (named[set.Owner.Canonical()] || set.Owner.Equal(res.QName)) && len(out) < maxPertinent {
			out = append(out, *set)
		}
	}
	return out
}

package resolver

import (
	"bonsai/cache/entry"
	"bonsai/resolver/denial"
	"bonsai/resolver/iterate"
	"bonsai/resolver/validate"
	"bonsai/wire"
)

// newDenials returns the store of proven denials, nil where nothing is validated or it is turned
// off.
func newDenials(c *Config) *denial.Store {
	if c.Validate == nil || c.DenialSize == 0 {
		return nil
	}
	return denial.New(denial.Config{Size: max(c.DenialSize, denial.MinSize), Hash: validate.HashName})
}

// learn keeps what a judged response proves of other names (RFC 8198 §5).
func (t *tree) learn(res *iterate.Result, now uint32, epoch uint64) {
	if t.r.denials != nil && len(res.Authority) > 0 {
		t.r.denials.Add(&res.Response, now, epoch)
	}
}

// synthesise answers a link from proven denials, or from a wildcard that they let stand for it
// (RFC 8198 §5.1 to §5.4). What it makes is not kept.
func (t *tree) synthesise(name wire.Name, rt wire.Type) *link {
	r := t.r
	if r.denials == nil || t.refresh || rt == wire.TypeANY {
		return nil
	}
	now := r.now()
	response := r.denials.Lookup(name, rt, now)
	if response == nil || r.isApart(name, response) {
		return nil
	}
	c := newLink(entry.KindAnswer, name, rt)
	c.synthetic = true
	c.RCODE, c.Status = response.RCODE, wire.Secure
	c.Answer, c.Authority = response.Answer, response.Authority
	if n := len(c.Answer); n > 0 && c.Answer[n-1].Type == wire.TypeCNAME && rt != wire.TypeCNAME {
		c.QType = wire.TypeCNAME
	}
	if len(c.Answer) == 0 && c.RCODE == wire.RCODENXDomain {
		c.Kind, c.QType = entry.KindDenial, wire.TypeNone
	}
	c.clamp(r.config.MaxTTL, r.config.MaxNegativeTTL)
	return c
}

// isApart says whether a configured zone or a negative trust anchor lies between name and the zone
// that the proofs are of: what a zone says of names below those does not hold for them.
func (r *Resolver) isApart(name wire.Name, response *wire.Response) bool {
	zone := wire.Root
	for i := range response.Authority {
		if s := &response.Authority[i]; len(s.Sigs) > 0 {
			if sig, ok := wire.ParseRRSIG(s.Sigs[0]); ok && len(sig.Signer) > len(zone) {
				zone = sig.Signer.Canonical()
			}
		}
	}
	for n := name; n != zone && n != wire.Root; n = n.Parent() {
		if r.cuts.Configured(n) != nil {
			return true
		}
	}
	return !r.validator.Covers(name)
}

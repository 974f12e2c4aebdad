package resolver

import (
	"context"
	"net/netip"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver/iterate"
	"bonsai/resolver/validate"
	"bonsai/wire"
)

// link is the content of one link: what is kept under one name and type.
type link struct {
	entry.Content
	original  uint32      // lifetime when it was stored, in seconds; of a link from the cache
	expired   bool        // it is past its end
	synthetic bool        // made from proofs about other names: not kept
	packed    entry.Entry // as it was stored; nil where it was not just now
}

func newLink(kind entry.Kind, name wire.Name, t wire.Type) *link {
	return &link{Content: entry.Content{Kind: kind, QName: name, QType: t}}
}

// response views a link as the response it came from.
func (c *link) response() *wire.Response {
	return &wire.Response{
		QName: c.QName, QType: c.QType, RCODE: c.RCODE, AA: c.AA,
		Answer: c.Answer, Authority: c.Authority, Additional: c.Additional,
	}
}

// leadsOn says whether a link answers a question of type t with an alias to follow. A chain that
// ends in a denial has its SOA.
func leadsOn(c *link, t wire.Type) bool {
	n := len(c.Answer)
	return n > 0 && t != wire.TypeCNAME && t != wire.TypeANY && c.Answer[n-1].Type == wire.TypeCNAME &&
		!hasSOA(c.Authority)
}

// target returns where a link that leads on leads to, in canonical case.
func (c *link) target() wire.Name {
	return wire.Name(c.Answer[len(c.Answer)-1].RDATA[0]).Canonical()
}

// clamp bounds every TTL to most and, where the link is negative, to negative, both in seconds; and
// sets the lifetime.
func (c *link) clamp(most, negative uint32) {
	if len(c.Answer) == 0 && negative != 0 {
		most = min(most, negative)
	}
	life := most
	for _, sets := range [...][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for i := range sets {
			sets[i].TTL = min(sets[i].TTL, most)
			life = min(life, sets[i].TTL)
		}
	}
	c.Lifetime = life
}

// next returns the next link of a chain: what the cache holds or the servers give for name. Where
// fail is set there is none, or one that did not validate.
func (t *tree) next(ctx context.Context, name wire.Name, rt wire.Type) (c *link, fail *failure) {
	if t.isMissing(name, rt) {
		c = t.cachedAbove(name, rt, t.r.now())
	} else {
		c = t.cached(name, rt)
	}
	if c != nil {
		if c.Kind == entry.KindUnvalidated {
			return c, t.whyUnvalidated(c, rt)
		}
		return c, nil
	}
	if c := t.synthesise(name, rt); c != nil {
		return c, nil
	}
	if !t.isMissing(name, rt) {
		if f := t.cachedFailure(name, rt); f != nil {
			return nil, f
		}
	}
	return t.fromServers(ctx, name, rt)
}

// cached returns what the cache holds for name and type: the answer, the denial of the name or of
// one above it, an alias, or the alias that a DNAME above makes. nil if nothing.
func (t *tree) cached(name wire.Name, rt wire.Type) *link {
	r, now := t.r, t.r.now()
	if rt == wire.TypeANY { // RFC 8482: neither cached nor taken apart
		return nil
	}
	if c := t.usable(r.lookupContent(entry.KindAnswer, name, rt, now)); c != nil {
		return c
	}
	if c := t.usable(r.lookupContent(entry.KindDenial, name, wire.TypeNone, now)); c != nil {
		return c
	}
	if t.wantRaw {
		if c := r.lookupContent(entry.KindUnvalidated, name, rt, now); c != nil {
			return c
		}
	}
	if !standsBeside(rt) {
		c := t.usable(r.lookupContent(entry.KindAnswer, name, wire.TypeCNAME, now))
		if c != nil && leadsOn(c, rt) {
			return c
		}
	}
	return t.cachedAbove(name, rt, now)
}

// standsBeside says whether a name may have an RRset of this type although it has an alias. RFC 4035
// §2.5: NSEC and RRSIG; and §3.1.4.1: a DS is the parent's, where the alias may be the zone's own.
func standsBeside(t wire.Type) bool {
	return t == wire.TypeCNAME || t == wire.TypeDS || t == wire.TypeNSEC || t == wire.TypeRRSIG
}

// cachedAbove looks at the names above: a DNAME redirects what is below it, and a proven NXDOMAIN
// denies it. Neither reaches into a configured zone.
func (t *tree) cachedAbove(name wire.Name, rt wire.Type, now uint32) *link {
	r := t.r
	for n := name; n.Parent() != wire.Root; n = n.Parent() {
		if r.cuts.Configured(n) != nil && (n != name || rt != wire.TypeDS) {
			return nil
		}
		above := n.Parent()
		if r.stats.dnames.Load() > 0 {
			if c := t.usable(r.lookupContent(entry.KindAnswer, above, wire.TypeDNAME, now)); c != nil && redirects(c, above) {
				return redirect(c, name)
			}
		}
		// RFC 8020 §2: nothing exists below a name that does not; §4 has it for validated denials
		// alone here, for some servers deny empty non-terminals.
		if r.stats.denials.Load() == 0 {
			continue
		}
		c := t.usable(r.lookupContent(entry.KindDenial, above, wire.TypeNone, now))
		if c != nil && c.Status == wire.Secure {
			c.QName = name
			return c
		}
	}
	return nil
}

// redirects says whether what is kept for DNAME at a name is a DNAME there, and not a denial or an
// alias that leads to one. RFC 4592 §4.4: one that was made from a wildcard does not.
func redirects(c *link, at wire.Name) bool {
	return len(c.Answer) > 0 && c.Answer[0].Is(at, wire.TypeDNAME) && !expanded(&c.Answer[0])
}

// usable passes a cached link unless a refresh is to renew it.
func (t *tree) usable(c *link) *link {
	if c == nil || t.anew || t.refresh && c.Lifetime <= refreshBelow(c.original) {
		return nil
	}
	return c
}

// redirect makes the alias of a name below a DNAME (RFC 6672 §3.1: the CNAME has the DNAME's TTL).
func redirect(dname *link, name wire.Name) *link {
	d := dname.Answer[0]
	target, ok := name.ReplaceSuffix(d.Owner, wire.Name(d.RDATA[0]))
	if !ok {
		// RFC 6672 §2.2: a name too long is YXDOMAIN.
		c := *dname
		c.QName, c.RCODE = name, wire.RCODEYXDomain
		return &c
	}
	c := *dname
	c.QName, c.QType = name, wire.TypeCNAME
	c.Answer = []wire.RRset{d, {
		Owner: name, Type: wire.TypeCNAME, Class: wire.ClassIN, Status: d.Status, TTL: d.TTL,
		RDATA: [][]byte{[]byte(target)},
	}}
	return &c
}

// maxBogus bounds how many servers are asked for what does not validate.
const maxBogus = 4

// fromServers asks the authoritative servers, and judges and keeps what they say. Data that does
// not validate is asked again of servers that did not give it.
func (t *tree) fromServers(ctx context.Context, name wire.Name, rt wire.Type) (c *link, fail *failure) {
	r := t.r
	epoch := r.epoch()
	var avoid []netip.AddrPort
	for range maxBogus {
		task := iterate.Task{Source: t, Budget: &t.budget, Trace: t.trace, Epoch: epoch, Depth: t.depth}
		res, err := r.iterator.Resolve(ctx, &task, name, rt, avoid)
		if err != nil {
			if fail == nil {
				fail = failureOf(err)
			}
			break
		}
		now := r.now()
		t.raise(res)
		verdict, f := t.judge(ctx, res)
		status := verdict.Status
		c = r.newLinkOf(res, rt, now, status)
		// RFC 9824 §5: what the RCODE would be but for the compact denial. It is kept under the type,
		// for the proof denies types one by one.
		if verdict.Compact && len(c.Answer) == 0 {
			c.RCODE = wire.RCODENXDomain
		}
		if verdict.EDE.Code != wire.NoEDE && f == nil {
			// RFC 8914 §4.2, §4.3: why data is insecure is told beside it.
			c.EDE = []wire.EDE{{Code: verdict.EDE.Code, Text: verdict.EDE.Text[:min(len(verdict.EDE.Text), entry.MaxEDEText)]}}
		}
		if f == nil {
			t.learn(res, now, epoch)
			r.store(c, now, epoch, &t.missing)
			r.storeDNAME(c, now, epoch)
			return c, nil
		}
		fail = f
		if status != wire.Bogus || f.local {
			break // no other server's response is any better
		}
		avoid = append(avoid, res.Server)
	}
	return c, fail
}

// raise applies the configured least TTL, before signatures bound it.
func (t *tree) raise(res *iterate.Result) {
	least := t.r.config.MinTTL
	if least == 0 {
		return
	}
	for _, sets := range [...][]wire.RRset{res.Answer, res.Authority, res.Additional} {
		for i := range sets {
			sets[i].TTL = max(sets[i].TTL, least)
		}
	}
}

// judge validates a result: what it is worth, and the failure where it is not to be used.
func (t *tree) judge(ctx context.Context, res *iterate.Result) (validate.Verdict, *failure) {
	v := t.r.validator
	if v == nil {
		for _, sets := range [...][]wire.RRset{res.Answer, res.Authority, res.Additional} {
			for i := range sets {
				sets[i].Status = wire.Insecure
			}
		}
		return validate.Verdict{Status: wire.Insecure, EDE: wire.EDE{Code: wire.NoEDE}}, nil
	}
	verdict := v.Judge(ctx, &res.Response, res.Zone, t, &t.cost)
	if verdict.Status == wire.Secure || verdict.Status == wire.Insecure {
		return verdict, nil
	}
	f := newFailure(verdict.EDE.Code, verdict.EDE.Text)
	f.server = res.Server
	// Signatures of the root that are all out of their time tell of our clock, not of the data.
	f.clock = verdict.Clock
	if verdict.Clock != validate.ClockRight {
		f.local = true
		t.r.doubtClock(verdict.Clock)
	}
	if verdict.Status == wire.Indeterminate && verdict.Err != nil {
		f.because(verdict.Err)
	}
	return verdict, f
}

// newLinkOf makes the link of a result, as it is kept and answered.
func (r *Resolver) newLinkOf(res *iterate.Result, rt wire.Type, now uint32, status wire.Status) *link {
	most := min(r.config.MaxTTL, res.Lease-min(now, res.Lease))
	c := newLink(entry.KindAnswer, res.QName.Canonical(), rt)
	if status != wire.Secure && status != wire.Insecure {
		c.Kind, most = entry.KindUnvalidated, min(most, unvalidatedTTL)
	}
	c.AA, c.RCODE, c.Answer = res.AA, res.RCODE, res.Answer
	switch {
	case res.Kind == iterate.Alias:
		c.QType = wire.TypeCNAME
	case len(c.Answer) == 0:
		c.Authority = negativeAuthority(res.Authority, r.config.MinTTL)
		if c.RCODE == wire.RCODENXDomain && c.Kind == entry.KindAnswer {
			c.Kind, c.QType = entry.KindDenial, wire.TypeNone
		}
	case r.config.FullResponses:
		c.Authority, c.Additional = res.Authority, res.Additional
	case rt == wire.TypeSVCB || rt == wire.TypeHTTPS:
		// RFC 9460 §4.2: the addresses of the targets spare the client a query.
		c.Additional = res.Additional
	}
	c.Used = rt == wire.TypeDNSKEY || rt == wire.TypeDS
	c.finish(res, most, r.config.MaxNegativeTTL)
	return c
}

// finish adds the proofs that an expanded wildcard needs (RFC 4035 §3.1.3.3), the status and TTLs.
func (c *link) finish(res *iterate.Result, most, negative uint32) {
	for i := range c.Answer {
		if expanded(&c.Answer[i]) && len(c.Authority) == 0 {
			c.Authority = proofs(res.Authority)
		}
	}
	c.Status = wire.Secure
	for _, sets := range [...][]wire.RRset{c.Answer, c.Authority} {
		for i := range sets {
			c.Status = weaker(c.Status, sets[i].Status)
		}
	}
	if len(c.Answer) == 0 && len(c.Authority) == 0 {
		c.Status = wire.Insecure
		most = 0 // RFC 2308 §5: a negative response without SOA is not cached
	}
	if len(c.Answer) == 0 && !hasSOA(c.Authority) {
		most = 0
	}
	c.clamp(most, negative)
}

// isCompact says whether a link is a compact denial of its name (RFC 9824 §3.1). Another NXDOMAIN is
// kept as a denial of the whole name.
func (c *link) isCompact() bool {
	return c.Kind == entry.KindAnswer && c.RCODE == wire.RCODENXDomain && c.Status == wire.Secure && len(c.Answer) == 0
}

// weaker returns the status that makes the lesser claim.
func weaker(a, b wire.Status) wire.Status {
	rank := [...]uint8{wire.Secure: 4, wire.Insecure: 3, wire.Unchecked: 2, wire.Indeterminate: 1, wire.Bogus: 0}
	if rank[a] < rank[b] {
		return a
	}
	return b
}

// expanded says whether a signed RRset came from a wildcard (RFC 4035 §5.3.4: fewer labels in the
// RRSIG than in the owner).
func expanded(s *wire.RRset) bool {
	const labelsOffset = 3
	return len(s.Sigs) > 0 && len(s.Sigs[0]) > labelsOffset &&
		int(s.Sigs[0][labelsOffset]) < s.Owner.Labels() && !s.Owner.IsWildcard()
}

func hasSOA(sets []wire.RRset) bool {
	for i := range sets {
		if sets[i].Type == wire.TypeSOA {
			return true
		}
	}
	return false
}

// proofs returns the NSEC and NSEC3 RRsets.
func proofs(sets []wire.RRset) (out []wire.RRset) {
	for i := range sets {
		if sets[i].Type == wire.TypeNSEC || sets[i].Type == wire.TypeNSEC3 {
			out = append(out, sets[i])
		}
	}
	return out
}

// negativeAuthority keeps the SOA and the proofs. RFC 2308 §5: the SOA's TTL is the lesser of its
// own and its MINIMUM field, and RFC 9077 §3 has the same for NSEC and NSEC3. least is the configured
// least TTL, in seconds, to which the SOA's own was raised already.
func negativeAuthority(sets []wire.RRset, least uint32) (out []wire.RRset) {
	ttl := ^uint32(0)
	for i := range sets {
		if s := &sets[i]; s.Type == wire.TypeSOA {
			ttl = min(s.TTL, max(wire.SOAMinimum(s.RDATA[0]), least))
			out = append(out, *s)
			break
		}
	}
	out = append(out, proofs(sets)...)
	for i := range out {
		out[i].TTL = min(out[i].TTL, ttl)
	}
	return out
}

// lookupContent returns a live entry unpacked, or nil.
func (r *Resolver) lookupContent(kind entry.Kind, name wire.Name, t wire.Type, now uint32) *link {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	key := cache.MakeKey(kind, r.config.Realm, name, t)
	e, ok := r.cache.Lookup(&key, now, *buf)
	if !ok || e.Expires() <= now {
		return nil
	}
	c, err := e.Unpack(now)
	if err != nil {
		return nil
	}
	return &link{Content: *c, original: e.Original()}
}

package resolver

import (
	"context"
	"errors"
	"net/netip"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver/exchange"
	"bonsai/resolver/iterate"
	"bonsai/resolver/validate"
	"bonsai/wire"
)

// failure is why there is no answer: what clients, the log and the failure cache are told.
type failure struct {
	code   wire.EDECode
	text   string
	rcode  wire.RCODE
	server netip.AddrPort // that said so, if any
	life   uint32         // seconds that it is remembered
	budget bool           // it was made by the limits of one client query, not by the name
	local  bool           // it was made by us: overload or shutdown; not remembered at all
	clock  validate.Clock // other than right where our own clock is to blame
	loop   []wire.RRset   // aliases that lead to one another, for the answer section
}

// Error returns the text.
func (f *failure) Error() string { return f.text }

// How long failures are remembered, in seconds. RFC 9520 §3.2 has at least one second and at most
// five minutes.
const (
	timeoutTTL     = 5  // nothing but silence: it may be over soon
	rcodeTTL       = 15 // servers said that they won't; with the default of Config.FailureTTL
	unvalidatedTTL = 60 // RFC 4035 §4.7: bogus data, kept briefly; with the default of Config.FailureTTL
	refreshTTL     = 30 // RFC 8767 §5: where stale data is served meanwhile
)

func newFailure(code wire.EDECode, text string) *failure {
	f := &failure{code: code, text: text, rcode: wire.RCODEServFail, life: rcodeTTL}
	if validation(code) {
		f.life = unvalidatedTTL
	}
	return f
}

// because takes on how long, and of what, the reason tells that left data unjudged: keys that could not be had
// for a moment say nothing of the next one, and work that one query spent says nothing of another.
func (f *failure) because(err error) {
	if errors.Is(err, validate.ErrCost) {
		f.budget, f.life = true, timeoutTTL
		return
	}
	cause := failureOf(err)
	f.budget, f.local, f.life = cause.budget, f.local || cause.local, cause.life
}

// validation says whether an extended error is DNSSEC's, so that a client that sets CD is not
// concerned.
func validation(code wire.EDECode) bool {
	switch code {
	case wire.EDEUnsupportedDNSKEY, wire.EDEUnsupportedDS, wire.EDEIndeterminate, wire.EDEBogus,
		wire.EDESignatureExpired, wire.EDESignatureNotYet, wire.EDEDNSKEYMissing, wire.EDERRSIGsMissing,
		wire.EDENoZoneKeyBit, wire.EDENSECMissing, wire.EDESignatureOther, wire.EDEUnsupportedNSEC3:
		return true
	}
	return false
}

// mayBeStale says whether expired data is served in place of a failure with this extended error. RFC 8767
// §5: what can't be had is a reason, the keys to judge new data among it; what is bogus is none.
func mayBeStale(code wire.EDECode) bool { return !validation(code) || code == wire.EDEIndeterminate }

// failureOf turns an error into a failure: the one table of reasons (RFC 8914 §4).
func failureOf(err error) *failure {
	var own *failure
	var it *iterate.Failure
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &it):
		f := newFailure(it.Code, it.Text)
		f.server, f.budget = it.Server, it.Budget
		if it.Timeout {
			f.life = timeoutTTL
		}
		return f
	}
	f := newFailure(wire.EDEOther, "internal error")
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, exchange.ErrTimeout):
		f.code, f.text, f.life = wire.EDENoReachable, "no response in time", timeoutTTL
	case errors.Is(err, context.Canceled):
		f.code, f.text, f.budget, f.local = wire.EDENotReady, "shutting down", true, true
	case errors.Is(err, errBusy):
		f.text, f.budget, f.local = "too many resolutions in flight", true, true
	case errors.Is(err, errCircle):
		f.text, f.budget, f.life = "name servers depend on each other", true, timeoutTTL
	case errors.Is(err, iterate.ErrBudget):
		f.text, f.budget, f.life = "the query needs too much work", true, timeoutTTL
	}
	return f
}

// packFailure makes the entry that clients are answered from.
func (r *Resolver) packFailure(q question, f *failure, now uint32) entry.Entry {
	e, err := entry.Pack(nil, &entry.Content{
		Kind: entry.KindFailure, Realm: r.config.Realm, QName: q.name, QType: q.t, RCODE: f.rcode, Lifetime: f.life,
		EDE: []wire.EDE{{Code: f.code, Text: f.text}}, Answer: f.loop,
	}, now)
	if err != nil { // a text that can't be packed
		e, _ = entry.Pack(nil, &entry.Content{
			Kind: entry.KindFailure, Realm: r.config.Realm, QName: q.name, QType: q.t, RCODE: f.rcode, Lifetime: f.life,
		}, now)
	}
	return e
}

// keepFailure remembers a failure. It replaces no answer: a stale one stays, and then keeps the
// servers from being asked again for longer.
func (r *Resolver) keepFailure(q question, f *failure, now uint32, epoch uint64) {
	if q.t == wire.TypeANY {
		return
	}
	kept := *f
	if kept.life > timeoutTTL {
		kept.life = max(timeoutTTL, kept.life*r.config.FailureTTL/unvalidatedTTL)
	}
	if r.hasAnyAge(q, now) {
		kept.life = max(kept.life, refreshTTL)
	}
	key := cache.MakeKey(entry.KindFailure, r.config.Realm, q.name, q.t)
	count := r.writes.of(q.name)
	count.Add(1)
	r.cache.Store(&key, r.packFailure(q, &kept, now), now, epoch)
	count.Add(1)
}

// cachedFailure returns the failure remembered for a question, unless it is none to who wants what
// does not validate.
func (t *tree) cachedFailure(name wire.Name, rt wire.Type) *failure {
	f := t.r.keptFailure(name, rt)
	if f != nil && t.wantRaw && validation(f.code) {
		return nil
	}
	return f
}

// whyUnvalidated returns the failure that goes with cached data that did not validate.
func (t *tree) whyUnvalidated(c *link, rt wire.Type) *failure {
	if f := t.r.keptFailure(c.QName, rt); f != nil && validation(f.code) {
		return f
	}
	f := newFailure(wire.EDEIndeterminate, "")
	if c.Status == wire.Bogus {
		f.code = wire.EDEBogus
	}
	f.life = c.Lifetime
	return f
}

// keptFailure returns the failure remembered for a question, with the seconds left of it.
func (r *Resolver) keptFailure(name wire.Name, rt wire.Type) *failure {
	now := r.now()
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	key := cache.MakeKey(entry.KindFailure, r.config.Realm, name, rt)
	e, ok := r.cache.Lookup(&key, now, *buf)
	if !ok || e.Expires() <= now {
		return nil
	}
	f := newFailure(firstEDE(e))
	f.rcode, f.life = e.RCODE(), e.Expires()-now
	return f
}

// firstEDE returns the extended error that says most.
func firstEDE(e entry.Entry) (wire.EDECode, string) {
	if errs := e.EDE(); len(errs) > 0 {
		return errs[0].Code, errs[0].Text
	}
	return wire.EDEOther, ""
}

package resolver

import (
	"context"
	"sync"
	"time"

	"bonsai/cache/entry"
	"bonsai/resolver/iterate"
	"bonsai/resolver/validate"
	"bonsai/wire"
)

// tree is one client query, or one refresh, with everything it leads to: the resolutions of
// aliases, name server addresses and keys all spend its budget. One goroutine runs it.
type tree struct {
	r       *Resolver
	budget  iterate.Budget
	cost    validate.Cost
	trace   *iterate.Trace // nil: none kept
	current *flight        // the innermost flight that this goroutine leads
	level   int            // flights that it leads within one another: 1 for the client's own question
	depth   int            // address lookups within address lookups
	wantRaw bool           // data that does not validate is wanted too (CD)
	again   bool           // it leads a second time, for data that the first flight dropped
	refresh bool           // data about to expire does not count as cached
	anew    bool           // nothing that is cached counts

	path     *iterate.Trace // what trace is unless somebody wants to know more
	patience patience       // of the client
	missing  missing
}

// trees are those that ended, with nobody left who knows of them.
var trees = sync.Pool{New: func() any { return new(tree) }}

func (r *Resolver) newTree() *tree {
	t := trees.Get().(*tree)
	t.r = r
	t.budget.Begin(r.config.Iterate.Limits)
	if r.config.Recent > 0 {
		if t.path == nil {
			t.path = new(iterate.Trace)
		}
		t.path.Restart()
		t.trace = t.path
	}
	return t
}

// end gives back a client's tree.
func (t *tree) end() {
	if !t.patience.end() {
		*t = tree{path: t.path}
		trees.Put(t)
	}
}

// ask returns the whole answer to a question: from the cache, from a flight under way, or by
// leading one. An error says that nothing was found out.
func (t *tree) ask(ctx context.Context, q question) (*result, error) {
	for retry := false; ; retry = true {
		fl, leads, err := t.r.flights.join(q, t.current, t.wantRaw, t.r.config.MaxFlights)
		if err != nil {
			return nil, err
		}
		var res *result
		if leads {
			res = t.lead(ctx, fl)
		} else {
			res, err = fl.wait(ctx)
		}
		t.r.flights.left(t.current)
		if leads {
			fl.release()
		}
		// What failed on another query's budget says nothing of this one's.
		if err != nil || leads || !res.budget || retry {
			return res, err
		}
	}
}

// lead runs the flight and ends it.
func (t *tree) lead(ctx context.Context, fl *flight) (res *result) {
	outer := t.current
	t.current = fl
	t.level++
	begin := time.Now()
	defer func() {
		t.current = outer
		t.level--
		if t.level == 0 && t.trace != nil {
			t.r.recent.add(fl, t.trace, res, time.Since(begin))
		}
		if res == nil { // a panic passes: those who wait must not wait for ever
			res = &result{failure: newFailure(wire.EDEOther, "internal error")}
		}
		t.r.flights.finish(fl, res)
	}()
	return t.resolve(ctx, fl)
}

// Lookup implements iterate.Source.
func (t *tree) Lookup(ctx context.Context, name wire.Name, rt wire.Type) (*wire.Response, error) {
	t.depth++
	raw := t.wantRaw
	t.wantRaw = false
	defer func() { t.depth--; t.wantRaw = raw }()
	q := question{name: name.Canonical(), t: rt}
	if c := t.cached(q.name, rt); c != nil && !leadsOn(c, rt) {
		return c.response(), nil
	}
	res, err := t.ask(ctx, q)
	switch {
	case err != nil:
		return nil, err
	case res.failure != nil:
		return nil, res.failure
	}
	return res.content.response(), nil
}

// Fetch implements validate.Fetcher: DS and DNSKEY RRsets, judged.
func (t *tree) Fetch(ctx context.Context, name wire.Name, rt wire.Type) (*validate.Fetched, error) {
	raw := t.wantRaw
	t.wantRaw = false
	defer func() { t.wantRaw = raw }()
	q := question{name: name.Canonical(), t: rt, link: true}
	if c := t.cached(q.name, rt); c != nil {
		t.r.renewKeySoon(c, q)
		return fetched(c), nil
	}
	if rt == wire.TypeDS {
		if f := t.grantedDS(ctx, q.name); f != nil {
			return f, nil
		}
	}
	res, err := t.ask(ctx, q)
	switch {
	case err != nil:
		return nil, err
	case res.failure != nil && validation(res.failure.code) && res.failure.code != wire.EDEIndeterminate:
		// What did not validate is no error here: it is bogus, and why is the answer's reason too.
		f := &validate.Fetched{Verdict: validate.Verdict{Status: wire.Bogus}}
		f.QName, f.QType = q.name, rt
		// With what was wrong with it, which tells what is not there from what is there and no good.
		if c := t.r.lookupContent(entry.KindUnvalidated, q.name, rt, t.r.now()); c != nil {
			f.Response = *c.response()
		}
		f.EDE, f.Clock = wire.EDE{Code: res.failure.code, Text: res.failure.text}, res.failure.clock
		return f, nil
	case res.failure != nil:
		return nil, res.failure
	}
	return fetched(res.content), nil
}

func fetched(c *link) *validate.Fetched {
	return &validate.Fetched{Response: *c.response(), Verdict: validate.Verdict{Status: c.Status}}
}

// grantedDS judges the DS RRset or the proof of its absence that came with the parent's referral,
// so that it need not be asked for again. nil means that it must be. What it proves is kept for
// validation alone: a referral's proof has no SOA, and so is no answer to a client.
func (t *tree) grantedDS(ctx context.Context, zone wire.Name) *validate.Fetched {
	r, now := t.r, t.r.now()
	if c := r.lookupContent(entry.KindAddress, zone, wire.TypeDS, now); c != nil {
		return fetched(c)
	}
	epoch := r.epoch() // before the cut is read: a flush may come between
	cut := r.cuts.Deepest(zone, now)
	if cut == nil || cut.Zone != zone || len(cut.DS) == 0 {
		return nil
	}
	c := newLink(entry.KindAddress, zone, wire.TypeDS)
	c.Used = true
	for _, s := range cut.DS {
		if s.Type == wire.TypeDS {
			c.Answer = append(c.Answer, s)
		} else {
			c.Authority = append(c.Authority, s)
		}
	}
	response := c.response()
	verdict := r.validator.Judge(ctx, response, cut.Parent, t, &t.cost)
	if verdict.Status != wire.Secure && verdict.Status != wire.Insecure {
		return nil
	}
	c.Status = verdict.Status
	c.Answer, c.Authority = response.Answer, response.Authority
	c.clamp(cut.Expires-min(now, cut.Expires), 0)
	r.store(c, now, epoch, &missing{})
	return fetched(c)
}

// Cut implements validate.Fetcher: the deepest zone cut known above name.
func (t *tree) Cut(name wire.Name) wire.Name {
	if name == wire.Root {
		return ""
	}
	return t.r.cuts.Deepest(name.Parent(), t.r.now()).Zone
}

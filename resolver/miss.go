package resolver

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/wire"
)

// client is what a miss keeps while it waits. There are as many as resolutions in flight, so it is
// small: the buffers that hold any entry are borrowed for moments.
type client struct {
	query wire.Query
	writer
}

var clients = sync.Pool{New: func() any { return &client{writer: newWriter(nil)} }}

// release puts a client back. What it points at may be replaced before it is taken again, and is not kept.
func (c *client) release() {
	c.view = nil
	clients.Put(c)
}

// Miss implements serve.Handler: it resolves, and answers within the client's patience.
func (r *Resolver) Miss(ctx context.Context, x *serve.Exchange) {
	c := clients.Get().(*client)
	c.stats = &r.stats.miss
	defer c.release()
	defer r.recovered(x, c)
	now := r.now()
	if c.query.Parse(x.Query) != wire.QueryOK {
		return // Hit lets only whole queries pass
	}
	c.view = r.views.Load().of(x.Client.Addr())
	c.view.r.answerMiss(ctx, x, c, now)
}

// recovered keeps a fault in the resolution of one name from ending the service of all others. It
// is counted and logged with its stack: it is always a defect.
func (r *Resolver) recovered(x *serve.Exchange, c *client) {
	if fault := recover(); fault != nil {
		r.stats.panics.Add(1)
		r.log.Error("internal error", "query", string(wire.Name(c.query.Name()).String()), "type", c.query.QType.String(),
			"fault", fault, "stack", string(debug.Stack()))
		r.refuse(x, &c.query, wire.RCODEServFail, wire.EDEOther, "internal error", &c.writer)
	}
}

// answerMiss waits for the resolution, or answers with stale data before the client gives up
// (RFC 8767 §5).
func (r *Resolver) answerMiss(ctx context.Context, x *serve.Exchange, c *client, now uint32) {
	q := &c.query
	key := cache.MakeKey(entry.KindAnswer, r.config.Realm, q.Name(), q.QType)
	stale, gone, answered := r.answerCached(x, c, &key, now)
	if answered {
		return
	}
	var res *result
	var err error
	if stale == nil {
		res, err = r.resolveFor(ctx, q, gone)
	} else {
		res, err = r.resolveWithin(ctx, q, r.config.StalePatience)
	}
	now = r.now()
	switch {
	case err == nil && res.content != nil:
		r.respond(x, q, res.packed, now, lookupMiss, &c.writer)
	case err == nil && q.Has(wire.FlagCD) && res.raw != nil:
		r.respond(x, q, res.raw, now, lookupMiss, &c.writer)
	case stale != nil && (err != nil || mayBeStale(res.failure.code)):
		r.respond(x, q, stale, now, lookupStale, &c.writer)
	case err == nil:
		r.logFailure(q, res.failure)
		r.respond(x, q, res.failed, now, lookupMiss, &c.writer)
	default:
		f := failureOf(err)
		r.logFailure(q, f)
		r.respond(x, q, r.packFailure(question{name: wire.Name(q.Name()), t: q.QType}, f, now), now, lookupMiss, &c.writer)
	}
}

// answerCached answers from the cache if it can, for another client's resolution may have ended since
// the front end looked. If it can't it returns what may be served stale in need, or that there is
// nothing at all.
func (r *Resolver) answerCached(x *serve.Exchange, c *client, key *cache.Key, now uint32) (stale entry.Entry, gone missing, ok bool) {
	found, other := scratch.Get().(*[]byte), scratch.Get().(*[]byte)
	defer scratch.Put(found)
	defer scratch.Put(other)
	q := &c.query
	gone.seen = r.writes.of(key.QName()).Load()
	if x.Absent && x.Seen == gone.seen && !q.Has(wire.FlagCD) && !r.hasAlias(key, now, *found) {
		gone.question.t = q.QType
		return nil, gone, false
	}
	e, how := r.find(q, key, now, *found, *other)
	switch {
	case how != lookupMiss:
		r.respond(x, q, e, now, how, &c.writer)
		return nil, gone, true
	case e != nil, r.hasAlias(key, now, *found):
		var failing bool
		if stale, failing = r.staleAnswer(key, now); failing {
			r.respond(x, q, stale, now, lookupStale, &c.writer)
			return nil, gone, true
		}
	case !q.Has(wire.FlagCD):
		gone.question.t = q.QType
	}
	return stale, gone, false
}

// resolveFor returns the result of the question's flight, which this goroutine leads where there is
// none. gone is what is known to be missing from the cache; its name is the query's.
func (r *Resolver) resolveFor(ctx context.Context, q *wire.Query, gone missing) (*result, error) {
	t := r.newTree()
	defer t.end()
	t.patience.begin(ctx, r.config.Patience)
	ctx = &t.patience
	t.wantRaw = q.Has(wire.FlagCD)
	asked := question{name: wire.Name(q.Name()), t: q.QType}
	if gone.question.t == asked.t {
		gone.question.name = asked.name
		t.missing = gone
	}
	for {
		res, err := t.ask(ctx, asked)
		// A flight that was under way before a CD client joined may have dropped what it wants.
		if err == nil && t.wantRaw && res.content == nil && res.raw == nil && validation(res.failure.code) && !t.again {
			t.again = true
			continue
		}
		return res, err
	}
}

// resolveWithin is resolveFor that gives up waiting, while the resolution goes on in its own
// goroutine and its result is kept.
func (r *Resolver) resolveWithin(ctx context.Context, q *wire.Query, patience time.Duration) (*result, error) {
	type outcome struct {
		res *result
		err error
	}
	done := make(chan outcome, 1)
	own := &wire.Query{}
	own.Parse(append([]byte(nil), q.Bytes...))
	begun := r.begin(func() {
		defer func() {
			if fault := recover(); fault != nil {
				r.stats.panics.Add(1)
				r.log.Error("internal error", "fault", fault, "stack", string(debug.Stack()))
				done <- outcome{err: newFailure(wire.EDEOther, "internal error")}
			}
		}()
		res, err := r.resolveFor(r.ctx, own, missing{})
		done <- outcome{res, err}
	})
	if !begun {
		return nil, context.Canceled
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.res, o.err
	case <-timer.C:
		return nil, context.DeadlineExceeded
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Shed implements serve.Handler: with no room to resolve, stale data or SERVFAIL.
func (r *Resolver) Shed(x *serve.Exchange) {
	c := clients.Get().(*client)
	c.stats = &r.stats.miss
	defer c.release()
	q := &c.query
	if q.Parse(x.Query) != wire.QueryOK {
		return
	}
	r.stats.shed.Add(1)
	now := r.now()
	c.view = r.views.Load().of(x.Client.Addr())
	r = c.view.r
	key := cache.MakeKey(entry.KindAnswer, r.config.Realm, q.Name(), q.QType)
	if e, _ := r.staleAnswer(&key, now); e != nil {
		r.respond(x, q, e, now, lookupStale, &c.writer)
		return
	}
	r.refuse(x, q, wire.RCODEServFail, wire.EDEOther, "too many resolutions in flight", &c.writer)
}

func (r *Resolver) logFailure(q *wire.Query, f *failure) {
	r.stats.countFailure(f.code)
	r.log.Debug("resolution failed", "name", wire.Name(q.Name()).String(), "type", q.QType.String(),
		"code", int(f.code), "reason", f.text, "server", f.server)
}

// Judge tells what the policies say of a request: for explanations and tests.
func (r *Resolver) Judge(request *policy.Request) policy.Outcome {
	return r.views.Load().of(request.Client).rules.Judge(request)
}

package resolver

import (
	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/wire"
)

// worker answers hits for one goroutine of the front end. Its buffers are used for every batch, so
// that a hit allocates nothing.
type worker struct {
	r       *Resolver
	slots   []slot
	found   []byte // the entry that answers
	other   []byte // one looked at beside it
	request policy.Request
	writer
}

// slot is what a worker keeps of one query of a batch.
type slot struct {
	query   wire.Query
	key     cache.Key
	view    *view
	decided serve.Result
	pending bool // not decided yet: look the key up
}

// NewWorker implements serve.Handler.
func (r *Resolver) NewWorker() serve.Worker {
	return &worker{
		r:      r,
		found:  r.cache.NewBuf(),
		other:  r.cache.NewBuf(),
		writer: newWriter(r.stats.worker()),
	}
}

// Hit implements serve.Worker. The batch is hashed and its index lines are touched first, so that
// the memory misses of its queries overlap.
func (w *worker) Hit(batch []serve.Exchange, results []serve.Result) {
	if len(w.slots) < len(batch) {
		w.slots = make([]slot, len(batch))
	}
	now := w.r.now()
	for i := range batch {
		w.prepare(&w.slots[i], &batch[i], now)
	}
	for i := range batch {
		s := &w.slots[i]
		if s.pending {
			s.decided = w.lookup(s, &batch[i], now)
		}
		results[i] = s.decided
		s.view = nil // it may be replaced, with large lists, before the place is used again
	}
	w.view = nil
}

// prepare parses a query and lets the policies decide; what they pass gets its key.
func (w *worker) prepare(s *slot, x *serve.Exchange, now uint32) {
	s.pending = false
	w.stats.queries[x.Transport].add(1)
	verdict := s.query.Parse(x.Query)
	if verdict != wire.QueryOK {
		s.decided = w.r.reject(x, &s.query, verdict, &w.writer)
		return
	}
	if !cookieHolds(&s.query) {
		s.decided = w.r.reject(x, &s.query, wire.QueryFormErr, &w.writer)
		return
	}
	w.stats.countType(s.query.QType)
	w.request = policy.Request{Query: &s.query, Client: x.Client.Addr(), Now: now, Verified: w.r.verified(x, &s.query, now)}
	w.view = w.r.views.Load().of(w.request.Client)
	s.view = w.view
	if i := s.view.index; i != 0 {
		w.stats.views[i].add(1)
	}
	o := w.view.rules.Judge(&w.request)
	w.stats.countDecision(&o)
	switch o.Action {
	case policy.Pass:
		s.key = cache.MakeKey(entry.KindAnswer, s.view.r.config.Realm, s.query.Name(), s.query.QType)
		w.r.cache.Prefetch(&s.key)
		s.pending = true
	case policy.Cached:
		s.decided = w.cachedOnly(s, x, now)
	default:
		s.decided = w.r.decide(x, &s.query, &o, now, &w.writer)
	}
}

// lookup answers from the cache, or says that it can't.
func (w *worker) lookup(s *slot, x *serve.Exchange, now uint32) serve.Result {
	r := s.view.r
	w.view = s.view
	x.Seen = r.writes.of(s.key.QName()).Load()
	e, how := r.find(&s.query, &s.key, now, w.found, w.other)
	w.stats.lookups[how].add(1)
	if how == lookupMiss {
		x.Absent = e == nil
		return serve.Missed
	}
	if how == lookupHit && r.dueForRefresh(e, now) {
		r.refreshSoon(wire.BorrowName(s.query.Name()), s.query.QType)
	}
	r.respond(x, &s.query, e, now, how, &w.writer)
	return serve.Answered
}

// cachedOnly answers a query that may read the cache and not have anything resolved: what is
// cached, else the deepest cut that is (RFC 1034 §4.3.2 step 4).
func (w *worker) cachedOnly(s *slot, x *serve.Exchange, now uint32) serve.Result {
	r := s.view.r
	s.key = cache.MakeKey(entry.KindAnswer, r.config.Realm, s.query.Name(), s.query.QType)
	e, how := r.find(&s.query, &s.key, now, w.found, w.other)
	w.stats.lookups[how].add(1)
	if how == lookupHit {
		r.respond(x, &s.query, e, now, how, &w.writer)
		return serve.Answered
	}
	r.refer(x, &s.query, now, &w.writer)
	return serve.Answered
}

// lookupResult is how a lookup for a client ended.
type lookupResult uint8

const (
	lookupHit lookupResult = iota
	lookupStale
	lookupMiss
	lookupResults
)

// find looks for what answers a query now: a live answer, the denial of its name, for those who
// set CD what did not validate, and a remembered failure, instead of which stale data is served
// (RFC 8767 §5). found and other are buffers; the entry lies in one of them. A miss may come with what
// has expired.
func (r *Resolver) find(q *wire.Query, key *cache.Key, now uint32, found, other []byte) (entry.Entry, lookupResult) {
	answer, ok := r.cache.Lookup(key, now, found)
	if ok && answer.Expires() > now {
		return answer, lookupHit
	}
	stale := entry.Entry(nil)
	if ok {
		stale = answer
	}
	k := key.With(entry.KindDenial, wire.TypeNone)
	if e, ok := r.cache.Lookup(&k, now, other); ok {
		if e.Expires() > now {
			return e, lookupHit
		}
		// The denial is the later of the two: a positive answer would have taken it away.
		stale, found, other = e, other, found
	}
	if q.Has(wire.FlagCD) {
		k = key.With(entry.KindUnvalidated, q.QType)
		if e, ok := r.cache.Lookup(&k, now, other); ok && e.Expires() > now {
			return e, lookupHit
		}
	}
	k = key.With(entry.KindFailure, q.QType)
	if e, ok := r.cache.Lookup(&k, now, other); ok && e.Expires() > now {
		code, _ := firstEDE(e)
		switch {
		case q.Has(wire.FlagCD) && validation(code):
			return stale, lookupMiss
		case !mayBeStale(code) || r.config.StaleTTL == 0:
		case stale != nil && !isChain(stale, key):
			return stale, lookupStale
		case stale != nil || r.hasAlias(key, now, found):
			return stale, lookupMiss // its links make the chain whole, of which some may have been renewed
		}
		return e, lookupHit
	}
	return stale, lookupMiss
}

// verified says whether the client's address can't be forged: it came over TCP, or has a cookie that
// we sent there (RFC 7873 §5.2.3).
func (r *Resolver) verified(x *serve.Exchange, q *wire.Query, now uint32) bool {
	if x.Transport != serve.UDP {
		return true
	}
	if len(q.EDNS.Options) == 0 {
		return false
	}
	c, ok := q.EDNS.Option(wire.OptionCookie)
	return ok && r.cookies.valid(c, x.Client.Addr(), now)
}

// isChain says whether an entry was composed of aliases and where they lead. One of an alias alone has
// the alias's type.
func isChain(e entry.Entry, key *cache.Key) bool {
	return e.HasAlias() && key.QType() != wire.TypeCNAME && key.QType() != wire.TypeDNAME
}

// hasAlias says whether the cache holds an alias of the key's name, of any age.
func (r *Resolver) hasAlias(key *cache.Key, now uint32, buf []byte) bool {
	k := key.With(entry.KindAnswer, wire.TypeCNAME)
	e, ok := r.cache.Lookup(&k, now, buf)
	return ok && e.HasAlias()
}

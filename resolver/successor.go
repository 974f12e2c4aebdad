package resolver

import (
	"context"
	"reflect"
	"sync/atomic"

	"bonsai/cache/entry"
	"bonsai/resolver/exchange"
	"bonsai/resolver/serve"
	"bonsai/wire"
)

// Succeed returns a Resolver with another configuration that takes r's place: over the same cache,
// with r's counters and cookies and, where config.Exchange is the same, its memory of servers. What r
// has under way it ends by its own configuration; Retire keeps it from undoing flushes meanwhile.
func (r *Resolver) Succeed(config Config) (*Resolver, error) {
	next := &Resolver{exchange: r.exchange, stats: r.stats, cookies: r.cookies, recent: r.recent, writes: r.writes}
	if !reflect.DeepEqual(r.config.Exchange, config.Exchange) {
		next.exchange = exchange.New(config.Exchange)
	}
	config.Cache = r.cache
	var keeper *sharedKeeper
	if r.keeper != nil && config.Validate != nil && r.config.Anchors == config.Anchors &&
		reflect.DeepEqual(r.config.Validate.Anchors, config.Validate.Anchors) {
		keeper = r.keeper
	}
	if err := next.assemble(config, keeper); err != nil {
		return nil, err
	}
	return next, nil
}

// Retire says that a successor has taken over. From now on nothing is refreshed, and what resolutions
// under way find is kept only as far as no flush after this call covers it. Close is still to be called.
func (r *Resolver) Retire() {
	if r.frozen.CompareAndSwap(0, r.cache.Epoch()+1) {
		close(r.retired)
	}
	for _, realm := range r.realms {
		realm.Retire()
	}
}

// epoch is the cache's, but that time stands still for who was succeeded. The cache is read first: an
// epoch after a flush is then never taken by who was retired before the flush.
func (r *Resolver) epoch() uint64 {
	now := r.cache.Epoch()
	if frozen := r.frozen.Load(); frozen != 0 {
		return frozen - 1
	}
	return now
}

// FlushName forgets what is known of a name: of one type, or for 0 of all.
func (r *Resolver) FlushName(name wire.Name, t wire.Type) {
	name = name.Canonical()
	r.cache.FlushName(name, t)
	r.cache.Flush(func(e entry.Entry) bool {
		return leadsThrough(e, func(s *wire.RRset) bool { return s.Owner.Equal(name) && (t == wire.TypeNone || s.Type == t) })
	})
	r.flushDenials(name)
}

// FlushTree forgets what is known of a name and of all below it.
func (r *Resolver) FlushTree(name wire.Name) {
	name = name.Canonical()
	r.cache.FlushTree(name)
	r.cache.Flush(func(e entry.Entry) bool { return LeadsInto(e, name) })
	r.flushDenials(name)
}

// FlushTreeIn is FlushTree of one realm alone, whose number entries have.
func (r *Resolver) FlushTreeIn(realm uint16, name wire.Name) {
	name = name.Canonical()
	r.cache.Flush(func(e entry.Entry) bool {
		return e.Realm() == realm && (wire.BorrowName(e.QName()).IsSubdomainOf(name) || LeadsInto(e, name))
	})
	for _, other := range r.realms {
		if other.config.Realm == realm {
			other.flushDenials(name)
		}
	}
	if r.config.Realm == realm {
		r.flushOwnDenials(name)
	}
}

// LeadsInto says whether an entry is a chain of aliases with records at or below name, in canonical case.
func LeadsInto(e entry.Entry, name wire.Name) bool {
	return leadsThrough(e, func(s *wire.RRset) bool { return s.Owner.Canonical().IsSubdomainOf(name) })
}

// leadsThrough says whether a chain of aliases has an RRset that match knows.
func leadsThrough(e entry.Entry, match func(*wire.RRset) bool) bool {
	if !e.HasAlias() {
		return false
	}
	c, err := e.Unpack(e.Expires())
	if err != nil {
		return true
	}
	for _, sets := range [...][]wire.RRset{c.Answer, c.Authority} {
		for i := range sets {
			if match(&sets[i]) {
				return true
			}
		}
	}
	return false
}

// Flush forgets the entries that match says; and with denials, what is proven not to exist, of which
// there are no entries.
func (r *Resolver) Flush(match func(entry.Entry) bool, denials bool) {
	r.cache.Flush(match)
	if denials {
		r.flushDenials(wire.Root)
	}
}

// flushDenials is of all realms.
func (r *Resolver) flushDenials(name wire.Name) {
	r.flushOwnDenials(name)
	for _, realm := range r.realms {
		realm.flushDenials(name)
	}
}

func (r *Resolver) flushOwnDenials(name wire.Name) {
	if r.denials != nil {
		r.denials.Flush(name, r.cache.Epoch())
	}
}

// Switch is the serve.Handler over a Resolver that may be succeeded while queries come in.
type Switch struct{ current atomic.Pointer[Resolver] }

// NewSwitch begins with r.
func NewSwitch(r *Resolver) *Switch {
	s := new(Switch)
	s.current.Store(r)
	return s
}

// Current returns the Resolver that answers now.
func (s *Switch) Current() *Resolver { return s.current.Load() }

// Set lets a successor of the current Resolver answer what comes from now on. Queries that the old one
// has begun to answer it also ends.
func (s *Switch) Set(successor *Resolver) { s.current.Store(successor) }

// NewWorker implements serve.Handler.
func (s *Switch) NewWorker() serve.Worker {
	return &switched{current: &s.current, worker: s.Current().NewWorker().(*worker)}
}

// Miss implements serve.Handler.
func (s *Switch) Miss(ctx context.Context, x *serve.Exchange) { s.Current().Miss(ctx, x) }

// Shed implements serve.Handler.
func (s *Switch) Shed(x *serve.Exchange) { s.Current().Shed(x) }

// switched is a worker that goes over to the successor with the next batch. Its buffers and counters
// fit both, for they share cache and counters.
type switched struct {
	current *atomic.Pointer[Resolver]
	worker  *worker
}

// Hit implements serve.Worker.
func (w *switched) Hit(batch []serve.Exchange, results []serve.Result) {
	w.worker.r = w.current.Load()
	w.worker.Hit(batch, results)
}

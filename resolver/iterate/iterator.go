package iterate

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// Exchanger asks servers and knows which to ask; exchange.Client does.
type Exchanger interface {
	Do(ctx context.Context, a *exchange.Ask) (*exchange.Reply, error)
	Release(r *exchange.Reply)
	Choose(zone wire.Name, candidates, tried []netip.AddrPort) (server netip.AddrPort, ok bool)
	MarkLame(server netip.AddrPort, zone wire.Name)
	Usable(a netip.Addr) bool
	Families() (ipv4, ipv6 bool)
}

// Config says how an Iterator is made.
type Config struct {
	Exchange Exchanger
	Cuts     *zonecut.Map
	Now      func() uint32 // Unix seconds, for leases

	Minimisation Minimisation // the zero value is Relaxed
	IPv4, IPv6   bool         // families whose addresses are looked up; neither: both
	// LaxGlue believes addresses of name servers from outside the zone that gives them.
	LaxGlue bool
	// FullResponses keeps what may go along with an answer and is not asked for: the zone's NS set and
	// additional data. That of service bindings is always kept.
	FullResponses bool
	// ForwardCD sets CD in what is forwarded, so that data reaches a validator here (RFC 4035 §4.6).
	ForwardCD bool

	Limits Limits // of one client query; fields that are 0 stand for DefaultLimits
}

// Iterator resolves links. Its methods may be called at once by many goroutines.
type Iterator struct {
	config  Config
	primers primers
	zones   zones
	stats   stats
	ended   sync.Pool // of *resolution
}

// Stats are counters since New.
type Stats struct {
	Resolutions uint64 // links resolved or failed
	Failures    uint64 // links that failed
	Referrals   uint64 // referrals followed
	Lame        uint64 // responses that showed a lame server
	Minimised   uint64 // queries with less than the whole QNAME
	Widened     uint64 // minimised queries that led to asking the whole QNAME
	Lookups     uint64 // address lookups
	Primed      uint64 // zones primed, the root above all
}

type stats struct {
	resolutions, failures, referrals, lame, minimised, widened, lookups, primed atomic.Uint64
}

// New returns an Iterator. It starts nothing.
func New(config Config) *Iterator {
	if !config.IPv4 && !config.IPv6 {
		config.IPv4, config.IPv6 = true, true
	}
	it := &Iterator{config: config}
	it.primers.init()
	it.zones.init()
	return it
}

// Stats returns the counters.
func (it *Iterator) Stats() Stats {
	s := &it.stats
	return Stats{
		Resolutions: s.resolutions.Load(), Failures: s.failures.Load(), Referrals: s.referrals.Load(),
		Lame: s.lame.Load(), Minimised: s.minimised.Load(), Widened: s.widened.Load(),
		Lookups: s.lookups.Load(), Primed: s.primed.Load(),
	}
}

// Resolve asks for one link: what name and qt get from the servers of their zone; a DS, from those
// of its parent's zone. avoid are servers whose answer was no good: others are asked. The error is a
// *Failure. Resolve runs on its caller's goroutine, and calls t.Source on it. t is not kept.
func (it *Iterator) Resolve(ctx context.Context, t *Task, name wire.Name, qt wire.Type, avoid []netip.AddrPort) (*Result, error) {
	r := it.start(ctx, t, name, qt)
	defer it.end(r)
	r.avoid, r.minimise.mode = avoid, it.config.Minimisation
	return r.run((*resolution).begin)
}

// start takes a resolution that ended, with its memory, for another.
func (it *Iterator) start(ctx context.Context, t *Task, name wire.Name, qt wire.Type) *resolution {
	r, _ := it.ended.Get().(*resolution)
	if r == nil {
		r = new(resolution)
	}
	r.Iterator, r.ctx, r.task, r.name, r.qtype = it, ctx, *t, name, qt
	return r
}

// end gives a resolution back. What it made, result, failure and cuts, is no part of it.
func (it *Iterator) end(r *resolution) {
	*r = resolution{pool: r.pool.emptied(), traced: r.traced}
	it.ended.Put(r)
}

// ErrNoGrant says that the parent was heard and gave no delegation.
var ErrNoGrant = errors.New("the parent's servers give no delegation of the zone")

// Renew asks zone's parent for its delegation, and keeps it. The error is a *Failure or ErrNoGrant: the
// delegation is gone, or the servers asked have the zone themselves and so never delegate it.
func (it *Iterator) Renew(ctx context.Context, t *Task, zone wire.Name) error {
	zone = zone.Canonical()
	if it.config.Cuts.Configured(zone) != nil {
		return it.prime(ctx, t, zone)
	}
	r := it.start(ctx, t, zone, wire.TypeNS)
	defer it.end(r)
	r.renew, r.minimise.mode = zone, Off
	if _, err := r.run((*resolution).begin); err != nil {
		return err
	}
	if !r.renewed {
		return ErrNoGrant
	}
	return nil
}

package resolver

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"bonsai/cache/entry"
	"bonsai/resolver/iterate"
	"bonsai/wire"
)

// refresh is a question to ask again before its answer expires. It is a plain value, so that a hit
// queues one without allocating.
type refresh struct {
	name [wire.MaxNameLen]byte
	n    uint8
	t    wire.Type
	cut  bool // the delegation of the name is to be renewed, not an answer
}

// refreshBelow returns how many seconds before the end an answer of this lifetime is renewed where
// it is in use: the last tenth.
func refreshBelow(lifetime uint32) uint32 { return lifetime / 10 }

// dueForRefresh says whether a hit should have its answer renewed.
func (r *Resolver) dueForRefresh(e entry.Entry, now uint32) bool {
	if r.config.NoPrefetch {
		return false
	}
	left := e.Expires() - now
	return left <= refreshBelow(e.Original()) && e.Kind() != entry.KindFailure && e.Kind() != entry.KindUnvalidated
}

// refreshSoon queues a refresh; a full queue drops it, for the name is asked again if it matters.
func (r *Resolver) refreshSoon(name wire.Name, t wire.Type) {
	var f refresh
	f.n = uint8(copy(f.name[:], name))
	f.t = t
	select {
	case r.refreshes <- f:
	default:
		r.stats.refreshesDropped.Add(1)
	}
}

// renewKeySoon has a DS or DNSKEY RRset renewed that validation uses in the last tenth of its life, so
// that no client will wait for it.
func (r *Resolver) renewKeySoon(c *link, q question) {
	if !r.config.NoPrefetch && c.original > 0 && c.Lifetime <= refreshBelow(c.original) && c.QType == q.t && c.QName == q.name {
		r.refreshSoon(q.name, q.t)
	}
}

// renewCutSoon queues the renewal of a delegation in use whose lease ends soon. Only the parent can
// renew it. One that is queued already is not queued again.
func (r *Resolver) renewCutSoon(zone wire.Name) {
	if r.config.NoPrefetch {
		return
	}
	if _, queued := r.renewing.LoadOrStore(zone, true); queued {
		return
	}
	f := refresh{cut: true}
	f.n = uint8(copy(f.name[:], zone))
	select {
	case r.refreshes <- f:
	default:
		r.renewing.Delete(zone)
		r.stats.refreshesDropped.Add(1)
	}
}

// renewCut asks the parent for a delegation again. Where that fails the zone stays marked for a
// while, so that it is not tried with every query.
func (r *Resolver) renewCut(zone wire.Name) {
	ctx, cancel := context.WithTimeout(r.ctx, r.config.Patience)
	defer cancel()
	t := r.newTree()
	r.stats.refreshes.Add(1)
	task := iterate.Task{Source: t, Budget: &t.budget, Epoch: r.epoch()}
	if err := r.iterator.Renew(ctx, &task, zone); err != nil {
		r.log.Debug("delegation not renewed", "zone", zone.String(), "reason", err)
		time.AfterFunc(refreshTTL*time.Second, func() { r.renewing.Delete(zone) })
		return
	}
	r.renewing.Delete(zone)
}

// maxRefreshing bounds the refreshes under way at once.
const maxRefreshing = 32

// underWay holds the questions that are being asked again: a name that thousands ask for is queued as
// often before its refresh has ended. Cuts are queued once anyway.
type underWay struct {
	mu  sync.Mutex
	all map[question]bool
}

// begin says whether q was not under way, and is now.
func (u *underWay) begin(q question) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all[q] {
		return false
	}
	u.all[q] = true
	return true
}

func (u *underWay) end(q question) {
	u.mu.Lock()
	delete(u.all, q)
	u.mu.Unlock()
}

// refresher runs what hits have queued until the Resolver is closed.
func (r *Resolver) refresher() {
	slots := make(chan struct{}, maxRefreshing)
	running := underWay{all: make(map[question]bool)}
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.retired:
			return
		case f := <-r.refreshes:
			q := question{name: wire.Name(f.name[:f.n]), t: f.t}
			q.link = q.t == wire.TypeDS || q.t == wire.TypeDNSKEY // as validation asks: it joins
			if !f.cut && !running.begin(q) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-r.ctx.Done():
				return
			}
			r.wait.Go(func() { // while this one runs Close still waits
				defer func() { <-slots }()
				defer r.survive()
				if f.cut {
					r.renewCut(q.name)
					return
				}
				defer running.end(q)
				r.renew(q)
			})
		}
	}
}

// survive keeps a fault in the background from ending the service. It is counted and logged with its
// stack: it is always a defect.
func (r *Resolver) survive() {
	if fault := recover(); fault != nil {
		r.stats.panics.Add(1)
		r.log.Error("internal error", "fault", fault, "stack", string(debug.Stack()))
	}
}

// renew asks again for the links of an answer that are about to expire.
func (r *Resolver) renew(q question) {
	ctx, cancel := context.WithTimeout(r.ctx, r.config.Patience)
	defer cancel()
	t := r.newTree()
	t.refresh = true
	now := r.now()
	if t.usable(r.lookupContent(entry.KindAnswer, q.name, q.t, now)) != nil ||
		t.usable(r.lookupContent(entry.KindDenial, q.name, wire.TypeNone, now)) != nil ||
		t.cachedFailure(q.name, q.t) != nil {
		return // renewed meanwhile, or not to be tried again yet
	}
	r.stats.refreshes.Add(1)
	t.ask(ctx, q)
}

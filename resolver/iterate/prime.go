package iterate

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// maxPrimeServers bounds the hints asked in one priming, and primeAgain is how long after one that
// failed the hints are used as they are.
const (
	maxPrimeServers = 4
	primeAgain      = 10 * time.Second
)

// primers holds the primings under way, one for each zone, and when those that failed may be tried
// again.
type primers struct {
	mu     sync.Mutex
	active map[wire.Name]chan struct{}
	again  map[wire.Name]time.Time
}

func (p *primers) init() {
	p.active = make(map[wire.Name]chan struct{})
	p.again = make(map[wire.Name]time.Time)
}

// errNotPrimed says that no hint gave the NS set.
var errNotPrimed = errors.New("no server of the hints gives the zone's NS set")

// primed primes the cut at hand and turns to what that gave: the zone's servers, or where they
// cannot be had its hints.
func (r *resolution) primed(now uint32) {
	if err := r.prime(r.ctx, &r.task, r.cut.Zone); err != nil {
		return
	}
	cuts := r.config.Cuts
	fresh := cuts.Deepest(r.cut.Zone, now)
	if r.ordinary {
		fresh = cuts.Ordinary(r.cut.Zone, now)
	}
	if fresh.Zone == r.cut.Zone {
		r.cut = fresh
	}
}

// prime asks the configured servers of zone for its NS set (RFC 9609 §3). Those who want the same at
// once wait for the one that asks.
func (it *Iterator) prime(ctx context.Context, t *Task, zone wire.Name) error {
	p := &it.primers
	p.mu.Lock()
	if time.Now().Before(p.again[zone]) {
		p.mu.Unlock()
		return errNotPrimed
	}
	if done := p.active[zone]; done != nil {
		p.mu.Unlock()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan struct{})
	p.active[zone] = done
	p.mu.Unlock()

	err := it.askHints(ctx, t, zone)

	p.mu.Lock()
	delete(p.active, zone)
	delete(p.again, zone)
	if err != nil {
		p.again[zone] = time.Now().Add(primeAgain)
	}
	p.mu.Unlock()
	close(done)
	return err
}

// askHints does the asking, and keeps the cut.
func (it *Iterator) askHints(ctx context.Context, t *Task, zone wire.Name) error {
	hints := it.config.Cuts.Configured(zone)
	cut := &zonecut.Cut{Zone: zone, Parent: zone, Servers: hints}
	r := resolution{Iterator: it, ctx: ctx, task: *t, cut: cut}
	servers := newPool(cut, nil, it.config.Exchange)
	var s said
	q := question{zone, wire.TypeNS}
	for range maxPrimeServers {
		server, ok := it.config.Exchange.Choose(zone, servers.addrs, servers.tried)
		if !ok {
			break
		}
		servers.tried = append(servers.tried, server)
		reply, err := r.send(cut, server, q, 0, false)
		if errors.Is(err, exchange.ErrBudget) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			continue
		}
		err = s.scrub(&reply.Message, zone, q)
		it.config.Exchange.Release(reply)
		if err != nil || s.rcode != wire.RCODENoError || len(s.answer) == 0 || s.target != "" {
			continue
		}
		now := it.config.Now()
		cut.Servers = withHints(makeServers(&s.answer[0], s.additional, zone, now), hints)
		cut.Expires = now + min(s.answer[0].TTL, zonecut.MaxLease)
		it.config.Cuts.Store(cut, now, t.Epoch)
		it.stats.primed.Add(1)
		return nil
	}
	return errNotPrimed
}

// withHints adds the addresses that the hints have for servers that came without glue. RFC 9609
// §4.2: a response may leave out addresses. Where no address is known at all, the hints stay.
func withHints(servers, hints []zonecut.Server) []zonecut.Server {
	addrs := 0
	for i := range servers {
		for j := range hints {
			if len(servers[i].Addrs) == 0 && hints[j].Name == servers[i].Name {
				servers[i].Addrs = append([]netip.AddrPort(nil), hints[j].Addrs...)
			}
		}
		addrs += len(servers[i].Addrs)
	}
	if addrs == 0 {
		servers = append(servers, hints...)
	}
	return servers
}

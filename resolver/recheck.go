package resolver

import (
	"context"
	"slices"

	"bonsai/cache"
	"bonsai/wire"
)

// Validates says whether what a zone holds would validate, or be insecure by its parent's word, without the
// negative trust anchor at the zone. What is cached was judged with it, so that nothing of it is used: the
// zone's SOA is asked for by a Resolver of its own over an empty cache, and servers are asked as ever.
func (r *Resolver) Validates(ctx context.Context, zone wire.Name) bool {
	if r.validator == nil {
		return false
	}
	store, err := cache.New(cache.Config{Size: cache.MinSize})
	if err != nil {
		return false
	}
	defer store.Close()
	config := r.config
	config.Cache, config.Anchors, config.DenialSize, config.Recent, config.NoPrefetch = store, KeepAnchors{}, 0, 0, true
	v := *config.Validate
	v.Anchors = r.validator.Anchors()
	v.Insecure = slices.DeleteFunc(slices.Clone(v.Insecure), zone.Equal)
	v.Keys, v.Signatures = 64, 64 // for the few zones on the way
	config.Validate = &v
	probe := &Resolver{exchange: r.exchange, stats: new(stats), recent: new(recent), writes: newWrites()}
	if err := probe.assemble(config, nil); err != nil {
		return false
	}
	defer probe.Close()
	t := probe.newTree()
	res, err := t.ask(ctx, question{name: zone.Canonical(), t: wire.TypeSOA})
	return err == nil && res.content != nil && probe.validator.Covers(zone)
}

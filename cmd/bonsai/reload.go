package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/cache/entry"
	"bonsai/resolver"
	"bonsai/resolver/exchange"
	"bonsai/resolver/policy"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// extent is how much a changed setting replaces.
type extent uint8

const (
	atRestart  extent = iota // sockets, memory and threads stay as they are
	atOnce                   // a value that is read when it is used
	inPolicy                 // the rules
	inResolver               // what resolves, by a successor
)

// effect is what a change of one field of Config means.
type effect struct {
	key    string // of the setting, for the log
	extent extent
	flush  func(d *daemon, old, changed *Config) // nil: what is cached stays right
}

// effects has every field of Config but for those that only go with another.
var effects = map[string]effect{
	"Listen": {"listen", atRestart, nil}, "Metrics": {"metrics", atRestart, nil}, "Threads": {"threads", atRestart, nil},
	"CacheSize":   {"cache-size", atRestart, nil},
	"MaxInflight": {"max-inflight", atRestart, nil}, "MaxTCP": {"max-tcp", atRestart, nil},
	"MaxTCPPerClient": {"max-tcp-per-client", atRestart, nil}, "ClockFile": {"clock-file", atRestart, nil}, "Control": {"control", atRestart, nil},

	"User": {"user", atRestart, nil}, "Lockdown": {"lockdown", atRestart, nil},

	"LogLevel": {"log-level", atOnce, nil}, "CacheFile": {"cache-file", atOnce, nil}, "QueryLog": {"query-log", atOnce, nil}, "StaleLimit": {"stale-limit", atOnce, keepStale},

	"Allow": {"allow", inPolicy, nil}, "Refuse": {"refuse", inPolicy, nil}, "AllowSnoop": {"allow-snoop", inPolicy, nil},
	"SpecialUse": {"special-use", inPolicy, nil}, "AS112": {"as112", inPolicy, nil}, "LocalData": {"local-data or hosts-files", inPolicy, nil},
	"PrivateAddress": {"private-address", inPolicy, nil}, "PrivateDomain": {"private-domain", inPolicy, nil},
	"ListSums": {"block-lists or allow-lists", inPolicy, nil}, "ViewSums": {"views (lists)", inPolicy, nil}, "RateLimit": {"rate-limit", inPolicy, nil},

	"Minimisation": {"qname-minimisation", inResolver, nil}, "IPv4": {"ipv4", inResolver, nil}, "IPv6": {"ipv6", inResolver, nil},
	"QueryLocalhost": {"query-localhost", inResolver, nil}, "DoNotQuery": {"do-not-query", inResolver, nil},
	"Outgoing": {"outgoing-address", inResolver, nil}, "ExcludedPorts": {"exclude-port", inResolver, nil},
	"EDNSSize": {"edns-buffer-size", inResolver, nil}, "Cookies": {"cookies", inResolver, nil},
	"AggressiveNSEC": {"aggressive-nsec", inResolver, nil}, "MinimalResponses": {"minimal-responses", inResolver, nil},
	"Identity": {"identity", inResolver, nil}, "ServeStale": {"serve-stale", inResolver, keepStale},
	"StaleTTL": {"stale-ttl", inResolver, nil}, "StalePatience": {"stale-client-timeout", inResolver, nil},
	"Rotate": {"rotate", inResolver, nil}, "FailureTTL": {"failure-ttl", inResolver, nil},
	"Prefetch": {"prefetch", inResolver, nil}, "AnchorState": {"trust-anchor-state", inResolver, nil},

	"RootHints": {"root-hints", inResolver, flushAll}, "HardenGlue": {"harden-glue", inResolver, flushAll},
	"Validate": {"dnssec", inResolver, flushAll}, "SHA1": {"sha1", inResolver, flushAll},
	"ValidationTime": {"validation-time", inResolver, flushAll},
	"Anchors":        {"trust-anchor", inResolver, flushAnchors},
	"Insecure":       {"domain-insecure", inResolver, flushInsecure},
	"Zones":          {"forward-zones or stub-zones", inResolver, flushZones},
	"TLSCA":          {"tls-ca", inResolver, nil},
	"Views":          {"views", inResolver, flushViews},
	"MinTTL":         {"cache-min-ttl", inResolver, flushTTLs}, "MaxTTL": {"cache-max-ttl", inResolver, flushTTLs},
	"MaxNegativeTTL": {"cache-max-negative-ttl", inResolver, flushTTLs},
}

// follow are fields that only go with another.
var follow = []string{"BlockLists", "AllowLists", "Lists", "Notices", "Negative", "Account", "Files", "folders", "TLSRoots"}

func flushAll(d *daemon, _, _ *Config) { d.resolver.Current().FlushTree(wire.Root) }

func flushAnchors(d *daemon, old, changed *Config) {
	zones := func(c *Config) map[wire.Name][]validate.Anchor {
		all := map[wire.Name][]validate.Anchor{}
		for _, a := range c.Anchors {
			all[a.Zone.Canonical()] = append(all[a.Zone.Canonical()], a)
		}
		return all
	}
	d.flushTrees(differing(zones(old), zones(changed)))
}

func flushInsecure(d *daemon, old, changed *Config) {
	zones := func(c *Config) map[wire.Name]bool {
		all := map[wire.Name]bool{}
		for _, n := range c.Insecure {
			all[n.Canonical()] = true
		}
		return all
	}
	d.flushTrees(differing(zones(old), zones(changed)))
}

func flushZones(d *daemon, old, changed *Config) {
	names := differing(configuredZones(old), configuredZones(changed))
	if len(old.Views.realms())+len(changed.Views.realms()) == 0 {
		d.flushTrees(names)
		return
	}
	for _, name := range names {
		d.resolver.Current().FlushTreeIn(0, name)
	}
}

// configuredZones returns the zones of a configuration by name.
func configuredZones(c *Config) map[wire.Name]zonecut.Configured {
	all := map[wire.Name]zonecut.Configured{}
	for _, z := range c.Zones {
		all[z.Zone.Canonical()] = z
	}
	return all
}

// differing returns the names that two maps do not have alike.
func differing[T any](a, b map[wire.Name]T) (names []wire.Name) {
	for name, v := range a {
		if other, ok := b[name]; !ok || !reflect.DeepEqual(v, other) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

func (d *daemon) flushTrees(names []wire.Name) {
	for _, name := range names {
		d.resolver.Current().FlushTree(name)
	}
}

// keepStale lets the cache keep what is expired for as long as is said now.
func keepStale(d *daemon, _, changed *Config) { d.cache.SetStaleLimit(staleLimit(changed)) }

// flushTTLs forgets what would have another lifetime by the new limits.
func flushTTLs(d *daemon, old, changed *Config) {
	before, after := newCacheHeader(old, nil, 0), newCacheHeader(changed, nil, 0)
	d.resolver.Current().Flush(func(e entry.Entry) bool { return changedTTL(e, &before, &after) },
		old.MaxNegativeTTL != changed.MaxNegativeTTL)
}

// isNegative says whether an entry denies a name or a type.
func isNegative(e entry.Entry) bool {
	switch e.Kind() {
	case entry.KindDenial:
		return true
	case entry.KindAnswer:
		if e.RCODE() == wire.RCODENXDomain {
			return true
		}
		c, err := e.Unpack(e.Expires())
		if err != nil {
			return false
		}
		n := len(c.Answer)
		return n == 0 || e.QType() != wire.TypeCNAME && e.QType() != wire.TypeDNAME && c.Answer[n-1].Type == wire.TypeCNAME &&
			slices.ContainsFunc(c.Authority, func(s wire.RRset) bool { return s.Type == wire.TypeSOA })
	}
	return false
}

// maxRetired bounds the resolvers that were succeeded and still have queries under way.
const maxRetired = 8

// reloader replaces the configuration while queries are answered.
type reloader struct {
	configure func() (*Config, error) // nil: there is nothing to read again
	transport exchange.Transport
	rates     *policy.RateTable // of all configurations

	mu       sync.Mutex // one reload at a time
	config   *Config
	insecure []wire.Name // negative trust anchors of the configuration without an end
	ntas     map[wire.Name]*nta
	// recovered are those of the configuration that were taken away before their end.
	recovered map[timedNTA]bool
	recheck   time.Duration   // of negative trust anchors
	ctx       context.Context // of what runs beside; done when the daemon stops
	cancel    context.CancelFunc
	retired   chan struct{}
	ending    sync.WaitGroup
	closing   chan struct{}
	closed    bool

	applied, refused atomic.Uint64
}

func (l *reloader) init(c *Config, transport exchange.Transport) {
	l.config, l.transport = c, transport
	begun := time.Now()
	l.rates = policy.NewRateTable(func() time.Duration { return time.Since(begun) })
	l.insecure, l.ntas, l.recovered = c.Insecure, make(map[wire.Name]*nta), make(map[timedNTA]bool)
	l.recheck = ntaRecheck
	l.ctx, l.cancel = context.WithCancel(context.Background())
	c.Insecure = l.negatives(c)
	c.Views = c.Views.withRealms(nil)
	l.retired = make(chan struct{}, maxRetired)
	l.closing = make(chan struct{})
}

// closeRetired ends resolvers that were succeeded, and waits for it. No reload comes after it.
func (l *reloader) closeRetired() {
	l.mu.Lock()
	l.closed = true
	l.cancel()
	for _, n := range l.ntas {
		n.stop()
	}
	clear(l.ntas)
	close(l.closing)
	l.mu.Unlock()
	l.ending.Wait()
}

var (
	errStopping = errors.New("bonsai is stopping")
	errTooOften = errors.New("too many reloads in a row: queries are still under way by the settings of the last ones; try again in some seconds")
)

var errNothingToReload = errors.New("there is no configuration that could be read again")

// reload reads the configuration again and applies it; it returns the keys of what changed, and of
// these those that wait for a restart. Where something is wrong nothing changes.
func (d *daemon) reload() (changed, waiting []string, err error) {
	l := &d.reloader
	l.mu.Lock()
	defer l.mu.Unlock()
	c := (*Config)(nil)
	if l.configure == nil {
		err = errNothingToReload
	} else {
		c, err = l.configure()
		// Of the lists read and those replaced some are of no more use. They lie outside the heap, so that
		// nothing but this makes the collector look for them before the next reload adds to them.
		defer runtime.GC()
	}
	if err == nil {
		changed, waiting, err = d.apply(c)
	}
	if err != nil {
		l.refused.Add(1)
		for line := range strings.Lines(err.Error()) {
			d.log.Error("reload: nothing was changed", "problem", strings.TrimSpace(line))
		}
		return nil, nil, err
	}
	l.applied.Add(1)
	for _, notice := range c.Notices {
		d.log.Warn(notice)
	}
	d.log.Info("reloaded", "changed", strings.Join(changed, ", "), "at_restart", strings.Join(waiting, ", "))
	return changed, waiting, nil
}

// apply makes c the configuration. What can't be changed while it runs is put back in c, so that the
// next reload tells of it again.
func (d *daemon) apply(c *Config) (changed, waiting []string, err error) {
	l := &d.reloader
	if l.closed {
		return nil, nil, errStopping
	}
	old, reach, was := l.config, atRestart, l.insecure
	l.insecure = c.Insecure
	c.Insecure = l.negatives(c)
	defer func() {
		if err != nil {
			l.insecure = was
		}
	}()
	c.keepLists(old)
	c.Views = c.Views.withRealms(old.Views)
	var flushes []func(*daemon, *Config, *Config)
	before, after := reflect.ValueOf(old).Elem(), reflect.ValueOf(c).Elem()
	for i := range before.NumField() {
		e, ok := effects[before.Type().Field(i).Name]
		if !ok || alike(before.Field(i), after.Field(i)) {
			continue
		}
		if e.extent == atRestart {
			waiting = append(waiting, e.key)
			after.Field(i).Set(before.Field(i))
			continue
		}
		changed = append(changed, e.key)
		reach = max(reach, e.extent)
		if e.flush != nil {
			flushes = append(flushes, e.flush)
		}
	}
	// Opened anew whatever has changed, for the file may have been moved away.
	sink, err := openQuerySink(c.QueryLog)
	if err != nil {
		return nil, nil, fmt.Errorf("query-log: %w", err)
	}
	switch rc := d.resolverConfig(c); reach {
	case inResolver:
		if err := d.succeed(rc); err != nil {
			sink.close()
			return nil, nil, err
		}
	case inPolicy:
		d.resolver.Current().SetPolicy(&rc)
	}
	// After the change, so that nothing is found by the old settings that no flush covers.
	for _, flush := range flushes {
		flush(d, old, c)
	}
	if slices.Contains(changed, "log-level") {
		d.level.Set(c.LogLevel)
	}
	d.queries.use(sink)
	l.config = c
	d.followNTAs(c)
	d.lists.Store(&c.Lists)
	return changed, waiting, nil
}

// alike is DeepEqual to which no list and an empty one are the same.
func alike(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	if vs, ok := a.Interface().(views); ok {
		return vs.same(b.Interface().(views))
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// lingering is how long a resolver that was succeeded has for what it has under way: a client's
// patience, and some more.
const lingering = 12 * time.Second

// succeed lets a resolver of another configuration answer from now on.
func (d *daemon) succeed(rc resolver.Config) error {
	l := &d.reloader
	select {
	case l.retired <- struct{}{}:
	default:
		return errTooOften
	}
	old := d.resolver.Current()
	next, err := old.Succeed(rc)
	if err != nil {
		<-l.retired
		return err
	}
	d.resolver.Set(next)
	old.Retire()
	l.ending.Go(func() {
		select {
		case <-time.After(lingering):
		case <-l.closing:
		}
		old.Close()
		<-l.retired
	})
	return nil
}

// reloadOn reloads when signals say so, until ctx ends. Signals that come in the middle of a reload
// make one more.
func (d *daemon) reloadOn(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			_, _, _ = d.reload() // it logs
		}
	}
}

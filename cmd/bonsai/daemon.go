package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bonsai/cache"
	"bonsai/cmd/bonsai/confine"
	"bonsai/resolver"
	"bonsai/resolver/denial"
	"bonsai/resolver/exchange"
	"bonsai/resolver/iterate"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
)

const (
	// drainTime is how long queries under way may take once the daemon is told to stop. With what
	// closing takes it stays under the five seconds that are promised.
	drainTime = 4 * time.Second
	// recentResolutions is how many are remembered to be explained, a few KiB each at most.
	recentResolutions = 512
)

// daemon is a resolver with its front end and metrics.
type daemon struct {
	log         *slog.Logger
	level       *slog.LevelVar
	clock       *clock
	cache       *cache.Cache
	resolver    *resolver.Switch
	reloader    reloader
	server      *serve.Server
	queries     *queryLog    // between server and resolver
	metrics     net.Listener // nil where off
	web         *http.Server
	controls    net.Listener // nil where off
	commands    *http.Server
	supervisor  *supervisor
	folders     confine.Folders // those that files can still be reached in; nil: all
	started     time.Time
	lists       atomic.Pointer[[]listInfo] // of the configuration that holds
	controlling sync.RWMutex               // held for reading by a command
	stopped     bool                       // guarded by controlling
	ready       atomic.Bool
}

// newDaemon binds all sockets and makes all parts, or none. transport is how servers are reached;
// nil is the system's network.
func newDaemon(c *Config, transport exchange.Transport, log *slog.Logger) (*daemon, error) {
	d, err := bindDaemon(c, transport, log)
	if err == nil {
		err = d.assemble(c)
	}
	return d, err
}

// bindDaemon does what may take root: it binds all sockets, or none.
func bindDaemon(c *Config, transport exchange.Transport, log *slog.Logger) (*daemon, error) {
	limit, limited := cgroupMemory("/")
	if err := fitMemory(c.CacheSize, limit, limited); err != nil {
		return nil, err
	}
	clock, err := newClock(c.ClockFile)
	if err != nil {
		return nil, err
	}
	d := &daemon{log: log, level: new(slog.LevelVar), clock: clock}
	d.started = time.Now()
	d.level.Set(c.LogLevel)
	d.reloader.init(c, transport)
	c.countLists()
	d.lists.Store(&c.Lists)
	if c.Control != "" {
		if d.controls, err = listenControl(c.Control); err != nil {
			return nil, err
		}
	}
	if c.Metrics.IsValid() {
		if d.metrics, err = net.Listen("tcp", c.Metrics.String()); err != nil {
			d.close()
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	d.resolver = resolver.NewSwitch(nil)
	d.queries = newQueryLog(d.resolver, log)
	packets, listeners, err := inherited()
	if err != nil {
		d.close()
		return nil, err
	}
	d.server, err = serve.New(serve.Config{
		PacketConns: packets, Listeners: listeners,
		Listen: c.Listen, Workers: threads(c), MaxInflight: c.MaxInflight, UDPSize: int(c.EDNSSize),
		MaxTCP: c.MaxTCP, MaxTCPPerClient: c.MaxTCPPerClient,
	}, d.queries)
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// assemble makes all other parts, or none and closes the sockets.
func (d *daemon) assemble(c *Config) (err error) {
	for _, notice := range c.Notices {
		d.log.Warn(notice)
	}
	if d.cache, err = cache.New(cache.Config{Size: c.CacheSize - denialSize(c), StaleLimit: staleLimit(c)}); err != nil {
		d.close()
		return err
	}
	sink, err := openQuerySink(c.QueryLog)
	if err != nil {
		d.close()
		return fmt.Errorf("query-log: %w", err)
	}
	d.queries.use(sink)
	d.startWarm(c)
	first, err := resolver.New(d.resolverConfig(c))
	if err != nil {
		d.close()
		return err
	}
	d.resolver.Set(first)
	d.reloader.mu.Lock()
	d.followNTAs(c)
	d.reloader.mu.Unlock()
	d.web = newWeb(d)
	d.commands = newControl(d)
	return nil
}

// confine gives up what the sockets took, and what the process has no use for from now on: it becomes the
// user, and locks itself in. What is in force is logged. c is to be the one that d was bound for.
func (d *daemon) confine(c *Config) error {
	if c.Account != nil && c.Control != "" {
		if err := c.Account.Own(c.Control); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}
	if err := c.becomeUser(); err != nil {
		return err
	}
	who := c.User
	if who == "" {
		who = fmt.Sprintf("as started, UID %d", os.Geteuid())
	}
	if !c.Lockdown {
		d.log.Info("not locked in", "user", who, "reason", "lockdown: off")
		return nil
	}
	time.Now().Zone() // its file is read once, and then out of reach
	folders := c.lockedFolders()
	o := confine.Lock(folders)
	level := slog.LevelInfo
	if !o.Whole {
		level = slog.LevelWarn
	}
	d.log.Log(context.Background(), level, "locked in", "user", who, "capabilities", o.Capabilities, "landlock", o.Landlock,
		"reads", strings.Join(folders.Paths(false), " "), "writes", strings.Join(folders.Paths(true), " "), "seccomp", o.Seccomp)
	if o.Locked {
		d.folders = append(confine.Folders{}, folders...) // not nil, though there be none
	}
	return nil
}

// denialSize is the part of the cache's budget that proven denials have, in bytes: a 32nd, and none
// where nothing is proven.
func denialSize(c *Config) int64 {
	if !c.Validate || !c.AggressiveNSEC {
		return 0
	}
	return max(c.CacheSize/32, denial.MinSize)
}

// staleLimit is for how many seconds the cache keeps what is expired: not at all where it is for nobody.
func staleLimit(c *Config) uint32 {
	if !c.ServeStale {
		return 0
	}
	return c.StaleLimit
}

func threads(c *Config) int {
	if c.Threads > 0 {
		return c.Threads
	}
	return usableCPUs()
}

// policyConfig is what the rules want to know.
func (d *daemon) policyConfig(c *Config) policy.Config {
	return policy.Config{
		Allow: c.Allow, Refuse: c.Refuse, AllowSnoop: c.AllowSnoop, SpecialUse: c.SpecialUse, AS112: c.AS112, Zones: slices.Collect(maps.Keys(configuredZones(c))),
		Version: "bonsai " + versionNumber(), ServerID: c.Identity, LocalData: c.LocalData,
		PrivateAddress: c.PrivateAddress, PrivateDomain: c.PrivateDomain,
		AllowLists: c.AllowLists, BlockLists: c.BlockLists,
		RateLimit: c.RateLimit, RateTable: d.reloader.rates,
	}
}

// resolverConfig spreads the settings over the packages that they are for.
func (d *daemon) resolverConfig(c *Config) resolver.Config {
	var ports []exchange.PortRange
	for _, p := range c.ExcludedPorts {
		ports = append(ports, exchange.PortRange(p))
	}
	rc := resolver.Config{
		Cache: d.cache,
		Now:   d.clock.Now,
		Log:   d.log,
		Exchange: exchange.Config{
			Transport: d.reloader.transport, EDNSSize: c.EDNSSize, IPv4: c.IPv4, IPv6: c.IPv6, DoNotQuery: c.DoNotQuery,
			QueryLocalhost: c.QueryLocalhost, Outgoing: c.Outgoing, ExcludedPorts: ports, Cookies: c.Cookies,
			TLSRoots: c.TLSRoots,
		},
		UDPSize:    int(c.EDNSSize),
		Cuts:       zonecut.Config{Hints: c.RootHints, Configured: c.Zones},
		Iterate:    iterate.Config{Minimisation: c.Minimisation, IPv4: c.IPv4, IPv6: c.IPv6, LaxGlue: !c.HardenGlue},
		Policy:     d.policyConfig(c),
		Views:      d.resolverViews(c),
		DenialSize: denialSize(c), MinTTL: c.MinTTL, MaxTTL: c.MaxTTL, FullResponses: !c.MinimalResponses, NoRotation: !c.Rotate, FailureTTL: c.FailureTTL, NSID: c.Identity,
		Recent:         recentResolutions,
		MaxNegativeTTL: c.MaxNegativeTTL, NoStale: !c.ServeStale, StaleTTL: c.StaleTTL,
		StalePatience: time.Duration(c.StalePatience) * time.Millisecond, NoPrefetch: !c.Prefetch,
	}
	if c.Validate {
		// Anchors given by hand are kept as they are.
		rc.Anchors = resolver.KeepAnchors{
			Follow: reflect.DeepEqual(c.Anchors, validate.BuiltinAnchors()), File: c.AnchorState,
		}
		rc.Validate = &validate.Config{Anchors: c.Anchors, Insecure: c.Insecure, SHA1: c.SHA1, Now: d.clock.Unix}
		if c.ValidationTime != 0 {
			rc.Validate.Now = func() int64 { return c.ValidationTime }
		}
	}
	return rc
}

// serve answers queries until ctx ends, then lets those under way end, for a while.
func (d *daemon) serve(ctx context.Context) error {
	var wait sync.WaitGroup
	if d.metrics != nil {
		wait.Go(func() {
			if err := d.web.Serve(d.metrics); !errors.Is(err, http.ErrServerClosed) {
				d.log.Error("metrics endpoint ended", "error", err)
			}
		})
	}
	if d.controls != nil {
		wait.Go(func() {
			if err := d.commands.Serve(d.controls); !errors.Is(err, http.ErrServerClosed) {
				d.log.Error("control socket ended", "error", err)
			}
		})
	}
	served := make(chan error, 1)
	wait.Go(func() { served <- d.server.Serve(context.WithoutCancel(ctx)) })
	d.ready.Store(true)
	d.supervisor.tell("READY=1")
	d.log.Info("ready", "listen", fmt.Sprint(d.server.Addrs()), "version", versionNumber())
	d.logBuffers()
	var err error
	select {
	case <-ctx.Done():
		d.log.Info("stopping")
		d.supervisor.tell("STOPPING=1")
		d.ready.Store(false)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if stop := d.server.Shutdown(drain); stop != nil {
			d.log.Warn("stopped with queries under way", "error", stop)
		}
	case err = <-served:
		d.ready.Store(false)
	}
	d.web.Close()
	d.saveOnStop()
	d.close()
	wait.Wait()
	return err
}

// logBuffers tells how large the receive buffers of the UDP sockets came out: the system's limit, often
// less than what is asked for, decides what a burst may bring without loss.
func (d *daemon) logBuffers() {
	least := 0
	for i, s := range d.server.Stats().Sockets {
		if i == 0 || s.ReceiveBuffer < least {
			least = s.ReceiveBuffer
		}
	}
	if least > 0 {
		d.log.Info("UDP receive buffers", "bytes", least)
	}
}

// close ends what was made. It may be called on a half-made daemon.
func (d *daemon) close() {
	if d.web != nil {
		d.web.Close()
	}
	if d.metrics != nil {
		d.metrics.Close()
	}
	if d.commands != nil {
		d.commands.Close()
		d.controlling.Lock() // commands under way end first: they read the cache
		d.stopped = true
		d.controlling.Unlock()
	}
	if d.controls != nil {
		d.controls.Close()
	}
	if d.server != nil {
		_ = d.server.Shutdown(context.Background()) // one that never served, or has been stopped
	}
	if d.queries != nil {
		d.queries.close()
	}
	if d.resolver != nil && d.resolver.Current() != nil {
		d.reloader.closeRetired()
		d.resolver.Current().Close()
	}
	if d.cache != nil {
		d.cache.Close()
	}
}

// alive says whether the parts that all queries go through answer: the locks of flights and of the cache
// can be had.
func (d *daemon) alive() bool {
	d.resolver.Current().Stats()
	d.cache.Stats()
	return d.ready.Load()
}

// addr is the first address that queries are taken on.
func (d *daemon) addr() netip.AddrPort { return d.server.Addrs()[0] }

// runDaemon is the command without a name. configure reads the configuration again, within folders.
func runDaemon(ctx context.Context, c *Config, configure func(confine.Folders) (*Config, error), errOut io.Writer) error {
	paceCollector()
	level := new(slog.LevelVar)
	level.Set(c.LogLevel)
	d, err := bindDaemon(c, nil, newLog(errOut, level))
	if err != nil {
		return err
	}
	d.level = level
	d.supervisor = newSupervisor() // its socket, too, is out of reach later
	if err := d.confine(c); err != nil {
		d.close()
		return err
	}
	if err := d.assemble(c); err != nil {
		return err
	}
	d.reloader.configure = func() (*Config, error) { return configure(d.folders) }
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() { d.reloadOn(ctx, hangups) })
	wait.Go(func() { d.supervisor.watch(ctx, d.alive) })
	return d.serve(ctx)
}

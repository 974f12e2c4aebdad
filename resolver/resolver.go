// Package resolver answers client queries: a hit from the cache, a miss by resolution, one
// resolution in flight per question. It ties policy, cache, iteration and validation together and
// is the serve.Handler of the daemon.
//
// A question is answered link by link. A link is what the authoritative servers say of one name and
// type; an alias leads to the next one. Each link is judged by itself and kept under its own name;
// the whole chain is kept under the question as one more entry, which goes with its first record.
package resolver

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/cache"
	"bonsai/resolver/denial"
	"bonsai/resolver/exchange"
	"bonsai/resolver/iterate"
	"bonsai/resolver/policy"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
)

// Config is all that a Resolver needs. Zero durations and limits stand for the defaults beside
// each.
type Config struct {
	Cache    *cache.Cache
	Exchange exchange.Config
	Cuts     zonecut.Config
	Iterate  iterate.Config
	Validate *validate.Config // nil: nothing is validated
	Policy   policy.Config
	Views    []View
	Realm    uint16        // of what lies in the cache; 0 but for those that views have
	Now      func() uint32 // wall clock, Unix seconds
	Log      *slog.Logger

	UDPSize        int           // bytes offered to clients and sent at most over UDP; 1232 (RFC 9715 §3.1)
	Patience       time.Duration // a client waits at most so long for an answer; 10 s
	StalePatience  time.Duration // and so long where a stale one is held; 1.8 s (RFC 8767 §5)
	StaleTTL       uint32        // seconds shown on stale records; 30 (RFC 8767 §5.2)
	MinTTL, MaxTTL uint32        // seconds; 0 and 86400
	MaxNegativeTTL uint32        // seconds; 3600
	FailureTTL     uint32        // seconds that bogus data is remembered as failed, a quarter for RCODEs; 60, at most 300 (RFC 9520 §3.2)
	FullResponses  bool          // keep authority and additional sections of positive answers
	NSID           string        // answered to clients that ask (RFC 5001); "" for none
	NoRotation     bool          // leave the records of an RRset in the order they came
	Anchors        KeepAnchors
	DenialSize     int64 // bytes for proven denials (RFC 8198); 0: none are used
	NoStale        bool  // never answer from expired data
	NoPrefetch     bool  // renew nothing before it expires
	Recent         int   // resolutions whose path is remembered for explanations; 0: none
	RefreshQueue   int   // refreshes waiting at most; 512
	MaxFlights     int   // resolutions at once at most; 4096
}

// Resolver implements serve.Handler. Its methods are safe for concurrent use.
type Resolver struct {
	config    Config
	cache     *cache.Cache
	exchange  *exchange.Client
	cuts      *zonecut.Map
	iterator  *iterate.Iterator
	validator *validate.Validator
	views     atomic.Pointer[viewTable]
	realms    map[uint16]*Resolver // those of views with zones of their own
	now       func() uint32
	log       *slog.Logger
	flights   flights
	cookies   cookieKey
	keeper    *sharedKeeper // of the root's anchors; nil: they are as configured
	denials   *denial.Store // nil: off
	refreshes chan refresh
	recent    *recent
	writes    *writes
	renewing  sync.Map // zones whose delegations are queued for renewal
	stats     *stats
	frozen    atomic.Uint64 // the epoch from when it was succeeded, plus one; 0: it was not
	retired   chan struct{} // closed when it was succeeded

	ctx     context.Context // of all resolutions; done when the Resolver is closed
	cancel  context.CancelFunc
	wait    sync.WaitGroup
	closing sync.RWMutex // held while wait grows or the end begins
}

func (c *Config) defaults() {
	set(&c.UDPSize, 1232)
	set(&c.Patience, 10*time.Second)
	set(&c.StalePatience, 1800*time.Millisecond)
	set(&c.StaleTTL, 30)
	if c.NoStale {
		c.StaleTTL = 0
	}
	set(&c.MaxTTL, 86400)
	set(&c.MaxNegativeTTL, 3600)
	set(&c.FailureTTL, unvalidatedTTL)
	c.FailureTTL = min(c.FailureTTL, 300)
	set(&c.RefreshQueue, 512)
	set(&c.MaxFlights, 4096)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// New assembles a Resolver. It keeps the cache and starts nothing but the refresher; Close ends
// what runs.
func New(config Config) (*Resolver, error) {
	r := &Resolver{exchange: exchange.New(config.Exchange), stats: new(stats), recent: new(recent), writes: newWrites()}
	r.recent.init(config.Recent)
	r.cookies.init()
	return r, r.assemble(config, nil)
}

// assemble makes the parts that no Resolver shares with another, and starts the refresher. keeper is a
// predecessor's, or nil.
func (r *Resolver) assemble(config Config, keeper *sharedKeeper) error {
	config.defaults()
	*r = Resolver{
		config:    config,
		cache:     config.Cache,
		exchange:  r.exchange,
		stats:     r.stats,
		recent:    r.recent,
		writes:    r.writes,
		cookies:   r.cookies,
		retired:   make(chan struct{}),
		now:       config.Now,
		log:       config.Log,
		refreshes: make(chan refresh, config.RefreshQueue),
	}
	config.DenialSize /= int64(1 + config.ownRealms())
	own := config
	r.config.Policy, r.config.Views = policy.Config{}, nil // they may be replaced, and their lists are large
	r.flights.init()
	r.ctx, r.cancel = context.WithCancel(context.Background())
	config.Cuts.Cache, config.Cuts.Realm = r.cache, config.Realm
	config.Cuts.Renew = r.renewCutSoon
	r.cuts = zonecut.New(config.Cuts)
	config.Iterate.Exchange = r.exchange
	config.Iterate.Cuts = r.cuts
	config.Iterate.Now = r.now
	config.Iterate.FullResponses = config.FullResponses
	r.iterator = iterate.New(config.Iterate)
	if config.Validate != nil {
		v, err := validate.New(*config.Validate)
		if err != nil {
			return err
		}
		r.validator = v
	}
	if config.Validate != nil && config.Anchors.Follow {
		if keeper == nil {
			kept, err := newKeeper(&config, int64(r.now()))
			if err != nil {
				return fmt.Errorf("trust anchor state: %w", err)
			}
			keeper = &sharedKeeper{Keeper: kept}
		}
		r.keeper = keeper
		r.wait.Go(r.followAnchors)
	}
	r.denials = newDenials(&config)
	r.enlist()
	r.wait.Go(r.refresher)
	if err := r.assembleRealms(&own); err != nil {
		r.Close()
		return err
	}
	if r.keeper != nil {
		r.trustKept()
	}
	r.SetPolicy(&own)
	return nil
}

// Close cancels every resolution and returns when all have ended.
func (r *Resolver) Close() {
	r.closing.Lock()
	r.cancel()
	r.closing.Unlock()
	for _, realm := range r.realms {
		realm.Close()
	}
	r.wait.Wait()
	r.leave()
}

// begin runs f in a goroutine that Close waits for; false where the Resolver is closed already.
func (r *Resolver) begin(f func()) bool {
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.ctx.Err() != nil {
		return false
	}
	r.wait.Go(f)
	return true
}

// Exchange returns the client side towards servers, for its counters.
func (r *Resolver) Exchange() *exchange.Client { return r.exchange }

// Cache returns the store, for its counters.
func (r *Resolver) Cache() *cache.Cache { return r.cache }

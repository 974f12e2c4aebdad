package iterate

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound what one client query may cost, with everything it leads to. Nothing resets a count:
// no alias, referral, retry or restart.
type Limits struct {
	Queries       int // upstream queries, retries and TCP repeats included
	Steps         int // steps of all resolutions
	Depth         int // address lookups within address lookups
	Lookups       int // address lookups, those that the cache answers included
	FailedLookups int // of these, without an address
	Bytes         int // received upstream
	Connections   int // TCP connections to one server
}

// DefaultLimits leave room for the legitimate worst cases: five servers of six addresses half of
// them dead, a four-level glueless chain, eight aliases through cold signed zones.
var DefaultLimits = Limits{
	Queries:       200,
	Steps:         3000,
	Depth:         7,
	Lookups:       100,
	FailedLookups: 20,
	Bytes:         4 << 20,
	Connections:   3,
}

// ErrBudget says that a client query has spent what it may.
var ErrBudget = errors.New("limit of the client query reached")

// Budget counts down Limits; it is an exchange.Budget. All its methods may be called at once.
type Budget struct {
	limits                                        Limits
	begin                                         time.Time
	queries, steps, lookups, failedLookups, bytes atomic.Int64

	mu          sync.Mutex
	connections map[netip.AddrPort]int
}

// NewBudget returns a whole budget. Limits that are 0 stand for the defaults.
func NewBudget(l Limits) *Budget {
	b := new(Budget)
	b.Begin(l)
	return b
}

// Begin makes a Budget that is the zero value whole.
func (b *Budget) Begin(l Limits) {
	for _, d := range [...]struct {
		limit        *int
		defaultLimit int
	}{
		{&l.Queries, DefaultLimits.Queries},
		{&l.Steps, DefaultLimits.Steps},
		{&l.Depth, DefaultLimits.Depth},
		{&l.Lookups, DefaultLimits.Lookups},
		{&l.FailedLookups, DefaultLimits.FailedLookups},
		{&l.Bytes, DefaultLimits.Bytes},
		{&l.Connections, DefaultLimits.Connections},
	} {
		if *d.limit == 0 {
			*d.limit = d.defaultLimit
		}
	}
	b.limits, b.begin = l, time.Now()
}

// Query spends one upstream query.
func (b *Budget) Query() error { return spend(&b.queries, 1, b.limits.Queries) }

// Received spends the bytes of a response.
func (b *Budget) Received(bytes int) error { return spend(&b.bytes, bytes, b.limits.Bytes) }

// Step spends one step of a resolution.
func (b *Budget) Step() error { return spend(&b.steps, 1, b.limits.Steps) }

// Connect spends one TCP connection to a server.
func (b *Budget) Connect(server netip.AddrPort) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.connections == nil {
		b.connections = make(map[netip.AddrPort]int)
	}
	if b.connections[server] >= b.limits.Connections {
		return ErrBudget
	}
	b.connections[server]++
	return nil
}

// lookup spends one address lookup at the given depth, unless too many were in vain.
func (b *Budget) lookup(depth int) error {
	if depth >= b.limits.Depth || b.failedLookups.Load() >= int64(b.limits.FailedLookups) {
		return ErrBudget
	}
	return spend(&b.lookups, 1, b.limits.Lookups)
}

// lookupFailed counts an address lookup that was in vain.
func (b *Budget) lookupFailed() { b.failedLookups.Add(1) }

// Queries returns how many upstream queries were sent.
func (b *Budget) Queries() int { return int(min(b.queries.Load(), int64(b.limits.Queries))) }

func spend(count *atomic.Int64, n, limit int) error {
	if count.Add(int64(n)) > int64(limit) {
		return ErrBudget
	}
	return nil
}

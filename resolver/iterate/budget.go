package iterate

import (
	"errors"
	"sync/atomic"
)

// Limits bound what one client query may cost, with everything it leads to. Nothing resets a count:
// no alias, referral, retry or restart.
type Limits struct {
	Queries       int // upstream queries, retries and TCP repeats included
	Steps         int // steps of all resolutions
	Depth         int // address lookups within address lookups
	Lookups       int // address lookups that were not in the cache
	FailedLookups int // those that gave no address
	Bytes         int // received upstream
}

// DefaultLimits leave room for the legitimate worst cases: five servers of six addresses half of
// them dead, a four-level glueless chain, eight aliases through cold signed zones.
var DefaultLimits = Limits{
	Queries:       200,
	Steps:         2000,
	Depth:         7,
	Lookups:       100,
	FailedLookups: 14,
	Bytes:         4 << 20,
}

// ErrBudget says that a client query has spent what it may.
var ErrBudget = errors.New("budget of the client query spent")

// Budget counts down Limits. All its methods may be called at once.
type Budget struct {
	limits                                         Limits
	queries, steps, lookups, failedLookups, octets atomic.Int64
}

// NewBudget returns a whole budget.
func NewBudget(l Limits) *Budget { return &Budget{limits: l} }

// Query spends one upstream query.
func (b *Budget) Query() error { return spend(&b.queries, 1, b.limits.Queries) }

// Received spends the bytes of a response.
func (b *Budget) Received(bytes int) error { return spend(&b.octets, bytes, b.limits.Bytes) }

// Step spends one step of a resolution.
func (b *Budget) Step() error { return spend(&b.steps, 1, b.limits.Steps) }

// Queries returns how many upstream queries were sent.
func (b *Budget) Queries() int { return int(min(b.queries.Load(), int64(b.limits.Queries))) }

func spend(count *atomic.Int64, n, limit int) error {
	if count.Add(int64(n)) > int64(limit) {
		return ErrBudget
	}
	return nil
}

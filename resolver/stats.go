package resolver

import (
	"slices"
	"sync"
	"sync/atomic"

	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/wire"
)

// counter is written by few and read by any.
type counter struct{ n atomic.Uint64 }

func (c *counter) add(n uint64) { c.n.Add(n) }

// countedTypes are the types that queries are counted by; the rest is one.
var countedTypes = [...]wire.Type{
	wire.TypeA, wire.TypeAAAA, wire.TypeHTTPS, wire.TypeSVCB, wire.TypeTXT, wire.TypeMX, wire.TypeNS,
	wire.TypeSOA, wire.TypePTR, wire.TypeSRV, wire.TypeCNAME, wire.TypeDS, wire.TypeDNSKEY, wire.TypeCAA, wire.TypeANY,
}

// typeIndex is where in countedTypes a low type stands, plus one.
var typeIndex = func() (index [256]uint8) {
	for i, t := range countedTypes {
		if t < 256 {
			index[t] = uint8(i + 1)
		}
	}
	return index
}()

// workerStats is what one worker counts. Workers do not share a cache line.
type workerStats struct {
	_         [64]byte
	queries   [2]counter // by serve.Transport
	types     [len(countedTypes) + 1]counter
	responses [16]counter // by RCODE, the low four bits
	lookups   [lookupResults]counter
	dropped   counter
	stale     counter                                             // responses from what had expired
	decisions [len(policy.Rules) + 1][len(policy.Actions)]counter // by rule, the last for all others
	views     [maxViews]counter                                   // queries, by view
	_         [64]byte
}

// maxViews is how many views are counted apart; all others are counted with the last. Numbers are given
// by name and stay over a change of the configuration, so that no count becomes smaller.
const maxViews = 64

func (s *workerStats) countType(t wire.Type) {
	i := 0
	if t < 256 {
		i = int(typeIndex[t])
	}
	s.types[i].add(1)
}

type stats struct {
	mu      sync.Mutex
	workers []*workerStats
	// resolvers are those that have not ended, and ended what the others counted in all.
	resolvers []*Resolver
	ended     Parts
	miss      workerStats // shared by all misses
	viewNames []string    // by number; "" is of those that have no view

	dnames, denials, panics, shed, refreshes, refreshesDropped atomic.Uint64

	clockBehind, clockAhead atomic.Uint64
	clockTold               atomic.Uint32 // second of the last warning about the clock

	failures [32]atomic.Uint64 // by extended error, the last for all others
}

func (s *stats) worker() *workerStats {
	w := new(workerStats)
	s.mu.Lock()
	s.workers = append(s.workers, w)
	s.mu.Unlock()
	return w
}

// viewIndex returns the number of a view's counter.
func (s *stats) viewIndex(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.viewNames, name)
	switch {
	case at >= 0:
		return at
	case len(s.viewNames) == maxViews-1:
		s.viewNames = append(s.viewNames, "other")
	case len(s.viewNames) < maxViews:
		s.viewNames = append(s.viewNames, name)
	}
	return len(s.viewNames) - 1
}

func (s *stats) countFailure(code wire.EDECode) {
	s.failures[min(int(code), len(s.failures)-1)].Add(1)
}

// Stats is a snapshot of what the resolver counted since its start.
type Stats struct {
	Queries       map[string]uint64 // by transport
	QueryTypes    map[string]uint64 // by mnemonic, "other"
	Responses     map[string]uint64 // by RCODE
	Lookups       map[string]uint64 // hit, stale, miss
	Dropped       uint64            // queries that got no response
	Decisions     []Decision        // of the policies' rules
	Views         map[string]uint64 // queries by view; "" is of those that have none
	InFlight      int               // resolutions
	Panics        uint64
	Shed          uint64
	Stale         uint64 // responses from what had expired
	Refreshes     uint64
	RefreshesLost uint64
	Failures      map[wire.EDECode]uint64
	ClockBehind   uint64 // verdicts put aside, for all signatures of the root were not valid yet
	ClockAhead    uint64 // and for all had expired
}

// Decision counts what a rule decided in one way.
type Decision struct {
	Rule   string // one of policy.Rules, or "other"
	Action policy.Action
	Count  uint64
}

// Stats adds up what all workers counted.
func (r *Resolver) Stats() Stats {
	out := Stats{
		Queries: map[string]uint64{}, QueryTypes: map[string]uint64{}, Responses: map[string]uint64{},
		Lookups: map[string]uint64{}, Failures: map[wire.EDECode]uint64{}, Views: map[string]uint64{},
		InFlight: r.inFlight(), Panics: r.stats.panics.Load(), Shed: r.stats.shed.Load(),
		Refreshes: r.stats.refreshes.Load(), RefreshesLost: r.stats.refreshesDropped.Load(),
		ClockBehind: r.stats.clockBehind.Load(), ClockAhead: r.stats.clockAhead.Load(),
	}
	r.stats.mu.Lock()
	workers := append([]*workerStats{&r.stats.miss}, r.stats.workers...)
	names := slices.Clone(r.stats.viewNames)
	r.stats.mu.Unlock()
	for _, w := range workers {
		out.addWorker(w)
		for i, name := range names {
			out.Views[name] += w.views[i].n.Load()
		}
	}
	out.addDecisions(workers)
	for code := range r.stats.failures {
		if n := r.stats.failures[code].Load(); n > 0 {
			out.Failures[wire.EDECode(code)] = n
		}
	}
	return out
}

// inFlight counts resolutions, those of the views' realms included.
func (r *Resolver) inFlight() int {
	n := r.flights.count()
	for _, realm := range r.realms {
		n += realm.flights.count()
	}
	return n
}

// countDecision counts what a policy decided. Misses share a workerStats, hence the locked addition.
func (s *workerStats) countDecision(o *policy.Outcome) {
	if o.Action != policy.Pass {
		s.decisions[policy.RuleIndex(o.Rule)][o.Action].n.Add(1)
	}
}

// addDecisions adds up by rule and action. What never happened is left out.
func (out *Stats) addDecisions(workers []*workerStats) {
	for i := range len(policy.Rules) + 1 {
		rule := "other"
		if i < len(policy.Rules) {
			rule = policy.Rules[i]
		}
		for action := range policy.Actions {
			d := Decision{Rule: rule, Action: policy.Action(action)}
			for _, w := range workers {
				d.Count += w.decisions[i][action].n.Load()
			}
			if d.Count > 0 {
				out.Decisions = append(out.Decisions, d)
			}
		}
	}
}

var lookupNames = [lookupResults]string{"hit", "stale", "miss"}

func (out *Stats) addWorker(w *workerStats) {
	for _, t := range []serve.Transport{serve.UDP, serve.TCP} {
		out.Queries[t.String()] += w.queries[t].n.Load()
	}
	for i := range w.types {
		name := "other"
		if i > 0 {
			name = countedTypes[i-1].String()
		}
		out.QueryTypes[name] += w.types[i].n.Load()
	}
	for i := range w.responses {
		if n := w.responses[i].n.Load(); n > 0 {
			out.Responses[wire.RCODE(i).String()] += n
		}
	}
	for i := range w.lookups {
		out.Lookups[lookupNames[i]] += w.lookups[i].n.Load()
	}
	out.Dropped += w.dropped.n.Load()
	out.Stale += w.stale.n.Load()
}

package resolver

import (
	"context"
	"errors"
	"sync"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// question is what a flight resolves: a canonical name and a type, of class IN.
type question struct {
	name wire.Name
	t    wire.Type
	link bool // the first link alone: an alias is not followed
}

// result is how a flight ended. It is immutable, and so is what it points to.
type result struct {
	content *link       // the whole answer, nil where it failed
	packed  entry.Entry // content as clients are answered from it
	raw     entry.Entry // what did not validate, for clients that set CD; nil where there is none
	failure *failure
	failed  entry.Entry // failure as clients are answered from it
	budget  bool        // it failed on the limits of the client query that ran it
}

// flight is one resolution under way and those who wait for it.
type flight struct {
	question question
	done     chan struct{} // closed when result is set; nil while nobody but the leader knows of the flight
	result   *result
	wantRaw  bool    // somebody waits who set CD; guarded by flights.mu
	waiting  *flight // the flight that this one's resolution waits for; guarded by flights.mu
}

// flights holds the resolutions under way, one for each question.
type flights struct {
	mu  sync.Mutex
	all map[question]*flight
}

// errCircle says that joining a flight would close a circle of waiting.
var errCircle = errors.New("resolver: resolutions wait for each other")

// errBusy says that as many resolutions run as may.
var errBusy = errors.New("resolver: too many resolutions in flight")

func (f *flights) init() { f.all = make(map[question]*flight) }

// join returns the flight of a question, and whether the caller leads it and must run and finish
// it. by is the flight that the caller resolves for, nil for a client: it counts as waiting for the
// one it got until it calls left.
func (f *flights) join(q question, by *flight, wantRaw bool, limit int) (fl *flight, leads bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, ok := f.all[q]
	if !ok {
		// Sub-resolutions of those that run may start: they are bounded by their budgets.
		if by == nil && len(f.all) >= limit {
			return nil, false, errBusy
		}
		fl = ended.Get().(*flight)
		fl.question = q
		f.all[q] = fl
	} else {
		if fl.done == nil {
			fl.done = make(chan struct{})
		}
		for w := fl; by != nil && w != nil; w = w.waiting {
			if w == by {
				return nil, false, errCircle
			}
		}
	}
	fl.wantRaw = fl.wantRaw || wantRaw
	if by != nil {
		by.waiting = fl
	}
	return fl, !ok, nil
}

// left says that by no longer waits.
func (f *flights) left(by *flight) {
	if by != nil {
		f.mu.Lock()
		by.waiting = nil
		f.mu.Unlock()
	}
}

func (f *flights) finish(fl *flight, r *result) {
	f.mu.Lock()
	delete(f.all, fl.question)
	f.mu.Unlock()
	fl.result = r
	if fl.done != nil {
		close(fl.done)
	}
}

// ended are flights that nobody knows of any more.
var ended = sync.Pool{New: func() any { return new(flight) }}

// release gives back a flight that has ended, if only its leader, who calls it, knew of it.
func (fl *flight) release() {
	if fl.done == nil {
		*fl = flight{}
		ended.Put(fl)
	}
}

func (f *flights) wantsRaw(fl *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fl.wantRaw
}

// count returns how many resolutions are under way.
func (f *flights) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

// wait returns the result of a flight, or the context's error.
func (fl *flight) wait(ctx context.Context) (*result, error) {
	select {
	case <-fl.done:
		return fl.result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

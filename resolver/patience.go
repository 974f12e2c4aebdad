package resolver

import (
	"context"
	"sync/atomic"
	"time"
)

// patience is a context that ends with its parent or at a time. Most resolutions end long before, and
// wait for nothing but sockets that have deadlines of their own: only when somebody wants to wait for
// the end are the timer and the channel made that it takes.
type patience struct {
	parent context.Context
	until  time.Time
	waited atomic.Pointer[waitable]
}

type waitable struct {
	context.Context
	cancel context.CancelFunc
}

func (p *patience) begin(parent context.Context, d time.Duration) {
	p.parent, p.until = parent, time.Now().Add(d)
}

// end lets go of those who still wait, and says whether anybody may still know of the context.
func (p *patience) end() (known bool) {
	w := p.waited.Load()
	if w != nil {
		w.cancel()
	}
	return w != nil
}

// Deadline implements context.Context.
func (p *patience) Deadline() (time.Time, bool) {
	if t, ok := p.parent.Deadline(); ok && t.Before(p.until) {
		return t, true
	}
	return p.until, true
}

// Done implements context.Context.
func (p *patience) Done() <-chan struct{} {
	for {
		if w := p.waited.Load(); w != nil {
			return w.Done()
		}
		ctx, cancel := context.WithDeadline(p.parent, p.until)
		if !p.waited.CompareAndSwap(nil, &waitable{ctx, cancel}) {
			cancel()
		}
	}
}

// Err implements context.Context.
func (p *patience) Err() error {
	if w := p.waited.Load(); w != nil {
		return w.Err()
	}
	if err := p.parent.Err(); err != nil {
		return err
	}
	if !time.Now().Before(p.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (p *patience) Value(key any) any {
	if w := p.waited.Load(); w != nil {
		return w.Value(key)
	}
	return p.parent.Value(key)
}

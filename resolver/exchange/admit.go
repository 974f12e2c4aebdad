package exchange

import (
	"errors"
	"time"
)

var errSilent = errors.New("another query to this silent server was not answered either")

// admit waits until the server may be asked, and takes a place among the queries on their way to
// it, which leave gives back. Of a dead server it lets one query through when its hold is over, as
// a probe; the Asks that wait by then share the outcome: they go on if it was answered, and fail if
// it was not, so that a silent server costs one packet at a time however many ask.
func (x *exchange) admit() error {
	s := x.c.servers.obtain(x.a.Server, x.c.now())
	x.s = s
	sh := s.shard
	s.among = s.among || x.a.Others
	since := x.c.now()
	if !x.a.Since.IsZero() && s.isDead() {
		since = x.a.Since.Sub(x.c.start)
	}
	for waited := false; ; waited = true {
		now := x.c.now()
		// What came of a query that was sent while this one waited holds for this one. One sent
		// before says less: the server may have come back since.
		if s.fails > 0 && s.lostSentAt >= since && s.failedAt > since {
			sh.mu.Unlock()
			return x.fail(ErrTimeout, errSilent)
		}
		sent, queued := s.outstandingLimit()
		free := s.outstanding < sent
		if s.isDead() {
			free = s.prober == nil && now >= s.holdUntil
		}
		if free {
			if s.isDead() && waited && x.a.Others {
				sh.mu.Unlock()
				return x.fail(ErrWaited, nil)
			}
			if s.isDead() {
				s.prober = x
			}
			s.outstanding++
			s.triedAt, s.passed = now, 0
			x.tcp = x.tcp || now < s.tcpUntil
			sh.mu.Unlock()
			return nil
		}
		if s.queued >= queued {
			sh.mu.Unlock()
			x.c.counters.busy.Add(1)
			return x.fail(ErrBusy, nil)
		}
		if err := x.queue(now); err != nil {
			return err
		}
		sh.mu.Lock()
	}
}

// queue waits, with the shard unlocked, until something was learned of the server or its hold is
// over.
func (x *exchange) queue(now time.Duration) error {
	s := x.s
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	changed := s.changed
	s.queued++
	wait := maxRTO
	if s.isDead() && s.prober == nil {
		wait = s.holdUntil - now
	}
	s.shard.mu.Unlock()
	timer := time.NewTimer(wait)
	var err error
	select {
	case <-changed:
	case <-timer.C:
	case <-x.ctx.Done():
		err = x.fail(x.ctx.Err(), nil)
	}
	timer.Stop()
	s.shard.mu.Lock()
	s.queued--
	s.shard.mu.Unlock()
	return err
}

// leave gives back the place.
func (x *exchange) leave() {
	sh := x.s.shard
	sh.mu.Lock()
	x.s.outstanding--
	// A probe that ended without outcome, for its client left, leaves the server to the next.
	if x.s.prober == x {
		x.s.prober = nil
	}
	// One place is free: whoever waits may look again.
	x.s.wake()
	sh.mu.Unlock()
}

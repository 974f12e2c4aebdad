package exchange

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// TestRTT holds RFC 6298 §2 with its own worked steps.
func TestRTT(t *testing.T) {
	steps := []struct{ rtt, srtt, rttvar, rto time.Duration }{
		{100 * ms, 100 * ms, 50 * ms, 300 * ms},
		{100 * ms, 100 * ms, 37500 * time.Microsecond, 250 * ms},
		{180 * ms, 110 * ms, 48125 * time.Microsecond, 302500 * time.Microsecond},
	}
	var s server
	if got := s.rto(false, 0); got != unknownRTO {
		t.Errorf("unknown: got %v, want %v", got, unknownRTO)
	}
	for i, step := range steps {
		s.measured(step.rtt)
		if s.srtt != step.srtt || s.rttvar != step.rttvar || s.rto(false, 0) != step.rto {
			t.Errorf("step %d: got %v, %v, %v, want %v", i, s.srtt, s.rttvar, s.rto(false, 0), step)
		}
	}
}

func TestRTO(t *testing.T) {
	tests := []struct {
		name      string
		s         server
		recursive bool
		retry     int
		want      time.Duration
	}{
		{"fast", server{srtt: ms, rttvar: ms}, false, 0, minRTO},
		{"fast, recursive", server{srtt: ms, rttvar: ms}, true, 0, minRecursiveRTO},
		{"slow", server{srtt: 2 * time.Second, rttvar: time.Second}, false, 0, maxRTO},
		{"one timeout", server{srtt: 100 * ms, rttvar: 25 * ms, fails: 1}, false, 0, 2 * unknownRTO},
		{"two timeouts", server{srtt: 100 * ms, rttvar: 25 * ms, fails: 2}, false, 1, 4 * unknownRTO},
		{"two timeouts of others", server{fails: 2}, false, 0, 2 * unknownRTO},
		{"unknown, one timeout", server{fails: 1}, false, 0, 2 * unknownRTO},
		{"unknown, two timeouts", server{fails: 2}, false, 1, 4 * unknownRTO},
		{"dead", server{srtt: 100 * ms, rttvar: 25 * ms, fails: 3}, false, 0, unknownRTO},
		{"long dead", server{fails: 6}, false, 0, unknownRTO},
		{"long dead, long look", server{fails: 7}, false, 0, 4 * unknownRTO},
	}
	for _, tt := range tests {
		if got := tt.s.rto(tt.recursive, tt.retry); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestBackOff: a dead server is left alone for longer after each further timeout, up to the bound.
func TestBackOff(t *testing.T) {
	var s server
	now := longAgo
	var holds []time.Duration
	long := 0
	for range 400 {
		now += 10 * time.Second
		if s.rto(false, 0) > unknownRTO {
			long++
		}
		s.timedOut(now-time.Second, now)
		holds = append(holds, max(0, s.holdUntil-now))
	}
	for i, want := range []time.Duration{0, 0, minHold, maxRest - time.Second, maxRest - time.Second, maxRest - time.Second} {
		if holds[i] != want {
			t.Errorf("after %d timeouts: got %v, want %v", i+1, holds[i], want)
		}
	}
	if last := holds[len(holds)-1]; last != maxRest-time.Second {
		t.Errorf("after 400 timeouts: got %v, want %v", last, maxRest-time.Second)
	}
	if long < 400/longLookEvery || long > 400/longLookEvery+2 {
		t.Errorf("%d of 400 tries were waited for longer, want one in %d", long, longLookEvery)
	}
	s.answered()
	if s.fails != 0 || s.holdUntil != 0 {
		t.Errorf("after an answer: %d timeouts, held until %v", s.fails, s.holdUntil)
	}
}

// TestTimeoutsSideBySide: queries that were on their way at once and lost count once.
func TestTimeoutsSideBySide(t *testing.T) {
	var s server
	now := longAgo
	for i := range 100 {
		at := now + time.Duration(i)*ms
		s.timedOut(at, at+400*ms)
	}
	if s.fails != 1 {
		t.Errorf("got %d timeouts, want 1", s.fails)
	}
	s.timedOut(now+450*ms, now+850*ms)
	if s.fails != 2 {
		t.Errorf("got %d timeouts, want 2", s.fails)
	}
}

// TestDeadServerIsMeasuredAnew: what was measured before an outage says little after it.
func TestDeadServerIsMeasuredAnew(t *testing.T) {
	s := server{srtt: 10 * ms, rttvar: ms, fails: deadAfter}
	s.measured(200 * ms)
	if s.srtt != 200*ms {
		t.Errorf("got %v, want 200ms", s.srtt)
	}
}

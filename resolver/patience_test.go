package resolver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience holds a patience against what context.WithTimeout does, asked for its end at once, late
// or never.
func TestPatience(t *testing.T) {
	cause := errors.New("cause")
	type key struct{}
	for _, wait := range []time.Duration{0, 2 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			for _, how := range []string{"time", "parent", "end"} {
				parent, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "v"))
				defer cancel(nil)
				var p patience
				p.begin(parent, 3*time.Second)
				std, stop := context.WithTimeout(parent, 3*time.Second)
				defer stop()
				check := func() {
					t.Helper()
					if !errors.Is(p.Err(), std.Err()) || p.Value(key{}) != "v" {
						t.Errorf("waited for after %v, ended by %s: error %v, want %v; value %v", wait, how, p.Err(), std.Err(), p.Value(key{}))
					}
					a, _ := p.Deadline()
					if b, _ := std.Deadline(); !a.Equal(b) {
						t.Errorf("deadline %v, want %v", a, b)
					}
				}
				ended := make(chan error, 1)
				if wait < time.Hour {
					time.AfterFunc(wait, func() {
						child, done := context.WithCancel(&p)
						defer done()
						<-child.Done()
						ended <- context.Cause(child)
					})
				}
				check()
				time.Sleep(2500 * time.Millisecond)
				check()
				switch how {
				case "time":
					time.Sleep(time.Second)
				case "parent":
					cancel(cause)
				case "end":
					if known := p.end(); known != (wait < time.Hour) {
						t.Errorf("waited for after %v: known %v", wait, known)
					}
					stop()
				}
				synctest.Wait()
				if wait < time.Hour {
					if got := <-ended; !errors.Is(got, context.Cause(std)) {
						t.Errorf("a child ended by %v, want %v", got, context.Cause(std))
					}
				}
				if how != "end" || wait < time.Hour {
					check()
				}
				p.end()
			}
		})
	}
}

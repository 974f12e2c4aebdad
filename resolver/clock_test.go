package resolver

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/resolver/lab"
	"bonsai/resolver/validate"
)

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// TestWrongClock: a clock by which no signature of the root holds is told in log, counter and extended error,
// and once it is right everything validates at once.
func TestWrongClock(t *testing.T) {
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	for _, row := range []struct {
		name string
		off  time.Duration
		ede  uint16
		says string
	}{
		{"behind", -10 * 365 * 24 * time.Hour, dns.ExtendedErrorCodeSignatureNotYetValid, "behind"},
		{"ahead", 10 * 365 * 24 * time.Hour, dns.ExtendedErrorCodeSignatureExpired, "ahead"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newLabResolver(t, world)
			log, off := new(lockedBuffer), row.off
			r.log = slog.New(slog.NewTextHandler(log, nil))
			config := *r.config.Validate
			config.Now = func() int64 { return time.Now().Add(off).Unix() }
			if r.validator, err = validate.New(config); err != nil {
				t.Fatal(err)
			}
			ask := func() *dns.Msg {
				m := msg("www.ecdsa.lab.", dns.TypeA)
				m.SetEdns0(1232, true)
				return askHandler(t, r, r.NewWorker(), m)
			}
			for range 2 {
				got := ask()
				if code, text := edeOf(got); got.Rcode != dns.RcodeServerFailure || code != row.ede || !strings.HasPrefix(text, ".: ") {
					t.Errorf("%v", got)
				}
			}
			s := r.Stats()
			if n := s.ClockBehind + s.ClockAhead; n == 0 || (s.ClockAhead > 0) != (row.off > 0) || (s.ClockBehind > 0) != (row.off < 0) {
				t.Errorf("behind %d, ahead %d", s.ClockBehind, s.ClockAhead)
			}
			if text := log.String(); strings.Count(text, "clock") != 1 || !strings.Contains(text, row.says) {
				t.Errorf("log: %s", text)
			}
			off = 0
			if got := ask(); got.Rcode != dns.RcodeSuccess || !got.AuthenticatedData {
				t.Errorf("with the clock right: %v", got)
			}
		})
	}
}

// edeOf returns the first extended error of a message.
func edeOf(m *dns.Msg) (uint16, string) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				return e.InfoCode, e.ExtraText
			}
		}
	}
	return 0xFFFF, ""
}

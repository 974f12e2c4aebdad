package policy

import (
	"net/netip"
	"testing"
	"time"

	"bonsai/wire"
)

func TestRateLimit(t *testing.T) {
	now := time.Duration(0) // a client is no other than at any time
	stats := NewRateTable(func() time.Duration { return now })
	l := newRateLimit(RateLimit{QPS: 10, Burst: 20, Slip: 2}, stats)
	q := query(t, "example.com", wire.TypeA, wire.ClassIN, true)
	ask := func(client string, n int, verified bool) (passed int) {
		for range n {
			if l.Judge(&Request{Query: q, Client: netip.MustParseAddr(client), Verified: verified}).Action == Pass {
				passed++
			}
		}
		return passed
	}
	if got := ask("192.0.2.1", 50, false); got != 20 {
		t.Errorf("%d of a burst pass, want 20", got)
	}
	if d, s := stats.Dropped.Load(), stats.Slipped.Load(); d != 15 || s != 15 {
		t.Errorf("%d dropped, %d slipped, want 15 and 15", d, s)
	}
	if got := ask("192.0.2.1", 5, true); got != 5 {
		t.Errorf("%d verified queries pass, want 5", got)
	}
	if got := ask("192.0.2.2", 5, false); got != 5 {
		t.Errorf("%d of another client pass, want 5", got)
	}
	now += time.Second
	if got := ask("192.0.2.1", 50, false); got != 10 {
		t.Errorf("%d pass a second later, want 10", got)
	}
	passed := 0
	for range 640 { // parts of what a query takes add up
		now += 10 * time.Second / 640
		passed += ask("192.0.2.1", 1, false)
	}
	if passed != 100 {
		t.Errorf("%d pass in ten seconds of small steps, want 100", passed)
	}
	// One site of IPv6 is one client.
	if got := ask("2001:db8:0:1::1", 15, false) + ask("2001:db8:0:2::2", 15, false); got != 20 {
		t.Errorf("%d of an IPv6 /56 pass, want 20", got)
	}
}

// A client passes as often as the limit says, however its queries fall: neither the limit nor the
// time between them need be a round number.
func TestRateLimitIsExact(t *testing.T) {
	q := query(t, "example.com", wire.TypeA, wire.ClassIN, true)
	for _, c := range []struct{ limit, sent, least, most int }{
		{63, 60, 600, 600}, {63, 200, 629, 641}, {1, 100, 10, 20}, {1000, 999, 9990, 9990}, {1000, 5000, 9995, 10020}, {7, 13, 69, 80},
	} {
		now := time.Duration(0)
		l := newRateLimit(RateLimit{QPS: c.limit, Burst: 10}, NewRateTable(func() time.Duration { return now }))
		passed := 0
		for i := range 10 * c.sent {
			now = time.Duration(i) * time.Second / time.Duration(c.sent)
			if l.Judge(&Request{Query: q, Client: netip.MustParseAddr("192.0.2.1")}).Action == Pass {
				passed++
			}
		}
		if passed < c.least || passed > c.most {
			t.Errorf("%d of %d a second in ten seconds pass a limit of %d, want %d to %d", passed, c.sent, c.limit, c.least, c.most)
		}
	}
}

// Clients by the million with forged addresses take no memory, and neither keep a real one from being
// answered nor let it have more than its share.
func TestRateLimitUnderForgedSources(t *testing.T) {
	now := time.Duration(0)
	table := NewRateTable(func() time.Duration { return now })
	l := newRateLimit(RateLimit{QPS: 10, Burst: 10}, table)
	q := query(t, "example.com", wire.TypeA, wire.ClassIN, true)
	real, passed := netip.MustParseAddr("192.0.2.1"), 0
	for i := range 4 * limitBuckets {
		forged := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if l.Judge(&Request{Query: q, Client: forged}).Action != Pass {
			t.Fatal("one query of a client is limited")
		}
		if i%limitBuckets == 0 && l.Judge(&Request{Query: q, Client: real}).Action == Pass {
			passed++
		}
	}
	if passed != 4 {
		t.Errorf("%d of a real client's 4 queries pass", passed)
	}
	// The policy is made anew: who has used up what it may send has done so still.
	for range 20 {
		l.Judge(&Request{Query: q, Client: real})
	}
	l = newRateLimit(RateLimit{QPS: 10, Burst: 10}, table)
	if l.Judge(&Request{Query: q, Client: real}).Action == Pass {
		t.Error("a reload gave a client another burst")
	}
	// Thirteen days on, when times come round again, it is a client like others.
	for _, later := range []time.Duration{time.Hour, 6 * 24 * time.Hour, 13 * 24 * time.Hour, 400 * 24 * time.Hour} {
		if now += later; l.Judge(&Request{Query: q, Client: real}).Action != Pass {
			t.Errorf("limited %v later", later)
		}
	}
}

func TestRateLimitSlip(t *testing.T) {
	q := query(t, "example.com", wire.TypeA, wire.ClassIN, true)
	for _, c := range []struct{ slip, truncated, dropped int }{{0, 0, 30}, {1, 30, 0}, {3, 10, 20}} {
		table := NewRateTable(func() time.Duration { return 5 })
		l := newRateLimit(RateLimit{QPS: 1, Slip: c.slip}, table)
		got := map[Action]int{}
		for range 31 {
			got[l.Judge(&Request{Query: q, Client: netip.MustParseAddr("192.0.2.1")}).Action]++
		}
		if got[Pass] != 1 || got[Truncate] != c.truncated || got[Drop] != c.dropped ||
			table.Slipped.Load() != uint64(c.truncated) || table.Dropped.Load() != uint64(c.dropped) {
			t.Errorf("slip %d: %v", c.slip, got)
		}
	}
}

func TestRateLimitOnlyCounts(t *testing.T) {
	stats := NewRateTable(func() time.Duration { return 5 })
	l := newRateLimit(RateLimit{QPS: 1, Only: true}, stats)
	q := query(t, "example.com", wire.TypeA, wire.ClassIN, true)
	for range 10 {
		if o := l.Judge(&Request{Query: q, Client: netip.MustParseAddr("192.0.2.1")}); o.Action != Pass {
			t.Fatalf("got %+v", o)
		}
	}
	if n := stats.WouldLimit.Load(); n != 9 {
		t.Errorf("%d counted, want 9", n)
	}
}

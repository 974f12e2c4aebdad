package policy

import (
	"net/netip"
	"testing"

	"bonsai/wire"
)

func TestRateLimit(t *testing.T) {
	now := uint64(1000)
	var stats RateStats
	l := newRateLimit(RateLimit{QPS: 10, Burst: 20, Slip: 2}, func() uint64 { return now }, &stats)
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
	now += 64 // one second
	if got := ask("192.0.2.1", 50, false); got != 10 {
		t.Errorf("%d pass a second later, want 10", got)
	}
	passed := 0
	for range 64 { // tokens of less than a whole add up
		now++
		passed += ask("192.0.2.1", 1, false)
	}
	if passed != 10 && passed != 9 {
		t.Errorf("%d pass in a second of small steps, want 10", passed)
	}
	// One site of IPv6 is one client.
	if got := ask("2001:db8:0:1::1", 15, false) + ask("2001:db8:0:2::2", 15, false); got != 20 {
		t.Errorf("%d of an IPv6 /56 pass, want 20", got)
	}
}

func TestRateLimitOnlyCounts(t *testing.T) {
	var stats RateStats
	l := newRateLimit(RateLimit{QPS: 1, Only: true}, func() uint64 { return 5 }, &stats)
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

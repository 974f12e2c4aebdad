package resolver

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"bonsai/cache/entry"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

func prefixes(list ...string) (out []netip.Prefix) {
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func TestViewOfClient(t *testing.T) {
	r := newTestResolver(t, func(c *Config) {
		c.Views = []View{
			{Name: "wide", Clients: prefixes("10.0.0.0/8", "2001:db8::/32")},
			{Name: "deep", Clients: prefixes("10.1.2.0/24", "2001:db8:1::/48", "10.9.9.9/32")},
			{Name: "mapped", Clients: prefixes("::ffff:10.1.0.0/112")},
			{Name: "half", Clients: prefixes("0.0.0.0/1")},
		}
	})
	for client, want := range map[string]string{
		"10.2.3.4": "wide", "10.1.2.3": "deep", "10.1.3.3": "mapped", "10.9.9.9": "deep", "10.9.9.8": "wide",
		"2001:db8:1::1": "deep", "2001:db8:2::1": "wide", "2001:db9::1": "", "192.0.2.1": "", "127.0.0.1": "half", "::1": "",
	} {
		if got := r.views.Load().of(netip.MustParseAddr(client)).name; got != want {
			t.Errorf("%s has view %q, want %q", client, got, want)
		}
	}
}

// What lies in one realm is found in no other: not by clients, not as an alias's target, nor as what has
// expired or has failed.
func TestRealmsAreApart(t *testing.T) {
	inner := zonecut.Configured{Zone: wire.Root, Forward: true,
		Servers: []zonecut.Server{{Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}}}}
	allow := policy.Config{Allow: prefixes("0.0.0.0/0")}
	r := newTestResolver(t, func(c *Config) {
		c.Policy = allow
		c.Views = []View{
			{Name: "a", Clients: prefixes("10.0.0.0/8"), Policy: allow, Realm: 1, Zones: []zonecut.Configured{inner}},
			{Name: "b", Clients: prefixes("11.0.0.0/8"), Policy: allow, Realm: 2, Zones: []zonecut.Configured{inner}},
			{Name: "shared", Clients: prefixes("12.0.0.0/8"), Policy: allow},
		}
	})
	clients := map[uint16][]string{0: {"127.0.0.1", "12.0.0.1"}, 1: {"10.0.0.1"}, 2: {"11.0.0.1"}}
	w := r.NewWorker()
	for realm := range uint16(3) {
		answer := answerA(fmt.Sprintf("in%d.example.", realm), 300, wire.Insecure)
		denial := &entry.Content{Kind: entry.KindDenial, QName: wire.MustName(fmt.Sprintf("no%d.example.", realm)), RCODE: wire.RCODENXDomain,
			Status: wire.Insecure, Lifetime: 300}
		failure := &entry.Content{Kind: entry.KindFailure, QName: wire.MustName(fmt.Sprintf("bad%d.example.", realm)), QType: wire.TypeA,
			RCODE: wire.RCODEServFail, Lifetime: 300, EDE: []wire.EDE{{Code: wire.EDEOther}}}
		for _, c := range []*entry.Content{answer, denial, failure} {
			c.Realm = realm
			r.put(t, c, testNow)
		}
	}
	for of := range uint16(3) {
		for realm, addrs := range clients {
			for _, addr := range addrs {
				for kind, rcode := range map[string]int{"in": dns.RcodeSuccess, "no": dns.RcodeNameError, "bad": dns.RcodeServerFailure} {
					got, result := hit(t, w, msg(fmt.Sprintf("%s%d.example.", kind, of), dns.TypeA), netip.AddrPortFrom(netip.MustParseAddr(addr), 4242))
					if (result == serve.Answered) != (of == realm) || got != nil && got.Rcode != rcode {
						t.Errorf("%s%d asked by %s of realm %d: %v", kind, of, addr, realm, got)
					}
				}
			}
		}
	}
	r.FlushTreeIn(1, wire.Root)
	for of, want := range []serve.Result{serve.Answered, serve.Missed, serve.Answered} {
		addr := netip.AddrPortFrom(netip.MustParseAddr(clients[uint16(of)][0]), 4242)
		if _, result := hit(t, w, msg(fmt.Sprintf("in%d.example.", of), dns.TypeA), addr); result != want {
			t.Errorf("realm 1 was flushed, and in realm %d: %v", of, result)
		}
	}
}

// What a view resolves it stores where it looks: a failure here, that of all but this realm has none.
func TestRealmStoresInItself(t *testing.T) {
	allow := policy.Config{Allow: prefixes("0.0.0.0/0")}
	r := newTestResolver(t, func(c *Config) {
		c.Policy = allow
		c.Views = []View{{Name: "a", Clients: prefixes("10.0.0.0/8"), Policy: allow, Realm: 7, Zones: []zonecut.Configured{{
			Zone: wire.Root, Forward: true, Servers: []zonecut.Server{{Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}}}}}}}
	})
	realm := r.For(netip.MustParseAddr("10.0.0.1"))
	c := newLink(entry.KindAnswer, wire.MustName("www.example."), wire.TypeA)
	c.Content = *answerA("www.example.", 300, wire.Insecure)
	c.Lifetime = 300
	realm.store(c, testNow, realm.epoch(), &missing{})
	realm.keepFailure(question{name: wire.MustName("bad.example."), t: wire.TypeA}, newFailure(wire.EDEOther, ""), testNow, realm.epoch())
	seen := map[string]uint16{}
	r.cache.Walk(func(e entry.Entry) bool {
		seen[wire.Name(e.QName()).String()] = e.Realm()
		return true
	})
	if len(seen) != 2 || seen["www.example."] != 7 || seen["bad.example."] != 7 {
		t.Errorf("stored in realms %v", seen)
	}
}

// A hit with many views allocates no more than one without.
func TestViewAllocs(t *testing.T) {
	r := newTestResolver(t, func(c *Config) {
		for i := range 100 {
			c.Views = append(c.Views, View{Name: fmt.Sprint(i), Policy: c.Policy, Clients: prefixes(fmt.Sprintf("10.%d.0.0/16", i), fmt.Sprintf("2001:db8:%x::/48", i), fmt.Sprintf("127.0.%d.0/24", i))})
		}
	})
	batch, results := hitBatch(t, r, 4)
	w := r.NewWorker()
	run := func() {
		for i := range batch {
			batch[i].Response = batch[i].Response[:0]
		}
		w.Hit(batch, results)
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := r.Stats().Views; got["0"] == 0 {
		t.Errorf("queries by view: %v", got)
	}
}

// BenchmarkHitViews is BenchmarkHit where every client has one of a hundred views.
func BenchmarkHitViews(b *testing.B) {
	r := newTestResolver(b, func(c *Config) {
		for i := range 100 {
			c.Views = append(c.Views, View{Name: fmt.Sprint(i), Policy: c.Policy, Clients: prefixes(fmt.Sprintf("10.%d.0.0/16", i), fmt.Sprintf("2001:db8:%x::/48", i), fmt.Sprintf("127.0.%d.0/24", i))})
		}
	})
	w := r.NewWorker()
	batch, results := hitBatch(b, r, 64)
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		for i := range batch {
			batch[i].Response = batch[i].Response[:0]
		}
		w.Hit(batch, results)
	}
}

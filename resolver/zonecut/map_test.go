package zonecut

import (
	"net/netip"
	"reflect"
	"testing"

	"bonsai/cache"
	"bonsai/wire"
)

func newMap(t *testing.T, config Config) *Map {
	t.Helper()
	c, err := cache.New(cache.Config{Size: cache.MinSize, StaleLimit: 86400})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	config.Cache = c
	if config.Hints == nil {
		config.Hints = []Server{server("a.root.", "192.0.2.1")}
	}
	return New(config)
}

func server(name string, addrs ...string) Server {
	s := Server{Name: wire.MustName(name)}
	for _, a := range addrs {
		s.Addrs = append(s.Addrs, netip.AddrPortFrom(netip.MustParseAddr(a), Port))
	}
	return s
}

const start = 1_700_000_000

// grant stores a cut as if its parent had just referred to it.
func (m *Map) grant(zone, parent string, now, ttl uint32, servers ...Server) {
	m.Store(&Cut{
		Zone: wire.MustName(zone), Parent: wire.MustName(parent), Servers: servers, Expires: now + ttl,
	}, now, m.cache.Epoch())
}

func (m *Map) wantDeepest(t *testing.T, name string, now uint32, want string) *Cut {
	t.Helper()
	c := m.Deepest(wire.MustName(name), now)
	if c.Zone.String() != want {
		t.Fatalf("Deepest(%s) %d s after the start: got %v, want %s", name, now-start, c.Zone, want)
	}
	return c
}

func TestDeepest(t *testing.T) {
	m := newMap(t, Config{})
	if c := m.wantDeepest(t, "www.example.com.", start, "."); !c.Prime {
		t.Error("the root from hints must ask to be primed")
	}
	m.grant("com.", ".", start, 1000, server("a.gtld.", "192.0.2.2"))
	m.grant("example.com.", "com.", start, 500, server("ns.example.com.", "192.0.2.3"))
	m.grant("deep.sub.example.com.", "example.com.", start, 300, server("ns.example.com."))
	m.wantDeepest(t, "www.EXAMPLE.com.", start, "example.com.")
	m.wantDeepest(t, "example.com.", start, "example.com.")
	m.wantDeepest(t, "xexample.com.", start, "com.")
	m.wantDeepest(t, "sub.example.com.", start, "example.com.")
	m.wantDeepest(t, "a.b.deep.sub.example.com.", start, "deep.sub.example.com.")
	m.wantDeepest(t, "org.", start, ".")
	m.wantDeepest(t, "a.deep.sub.example.com.", start+299, "deep.sub.example.com.")
	m.wantDeepest(t, "a.deep.sub.example.com.", start+300, "example.com.")
	m.wantDeepest(t, "a.deep.sub.example.com.", start+500, "com.")
	m.wantDeepest(t, "a.deep.sub.example.com.", start+1000, ".")
}

// TestCutRoundTrip holds that what a referral gave comes back as it was.
func TestCutRoundTrip(t *testing.T) {
	m := newMap(t, Config{})
	glue := server("ns2.example.com.", "192.0.2.4", "2001:db8::4")
	glue.Expires = start + 60
	ds := wire.RRset{
		Owner: wire.MustName("example.com."), Type: wire.TypeDS, Class: wire.ClassIN, TTL: 300,
		RDATA: [][]byte{{0, 1, 13, 2, 9, 9}}, Sigs: [][]byte{append([]byte{0, 43, 13, 2, 0, 0, 1, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0}, 5, 5)},
	}
	in := Cut{
		Zone: wire.MustName("example.com."), Parent: wire.Root,
		Servers: []Server{server("ns1.example.com.", "192.0.2.3", "2001:db8::3"), glue, server("ns.elsewhere.")},
		DS:      []wire.RRset{ds}, Expires: start + 86400*7,
	}
	m.Store(&in, start, m.cache.Epoch())
	got := m.wantDeepest(t, "example.com.", start, "example.com.")
	if got.Expires != start+MaxLease || got.Granted != start || got.Since != start {
		t.Errorf("got lease %d granted %d since %d, want it capped at a day", got.Expires-start, got.Granted, got.Since)
	}
	if !reflect.DeepEqual(got.Servers, in.Servers) {
		t.Errorf("got servers %v, want %v", got.Servers, in.Servers)
	}
	if !reflect.DeepEqual(got.DS, in.DS) {
		t.Errorf("got DS %v, want %v", got.DS, in.DS)
	}

	got = m.wantDeepest(t, "example.com.", start+60, "example.com.")
	if n := len(got.Servers[1].Addrs); n != 0 || len(got.Servers[0].Addrs) != 2 {
		t.Errorf("a minute later: got %v, want the glue of ns2 gone and that of ns1 kept", got.Servers)
	}
	if len(got.DS) != 1 || got.DS[0].TTL != 240 {
		t.Errorf("a minute later: got DS %v, want its TTL 240", got.DS)
	}
	if got = m.wantDeepest(t, "example.com.", start+300, "example.com."); len(got.DS) != 0 {
		t.Errorf("got a DS beyond its TTL: %v", got.DS)
	}
}

// TestGhostDomain: RFC 1034 §4.2.1; a delegation that the parent has withdrawn is gone with the
// parent's lease, however the child answers, and what lies below it goes too.
func TestGhostDomain(t *testing.T) {
	t.Run("ancestor gone", func(t *testing.T) {
		m := newMap(t, Config{})
		m.grant("com.", ".", start, 10, server("a.gtld.", "192.0.2.2"))
		m.grant("example.com.", "com.", start, 5000, server("ns.example.com.", "192.0.2.3"))
		m.wantDeepest(t, "www.example.com.", start+9, "example.com.")
		m.wantDeepest(t, "www.example.com.", start+10, ".")
		// The root, asked again, refers across the middle zone: that grant stands by itself.
		m.grant("example.com.", ".", start+11, 5000, server("ns.example.com.", "192.0.2.3"))
		m.wantDeepest(t, "www.example.com.", start+12, "example.com.")
	})
	t.Run("ancestor renewed", func(t *testing.T) {
		m := newMap(t, Config{})
		m.grant("com.", ".", start, 10, server("a.gtld."), server("b.gtld."))
		m.grant("example.com.", "com.", start, 5000, server("ns.example.com."))
		m.grant("com.", ".", start+8, 10, server("b.gtld."), server("c.gtld."))
		m.wantDeepest(t, "www.example.com.", start+17, "example.com.")
	})
	t.Run("ancestor given to others", func(t *testing.T) {
		m := newMap(t, Config{})
		m.grant("com.", ".", start, 100, server("a.gtld."))
		m.grant("example.com.", "com.", start, 5000, server("ns.example.com."))
		m.grant("com.", ".", start+8, 100, server("z.gtld."))
		m.wantDeepest(t, "www.example.com.", start+9, "com.")
		m.grant("example.com.", "com.", start+9, 5000, server("ns.example.com."))
		m.wantDeepest(t, "www.example.com.", start+9, "example.com.")
	})
	t.Run("ancestor lapsed and granted again", func(t *testing.T) {
		m := newMap(t, Config{})
		m.grant("com.", ".", start, 10, server("a.gtld."))
		m.grant("example.com.", "com.", start, 5000, server("ns.example.com."))
		m.grant("com.", ".", start+20, 10, server("a.gtld."))
		m.wantDeepest(t, "www.example.com.", start+20, "com.")
	})
}

func TestRenew(t *testing.T) {
	var due []string
	m := newMap(t, Config{Renew: func(zone wire.Name) { due = append(due, zone.String()) }})
	m.grant("com.", ".", start, 1000, server("a.gtld."))
	m.grant("example.com.", "com.", start, 2000, server("ns.example.com."))
	for _, c := range []struct {
		after uint32
		want  []string
	}{{749, nil}, {750, []string{"com."}}, {1000, nil}} {
		due = nil
		m.Deepest(wire.MustName("www.example.com."), start+c.after)
		if !reflect.DeepEqual(due, c.want) {
			t.Errorf("%d s after the grant: got %v due, want %v", c.after, due, c.want)
		}
	}
	// Nothing renewed makes all that is below expire with it.
	m.grant("com.", ".", start+999, 4000, server("a.gtld."))
	due = nil
	m.wantDeepest(t, "www.example.com.", start+1600, "example.com.")
	if !reflect.DeepEqual(due, []string{"example.com."}) {
		t.Errorf("got %v due, want example.com.", due)
	}
}

func TestStoreEpoch(t *testing.T) {
	m := newMap(t, Config{})
	epoch := m.cache.Epoch()
	m.cache.FlushTree(wire.Root)
	m.Store(&Cut{Zone: wire.MustName("com."), Parent: wire.Root, Servers: []Server{server("a.")}, Expires: start + 100}, start, epoch)
	m.wantDeepest(t, "com.", start, ".")
}

func TestConfigured(t *testing.T) {
	m := newMap(t, Config{Configured: []Configured{
		{Zone: wire.MustName("Stub.example."), Servers: []Server{server("ns.stub.example.", "192.0.2.5")}},
		{Zone: wire.MustName("primed.example."), Servers: []Server{server("h.", "192.0.2.6")}, Prime: true},
		{Zone: wire.MustName("corp."), Servers: []Server{{Addrs: server("x.", "192.0.2.7").Addrs}}, Forward: true, First: true},
	}})
	if c := m.wantDeepest(t, "a.stub.example.", start, "stub.example."); c.Prime || c.Forward || c.Parent != c.Zone {
		t.Errorf("got %+v, want a plain configured cut", c)
	}
	if c := m.wantDeepest(t, "corp.", start, "corp."); !c.Forward {
		t.Errorf("got %+v, want a forwarding cut", c)
	}
	if c := m.Ordinary(wire.MustName("a.corp."), start); c.Zone != wire.Root {
		t.Errorf("Ordinary: got %v, want the root", c.Zone)
	}

	// Delegations in a configured zone count; those around it and those that pass it do not.
	m.grant("example.", ".", start, 100, server("ns.example."))
	m.grant("sub.stub.example.", "stub.example.", start, 100, server("ns.sub."))
	m.grant("old.stub.example.", "example.", start, 100, server("ns.old."))
	m.grant("stub.example.", "example.", start, 100, server("ns.public."))
	m.grant("corp.", ".", start, 100, server("ns.corp."))
	m.grant("sub.corp.", "corp.", start, 100, server("ns.corp."))
	m.wantDeepest(t, "a.sub.stub.example.", start, "sub.stub.example.")
	m.wantDeepest(t, "a.old.stub.example.", start, "stub.example.")
	if c := m.wantDeepest(t, "stub.example.", start, "stub.example."); c.Servers[0].Name.String() != "ns.stub.example." {
		t.Errorf("got %v, want the configured servers", c.Servers)
	}
	m.wantDeepest(t, "a.sub.corp.", start, "corp.")
	if c := m.Ordinary(wire.MustName("a.sub.corp."), start); c.Zone.String() != "sub.corp." {
		t.Errorf("Ordinary: got %v, want sub.corp.", c.Zone)
	}

	// What a forwarder tells is shown, and never asked.
	m.Store(&Cut{Zone: wire.MustName("told.corp."), Parent: wire.MustName("corp."), Hearsay: true,
		Servers: []Server{server("ns.told.corp.", "192.0.2.9")}, Expires: start + 100}, start, m.cache.Epoch())
	m.wantDeepest(t, "a.told.corp.", start, "corp.")
	if c := m.Ordinary(wire.MustName("a.told.corp."), start); c.Zone.String() != "corp." || c.Forward {
		t.Errorf("Ordinary: got %v, want the public corp.", c.Zone)
	}
	if c := m.Shown(wire.MustName("a.told.corp."), start); c.Zone.String() != "told.corp." || len(c.Servers[0].Addrs) != 1 {
		t.Errorf("Shown: got %v, want told.corp.", c.Zone)
	}
	if c := m.Shown(wire.MustName("a.sub.stub.example."), start); c.Zone.String() != "sub.stub.example." {
		t.Errorf("Shown: got %v, want sub.stub.example.", c.Zone)
	}

	if c := m.wantDeepest(t, "primed.example.", start, "primed.example."); !c.Prime {
		t.Error("want it to ask to be primed")
	}
	m.grant("primed.example.", "primed.example.", start, 100, server("ns.primed.example.", "192.0.2.8"))
	if c := m.wantDeepest(t, "primed.example.", start, "primed.example."); c.Prime || c.Servers[0].Name.String() != "ns.primed.example." {
		t.Errorf("got %+v, want it primed", c)
	}
}

// TestDeepestWork bounds the lookups for a name of as many labels as there can be.
func TestDeepestWork(t *testing.T) {
	m := newMap(t, Config{})
	name := wire.Root
	for {
		n, ok := name.Prepend("a")
		if !ok {
			break
		}
		name = n
		m.Store(&Cut{Zone: name, Parent: name.Parent(), Servers: []Server{server("ns.")}, Expires: start + 100}, start, m.cache.Epoch())
	}
	// With the topmost cut gone all others are dead, and each is loaded once.
	m.cache.FlushName(wire.MustName("a."), 0)
	before := m.cache.Stats()
	if c := m.Deepest(name, start); c.Zone != wire.Root {
		t.Fatalf("got %v, want the root", c.Zone)
	}
	after := m.cache.Stats()
	lookups := after.Hits + after.Misses - before.Hits - before.Misses
	if labels := uint64(name.Labels()); lookups > 3*labels {
		t.Errorf("%d lookups for %d labels", lookups, labels)
	}
}

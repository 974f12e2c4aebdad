package zonecut

import (
	"fmt"
	"testing"

	"bonsai/wire"
)

// TestMemo holds that a cut that is kept unpacked is what its entry would unpack to: TTLs go down,
// what has expired is gone, a new grant shows at once, and an entry that is gone is gone.
func TestMemo(t *testing.T) {
	m := newMap(t, Config{})
	store := func(now uint32, addr string) {
		glue := server("ns.com.", addr)
		glue.Expires = now + 60
		m.Store(&Cut{
			Zone: wire.MustName("com."), Parent: wire.Root, Expires: now + 1000, Servers: []Server{glue, server("b.com.", "192.0.2.8")},
			DS: []wire.RRset{{Owner: wire.MustName("com."), Type: wire.TypeDS, Class: wire.ClassIN, TTL: 300, RDATA: [][]byte{{0, 1, 13, 2, 9, 9}}}},
		}, now, m.cache.Epoch())
	}
	store(start, "192.0.2.1")
	kept := m.wantDeepest(t, "com.", start, "com.")
	if again := m.wantDeepest(t, "www.com.", start, "com."); again != kept {
		t.Error("the cut of a TLD is unpacked each time")
	}
	for _, c := range []struct{ after, ttl, addrs uint32 }{{1, 299, 1}, {59, 241, 1}, {60, 240, 0}, {61, 239, 0}, {299, 1, 0}, {300, 0, 0}, {999, 0, 0}} {
		got := m.wantDeepest(t, "com.", start+c.after, "com.")
		ttl := uint32(0)
		if len(got.DS) > 0 {
			ttl = got.DS[0].TTL
		}
		if ttl != c.ttl || len(got.Servers[0].Addrs) != int(c.addrs) || len(got.Servers[1].Addrs) != 1 {
			t.Errorf("after %d s: got DS TTL %d and %v, want %d and %d addresses", c.after, ttl, got.Servers, c.ttl, c.addrs)
		}
	}
	if kept.DS[0].TTL != 300 {
		t.Errorf("a cut given out was changed: DS TTL %d", kept.DS[0].TTL)
	}
	store(start+500, "192.0.2.2")
	if got := m.wantDeepest(t, "com.", start+500, "com.").Servers[0].Addrs[0].Addr().String(); got != "192.0.2.2" {
		t.Errorf("got %s, want the address of the new grant", got)
	}
	m.wantDeepest(t, "com.", start+500, "com.")
	m.cache.FlushName(wire.MustName("com."), 0)
	m.wantDeepest(t, "com.", start+500, ".")
}

func TestMemoBounded(t *testing.T) {
	m := newMap(t, Config{})
	for i := range 4 * memoShards * m.memos.limit {
		zone := fmt.Sprintf("z%d.", i)
		m.grant(zone, ".", start, 100, server("ns."+zone))
		m.Deepest(wire.MustName(zone), start)
	}
	n := 0
	for i := range m.memos.shards {
		n += len(m.memos.shards[i].cuts)
	}
	if n > memoShards*m.memos.limit || n < memoShards*m.memos.limit/2 {
		t.Errorf("keeps %d cuts, of %d at most", n, memoShards*m.memos.limit)
	}
}

package cache

import (
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

func pack(t testing.TB, name string, qtype wire.Type, now uint32) (Key, entry.Entry) {
	t.Helper()
	n := wire.MustName(name)
	e, err := entry.Pack(nil, &entry.Content{Kind: entry.KindAnswer, QName: n, QType: qtype, Lifetime: 300,
		Answer: []wire.RRset{{Owner: n, Type: qtype, Class: wire.ClassIN, TTL: 300, RDATA: [][]byte{{192, 0, 2, 1}}}}}, now)
	if err != nil {
		t.Fatal(err)
	}
	return MakeKey(entry.KindAnswer, 0, n, qtype), e
}

func TestStoreThenLookup(t *testing.T) {
	c, err := New(Config{Size: MinSize})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	k, e := pack(t, "www.example.", wire.TypeA, 1000)
	buf := c.NewBuf()
	if _, ok := c.Lookup(&k, 1000, buf); ok {
		t.Fatal("found in an empty cache")
	}
	if !c.Store(&k, e, 1000, c.Epoch()) {
		t.Fatal("not stored")
	}
	got, ok := c.Lookup(&k, 1001, buf)
	if !ok || string(got) != string(e) {
		t.Fatalf("got %x, want %x", got, e)
	}
	if _, ok := c.Lookup(&k, 1300, buf); ok {
		t.Fatal("found when expired, with no stale limit")
	}
	c.FlushName(wire.MustName("www.example."), 0)
	if _, ok := c.Lookup(&k, 1001, buf); ok {
		t.Fatal("found after the flush")
	}
}

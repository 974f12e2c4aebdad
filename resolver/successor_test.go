package resolver

import (
	"testing"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver/serve"
	"bonsai/wire"
)

// What a succeeded resolver finds is kept until there is a flush, and then no more: the flush may be
// about what it goes by.
func TestRetiredDoesNotUndoFlushes(t *testing.T) {
	old := newTestResolver(t, nil)
	next, err := old.Succeed(old.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	old.Retire()
	old.Retire() // harmless
	for _, want := range []bool{true, false} {
		name := "www.flushed.example."
		if !want {
			next.FlushTree(wire.MustName("flushed.example."))
		}
		c := newLink(entry.KindAnswer, wire.MustName(name), wire.TypeA)
		c.Answer = []wire.RRset{{Owner: c.QName, Type: wire.TypeA, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{{192, 0, 2, 1}}}}
		c.Lifetime = 60
		for r, want := range map[*Resolver]bool{old: want, next: true} {
			next.cache.Remove(keyFor(name))
			r.store(c, testNow, r.epoch(), &missing{})
			if _, kept := next.cache.Lookup(keyFor(name), testNow, next.cache.NewBuf()); kept != want {
				t.Errorf("%s by the old one %v: kept %v, want %v", name, r == old, kept, want)
			}
		}
	}
	if next.stats != old.stats || next.cookies != old.cookies || next.exchange != old.exchange {
		t.Error("counters, cookies or the memory of servers are not handed on")
	}
	config := old.config
	config.Exchange.EDNSSize = 4096
	other, err := next.Succeed(config)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.exchange == next.exchange {
		t.Error("another configuration of the exchange, and the same client")
	}
}

func keyFor(name string) *cache.Key {
	k := cache.MakeKey(entry.KindAnswer, 0, wire.MustName(name), wire.TypeA)
	return &k
}

// A hit behind a Switch allocates nothing, either, and goes over to the successor.
func TestSwitchAllocs(t *testing.T) {
	r := newTestResolver(t, nil)
	batch, results := hitBatch(t, r, 4)
	s := NewSwitch(r)
	w := s.NewWorker()
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
	next, err := r.Succeed(r.config)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	s.Set(next)
	run()
	for i := range results {
		if results[i] != serve.Answered {
			t.Errorf("query %d: %v", i, results[i])
		}
	}
	if w.(*switched).worker.r != next {
		t.Error("it stays with the old one")
	}
}

// A chain of aliases goes with what it leads through, and chains that lead elsewhere stay.
func TestFlushTakesChains(t *testing.T) {
	r := newTestResolver(t, nil)
	for _, target := range []string{"www.flushed.example.", "www.kept.example."} {
		c := newLink(entry.KindAnswer, wire.MustName("to."+target), wire.TypeA)
		c.QName = wire.MustName("alias" + target[4:8] + ".other.example.")
		c.Answer = []wire.RRset{
			{Owner: c.QName, Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{[]byte(wire.MustName(target))}},
			{Owner: wire.MustName(target), Type: wire.TypeA, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{{192, 0, 2, 1}}},
		}
		r.put(t, &c.Content, testNow)
	}
	r.FlushTree(wire.MustName("flushed.example."))
	for name, want := range map[string]bool{"aliasflus.other.example.": false, "aliaskept.other.example.": true} {
		if _, ok := r.cache.Lookup(keyFor(name), testNow, r.cache.NewBuf()); ok != want {
			t.Errorf("%s: kept %v, want %v", name, ok, want)
		}
	}
	r.FlushName(wire.MustName("www.kept.example."), wire.TypeA)
	if _, ok := r.cache.Lookup(keyFor("aliaskept.other.example."), testNow, r.cache.NewBuf()); ok {
		t.Error("the chain outlives its last link")
	}
}

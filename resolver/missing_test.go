package resolver

import (
	"testing"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// TestMissing: what is known to be missing is not looked for and not taken away, unless something was
// stored under the name since.
func TestMissing(t *testing.T) {
	name := wire.MustName("www.example.com.")
	denial := newLink(entry.KindDenial, name, wire.TypeNone)
	denial.Content = *answerA("www.example.com.", 300, wire.Insecure)
	denial.Kind, denial.QType, denial.RCODE, denial.Lifetime = entry.KindDenial, wire.TypeNone, wire.RCODENXDomain, 300
	answer := &link{Content: *answerA("www.example.com.", 300, wire.Insecure)}
	answer.Lifetime = 300
	for _, c := range []struct {
		what  string
		after bool // a denial is stored after the lookup
		alone bool
	}{
		{"nothing else", false, true},
		{"stored since", true, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newTestResolver(t, nil)
			tree := r.newTree()
			tree.missing = missing{question{name: name, t: wire.TypeA}, r.writes.of(name).Load()}
			if c.after {
				r.store(denial, testNow, r.epoch(), &missing{})
			}
			if got := tree.isMissing(name, wire.TypeA); got != c.alone {
				t.Errorf("known to be missing: %v", got)
			}
			if tree.isMissing(name, wire.TypeAAAA) || tree.isMissing(wire.MustName("example.com."), wire.TypeA) {
				t.Error("what was not looked for is known to be missing")
			}
			r.store(answer, testNow, r.epoch(), &tree.missing)
			key := cache.MakeKey(entry.KindDenial, 0, name, wire.TypeNone)
			if _, ok := r.cache.Lookup(&key, testNow, r.cache.NewBuf()); ok {
				t.Error("the denial is still there")
			}
			if tree.isMissing(name, wire.TypeA) {
				t.Error("what was stored is known to be missing")
			}
		})
	}
}

// TestColdLookups counts what a cold name below a known cut looks up: answer, denial and failure for the
// hit, an alias, three cuts.
func TestColdLookups(t *testing.T) {
	c := newColdClient(t)
	c.next()
	before := c.r.cache.Stats()
	c.next()
	after := c.r.cache.Stats()
	if n := after.Hits + after.Misses - before.Hits - before.Misses; n > 7 {
		t.Errorf("%d lookups", n)
	}
}

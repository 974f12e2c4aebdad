package cache

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// colliding returns names of one hash under every seed: an attacker can make as many as they want.
//
// XXH64 takes input in stripes of four words, and of each word x mixes acc = rotl(acc + x·P2, 31)·P1
// for a sum acc that only every fourth word goes into. Adding m·2³³ to acc + x·P2 adds m after the
// rotation, unless it carries out of 31 bits, and so m·P1 to acc; the word of the next stripe can
// take that away again. Both words lie in the first label, whose length and the names' letters, all
// lower case, stay as they are. The seed is mixed in behind; it changes none of this.
func colliding(t testing.TB, n int) []wire.Name {
	const p1, p2 = 11400714785074694791, 14029467366897019727
	inverse := uint64(p2) // of p2, modulo 2⁶⁴, by Newton's method
	for range 6 {
		inverse *= 2 - p2*inverse
	}
	base := append([]byte{63}, bytes.Repeat([]byte("bonsai-"), 9)...)
	base = append(base, "\x07example\x00"...)
	// The words of the second lane lie at 8 and, a stripe on, at 40.
	first, second := binary.LittleEndian.Uint64(base[8:]), binary.LittleEndian.Uint64(base[40:])
	var names []wire.Name
	for m := uint64(0); len(names) < n; m++ {
		name := bytes.Clone(base)
		binary.LittleEndian.PutUint64(name[8:], first+m<<33*inverse)
		binary.LittleEndian.PutUint64(name[40:], second-m*p1*inverse)
		if wire.Name(name).Canonical() == wire.Name(name) {
			names = append(names, wire.Name(name))
		}
	}
	if !names[n-1].Valid() || names[0] == names[n-1] {
		t.Fatalf("%q is no name", names[n-1])
	}
	return names
}

func TestCollidingNamesCollide(t *testing.T) {
	defer func(s uint64) { seed = s }(seed)
	names := colliding(t, 1000)
	for range 5 {
		seed = rand.Uint64()
		want := hashName(string(names[0]))
		for i, name := range names {
			if got := hashName(string(name)); got != want {
				t.Fatalf("seed %x: hash of name %d is %x, want %x", seed, i, got, want)
			}
		}
	}
}

// TestCollisionsCostTheirOwn floods an index with keys of one hash. They get the places of two buckets
// and push nobody else out.
func TestCollisionsCostTheirOwn(t *testing.T) {
	c, err := New(Config{Size: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const others, flood = 20000, 2000
	fillMix(t, c, 0, others)
	before, had := c.Stats(), foundOfMix(c, others)
	buf := c.NewBuf()
	for _, n := range colliding(t, flood) {
		q := question{entry.KindAnswer, 0, n, wire.TypeA}
		k := q.key()
		if !c.Store(&k, packed(t, q, 1, 8, 1000, 300, false), 1000, c.Epoch()) {
			t.Fatal("not stored")
		}
		if _, ok := c.Lookup(&k, 1000, buf); !ok {
			t.Fatal("the newest of the colliding names is not found")
		}
	}
	checkAll(t, c)
	st := c.Stats()
	lost := had - foundOfMix(c, others)
	found := int(st.Entries-before.Entries) + lost
	t.Logf("of the flood %d are found, of the others %d were lost; %d displaced", found, lost, st.Displaced-before.Displaced)
	if found > 2*slots || st.Crowded-before.Crowded < flood-2*slots {
		t.Errorf("%d of the flood are found, more than two buckets hold; %d gave way", found, st.Crowded-before.Crowded)
	}
	// Those that cannot move, because both their buckets are the flooded ones, may go.
	if lost > 2 {
		t.Errorf("%d other entries were lost", lost)
	}
}

// foundOfMix counts which of the first n names of the mix are found.
func foundOfMix(c *Cache, n uint64) (found int) {
	var name []byte
	buf := c.NewBuf()
	for i := range n {
		var k Key
		name, k = mixKey(name[:0], i)
		if _, ok := c.Lookup(&k, 1000, buf); ok {
			found++
		}
	}
	return found
}

// TestAddresses holds for many counts of buckets: candidates lie within, growing by one moves a
// candidate to the new bucket or nowhere, and from the new bucket's parent only.
func TestAddresses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var candidates [300]uint32
	for i := range candidates {
		candidates[i] = r.Uint32()
	}
	for n := uint32(firstBuckets); n < 3000; n++ {
		a, b := parents(n)
		for _, x := range candidates {
			checkStep(t, n, addressA(x, n), addressA(x, n+1), a)
			checkStep(t, n, addressB(x, n), addressB(x, n+1), b)
		}
	}
	// No bucket is left out, or has more than its share by much.
	const n, each = 10_000, 50
	var counts [2][n]int
	for range n * each {
		counts[0][addressA(r.Uint32(), n)]++
		counts[1][addressB(r.Uint32(), n)]++
	}
	for which := range counts {
		for i, c := range counts[which] {
			if c == 0 || c > 4*each {
				t.Fatalf("bucket %d of %d has %d of %d candidates", i, n, c, n*each)
			}
		}
	}
}

func checkStep(t *testing.T, n, before, after, parent uint32) {
	t.Helper()
	if before >= n || after > n {
		t.Fatalf("with %d buckets: bucket %d, then %d", n, before, after)
	}
	if after != before && (after != n || before != parent) {
		t.Fatalf("adding bucket %d with parent %d moves a candidate from %d to %d", n, parent, before, after)
	}
}

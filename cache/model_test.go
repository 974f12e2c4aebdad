package cache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// question is a key that a test can keep.
type question struct {
	kind  entry.Kind
	realm uint16
	name  wire.Name
	qtype wire.Type
}

func (q question) key() Key { return MakeKey(q.kind, q.realm, q.name, q.qtype) }

// packed returns an entry of about size bytes for q whose RDATA is drawn from version alone.
func packed(t testing.TB, q question, version uint64, size int, now, lifetime uint32, used bool) entry.Entry {
	t.Helper()
	rdata := make([]byte, max(8, size))
	binary.BigEndian.PutUint64(rdata, version)
	for i := 8; i < len(rdata); i++ {
		rdata[i] = byte(version>>(i%8)) + byte(i)
	}
	e, err := entry.Pack(nil, &entry.Content{
		Kind: q.kind, Realm: q.realm, QName: q.name, QType: q.qtype, Lifetime: lifetime, Used: used,
		Answer: []wire.RRset{{Owner: q.name, Type: wire.TypeNULL, Class: wire.ClassIN, TTL: lifetime, RDATA: [][]byte{rdata}}},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// model is what a Cache is, but for forgetting: a map.
type model map[question]entry.Entry

func (m model) flush(match func(question) bool) {
	for q := range m {
		if match(q) {
			delete(m, q)
		}
	}
}

func randomQuestion(r *rand.Rand, names int) question {
	zone := []string{"example.", "sub.example.", "test.", ""}[r.IntN(4)]
	return question{
		kind:  []entry.Kind{entry.KindAnswer, entry.KindAnswer, entry.KindAnswer, entry.KindCut}[r.IntN(4)],
		realm: uint16(r.IntN(20) / 19),
		name:  wire.MustName(fmt.Sprintf("n%d.%s", r.IntN(names), zone)),
		qtype: []wire.Type{wire.TypeA, wire.TypeAAAA, wire.TypeTXT, wire.TypeNone}[r.IntN(4)],
	}
}

// TestModel does the same at random to a cache and to a map. What the cache finds must be what the
// map has; where all fits, the cache must find all.
func TestModel(t *testing.T) {
	// With the same seed the same names share buckets, and none has to give way where all fits.
	defer func(s uint64) { seed = s }(seed)
	seed = 1
	for _, test := range []struct {
		name       string
		names      int
		size       int64
		sizes      int // of entries, in bytes, at most
		steps      int
		forgetting bool
	}{
		{"all fits", 30, MinSize, 60, 10000, false},
		{"too much", 200, MinSize, 1500, 30000, true},
		{"large entries", 100, MinSize, 9000, 4000, true},
		{"two shards", 30000, 2 * minShard, 9000, 10000, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			c, err := New(Config{Size: test.size, StaleLimit: 50})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			m, now, buf := model{}, uint32(1000), c.NewBuf()
			for step := range test.steps {
				modelStep(t, r, c, m, now, buf, test.names, test.sizes, test.forgetting)
				if r.IntN(100) == 0 {
					now += uint32(r.IntN(20))
				}
				if step%(test.steps/10) == 0 {
					checkAll(t, c)
				}
			}
			checkAll(t, c)
			checkWalk(t, c, m)
			st := c.Stats()
			t.Logf("%+v", st)
			if n := st.Unused + st.Hurried + st.Crowded; n > 0 && !test.forgetting {
				t.Errorf("%d entries forgotten for want of room, want none", n)
			}
			if st.Touched > uint64(test.size) {
				t.Errorf("touched %d bytes of %d", st.Touched, test.size)
			}
		})
	}
}

func modelStep(t *testing.T, r *rand.Rand, c *Cache, m model, now uint32, buf []byte, names, sizes int, forgetting bool) {
	t.Helper()
	q := randomQuestion(r, names)
	k := q.key()
	switch p := r.IntN(1000); {
	case p < 500: // an expired entry may be forgotten before the stale limit
		got, ok := c.Lookup(&k, now, buf)
		want := m[q]
		expected := want != nil && !isOver(want.Expires(), now, 50)
		if ok && (!expected || string(got) != string(want)) {
			t.Fatalf("%v: got %x, want %x", q, got, want)
		}
		if expected && !ok && !forgetting && want.Expires() > now {
			t.Fatalf("%v: not found", q)
		}
		if !ok && forgetting {
			delete(m, q)
		}
	case p < 980:
		e := packed(t, q, r.Uint64(), r.IntN(sizes), now, uint32(r.IntN(200)+1), r.IntN(20) == 0)
		if c.Store(&k, e, now, c.Epoch()) {
			m[q] = e
		} else if len(e) < 2000 {
			t.Fatalf("%v: %d bytes not stored", q, len(e))
		}
	case p < 990:
		ok := c.Remove(&k)
		if want := m[q]; !forgetting && ok != (want != nil) && (want == nil || want.Expires() > now) {
			t.Fatalf("%v: removed: %v", q, ok)
		}
		delete(m, q)
	case p < 996:
		c.FlushName(q.name, q.qtype)
		m.flush(func(o question) bool {
			return o.name == q.name && (q.qtype == 0 || o.qtype == q.qtype || o.qtype == 0)
		})
	case p < 998:
		c.FlushTree(q.name)
		m.flush(func(o question) bool { return o.name.IsSubdomainOf(q.name) })
	default:
		c.Flush(func(e entry.Entry) bool { return e.Realm() == 1 })
		m.flush(func(o question) bool { return o.realm == 1 })
	}
}

func checkAll(t testing.TB, c *Cache) {
	t.Helper()
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		err := s.check()
		s.mu.Unlock()
		if err != nil {
			t.Fatalf("shard %d: %v", i, err)
		}
	}
}

// checkWalk holds a walk against the model.
func checkWalk(t *testing.T, c *Cache, m model) {
	t.Helper()
	seen := 0
	c.Walk(func(e entry.Entry) bool {
		seen++
		q := question{e.Kind(), e.Realm(), wire.Name(e.QName()), e.QType()}
		if want, ok := m[q]; ok && string(want) != string(e) {
			t.Errorf("walk: %v: got %x, want %x", q, e, want)
		}
		return true
	})
	if n := int(c.Stats().Entries); n != seen {
		t.Errorf("walk: %d entries, counted %d", seen, n)
	}
}

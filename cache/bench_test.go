package cache

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// mixName appends the i-th name of an endless list: realistic lengths, nothing kept.
func mixName(dst []byte, i uint64) []byte {
	h := i * 0x9E3779B97F4A7C15
	h ^= h >> 29
	label := func(n int) {
		at := len(dst)
		dst = append(dst, 0)
		dst = strconv.AppendUint(dst, h>>1, 36)
		for len(dst)-at-1 < n {
			dst = append(dst, 'x')
		}
		dst = dst[:at+1+n]
		dst[at] = byte(n)
	}
	if h%10 < 7 {
		dst = append(dst, "\x03www"...)
	}
	// The label begins with the index so that names differ.
	at := len(dst)
	dst = append(dst, 0)
	dst = strconv.AppendUint(dst, i, 36)
	dst[at] = byte(len(dst) - at - 1)
	label(3 + int(h>>40%10))
	return append(dst, []string{"\x03com\x00", "\x03net\x00", "\x02de\x00", "\x02co\x02uk\x00"}[h>>50%4]...)
}

// mixEntry appends the entry of the i-th name: 56 % A, 25 % AAAA, 19 % TXT.
func mixEntry(dst, name []byte, i uint64, now uint32) (entry.Entry, wire.Type) {
	h := (i + 1) * 0xD6E8FEB86659FD93
	h ^= h >> 31
	var rdata [4][]byte
	var bytes [1 + 256]byte
	binary.LittleEndian.PutUint64(bytes[1:], h)
	binary.LittleEndian.PutUint64(bytes[30:], h*7)
	n, t := 1+int(h>>20%4), wire.TypeA
	switch p := h % 100; {
	case p < 56:
		for j := range n {
			rdata[j] = bytes[1+j : 5+j]
		}
	case p < 81:
		t = wire.TypeAAAA
		for j := range n {
			rdata[j] = bytes[1+j : 17+j]
		}
	default:
		t, n = wire.TypeTXT, 1
		size := 20 + int(h>>30%221)
		bytes[0] = byte(size)
		rdata[0] = bytes[:1+size]
	}
	owner := wire.BorrowName(name)
	sets := [1]wire.RRset{{Owner: owner, Type: t, Class: wire.ClassIN, TTL: 3600, RDATA: rdata[:n]}}
	c := entry.Content{Kind: entry.KindAnswer, QName: owner, QType: t, Answer: sets[:]}
	e, err := entry.Pack(dst, &c, now)
	if err != nil {
		panic(err)
	}
	return e, t
}

func fillMix(t testing.TB, c *Cache, from, to uint64) {
	var name, buf []byte
	for i := from; i < to; i++ {
		name = mixName(name[:0], i)
		e, qtype := mixEntry(buf[:0], name, i, 1000)
		k := MakeKey(entry.KindAnswer, 0, name, qtype)
		if !c.Store(&k, e, 1000, 0) {
			t.Fatal("not stored")
		}
		buf = e
	}
}

// mixKey appends the i-th name to dst, and returns its key.
func mixKey(dst []byte, i uint64) ([]byte, Key) {
	all := mixName(dst, i)
	h := (i + 1) * 0xD6E8FEB86659FD93
	h ^= h >> 31
	t := wire.TypeTXT
	if p := h % 100; p < 56 {
		t = wire.TypeA
	} else if p < 81 {
		t = wire.TypeAAAA
	}
	return all, MakeKey(entry.KindAnswer, 0, all[len(dst):], t)
}

func newMix(b testing.TB, size int64, n uint64) *Cache {
	c, err := New(Config{Size: size})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	fillMix(b, c, 0, n)
	return c
}

// questions are keys to look up, with their names in one piece.
type questions struct {
	names []byte
	ends  []uint32
	types []wire.Type
}

func mixQuestions(n uint64) *questions {
	q := &questions{}
	for i := range n {
		var k Key
		q.names, k = mixKey(q.names, i)
		q.ends, q.types = append(q.ends, uint32(len(q.names))), append(q.types, k.QType())
	}
	return q
}

func (q *questions) key(i uint64) Key {
	start := uint32(0)
	if i > 0 {
		start = q.ends[i-1]
	}
	return MakeKey(entry.KindAnswer, 0, q.names[start:q.ends[i]], q.types[i])
}

// BenchmarkLookup looks up a million names at random, 10,000, and one; by one goroutine and by as
// many as there are CPUs; one at a time and 32 at once.
func BenchmarkLookup(b *testing.B) {
	const n = 1_000_000
	c, q := newMix(b, 256<<20, n), mixQuestions(n)
	for _, bench := range []struct {
		name string
		of   uint64
	}{{"random", n}, {"hot", 10_000}, {"one", 1}} {
		run := func(seed uint64, next func() bool) {
			r, buf := rand.NewPCG(seed, 1), c.NewBuf()
			for next() {
				k := q.key(r.Uint64() % bench.of)
				c.Lookup(&k, 1001, buf)
			}
		}
		b.Run(bench.name, func(b *testing.B) { run(1, b.Loop) })
		b.Run(bench.name+"/parallel", func(b *testing.B) {
			var seed atomic.Uint64
			b.RunParallel(func(pb *testing.PB) { run(seed.Add(1), pb.Next) })
		})
		b.Run(bench.name+"/batch", func(b *testing.B) {
			r, buf := rand.NewPCG(1, 1), c.NewBuf()
			var keys [32]Key
			for i := 0; i < b.N; i += len(keys) {
				for j := range keys {
					keys[j] = q.key(r.Uint64() % bench.of)
					c.Prefetch(&keys[j])
				}
				for j := range keys {
					c.PrefetchEntry(&keys[j])
				}
				for j := range keys {
					c.Lookup(&keys[j], 1001, buf)
				}
			}
		})
		b.Run(bench.name+"/key alone", func(b *testing.B) {
			r, hash := rand.NewPCG(1, 1), uint64(0)
			for b.Loop() {
				k := q.key(r.Uint64() % bench.of)
				hash += k.hash
			}
			_ = hash
		})
	}
}

// BenchmarkStore stores new names, in an empty cache and in one that is full.
func BenchmarkStore(b *testing.B) {
	for _, bench := range []struct {
		name string
		size int64
		n    uint64
	}{{"filling", 2 << 30, 0}, {"full", 64 << 20, 1_500_000}} {
		b.Run(bench.name, func(b *testing.B) {
			c := newMix(b, bench.size, bench.n)
			i := bench.n
			name, buf := make([]byte, 0, 256), make([]byte, 0, 1024)
			for b.Loop() {
				name = mixName(name[:0], i)
				e, qtype := mixEntry(buf[:0], name, i, 1000)
				k := MakeKey(entry.KindAnswer, 0, name, qtype)
				c.Store(&k, e, 1000, 0)
				i++
			}
		})
	}
	b.Run("packing alone", func(b *testing.B) {
		name, buf, i := make([]byte, 0, 256), make([]byte, 0, 1024), uint64(0)
		for b.Loop() {
			name = mixName(name[:0], i)
			mixEntry(buf[:0], name, i, 1000)
			i++
		}
	})
}

// BenchmarkMemory reports what a million entries take beyond their own bytes.
func BenchmarkMemory(b *testing.B) {
	for _, bench := range []struct {
		name string
		size int64
	}{{"128M", 128 << 20}, {"3G", 3 << 30}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				c := newMix(b, bench.size, 1_000_000)
				st := c.Stats()
				n := float64(st.Entries)
				bytes := 0.0
				c.Walk(func(e entry.Entry) bool { bytes += float64(len(e)); return true })
				b.ReportMetric(n, "entries")
				b.ReportMetric(bytes/n, "own/entry")
				b.ReportMetric(float64(st.IndexBytes)/n, "index/entry")
				b.ReportMetric((float64(st.Touched)-bytes)/n, "overhead/entry")
				b.ReportMetric(float64(st.Crowded), "crowded")
				b.ReportMetric(float64(st.Displaced)/n, "displaced/entry")
				c.Close()
			}
		})
	}
}

package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

func keepAll(entry.Entry) bool { return true }

// dumpOf returns copies of the blocks of a dump.
func dumpOf(t testing.TB, c *Cache) (blocks [][]byte, entries int) {
	t.Helper()
	entries, err := c.Dump(keepAll, func(b []byte) error {
		blocks = append(blocks, bytes.Clone(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return blocks, entries
}

// fillFrom loads the blocks of a dump, from two goroutines.
func fillFrom(t testing.TB, c *Cache, blocks [][]byte, entries, bytes uint64) (loaded int) {
	t.Helper()
	var wait sync.WaitGroup
	var counts [2]int
	for part := range counts {
		l := c.NewLoader(entries, bytes)
		wait.Go(func() {
			for i := part; i < len(blocks); i += len(counts) {
				n, err := l.Load(blocks[i], 1000, keepAll)
				if err != nil {
					t.Error(err)
				}
				counts[part] += n
			}
		})
	}
	wait.Wait()
	return counts[0] + counts[1]
}

// missing counts those of the first n entries of the mix that c does not have as they were stored.
func missing(t *testing.T, c *Cache, n uint64) (absent int) {
	t.Helper()
	buf := c.NewBuf()
	var name, want []byte
	for i := range n {
		var k Key
		name, k = mixKey(name[:0], i)
		want, _ = mixEntry(want[:0], name, i, 1000)
		if got, ok := c.Lookup(&k, 1000, buf); !ok {
			absent++
		} else if !bytes.Equal(got, want) {
			t.Fatalf("%s: % x, want % x", k.QName(), []byte(got), want)
		}
	}
	return absent
}

// What was dumped comes back byte for byte, into a cache with more shards, as many or fewer.
func TestDumpLoad(t *testing.T) {
	const entries = 14_000
	from := newCache(t, 32<<20, 0)
	fillMix(t, from, 0, entries)
	blocks, n := dumpOf(t, from)
	// A few may have had to give way, for want of a slot.
	const few = entries / 100
	if n < entries-few || n > entries || len(blocks) < 2 {
		t.Fatalf("%d entries in %d blocks", n, len(blocks))
	}
	for name, size := range map[string]int64{"one shard": 8 << 20, "same": 32 << 20, "more shards": 64 << 20} {
		for said, about := range map[string]uint64{"told how many": entries, "told nothing": 0, "told too many": 1 << 40} {
			if size != 8<<20 && about == 1<<40 {
				continue
			}
			t.Run(name+", "+said, func(t *testing.T) {
				to := newCache(t, size, 0)
				loaded := fillFrom(t, to, blocks, about, from.Stats().EntryBytes)
				checkAll(t, to)
				if absent := missing(t, to, entries); loaded != n || absent > few {
					t.Errorf("%d loaded, %d of %d missing", loaded, absent, entries)
				}
				if again := fillFrom(t, to, blocks, about, 0); again > few {
					t.Errorf("%d loaded once more", again)
				}
				fillMix(t, to, entries, entries+5000)
				checkAll(t, to)
			})
		}
	}
	t.Run("too small", func(t *testing.T) {
		to := newCache(t, MinSize, 0)
		fillFrom(t, to, blocks, entries, from.Stats().EntryBytes)
		checkAll(t, to)
		if absent := missing(t, to, entries); absent > entries/2 {
			t.Errorf("%d of %d missing in too little room", absent, entries)
		}
	})
}

// Uses come back too: what was asked for most outlives the rest.
func TestDumpKeepsUses(t *testing.T) {
	from := newCache(t, 8<<20, 0)
	fillMix(t, from, 0, 100)
	_, k := mixKey(nil, 7)
	buf := from.NewBuf()
	for range 3 {
		from.Lookup(&k, 1000, buf)
	}
	to := newCache(t, 8<<20, 0)
	blocks, _ := dumpOf(t, from)
	fillFrom(t, to, blocks, 100, 0)
	for i := range uint64(100) {
		_, k := mixKey(nil, i)
		s := to.shard(&k)
		p := s.placeOf(k.hash)
		r, ok := s.find(&k, &p)
		if !ok || (r.b.use(r.i) == 3) != (i == 7) {
			t.Errorf("entry %d: %v, %d uses", i, ok, r.b.use(r.i))
		}
	}
}

// A load never brings back what was flushed after it began, and takes no place of what is newer.
func TestLoadGivesWay(t *testing.T) {
	from := newCache(t, 8<<20, 0)
	fillMix(t, from, 0, 10)
	blocks, _ := dumpOf(t, from)
	to := newCache(t, 8<<20, 0)
	name, k := mixKey(nil, 3)
	newer, _ := mixEntry(nil, name, 3, 2000)
	to.Store(&k, newer, 1000, to.Epoch())
	l := to.NewLoader(10, 0)
	gone, flushed := mixKey(nil, 5)
	to.FlushName(wire.Name(gone), 0)
	n, err := l.Load(blocks[0], 1000, keepAll)
	if n != 8 || err != nil {
		t.Errorf("%d loaded, want 8: %v", n, err)
	}
	buf := to.NewBuf()
	if got, ok := to.Lookup(&k, 1000, buf); !ok || got.Expires() != newer.Expires() {
		t.Errorf("the newer entry: %v, expires %d, want %d", ok, got.Expires(), newer.Expires())
	}
	if _, ok := to.Lookup(&flushed, 1000, buf); ok {
		t.Error("what was flushed is back")
	}
	// Once it is expired the newer one is the old one.
	if n, _ := to.NewLoader(0, 0).Load(blocks[0], newer.Expires(), keepAll); n != 10 {
		t.Errorf("%d loaded over what is expired, want 10", n)
	}
	checkAll(t, to)
}

// Of a block with anything in it that is no entry nothing is stored.
func TestLoadDamaged(t *testing.T) {
	from := newCache(t, 8<<20, 0)
	fillMix(t, from, 0, 50)
	blocks, _ := dumpOf(t, from)
	whole := blocks[0]
	first := int(binary.LittleEndian.Uint32(whole) & dumpLength)
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(whole)) }
	for name, block := range map[string][]byte{
		"cut":            whole[:len(whole)-1],
		"cut in a head":  append(bytes.Clone(whole), 1, 2),
		"long":           edit(func(b []byte) []byte { b[2] = 0xFF; return b }),
		"one byte short": edit(func(b []byte) []byte { b[0]--; return b }),
		"empty entry":    append(bytes.Clone(whole), 0, 0, 0, 0),
		"no name":        edit(func(b []byte) []byte { b[dumpHead+6] = 0xC0; return b }),
		"no kind":        edit(func(b []byte) []byte { b[dumpHead+4] |= 0xE0; return b }),
		"more behind":    append(binary.LittleEndian.AppendUint32(nil, uint32(first+1)), append(bytes.Clone(whole[dumpHead:dumpHead+first]), 0)...),
	} {
		to := newCache(t, 8<<20, 0)
		n, err := to.NewLoader(0, 0).Load(block, 1000, keepAll)
		if !errors.Is(err, ErrBlock) || n != 0 || to.Stats().Entries != 0 {
			t.Errorf("%s: %d loaded, %d there, %v", name, n, to.Stats().Entries, err)
		}
	}
}

// A dump goes on while others store, look up and flush, and gives only whole entries. The error of who
// writes ends it.
func TestDumpBesides(t *testing.T) {
	c := newCache(t, 8<<20, 0)
	fillMix(t, c, 0, 5000)
	var wait sync.WaitGroup
	stop := make(chan struct{})
	wait.Go(func() {
		for i := uint64(5000); ; i++ {
			select {
			case <-stop:
				return
			default:
				name, k := mixKey(nil, i)
				e, _ := mixEntry(nil, name, i, 1000)
				c.Store(&k, e, 1000, c.Epoch())
				c.FlushName(wire.Name(name), 0)
			}
		}
	})
	for range 3 {
		blocks, n := dumpOf(t, c)
		to := newCache(t, 16<<20, 0)
		if loaded := fillFrom(t, to, blocks, uint64(n), 0); loaded == 0 || loaded > n {
			t.Errorf("%d loaded of %d", loaded, n)
		}
		checkAll(t, to)
	}
	close(stop)
	wait.Wait()
	full := errors.New("full")
	calls := 0
	if _, err := c.Dump(keepAll, func([]byte) error { calls++; return full }); !errors.Is(err, full) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if n, err := c.Dump(func(entry.Entry) bool { return false }, func([]byte) error { return full }); n != 0 || err != nil {
		t.Errorf("nothing to write: %d, %v", n, err)
	}
}

// How long a cache takes to fill from a dump, and to dump: bytes of entries a second.
func BenchmarkDump(b *testing.B) {
	const size = 256 << 20
	from := newCache(b, size, 0)
	fillMix(b, from, 0, 2_000_000)
	blocks, entries := dumpOf(b, from)
	total := from.Stats().EntryBytes
	b.Run("dump", func(b *testing.B) {
		b.SetBytes(int64(total))
		for b.Loop() {
			_, _ = from.Dump(keepAll, func([]byte) error { return nil })
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(total)*(1<<30), "s/GiB")
	})
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(total))
		for b.Loop() {
			b.StopTimer()
			to := newCache(b, size, 0)
			b.StartTimer()
			fillFrom(b, to, blocks, uint64(entries), total)
			b.StopTimer()
			if n := to.Stats().Entries; n < uint64(entries)*99/100 {
				b.Fatalf("%d entries of %d", n, entries)
			}
			to.Close()
			b.StartTimer()
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(total)*(1<<30), "s/GiB")
	})
}

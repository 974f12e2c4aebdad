package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// runOnce runs a daemon on the lab while use lasts, and returns what it logged.
func runOnce(t *testing.T, edit func(*Config), use func(d *daemon)) string {
	t.Helper()
	w, err := internet()
	if err != nil {
		t.Fatal(err)
	}
	c := defaults()
	c.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	c.CacheSize = 8 << 20
	if err := inLab(c, w); err != nil {
		t.Fatal(err)
	}
	edit(c)
	var log bytes.Buffer
	d, err := newDaemon(c, w, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	use(d)
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	return log.String()
}

var warmNames = []string{"www.ecdsa.lab.", "www.unsigned.lab.", "nothing.ecdsa.lab.", "start.ed25519.lab.", "www.rsa.lab."}

func askWarm(t *testing.T, d *daemon) (answers []string, missed uint64) {
	t.Helper()
	for _, name := range warmNames {
		got := query(t, d.addr(), "udp", name, dns.TypeA, nil)
		answers = append(answers, fmt.Sprint(got.Rcode, got.AuthenticatedData, len(got.Answer), len(got.Ns)))
	}
	return answers, misses(d)
}

// What was known before a restart is known after it, but for what another configuration affects.
func TestRestartWarm(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache")
	var before []string
	log := runOnce(t, func(c *Config) { c.CacheFile = file }, func(d *daemon) { before, _ = askWarm(t, d) })
	if !strings.Contains(log, "no cache file yet") || !strings.Contains(log, "cache saved") {
		t.Errorf("first run: %s", log)
	}
	for _, row := range []struct {
		name   string
		edit   func(*Config)
		misses uint64
		says   string
	}{
		{"same", func(*Config) {}, 0, "cache loaded"},
		{"negative anchor", func(c *Config) { c.Insecure = []wire.Name{wire.MustName("rsa.lab.")} }, 2, "cache loaded"}, // start.ed25519 leads there
		{"anchors", func(c *Config) { c.Anchors = c.Anchors[:0:0] }, 5, "cache loaded"},
		{"validation off", func(c *Config) { c.Validate = false }, 5, "other settings"},
		{"TTL limit", func(c *Config) { c.MaxTTL = 30 }, 5, "cache loaded"},
	} {
		t.Run(row.name, func(t *testing.T) {
			kept, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			own := write(t, "cache", string(kept))
			var after []string
			var missed uint64
			log := runOnce(t, func(c *Config) { c.CacheFile = own; row.edit(c) }, func(d *daemon) { after, missed = askWarm(t, d) })
			if missed != row.misses || !strings.Contains(log, row.says) {
				t.Errorf("%d misses, want %d; log: %s", missed, row.misses, log)
			}
			if row.misses == 0 && fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("answers %v, before %v", after, before)
			}
		})
	}
}

// A file that is cut, changed, foreign or of the future is left out with one line, and nothing of what
// is wrong in it is served.
func TestBadCacheFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache")
	runOnce(t, func(c *Config) { c.CacheFile = file }, func(d *daemon) { askWarm(t, d) })
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-100] ^= 1
	version := bytes.Clone(whole)
	version[len(cacheMagic)]++
	huge := append(bytes.Clone(whole[:len(cacheMagic)+4]), 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0)
	for name, content := range map[string][]byte{
		"empty": {}, "foreign": []byte("SQLite format 3\x00 and more of it"), "cut": whole[:len(whole)-20], "end missing": whole[:len(whole)-8],
		"flipped": flipped, "version": version, "huge": huge,
	} {
		t.Run(name, func(t *testing.T) {
			bad := write(t, "cache", string(content))
			log := runOnce(t, func(c *Config) { c.CacheFile = bad }, func(d *daemon) {
				if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); !got.AuthenticatedData {
					t.Errorf("%v", got)
				}
			})
			if strings.Count(log, "ignored") != 1 {
				t.Errorf("log: %s", log)
			}
		})
	}
	future := time.Now().Unix() - 1000
	log := runOnce(t, func(c *Config) {
		c.CacheFile = write(t, "cache", string(whole))
		c.ClockFile = write(t, "clock", fmt.Sprint(future))
	},
		func(d *daemon) {})
	if !strings.Contains(log, "still to come") {
		t.Errorf("log: %s", log)
	}
	late := time.Now().Unix() + 40*24*3600
	runOnce(t, func(c *Config) {
		c.CacheFile = write(t, "cache", string(whole))
		c.ClockFile = write(t, "clock", fmt.Sprint(late))
		c.Validate = false
	},
		func(d *daemon) {
			if n := d.cache.Stats().Entries; n != 0 {
				t.Errorf("%d entries 40 days later", n)
			}
		})
}

// A block that its checksum vouches for, but that is none of a cache's, is left out all the same.
func TestForgedCacheFile(t *testing.T) {
	store, err := cache.New(cache.Config{Size: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	header := newCacheHeader(defaults(), nil, 1000)
	var file bytes.Buffer
	if _, err := writeCache(&file, store, &header); err != nil {
		t.Fatal(err)
	}
	file.Truncate(file.Len() - 8)
	if err := writeBlock(&file, []byte("\x10\x00\x00\x00sixteen bytes ..")); err != nil {
		t.Fatal(err)
	}
	if n, err := readCache(&file, store, &header); n != 0 || !errors.Is(err, errCacheFile) || store.Stats().Entries != 0 {
		t.Errorf("%d entries, %v", n, err)
	}
}

// A full disk leaves the old file as it was, and bonsai running.
func TestSaveFails(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/dev/full is Linux's")
	}
	store, err := cache.New(cache.Config{Size: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	if _, err := writeCache(full, store, &cacheHeader{}); err == nil {
		t.Error("a full disk, and no error")
	}
	_, path := startControlled(t, nil)
	if _, err := ctl(t, path, "save"); err == nil || !strings.Contains(err.Error(), "cache-file") {
		t.Errorf("no cache-file: %v", err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	d, path := startControlled(t, func(c *Config) { c.CacheFile = filepath.Join(gone, "cache") })
	mustCtl(t, path, []string{"saved to"}, "dump", "--binary")
	mustCtl(t, path, []string{"loaded from"}, "load")
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := ctl(t, path, "save"); err == nil {
		t.Error("saved in a folder that is gone")
	}
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); got.Rcode != dns.RcodeSuccess {
		t.Errorf("after that: %v", got)
	}
}

// A file is of a run whose clock for expiry went another way than the wall clock, which had been set:
// what is left of a TTL is less by what went by between the runs, no more and no less. An entry that
// would have been stored in the future is left out.
func TestCacheFileClocks(t *testing.T) {
	const saved, wall = 1_000_000, 1_800_000_000 // a clock that began in 1970, and was set
	store, err := cache.New(cache.Config{Size: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	put := func(name string, now uint32) cache.Key {
		n := wire.MustName(name)
		e, err := entry.Pack(nil, &entry.Content{Kind: entry.KindAnswer, QName: n, QType: wire.TypeA, Status: wire.Insecure, Answer: []wire.RRset{
			{Owner: n, Type: wire.TypeA, Class: wire.ClassIN, TTL: 300, RDATA: [][]byte{{192, 0, 2, 1}}}}}, now)
		if err != nil {
			t.Fatal(err)
		}
		key := cache.MakeKey(entry.KindAnswer, 0, n, wire.TypeA)
		if !store.Store(&key, e, now, store.Epoch()) {
			t.Fatal("not stored")
		}
		return key
	}
	good, future := put("good.example.", saved-10), put("future.example.", saved+1000)
	header := newCacheHeader(defaults(), nil, saved)
	header.Wall = wall
	var file bytes.Buffer
	if _, err := writeCache(&file, store, &header); err != nil {
		t.Fatal(err)
	}
	for _, later := range []int64{0, 100, 289, 290} {
		to, err := cache.New(cache.Config{Size: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		now := newCacheHeader(defaults(), nil, uint32(wall+later))
		now.Wall = wall + later
		if _, err := readCache(bytes.NewReader(file.Bytes()), to, &now); err != nil {
			t.Fatal(err)
		}
		buf := to.NewBuf()
		if e, ok := to.Lookup(&good, now.Saved, buf); ok != (later < 290) || ok && int64(e.Expires()-now.Saved) != 290-later {
			t.Errorf("%d s later: found %v, expires %+d s from then", later, ok, int64(e.Expires())-int64(now.Saved))
		}
		if _, ok := to.Lookup(&future, now.Saved, buf); ok {
			t.Errorf("%d s later: an entry of the future is found", later)
		}
	}
	early := newCacheHeader(defaults(), nil, wall-1)
	early.Wall = wall - 1
	if _, err := readCache(bytes.NewReader(file.Bytes()), store, &early); err == nil || !strings.Contains(err.Error(), "still to come") {
		t.Errorf("a file of the future: %v", err)
	}
}

// How fast a cache comes back: bytes of the file a second.
func BenchmarkLoadCache(b *testing.B) {
	const now, entries = 1_800_000_000, 200_000
	store, err := cache.New(cache.Config{Size: 128 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for i := range entries {
		name := wire.MustName(fmt.Sprintf("host%d.some-zone.example.", i))
		e, err := entry.Pack(nil, &entry.Content{Kind: entry.KindAnswer, QName: name, QType: wire.TypeA, Status: wire.Insecure, Answer: []wire.RRset{
			{Owner: name, Type: wire.TypeA, Class: wire.ClassIN, TTL: 3600, RDATA: [][]byte{{192, 0, 2, byte(i)}, {198, 51, 100, byte(i)}}}}}, now)
		if err != nil {
			b.Fatal(err)
		}
		key := cache.MakeKey(entry.KindAnswer, 0, name, wire.TypeA)
		store.Store(&key, e, now, store.Epoch())
	}
	header := newCacheHeader(defaults(), nil, now)
	var file bytes.Buffer
	if _, err := writeCache(&file, store, &header); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		b.StopTimer()
		to, err := cache.New(cache.Config{Size: 128 << 20})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		n, err := readCache(bytes.NewReader(file.Bytes()), to, &header)
		b.StopTimer()
		to.Close()
		if err != nil || n < entries*9/10 {
			b.Fatal(n, err)
		}
		b.StartTimer()
	}
}

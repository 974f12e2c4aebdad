package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// A cache file is the cache as it was, so that a restart begins warm:
//
//	magic, version   foreign files and those of other layouts are told by them
//	header           JSON: when, how much, and what of the configuration the entries hang on
//	blocks           entries, as the cache dumps them
//	an empty block   the file is whole
//
// Header and blocks stand behind their length and their CRC-32C, all numbers are little-endian.
const (
	cacheMagic   = "bonsai cache\n"
	cacheVersion = 2<<16 | entry.LayoutVersion // of the file's own form, and of the entries in it
	maxHeader    = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errCacheFile says that a file is none, or damaged.
var errCacheFile = errors.New("not a whole cache file of this version")

// cacheHeader is what entries depend on besides the servers' word. Where it differs from what holds
// now, what it affects is left out.
type cacheHeader struct {
	Saved    uint32            // by the clock of the entries' expiry
	Wall     int64             // Unix seconds at that moment
	Entries  uint64            // about so many
	Bytes    uint64            // of them
	Layout   string            // of entries
	All      string            // settings that all entries hang on
	Anchors  map[string]string // by zone
	Insecure map[string]string
	Zones    map[string]string
	Realms   map[uint16]string // whose they are, and what they have of their own

	MinTTL, MaxTTL, MaxNegativeTTL uint32
}

func newCacheHeader(c *Config, insecure []wire.Name, now uint32) cacheHeader {
	h := cacheHeader{
		Saved: now, Layout: entryLayout(), MinTTL: c.MinTTL, MaxTTL: c.MaxTTL, MaxNegativeTTL: c.MaxNegativeTTL,
		All:     fmt.Sprint(c.Validate, c.SHA1, c.HardenGlue, c.ValidationTime, c.RootHints),
		Anchors: map[string]string{}, Insecure: map[string]string{}, Zones: map[string]string{}, Realms: map[uint16]string{},
	}
	for _, a := range c.Anchors {
		h.Anchors[a.Zone.Canonical().String()] += fmt.Sprintf("%d %x;", a.Type, a.RDATA)
	}
	for _, n := range insecure {
		h.Insecure[n.Canonical().String()] = "insecure"
	}
	for _, z := range c.Zones {
		h.Zones[z.Zone.Canonical().String()] = fmt.Sprint(z)
	}
	for realm, own := range c.Views.realms() {
		h.Realms[realm] = fmt.Sprint(own.Zones)
	}
	return h
}

// entryLayout tells layouts of entries apart by what they make of a few contents.
func entryLayout() string {
	owner, target := wire.MustName("www.example.org."), wire.MustName("host.example.net.")
	sum := uint32(0)
	for _, c := range []entry.Content{
		{Kind: entry.KindAnswer, QName: owner, QType: wire.TypeA, Status: wire.Secure, Answer: []wire.RRset{
			{Owner: owner, Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: 300, RDATA: [][]byte{[]byte(target)}},
			{Owner: target, Type: wire.TypeA, Class: wire.ClassIN, TTL: 600, RDATA: [][]byte{{192, 0, 2, 1}, {192, 0, 2, 2}}}}},
		{Kind: entry.KindDenial, QName: owner, RCODE: wire.RCODENXDomain, Status: wire.Insecure, Authority: []wire.RRset{
			{Owner: owner.Parent(), Type: wire.TypeSOA, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{append([]byte(target+owner), make([]byte, 20)...)}}}},
		{Kind: entry.KindCut, QName: owner.Parent(), Answer: []wire.RRset{
			{Owner: owner.Parent(), Type: wire.TypeNS, Class: wire.ClassIN, TTL: 3600, RDATA: [][]byte{[]byte(target)}}}},
	} {
		if e, err := entry.Pack(nil, &c, 1_000_000_000); err == nil {
			sum = crc32.Update(sum, castagnoli, e)
		}
	}
	return fmt.Sprintf("%08x", sum)
}

// shift returns what is to be added to the expiry of entries of a file, modulo 2^32, for the clock of now.
// The clock that they go by goes on with time, the wall clock alone tells how much went by between two
// runs, and each run begins with the two as one.
func (h *cacheHeader) shift(now *cacheHeader) uint32 {
	return now.Saved - h.Saved - uint32(now.Wall-h.Wall)
}

// affected returns the names whose entries, with all below them, are not to be had by another header.
func (h *cacheHeader) affected(now *cacheHeader) (names []wire.Name) {
	for _, pair := range [...][2]map[string]string{{h.Anchors, now.Anchors}, {h.Insecure, now.Insecure}, {h.Zones, now.Zones}} {
		a, b := pair[0], pair[1]
		for _, m := range pair {
			for text := range m {
				if n, err := wire.ParseName(text); err == nil && a[text] != b[text] {
					names = append(names, n.Canonical())
				}
			}
		}
	}
	return names
}

// saveCache writes the cache to a file, whole or not at all.
func (d *daemon) saveCache(name string) (entries int, err error) {
	d.reloader.mu.Lock()
	header := newCacheHeader(d.reloader.config, d.reloader.config.Insecure, d.clock.Now())
	header.Wall = d.clock.Unix()
	d.reloader.mu.Unlock()
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	if entries, err = writeCache(f, d.cache, &header); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return 0, err
	}
	return entries, os.Rename(f.Name(), name)
}

func writeCache(w io.Writer, store *cache.Cache, header *cacheHeader) (entries int, err error) {
	stats := store.Stats()
	header.Entries, header.Bytes = stats.Entries, stats.EntryBytes
	text, err := json.Marshal(header)
	if err != nil {
		return 0, err
	}
	begin := binary.LittleEndian.AppendUint32([]byte(cacheMagic), cacheVersion)
	if _, err = w.Write(begin); err != nil {
		return 0, err
	}
	if err = writeBlock(w, text); err != nil {
		return 0, err
	}
	entries, err = store.Dump(func(e entry.Entry) bool { return outlives(e, header.Saved) },
		func(block []byte) error { return writeBlock(w, block) })
	if err == nil {
		err = writeBlock(w, nil)
	}
	return entries, err
}

// outlives says whether an entry is worth keeping: failures, and what did not validate, are found out
// anew.
func outlives(e entry.Entry, now uint32) bool {
	return e.Kind() != entry.KindFailure && e.Kind() != entry.KindUnvalidated && e.Expires() > now
}

func writeBlock(w io.Writer, block []byte) error {
	var head [8]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(block)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(block, castagnoli))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(block)
	return err
}

// readBlock returns the next block, in buf where it fits; empty at the end.
func readBlock(r io.Reader, buf []byte, most uint32) ([]byte, error) {
	block, sum, err := readRaw(r, buf, most)
	if err == nil && crc32.Checksum(block, castagnoli) != sum {
		err = errCacheFile
	}
	return block, err
}

// readRaw is readBlock for one who compares the checksum.
func readRaw(r io.Reader, buf []byte, most uint32) (block []byte, sum uint32, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, errCacheFile
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > most {
		return nil, 0, errCacheFile
	}
	if uint32(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, 0, errCacheFile
	}
	return buf, binary.LittleEndian.Uint32(head[4:]), nil
}

// loadCache brings a cache file back. What is damaged ends it: what was read before is whole.
func (d *daemon) loadCache(name string, c *Config) (entries int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	now := d.clock.Now()
	header := newCacheHeader(c, c.Insecure, now)
	header.Wall = d.clock.Unix()
	return readCache(f, d.cache, &header)
}

// readCache stores the entries of a file. Those of current that say when are those of now.
func readCache(f io.Reader, store *cache.Cache, current *cacheHeader) (entries int, err error) {
	begin := make([]byte, len(cacheMagic)+4)
	if _, err := io.ReadFull(f, begin); err != nil || string(begin[:len(cacheMagic)]) != cacheMagic ||
		binary.LittleEndian.Uint32(begin[len(cacheMagic):]) != cacheVersion {
		return 0, errCacheFile
	}
	text, err := readBlock(f, nil, maxHeader)
	if err != nil {
		return 0, err
	}
	var header cacheHeader
	switch err := json.Unmarshal(text, &header); {
	case err != nil:
		return 0, errCacheFile
	case header.Layout != current.Layout:
		return 0, errCacheFile
	case header.Wall > current.Wall:
		return 0, fmt.Errorf("it is of %s, which is still to come", time.Unix(header.Wall, 0).UTC().Format(time.RFC3339))
	case header.All != current.All:
		return 0, errors.New("it was saved under other settings of dnssec, sha1, harden-glue or root-hints")
	}
	l := loader{
		store: store, now: current.Saved, shift: header.shift(current),
		without: header.affected(current), old: header, current: *current,
	}
	return l.run(f)
}

// loader stores the blocks of a file, on all CPUs.
type loader struct {
	store        *cache.Cache
	now          uint32
	shift        uint32 // what is added to the expiry of entries, modulo 2^32
	without      []wire.Name
	old, current cacheHeader
	entries      atomic.Int64

	mu   sync.Mutex // of file and err
	file io.Reader
	err  error // of the first block that was not to be had; io.EOF behind the last
}

func (l *loader) run(f io.Reader) (int, error) {
	l.file = f
	loaders := make([]*cache.Loader, runtime.GOMAXPROCS(0))
	for i := range loaders {
		loaders[i] = l.store.NewLoader(l.old.Entries, l.old.Bytes)
	}
	var wait sync.WaitGroup
	for _, to := range loaders {
		wait.Go(func() { l.storeBlocks(to) })
	}
	wait.Wait()
	if l.err != io.EOF {
		return int(l.entries.Load()), l.err
	}
	return int(l.entries.Load()), nil
}

func (l *loader) storeBlocks(to *cache.Loader) {
	block := make([]byte, 0, cache.MaxDumpBlock)
	for {
		var sum uint32
		var err error
		if block, sum, err = l.next(block); err != nil {
			return
		}
		n := 0
		if crc32.Checksum(block, castagnoli) != sum {
			err = errCacheFile
		} else if n, err = to.Load(block, l.now, l.takes); err != nil {
			err = errCacheFile
		}
		l.entries.Add(int64(n))
		if err != nil {
			l.fail(err)
			return
		}
	}
}

// next reads the next block, whose checksum is yet to be looked at.
func (l *loader) next(buf []byte) (block []byte, sum uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		block, sum, l.err = readRaw(l.file, buf, cache.MaxDumpBlock)
		if l.err == nil && len(block) == 0 {
			l.err = io.EOF
		}
	}
	return block, sum, l.err
}

func (l *loader) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// takes says whether an entry is good under the configuration and the clock of now. That its bytes are
// those that were packed, by this layout, the checksums and the header have said. One that was stored in
// the future is not believed. It sets e's expiry by the clock of now.
func (l *loader) takes(e entry.Entry) bool {
	e.Shift(l.shift)
	if !outlives(e, l.now) || e.Expires()-e.Original() > l.now || e.Expires()-l.now > max(l.current.MaxTTL, zonecut.MaxLease) {
		return false
	}
	if realm := e.Realm(); realm != 0 && (l.old.Realms[realm] == "" || l.old.Realms[realm] != l.current.Realms[realm]) {
		return false
	}
	for _, name := range l.without {
		if wire.BorrowName(e.QName()).IsSubdomainOf(name) || resolver.LeadsInto(e, name) {
			return false
		}
	}
	return !changedTTL(e, &l.old, &l.current)
}

// changedTTL says whether an entry would have another lifetime by other limits. Of the lifetime that it
// had when it was stored only a rough figure is kept, so that some more go that lie near a limit.
func changedTTL(e entry.Entry, old, changed *cacheHeader) bool {
	if old.MinTTL == changed.MinTTL && old.MaxTTL == changed.MaxTTL && old.MaxNegativeTTL == changed.MaxNegativeTTL {
		return false
	}
	switch e.Kind() {
	case entry.KindCut, entry.KindFailure, entry.KindUnvalidated:
		return false // they have limits of their own
	}
	life := e.Original()
	above := func(limit uint32) bool { return life >= limit-limit/8 }
	least := max(old.MinTTL, changed.MinTTL)
	return old.MaxTTL != changed.MaxTTL && above(min(old.MaxTTL, changed.MaxTTL)) ||
		old.MinTTL != changed.MinTTL && life <= least+least/8 ||
		old.MaxNegativeTTL != changed.MaxNegativeTTL && above(min(old.MaxNegativeTTL, changed.MaxNegativeTTL)) && isNegative(e)
}

// startWarm loads the cache file, where there is one, and tells how it went in one line.
func (d *daemon) startWarm(c *Config) {
	if c.CacheFile == "" {
		return
	}
	begin := time.Now()
	n, err := d.loadCache(c.CacheFile, c)
	took := time.Since(begin).Round(time.Millisecond)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.log.Info("no cache file yet", "file", c.CacheFile)
	case err != nil:
		d.log.Warn("cache file, or the rest of it, ignored", "file", c.CacheFile, "reason", err, "entries", n)
	default:
		d.log.Info("cache loaded", "file", c.CacheFile, "entries", n, "took", took)
	}
}

// saveOnStop writes the cache file once nothing is answered any more.
func (d *daemon) saveOnStop() {
	name := d.cacheFile()
	if name == "" {
		return
	}
	begin := time.Now()
	n, err := d.saveCache(name)
	if err != nil {
		d.log.Error("cache not saved", "file", name, "reason", err)
		return
	}
	d.log.Info("cache saved", "file", name, "entries", n, "took", time.Since(begin).Round(time.Millisecond))
}

func (d *daemon) cacheFile() string {
	d.reloader.mu.Lock()
	defer d.reloader.mu.Unlock()
	return d.reloader.config.CacheFile
}

var errNoCacheFile = errors.New("the configuration has no key cache-file")

func runSave(_ context.Context, d *daemon, _ []string) (reply, error) {
	name := d.cacheFile()
	if name == "" {
		return reply{}, errNoCacheFile
	}
	n, err := d.saveCache(name)
	return reply{Text: fmt.Sprintf("%d entries saved to %s\n", n, name), Data: map[string]any{"entries": n, "file": name}}, err
}

func runLoad(_ context.Context, d *daemon, _ []string) (reply, error) {
	d.reloader.mu.Lock()
	c := d.reloader.config
	d.reloader.mu.Unlock()
	if c.CacheFile == "" {
		return reply{}, errNoCacheFile
	}
	n, err := d.loadCache(c.CacheFile, c)
	return reply{Text: fmt.Sprintf("%d entries loaded from %s\n", n, c.CacheFile), Data: map[string]any{"entries": n, "file": c.CacheFile}}, err
}

package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/resolver/policy"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// again lets the daemon's next reload find what edit makes of the configuration it has.
func (d *daemon) again(edit func(*Config)) {
	d.reloader.configure = func() (*Config, error) {
		c := *d.reloader.config
		edit(&c)
		return &c, nil
	}
}

// Every field of Config has its effect, by the name of a setting.
func TestEffectsAreWhole(t *testing.T) {
	config := reflect.TypeFor[Config]()
	for i := range config.NumField() {
		name := config.Field(i).Name
		if e, ok := effects[name]; ok == slices.Contains(follow, name) {
			t.Errorf("%s must be in effects or in follow", name)
		} else if ok && findSetting(strings.Fields(e.key)[0]) == nil {
			t.Errorf("%s: %q is no setting", name, e.key)
		}
	}
	for name := range effects {
		if _, ok := config.FieldByName(name); !ok {
			t.Errorf("%s is no field", name)
		}
	}
}

// misses is how many lookups for clients the cache had nothing for.
func misses(d *daemon) uint64 { return d.resolver.Current().Stats().Lookups["miss"] }

func TestReloadFlushesWhatChangedAlone(t *testing.T) {
	d := start(t, nil)
	ask := func(name string) *dns.Msg { return query(t, d.addr(), "udp", name, dns.TypeA, nil) }
	known := []string{"www.ecdsa.lab.", "www.unsigned.lab.", "www.ed25519.lab."}
	for _, name := range known {
		ask(name)
	}
	if got := ask("www.bogus.lab."); got.Rcode != dns.RcodeServerFailure {
		t.Fatalf("bogus at first: %v", got)
	}
	before := misses(d)
	d.again(func(c *Config) {
		c.Insecure = []wire.Name{wire.MustName("bogus.lab.")}
		c.CacheSize = 16 << 20
	})
	changed, waiting, err := d.reload()
	if err != nil || !slices.Equal(changed, []string{"domain-insecure"}) || !slices.Equal(waiting, []string{"cache-size"}) {
		t.Fatalf("changed %v, waiting %v, %v", changed, waiting, err)
	}
	if got := ask("www.bogus.lab."); got.Rcode != dns.RcodeSuccess || got.AuthenticatedData {
		t.Errorf("below a negative trust anchor: %v", got)
	}
	for _, name := range known {
		ask(name)
	}
	if n := misses(d) - before; n != 1 {
		t.Errorf("%d misses, want that of the flushed name alone", n)
	}
	d.again(func(c *Config) { c.Insecure = nil })
	if _, _, err := d.reload(); err != nil {
		t.Fatal(err)
	}
	if got := ask("www.bogus.lab."); got.Rcode != dns.RcodeServerFailure {
		t.Errorf("the negative trust anchor is gone, and still: %v", got)
	}
	_, page := get(t, d, metricsPath)
	if got := value(t, page, `bonsai_reloads_total{outcome="applied"}`); got != 2 {
		t.Errorf("%v reloads counted", got)
	}
}

// Zones, anchors, TTL limits and rules, each over the running daemon.
func TestReloadEachKind(t *testing.T) {
	d := start(t, nil)
	ask := func(name string) *dns.Msg { return query(t, d.addr(), "udp", name, dns.TypeA, nil) }
	reload := func(edit func(*Config)) {
		t.Helper()
		d.again(edit)
		if _, _, err := d.reload(); err != nil {
			t.Fatal(err)
		}
	}
	first := ask("www.unsigned.lab.")
	if len(first.Answer) != 1 || first.Answer[0].Header().Ttl < 3000 {
		t.Fatalf("at first: %v", first)
	}
	reload(func(c *Config) { c.MaxTTL = 60 })
	if got := ask("www.unsigned.lab."); len(got.Answer) != 1 || got.Answer[0].Header().Ttl > 60 {
		t.Errorf("cache-max-ttl 60: %v", got)
	}
	reload(func(c *Config) { c.MaxTTL = 86400 })
	if got := ask("www.unsigned.lab."); len(got.Answer) != 1 || got.Answer[0].Header().Ttl < 3000 {
		t.Errorf("cache-max-ttl as before: %v", got)
	}
	denied := func() uint32 {
		t.Helper()
		got := query(t, d.addr(), "udp", "no.ecdsa.lab.", dns.TypeA, func(m *dns.Msg) { m.IsEdns0().SetDo() })
		if got.Rcode != dns.RcodeNameError || len(got.Ns) < 4 {
			t.Fatalf("SOA, proof and signatures: %v", got)
		}
		for _, rr := range got.Ns {
			if rr.Header().Ttl != got.Ns[0].Header().Ttl {
				t.Errorf("a denial with several TTLs: %v", got)
			}
		}
		return got.Ns[0].Header().Ttl
	}
	if ttl := denied(); ttl <= 60 || ttl > 3600 {
		t.Errorf("a denial lives for %d s", ttl)
	}
	reload(func(c *Config) { c.MaxNegativeTTL = 60 })
	if ttl := denied(); ttl == 0 || ttl > 60 {
		t.Errorf("cache-max-negative-ttl 60: %d s", ttl)
	}
	if got := ask("www.unsigned.lab."); len(got.Answer) != 1 || got.Answer[0].Header().Ttl < 3000 {
		t.Errorf("cache-max-negative-ttl is no limit of answers: %v", got)
	}
	reload(func(c *Config) {
		dead := netip.MustParseAddrPort("198.51.100.99:53") // no server of the lab
		c.Zones = []zonecut.Configured{{Zone: wire.MustName("unsigned.lab."), Servers: []zonecut.Server{{Addrs: []netip.AddrPort{dead}}}}}
	})
	if got := ask("www.unsigned.lab."); got.Rcode != dns.RcodeServerFailure {
		t.Errorf("stub zone with a dead server: %v", got)
	}
	reload(func(c *Config) { c.Zones = nil })
	if got := ask("www.unsigned.lab."); got.Rcode != dns.RcodeSuccess {
		t.Errorf("without the stub zone: %v", got)
	}
	if got := ask("www.ecdsa.lab."); !got.AuthenticatedData {
		t.Errorf("validated: %v", got)
	}
	anchors := d.reloader.config.Anchors
	reload(func(c *Config) { c.Anchors = nil })
	if got := ask("www.ecdsa.lab."); got.AuthenticatedData {
		t.Errorf("without anchors: %v", got)
	}
	reload(func(c *Config) { c.Anchors = anchors })
	if got := ask("www.ecdsa.lab."); !got.AuthenticatedData {
		t.Errorf("anchors are back: %v", got)
	}
	reload(func(c *Config) { c.Refuse = prefixes("127.0.0.0/8") })
	if got := ask("www.ecdsa.lab."); got.Rcode != dns.RcodeRefused {
		t.Errorf("refused: %v", got)
	}
}

// While clients ask, resolvers are succeeded ten times; no query is lost, and none fails.
func TestReloadUnderQueries(t *testing.T) {
	d := start(t, nil)
	stop := make(chan struct{})
	done := make(chan error, 4)
	var asked atomic.Int64
	for w := range cap(done) {
		go func() {
			c := &dns.Client{Timeout: 20 * time.Second}
			for i := 0; ; i++ {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				m := new(dns.Msg)
				m.SetQuestion([]string{"www.ecdsa.lab.", "www.unsigned.lab."}[i%2], dns.TypeA)
				if i%3 == 0 {
					m.SetQuestion("n"+string(rune('a'+w))+time.Now().Format("150405.000000000")[7:]+".bench.", dns.TypeA)
				}
				got, _, err := c.Exchange(m, d.addr().String())
				if err != nil || got.Rcode != dns.RcodeSuccess {
					done <- errors.Join(err, errors.New(m.Question[0].Name+" failed"))
					return
				}
				asked.Add(1)
			}
		}()
	}
	for i := range 10 {
		before := asked.Load()
		d.again(func(c *Config) {
			c.MinimalResponses = i%2 == 0
			c.Zones = []zonecut.Configured{{Zone: wire.MustName("example."), Prime: i%2 == 0,
				Servers: []zonecut.Server{{Addrs: []netip.AddrPort{netip.MustParseAddrPort("198.51.100.99:53")}}}}}
		})
		if _, _, err := d.reload(); err != nil {
			t.Fatal(err)
		}
		for asked.Load() < before+20 {
			select {
			case err := <-done:
				t.Fatal(err)
			case <-time.After(time.Millisecond):
			}
		}
		if i == 7 { // more may not linger at once: end them as their time would
			d.reloader.mu.Lock()
			close(d.reloader.closing)
			d.reloader.ending.Wait()
			d.reloader.closing = make(chan struct{})
			d.reloader.mu.Unlock()
		}
	}
	close(stop)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Lists that a reload replaced give their memory back at once: no other collection need come for it.
func TestReloadForgetsLists(t *testing.T) {
	listOf := func(name string) []policy.List { return []policy.List{{Names: nameSet(name), Label: name}} }
	d := start(t, func(c *Config) { c.BlockLists, c.ListSums = listOf("old.example"), [2]uint64{1, 0} })
	gone := make(chan struct{})
	runtime.AddCleanup(d.reloader.config.BlockLists[0].Names, func(gone chan struct{}) { close(gone) }, gone)
	d.again(func(c *Config) { c.BlockLists, c.ListSums = listOf("new.example"), [2]uint64{2, 0} })
	if _, _, err := d.reload(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the old list is held still")
	}
	if got := query(t, d.addr(), "udp", "new.example.", dns.TypeA, nil); got.Rcode != dns.RcodeNameError {
		t.Errorf("the new list: %v", got)
	}
}

// As an operator does it: a file, SIGHUP, a file that is broken, and the log.
func TestHangup(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGHUP there")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "bonsai.yaml")
	say := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("local-data: [\"a.lan. A 192.0.2.1\"]\n")
	p, at := launch(t, "--listen", "127.0.0.1:0", "--root-hints", silentHints(t), "--config", file)
	await := func(parts ...string) {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for line := range p.lines {
			if strings.Contains(line, parts[0]) {
				for _, part := range parts {
					if !strings.Contains(line, part) {
						t.Errorf("no %q in %s", part, line)
					}
				}
				return
			}
		}
		t.Fatal("it ended")
	}
	answer := func(want string) {
		t.Helper()
		got := query(t, at, "udp", "a.lan.", dns.TypeA, nil)
		if len(got.Answer) != 1 || got.Answer[0].(*dns.A).A.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	answer("192.0.2.1")
	say("local-data: [\"a.lan. A 192.0.2.2\"]\nthreads: 3\n")
	await("msg=reloaded", "local-data", "at_restart=threads")
	answer("192.0.2.2")
	say("local-data: [\"a.lan. A 192.0.2.3\"]\nlisten-to: nothing\n")
	await("nothing was changed", file+":2:", "listen-to")
	answer("192.0.2.2")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await("nothing was changed", file)
	answer("192.0.2.2")
	if conn, err := net.Dial("tcp", at.String()); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
}

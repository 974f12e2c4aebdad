package resolver

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

const testNow = 1_800_000_000

var client4 = netip.MustParseAddrPort("127.0.0.1:4242")

// newTestResolver returns a Resolver that can't reach anybody.
func newTestResolver(t testing.TB, change func(*Config)) *Resolver {
	t.Helper()
	store, err := cache.New(cache.Config{Size: 8 << 20, StaleLimit: 86400})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Cache: store,
		Cuts:  zonecut.Config{Hints: []zonecut.Server{{Name: wire.MustName("a.root."), Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}}}},
		Now:   func() uint32 { return testNow },
		Policy: policy.Config{
			Allow:      []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			AllowSnoop: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")},
			Version:    "bonsai test",
		},
	}
	if change != nil {
		change(&config)
	}
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); store.Close() })
	return r
}

func (r *Resolver) put(t testing.TB, c *entry.Content, now uint32) {
	t.Helper()
	e, err := entry.Pack(nil, c, now)
	if err != nil {
		t.Fatal(err)
	}
	key := cache.MakeKey(c.Kind, c.Realm, c.QName, c.QType)
	if !r.cache.Store(&key, e, now, r.cache.Epoch()) {
		t.Fatal("not stored")
	}
}

func answerA(name string, ttl uint32, status wire.Status) *entry.Content {
	n := wire.MustName(name)
	return &entry.Content{Kind: entry.KindAnswer, QName: n, QType: wire.TypeA, Status: status, Answer: []wire.RRset{{
		Owner: n, Type: wire.TypeA, Class: wire.ClassIN, TTL: ttl, Status: status, RDATA: [][]byte{{192, 0, 2, 1}, {192, 0, 2, 2}},
	}}}
}

// hit asks one query through a worker.
func hit(t testing.TB, w serve.Worker, m *dns.Msg, client netip.AddrPort) (*dns.Msg, serve.Result) {
	t.Helper()
	return hitOver(t, w, m, client, serve.UDP)
}

func hitOver(t testing.TB, w serve.Worker, m *dns.Msg, client netip.AddrPort, transport serve.Transport) (*dns.Msg, serve.Result) {
	t.Helper()
	pkt, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	batch := []serve.Exchange{{Query: pkt, Client: client, Transport: transport, Response: make([]byte, 0, 4096)}}
	results := make([]serve.Result, 1)
	w.Hit(batch, results)
	if results[0] != serve.Answered {
		return nil, results[0]
	}
	out := new(dns.Msg)
	if err := out.Unpack(batch[0].Response); err != nil {
		t.Fatal(err)
	}
	return out, results[0]
}

func msg(name string, t uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(name, t)
	return m
}

func TestHit(t *testing.T) {
	r := newTestResolver(t, nil)
	w := r.NewWorker()
	r.put(t, answerA("www.example.com", 300, wire.Secure), testNow-100)

	t.Run("answer", func(t *testing.T) {
		m := msg("wWw.Example.com.", dns.TypeA)
		m.SetEdns0(4096, true)
		got, _ := hit(t, w, m, client4)
		if got == nil || len(got.Answer) != 2 || got.Answer[0].Header().Ttl != 200 || !got.AuthenticatedData || !got.RecursionAvailable {
			t.Fatalf("got %v", got)
		}
		if got.Question[0].Name != "wWw.Example.com." || got.Answer[0].Header().Name != "wWw.Example.com." {
			t.Errorf("the client's spelling is lost: %v", got)
		}
		if o := got.IsEdns0(); o == nil || o.UDPSize() != 1232 || !o.Do() {
			t.Errorf("OPT %v", o)
		}
	})
	t.Run("no AD for who does not know it", func(t *testing.T) { // RFC 6840 §5.7
		got, _ := hit(t, w, msg("www.example.com.", dns.TypeA), client4)
		if got == nil || got.AuthenticatedData || got.IsEdns0() != nil {
			t.Fatalf("got %v", got)
		}
	})
	t.Run("miss", func(t *testing.T) {
		if _, result := hit(t, w, msg("www.example.com.", dns.TypeAAAA), client4); result != serve.Missed {
			t.Fatalf("result %d", result)
		}
	})
	t.Run("stranger", func(t *testing.T) {
		m := msg("www.example.com.", dns.TypeA)
		m.SetEdns0(1232, false)
		got, _ := hit(t, w, m, netip.MustParseAddrPort("192.0.2.7:53"))
		if got.Rcode != dns.RcodeRefused || ede(got) != dns.ExtendedErrorCodeProhibited {
			t.Fatalf("got %v", got)
		}
	})
	t.Run("RD=0", func(t *testing.T) {
		m := msg("www.example.com.", dns.TypeA)
		m.RecursionDesired = false
		m.SetEdns0(1232, false)
		if got, _ := hit(t, w, m, client4); got.Rcode != dns.RcodeRefused || ede(got) != dns.ExtendedErrorCodeNotAuthoritative {
			t.Fatalf("got %v", got)
		}
		if got, _ := hit(t, w, m, netip.MustParseAddrPort("127.0.0.9:53")); len(got.Answer) != 2 {
			t.Fatalf("snooper got %v", got)
		}
	})
	t.Run("client subnet", func(t *testing.T) { // RFC 7871 §7.2.2: not echoed where it is not used
		m := msg("www.example.com.", dns.TypeA)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: []byte{10, 0, 0, 0}})
		if got, _ := hit(t, w, m, client4); len(got.IsEdns0().Option) != 0 {
			t.Fatalf("got %v", got)
		}
	})
	t.Run("cookie", func(t *testing.T) { // RFC 7873 §5.2.3
		m := msg("www.example.com.", dns.TypeA)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0011223344556677"})
		got, _ := hit(t, w, m, client4)
		c, ok := got.IsEdns0().Option[0].(*dns.EDNS0_COOKIE)
		if !ok || len(c.Cookie) != 48 || c.Cookie[:16] != "0011223344556677" || c.Cookie[16:24] != "01000000" {
			t.Fatalf("got %v", got)
		}
	})
	t.Run("version", func(t *testing.T) {
		m := msg("version.bind.", dns.TypeTXT)
		m.Question[0].Qclass = dns.ClassCHAOS
		got, _ := hit(t, w, m, client4)
		if len(got.Answer) != 1 || got.Answer[0].Header().Class != dns.ClassCHAOS || got.Answer[0].(*dns.TXT).Txt[0] != "bonsai test" {
			t.Fatalf("got %v", got)
		}
	})
}

func ede(m *dns.Msg) uint16 {
	if o := m.IsEdns0(); o != nil {
		for _, x := range o.Option {
			if e, ok := x.(*dns.EDNS0_EDE); ok {
				return e.InfoCode
			}
		}
	}
	return 0xFFFF
}

// TestShapes holds what malformed and foreign queries get.
func TestShapes(t *testing.T) {
	r := newTestResolver(t, nil)
	w := r.NewWorker()
	good, _ := msg("www.example.com.", dns.TypeA).Pack()
	change := func(f func([]byte) []byte) []byte { return f(append([]byte(nil), good...)) }
	cookie := func(n int) []byte {
		return change(func(b []byte) []byte {
			b[11] = 1
			b = append(b, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, byte(4+n), 0, 10, 0, byte(n))
			return append(b, make([]byte, n)...)
		})
	}
	for _, c := range []struct {
		name   string
		pkt    []byte
		result serve.Result
		rcode  int
	}{
		{"nothing", nil, serve.Dropped, 0},
		{"half a header", good[:11], serve.Dropped, 0},
		{"a response", change(func(b []byte) []byte { b[2] |= 0x80; return b }), serve.Dropped, 0},
		{"NOTIFY", change(func(b []byte) []byte { b[2] |= 4 << 3; return b }), serve.Answered, dns.RcodeNotImplemented},
		{"two questions", change(func(b []byte) []byte { b[5] = 2; return append(b, good[12:]...) }), serve.Answered, dns.RcodeFormatError},
		{"no question", good[:12], serve.Answered, dns.RcodeFormatError},
		{"question cut", good[:len(good)-3], serve.Answered, dns.RcodeFormatError},
		{"an answer in it", change(func(b []byte) []byte { b[7] = 1; return b }), serve.Answered, dns.RcodeFormatError},
		{"EDNS version 1", change(func(b []byte) []byte {
			b[11] = 1
			return append(b, 0, 0, 41, 4, 208, 0, 1, 0, 0, 0, 0)
		}), serve.Answered, dns.RcodeBadVers},
		{"two OPTs", change(func(b []byte) []byte {
			b[11] = 2
			opt := []byte{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0}
			return append(append(b, opt...), opt...)
		}), serve.Answered, dns.RcodeFormatError},
		{"a cookie of 7 bytes", cookie(7), serve.Answered, dns.RcodeFormatError},
		{"a cookie of 8 bytes", cookie(8), serve.Missed, 0},
		{"a cookie of 15 bytes", cookie(15), serve.Answered, dns.RcodeFormatError},
		{"a cookie of 40 bytes", cookie(40), serve.Missed, 0},
		{"a cookie of 41 bytes", cookie(41), serve.Answered, dns.RcodeFormatError},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := []serve.Exchange{{Query: c.pkt, Client: client4, Response: make([]byte, 0, 4096)}}
			results := make([]serve.Result, 1)
			w.Hit(batch, results)
			if results[0] != c.result {
				t.Fatalf("result %d, want %d", results[0], c.result)
			}
			if c.result != serve.Answered {
				return
			}
			m := new(dns.Msg)
			if err := m.Unpack(batch[0].Response); err != nil {
				t.Fatal(err)
			}
			if m.Rcode != c.rcode || !m.Response || m.Id != 0 && m.Id != uint16(good[0])<<8|uint16(good[1]) {
				t.Errorf("got %v, want RCODE %d", m, c.rcode)
			}
		})
	}
}

// TestStaleWithFailure: expired data with a live failure is served at once, marked (RFC 8767 §5).
func TestStaleWithFailure(t *testing.T) {
	r := newTestResolver(t, nil)
	w := r.NewWorker()
	r.put(t, answerA("old.example", 10, wire.Insecure), testNow-100)
	q := question{name: wire.MustName("old.example"), t: wire.TypeA}
	r.keepFailure(q, newFailure(wire.EDENoReachable, "example.: nobody answers"), testNow, r.cache.Epoch())
	m := msg("old.example.", dns.TypeA)
	m.SetEdns0(1232, false)
	got, _ := hit(t, w, m, client4)
	if got == nil || len(got.Answer) != 2 || got.Answer[0].Header().Ttl > 30 || ede(got) != dns.ExtendedErrorCodeStaleAnswer {
		t.Fatalf("got %v", got)
	}
	// A failure with nothing stale is SERVFAIL with its reason (RFC 9520 §3.2).
	q.name = wire.MustName("new.example")
	r.keepFailure(q, newFailure(wire.EDENoReachable, "example.: nobody answers"), testNow, r.cache.Epoch())
	m = msg("new.example.", dns.TypeA)
	m.SetEdns0(1232, false)
	if got, _ = hit(t, w, m, client4); got == nil || got.Rcode != dns.RcodeServerFailure || ede(got) != dns.ExtendedErrorCodeNoReachableAuthority {
		t.Fatalf("got %v", got)
	}
}

// TestStaleChain: an alias that lives leads to a target that is stale and can't be renewed.
func TestStaleChain(t *testing.T) {
	r := newTestResolver(t, nil)
	w := r.NewWorker()
	alias := wire.MustName("alias.example")
	r.put(t, &entry.Content{Kind: entry.KindAnswer, QName: alias, QType: wire.TypeCNAME, Answer: []wire.RRset{{
		Owner: alias, Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: 300, RDATA: [][]byte{[]byte(wire.MustName("old.example"))},
	}}}, testNow)
	r.put(t, answerA("old.example", 10, wire.Insecure), testNow-100)
	for _, name := range []string{"old.example", "alias.example"} {
		q := question{name: wire.MustName(name), t: wire.TypeA}
		r.keepFailure(q, newFailure(wire.EDENoReachable, "example.: nobody answers"), testNow, r.cache.Epoch())
	}
	m := msg("alias.example.", dns.TypeA)
	m.SetEdns0(1232, false)
	got := askHandler(t, r, w, m)
	if got == nil || len(got.Answer) != 3 || ede(got) != dns.ExtendedErrorCodeStaleAnswer {
		t.Fatalf("got %v", got)
	}
	for _, rr := range got.Answer {
		if rr.Header().Ttl > 30 {
			t.Errorf("TTL above 30: %v", rr)
		}
	}
}

// TestInsecureReason: why an answer is insecure is told beside it, also of a chain (RFC 8914 §4.2).
func TestInsecureReason(t *testing.T) {
	r := newTestResolver(t, nil)
	w := r.NewWorker()
	c := answerA("old.example", 300, wire.Insecure)
	c.EDE = []wire.EDE{{Code: wire.EDEUnsupportedDNSKEY, Text: "example.: algorithm 200"}}
	r.put(t, c, testNow)
	alias := wire.MustName("alias.example")
	r.put(t, &entry.Content{Kind: entry.KindAnswer, QName: alias, QType: wire.TypeCNAME, Status: wire.Insecure, Answer: []wire.RRset{{
		Owner: alias, Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: 300, RDATA: [][]byte{[]byte(wire.MustName("old.example"))},
	}}}, testNow)
	for _, name := range []string{"old.example.", "alias.example."} {
		m := msg(name, dns.TypeA)
		m.SetEdns0(1232, false)
		if got := askHandler(t, r, w, m); got == nil || got.Rcode != dns.RcodeSuccess || ede(got) != dns.ExtendedErrorCodeUnsupportedDNSKEYAlgorithm {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func hitBatch(t testing.TB, r *Resolver, n int) ([]serve.Exchange, []serve.Result) {
	batch := make([]serve.Exchange, n)
	for i := range batch {
		name := fmt.Sprintf("host-%d.example.com.", i)
		r.put(t, answerA(name, 3000, wire.Insecure), testNow)
		m := msg(name, dns.TypeA)
		m.SetEdns0(1232, false)
		pkt, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		batch[i] = serve.Exchange{Query: pkt, Client: client4, Response: make([]byte, 0, 1232)}
	}
	return batch, make([]serve.Result, n)
}

func TestHitAllocs(t *testing.T) {
	r := newTestResolver(t, nil)
	w := r.NewWorker()
	batch, results := hitBatch(t, r, 64)
	run := func() {
		for i := range batch {
			batch[i].Response = batch[i].Response[:0]
		}
		w.Hit(batch, results)
	}
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("a batch of hits allocates %v times", n)
	}
	for i := range results {
		if results[i] != serve.Answered {
			t.Fatalf("query %d: result %d", i, results[i])
		}
	}
}

func BenchmarkHit(b *testing.B) {
	r := newTestResolver(b, nil)
	w := r.NewWorker()
	batch, results := hitBatch(b, r, 64)
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		for i := range batch {
			batch[i].Response = batch[i].Response[:0]
		}
		w.Hit(batch, results)
	}
}

// Rules that were replaced are held by nothing that remains of the queries they judged: their lists may
// be large.
func TestHitKeepsNoRules(t *testing.T) {
	gone := make(chan struct{})
	list := func(name string) []policy.List {
		b := policy.NewNameSetBuilder()
		b.Add(wire.MustName(name))
		return []policy.List{{Names: b.Build(), Label: name}}
	}
	var r *Resolver
	var w serve.Worker
	var batch []serve.Exchange
	func() {
		old := list("old.example")
		runtime.AddCleanup(old[0].Names, func(gone chan struct{}) { close(gone) }, gone)
		r = newTestResolver(t, func(c *Config) { c.Policy.BlockLists = old })
		w = r.NewWorker()
		var results []serve.Result
		batch, results = hitBatch(t, r, 64)
		w.Hit(batch, results)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.Miss(ctx, &batch[0])
	}()
	r.SetPolicy(&Config{Policy: policy.Config{BlockLists: list("new.example")}})
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(w)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the old rules are held still")
	runtime.KeepAlive(w)
}

// BenchmarkHitRandom is BenchmarkHit over a million names in random order, of which the CPU's cache
// holds next to nothing: its difference to that is what waits for memory cost.
func BenchmarkHitRandom(b *testing.B) {
	const names, step = 1 << 20, 0x9E3779B1 // odd: it leads through all names
	store, err := cache.New(cache.Config{Size: 256 << 20, StaleLimit: 86400})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	r := newTestResolver(b, func(c *Config) { c.Cache = store })
	w := r.NewWorker()
	batch, results := hitBatch(b, r, 64)
	for i := range batch {
		pkt, err := msg("host-00000000.example.com.", dns.TypeA).Pack()
		if err != nil {
			b.Fatal(err)
		}
		batch[i].Query = pkt
	}
	digits := func(pkt []byte, n int) {
		for i := range 8 {
			pkt[12+6+7-i], n = '0'+byte(n%10), n/10
		}
	}
	for i := range names {
		r.put(b, answerA(fmt.Sprintf("host-%08d.example.com.", i), 3000, wire.Insecure), testNow)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += len(batch) {
		for i := range batch {
			batch[i].Response = batch[i].Response[:0]
			digits(batch[i].Query, (n+i)*step&(names-1))
		}
		w.Hit(batch, results)
	}
	for i := range results {
		if results[i] != serve.Answered {
			b.Fatalf("query %d: result %d", i, results[i])
		}
	}
}

// TestClosed: what comes after Close begins nothing that nobody waits for, and still gets an answer.
func TestClosed(t *testing.T) {
	r := newTestResolver(t, nil)
	w := r.NewWorker()
	r.put(t, answerA("old.example", 10, wire.Insecure), testNow-100)
	r.Close()
	if r.begin(func() { t.Error("begun") }) {
		t.Error("a closed Resolver begins something")
	}
	if got := askHandler(t, r, w, msg("old.example.", dns.TypeA)); got == nil || len(got.Answer) != 2 {
		t.Errorf("got %v, want the stale answer", got)
	}
}

package iterate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/cache"
	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// world is a scripted Internet: an Exchanger whose servers answer as a script says, and a Source
// that resolves as the resolver does, without cache.
type world struct {
	t       *testing.T
	servers map[netip.Addr][]*scripted
	dead    map[netip.Addr]bool      // silent
	back    map[netip.Addr]time.Time // until when, if not for ever
	barred  map[netip.Addr]bool      // not Usable
	asked   []string                 // "server name type", in order
	lame    []string                 // "server zone"
	now     uint32
	cache   *cache.Cache
	cuts    *zonecut.Map
	it      *Iterator
	config  Config
	budget  *Budget
	stack   []question
	lookups []string // "name type"
	timeout time.Duration
	order   func(candidates []netip.AddrPort) netip.AddrPort
	no4     bool // IPv4 does not seem to work
}

// scripted is one entry of a script.
type scripted struct {
	name   wire.Name
	t      uint16 // 0: any
	below  bool   // names below match, too
	silent bool
	flags  string
	rcode  int
	rr     [3][]dns.RR
}

// newWorld reads a script:
//
//	@ 192.0.2.1                 the server that the following belongs to
//	? www.example. A aa         a question that it answers, with flags aa, ra, or an RCODE, or silent
//	?? example. ANY             the same for all names at and below, ANY standing for all types
//	an www.example. A 192.0.2.9 records of the sections: an, au, ad
//
// The first entry that fits answers; none: REFUSED.
func newWorld(t *testing.T, script string) *world {
	t.Helper()
	w := &world{
		t: t, servers: make(map[netip.Addr][]*scripted), dead: make(map[netip.Addr]bool), back: make(map[netip.Addr]time.Time),
		barred: make(map[netip.Addr]bool), now: 1_700_000_000, timeout: 400 * time.Millisecond,
	}
	w.parse(script)
	c, err := cache.New(cache.Config{Size: cache.MinSize})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.cache = c
	w.config.FullResponses = true
	w.cutsWith(zonecut.Config{})
	return w
}

// cutsWith replaces the map of cuts; the root is at 198.51.100.1.
func (w *world) cutsWith(config zonecut.Config) {
	config.Cache = w.cache
	if config.Hints == nil {
		config.Hints = []zonecut.Server{{Name: wire.MustName("a.root."), Addrs: addrs("198.51.100.1")}}
	}
	w.cuts = zonecut.New(config)
	w.config.Exchange, w.config.Cuts, w.config.Now = w, w.cuts, func() uint32 { return w.now }
	w.it = New(w.config)
	w.budget = NewBudget(w.config.Limits)
}

// configure changes the Iterator's configuration.
func (w *world) configure(f func(*Config)) {
	f(&w.config)
	w.it = New(w.config)
	w.budget = NewBudget(w.config.Limits)
}

func addrs(text ...string) (out []netip.AddrPort) {
	for _, a := range text {
		out = append(out, netip.AddrPortFrom(netip.MustParseAddr(a), zonecut.Port))
	}
	return out
}

func (w *world) parse(script string) {
	w.t.Helper()
	var server netip.Addr
	var e *scripted
	for _, line := range strings.Split(script, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == ";" {
			continue
		}
		switch f[0] {
		case "@":
			server = netip.MustParseAddr(f[1])
		case "?", "??":
			e = &scripted{name: wire.MustName(f[1]).Canonical(), below: f[0] == "??", t: dns.StringToType[f[2]]}
			if f[2] == "ANY" {
				e.t = 0
			}
			for _, flag := range f[3:] {
				if rcode, ok := dns.StringToRcode[flag]; ok {
					e.rcode = rcode
				} else if flag == "silent" {
					e.silent = true
				} else {
					e.flags += flag
				}
			}
			w.servers[server] = append(w.servers[server], e)
		case "an", "au", "ad":
			rr, err := dns.NewRR("$TTL 3600\n" + strings.Join(f[1:], " "))
			if err != nil {
				w.t.Fatalf("%q: %v", line, err)
			}
			i := slices.Index([]string{"an", "au", "ad"}, f[0])
			e.rr[i] = append(e.rr[i], rr)
		default:
			w.t.Fatalf("bad line %q", line)
		}
	}
}

// Do implements Exchanger.
func (w *world) Do(ctx context.Context, a *exchange.Ask) (*exchange.Reply, error) {
	if err := a.Budget.Query(); err != nil {
		return nil, &exchange.Error{Server: a.Server, Kind: exchange.ErrBudget, Cause: err}
	}
	what := fmt.Sprintf("%s %s %s", a.Server.Addr(), a.Name, a.Type)
	if a.RD {
		what += " rd"
	}
	if a.TCP {
		what += " tcp"
	}
	w.asked = append(w.asked, what)
	if !a.Since.Equal(w.budget.begin) {
		w.t.Errorf("%s: Since is not when the client query began", what)
	}
	reply := w.reply(a)
	if reply == nil {
		select {
		case <-time.After(w.timeout):
			return nil, &exchange.Error{Server: a.Server, Kind: exchange.ErrTimeout}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	pkt, err := reply.Pack()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	r := &exchange.Reply{Server: a.Server, RTT: time.Millisecond}
	if err := r.Parse(pkt); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	return r, nil
}

func (w *world) reply(a *exchange.Ask) *dns.Msg {
	if back, ok := w.back[a.Server.Addr()]; w.dead[a.Server.Addr()] && (!ok || time.Now().Before(back)) {
		return nil
	}
	m := new(dns.Msg)
	m.SetQuestion(a.Name.String(), uint16(a.Type))
	m.Compress = true
	m.RecursionDesired, m.Response = a.RD, true
	for _, e := range w.servers[a.Server.Addr()] {
		if e.t != 0 && e.t != uint16(a.Type) || !a.Name.Equal(e.name) && (!e.below || !a.Name.IsBelow(e.name)) {
			continue
		}
		if e.silent {
			return nil
		}
		m.Rcode = e.rcode
		m.Authoritative = strings.Contains(e.flags, "aa")
		m.RecursionAvailable = strings.Contains(e.flags, "ra")
		m.Answer, m.Ns, m.Extra = e.rr[0], e.rr[1], e.rr[2]
		return m
	}
	m.Rcode = dns.RcodeRefused
	return m
}

// Release implements Exchanger. What was read of a reply must not need it any more.
func (w *world) Release(r *exchange.Reply) { *r = exchange.Reply{} }

// Choose implements Exchanger: the first untried that is not lame, then the lame.
func (w *world) Choose(zone wire.Name, candidates, tried []netip.AddrPort) (netip.AddrPort, bool) {
	var lame netip.AddrPort
	var left []netip.AddrPort
	for _, a := range candidates {
		switch {
		case slices.Contains(tried, a):
		case slices.Contains(w.lame, a.Addr().String()+" "+zone.String()):
			lame = a
		default:
			left = append(left, a)
		}
	}
	switch {
	case len(left) > 0 && w.order != nil:
		return w.order(left), true
	case len(left) > 0:
		return left[0], true
	}
	return lame, lame.IsValid()
}

// MarkLame implements Exchanger.
func (w *world) MarkLame(server netip.AddrPort, zone wire.Name) {
	w.lame = append(w.lame, server.Addr().String()+" "+zone.String())
}

// Usable implements Exchanger.
func (w *world) Usable(a netip.Addr) bool {
	return !w.barred[a] && !a.IsUnspecified() && !a.IsLoopback()
}

// Families implements Exchanger.
func (w *world) Families() (ipv4, ipv6 bool) { return !w.no4, true }

var errCircle = errors.New("circle")

// Lookup implements Source.
func (w *world) Lookup(ctx context.Context, name wire.Name, t wire.Type) (*wire.Response, error) {
	w.lookups = append(w.lookups, name.String()+" "+t.String())
	for range 4 {
		res, err := w.link(ctx, name, t, nil)
		if err != nil {
			return nil, err
		}
		if res.Kind != Alias {
			return &res.Response, nil
		}
		name = res.Target
	}
	return nil, errCircle
}

func (w *world) link(ctx context.Context, name wire.Name, t wire.Type, avoid []netip.AddrPort) (*Result, error) {
	q := question{name.Canonical(), t}
	if slices.Contains(w.stack, q) {
		return nil, errCircle
	}
	task := Task{Source: w, Budget: w.budget, Epoch: w.cache.Epoch(), Depth: len(w.stack)}
	w.stack = append(w.stack, q)
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	return w.it.Resolve(ctx, &task, name, t, avoid)
}

// resolve resolves one link with a fresh budget.
func (w *world) resolve(name, t string, avoid ...string) (*Result, error) {
	w.t.Helper()
	qt, ok := wire.ParseType(t)
	if !ok {
		w.t.Fatalf("bad type %s", t)
	}
	w.asked, w.lookups = nil, nil
	w.budget = NewBudget(w.config.Limits)
	return w.link(context.Background(), wire.MustName(name), qt, addrs(avoid...))
}

// want resolves and holds the result against its text.
func (w *world) want(name, t, want string) *Result {
	w.t.Helper()
	res, err := w.resolve(name, t)
	if err != nil {
		w.t.Fatalf("%s %s: %v\nasked:\n%s", name, t, err, strings.Join(w.asked, "\n"))
	}
	if got := resultText(res); got != want {
		w.t.Fatalf("%s %s:\ngot  %s\nwant %s\nasked:\n%s", name, t, got, want, strings.Join(w.asked, "\n"))
	}
	return res
}

// wantFailure resolves, which must fail.
func (w *world) wantFailure(name, t string, code wire.EDECode) *Failure {
	w.t.Helper()
	res, err := w.resolve(name, t)
	if err == nil {
		w.t.Fatalf("%s %s: got %s, want a failure\nasked:\n%s", name, t, resultText(res), strings.Join(w.asked, "\n"))
	}
	var f *Failure
	if !errors.As(err, &f) {
		w.t.Fatalf("%s %s: got %T, want a *Failure", name, t, err)
	}
	if f.Code != code {
		w.t.Errorf("%s %s: got code %d (%s), want %d", name, t, f.Code, f.Text, code)
	}
	return f
}

// wantAsked holds the queries sent, less the priming of the root.
func (w *world) wantAsked(want ...string) {
	w.t.Helper()
	got := slices.DeleteFunc(slices.Clone(w.asked), func(s string) bool { return strings.HasSuffix(s, " . NS") })
	if !slices.Equal(got, want) {
		w.t.Errorf("got queries\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// resultText writes a result as "kind: answer records | authority records | additional records".
func resultText(r *Result) string {
	var b strings.Builder
	b.WriteString(r.Kind.String())
	if r.RCODE != wire.RCODENoError {
		b.WriteString(" " + r.RCODE.String())
	}
	if r.Target != "" {
		b.WriteString(" to " + r.Target.String())
	}
	for _, sets := range [][]wire.RRset{r.Answer, r.Authority, r.Additional} {
		b.WriteString(" |")
		for i := range sets {
			for _, rdata := range sets[i].RDATA {
				b.WriteString(" " + recordText(&sets[i], rdata))
			}
		}
	}
	return strings.TrimRight(b.String(), " |")
}

func recordText(s *wire.RRset, rdata []byte) string {
	pkt := wire.AppendRecordHeader(nil, []byte(s.Owner), s.Type, s.TTL, len(rdata))
	rr, _, err := dns.UnpackRR(append(pkt, rdata...), 0)
	if err != nil {
		return err.Error()
	}
	f := strings.Fields(rr.String())
	text := f[0] + " " + f[3]
	if s.Type != wire.TypeSOA {
		text += " " + strings.Join(f[4:], " ")
	}
	return text
}

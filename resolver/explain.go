package resolver

import (
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"time"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/resolver/iterate"
	"bonsai/resolver/policy"
	"bonsai/resolver/validate"
	"bonsai/wire"
)

// Explanation tells why a question gets what it gets.
type Explanation struct {
	Name    wire.Name
	Type    wire.Type
	View    string // of the client; "" where it has none
	Source  string // "rule", "cache", "stale cache", "cached failure" or "resolution"
	Rule    string // that decided, where Source is "rule"
	RCODE   wire.RCODE
	Status  wire.Status
	Kind    string // answer, denial of the name, failure, unvalidated data
	EDE     []wire.EDE
	Content *entry.Content // what is answered, TTLs as of now; nil where nothing is

	Age, Left, Lifetime uint32 // seconds; of what is cached. Lifetime is rough.

	Zone       wire.Name // the deepest known zone cut of the name
	Servers    int       // that it has
	Configured bool      // its servers are
	Forward    bool      // and are resolvers

	Path      []iterate.Event // servers asked and decisions made, in order
	Lost      int             // events that were not kept
	PathAge   time.Duration   // since that resolution ended; 0 for one made for this explanation
	PathKnown bool
	Took      time.Duration // that resolution

	Chain []ChainLink // zones from the root down to the answer's
	Cause string      // what failed first; "" where nothing did
}

// ChainLink is what is known of the trust in one zone.
type ChainLink struct {
	Zone     wire.Name
	Anchor   bool        // a trust anchor
	DS       wire.Status // of the DS RRset or of its denial
	DSKnown  bool
	DSTags   []uint16 // none, and DSKnown: there is no DS
	Keys     wire.Status
	KeyTags  []uint16 // none: the keys are not cached
	Insecure bool     // a negative trust anchor covers it
}

// Explain answers a question as it would be answered to a client at this machine, and tells why. What
// is not cached it resolves.
func (r *Resolver) Explain(ctx context.Context, name wire.Name, t wire.Type, client netip.Addr) *Explanation {
	x := &Explanation{Name: name.Canonical(), Type: t}
	q := &wire.Query{}
	q.Parse(plainQuery(x.Name, t))
	now := r.now()
	request := policy.Request{Query: q, Client: client, Now: now, Verified: true}
	v := r.views.Load().of(client)
	x.View, r = v.name, v.r
	if o := v.rules.Judge(&request); o.Action != policy.Pass {
		x.byRule(&o, now)
		return x
	}
	x.cut(r, now)
	if !x.fromCache(r, q, now) {
		x.resolve(ctx, r)
	}
	x.chain(r)
	return x
}

// plainQuery is a message with RD that asks one question.
func plainQuery(name wire.Name, t wire.Type) []byte {
	m := binary.BigEndian.AppendUint16(make([]byte, 0, 12+len(name)+4), 1)
	m = append(m, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	m = append(m, name...)
	m = binary.BigEndian.AppendUint16(m, uint16(t))
	return append(m, 0, 1)
}

func (x *Explanation) byRule(o *policy.Outcome, now uint32) {
	x.Source, x.Rule, x.RCODE = "rule", o.Rule, o.RCODE
	if o.EDE != wire.NoEDE {
		x.EDE = append(x.EDE, wire.EDE{Code: o.EDE, Text: o.Text})
	}
	if len(o.Entry) > 0 {
		x.entry(o.Entry, now)
	}
}

// cut tells of the zone.
func (x *Explanation) cut(r *Resolver, now uint32) {
	at := x.Name
	if x.Type == wire.TypeDS && at != wire.Root {
		at = at.Parent()
	}
	c := r.cuts.Deepest(at, now)
	x.Zone, x.Servers, x.Forward = c.Zone, len(c.Servers), c.Forward
	x.Configured = c.Zone != wire.Root && r.cuts.Configured(c.Zone) != nil
}

// entry takes over what an entry tells.
func (x *Explanation) entry(e entry.Entry, now uint32) {
	x.RCODE, x.Status, x.Lifetime = e.RCODE(), e.Status(), e.Original()
	x.Kind = kindName(e.Kind())
	x.EDE = append(x.EDE, e.EDE()...)
	if e.Expires() > now {
		x.Left = e.Expires() - now
	}
	if stored := e.Expires() - min(e.Expires(), x.Lifetime); stored < now {
		x.Age = now - stored
	}
	if c, err := e.Unpack(now); err == nil {
		x.Content = c
	}
}

func kindName(k entry.Kind) string {
	switch k {
	case entry.KindAnswer:
		return "answer"
	case entry.KindDenial:
		return "denial of the name"
	case entry.KindUnvalidated:
		return "data that did not validate"
	case entry.KindFailure:
		return "failure"
	}
	return "other"
}

// fromCache tells of what the cache answers with, if it does.
func (x *Explanation) fromCache(r *Resolver, q *wire.Query, now uint32) bool {
	key := cache.MakeKey(entry.KindAnswer, r.config.Realm, x.Name, x.Type)
	e, how := r.find(q, &key, now, r.cache.NewBuf(), r.cache.NewBuf())
	if how == lookupMiss {
		return false
	}
	x.Source = "cache"
	if how == lookupStale {
		x.Source = "stale cache"
	}
	x.entry(e, now)
	if e.Kind() == entry.KindFailure {
		x.Source = "cached failure"
		_, x.Cause = firstEDE(e)
	}
	if known := r.recent.find(question{name: x.Name, t: x.Type}); known != nil {
		x.PathKnown, x.Path, x.Lost = true, known.events, known.lost
		x.PathAge, x.Took = time.Since(known.ended), known.took
		if known.failure != "" && x.Cause == "" && how == lookupStale {
			x.Cause = known.failure
		}
	}
	return true
}

// resolve asks the servers and tells how it went.
func (x *Explanation) resolve(ctx context.Context, r *Resolver) {
	x.Source, x.PathKnown = "resolution", true
	ctx, cancel := context.WithTimeout(ctx, r.config.Patience)
	defer cancel()
	t := r.newTree()
	t.trace = iterate.NewTrace()
	begin := time.Now()
	res, err := t.ask(ctx, question{name: x.Name, t: x.Type})
	x.Took = time.Since(begin)
	x.Path, x.Lost = t.trace.Events()
	now := r.now()
	switch {
	case err != nil:
		f := failureOf(err)
		x.RCODE, x.Kind, x.Cause = f.rcode, "failure", f.text
		x.EDE = append(x.EDE, wire.EDE{Code: f.code, Text: f.text})
	case res.content != nil:
		x.entry(res.packed, now)
	default:
		x.entry(res.failed, now)
		x.Cause = res.failure.text
	}
	x.Age = 0
	x.cut(r, now)
}

// chain tells what is known of every zone from the root down to the deepest that is known.
func (x *Explanation) chain(r *Resolver) {
	if r.validator == nil {
		return
	}
	now := r.now()
	var names []wire.Name
	for n := x.Zone; ; n = n.Parent() {
		names = append(names, n)
		if n == wire.Root {
			break
		}
	}
	for i := len(names) - 1; i >= 0; i-- {
		l := ChainLink{Zone: names[i], Anchor: len(r.validator.KeyTags(names[i])) > 0, Insecure: !r.validator.Covers(names[i])}
		ds := r.lookupContent(entry.KindAddress, l.Zone, wire.TypeDS, now)
		if ds == nil {
			ds = r.lookupContent(entry.KindAnswer, l.Zone, wire.TypeDS, now)
		}
		if ds != nil {
			l.DS, l.DSKnown, l.DSTags = ds.Status, true, dsTags(ds.Answer)
		}
		if keys := r.lookupContent(entry.KindAnswer, l.Zone, wire.TypeDNSKEY, now); keys != nil {
			l.Keys, l.KeyTags = keys.Status, keyTags(keys.Answer)
		}
		isZone := l.Anchor || ds != nil || len(l.KeyTags) > 0 || r.cuts.Deepest(l.Zone, now).Zone == l.Zone
		if isZone {
			x.Chain = append(x.Chain, l)
		}
	}
}

func dsTags(sets []wire.RRset) (tags []uint16) {
	for i := range sets {
		for _, d := range sets[i].RDATA {
			if sets[i].Type == wire.TypeDS && len(d) > 4 {
				tags = append(tags, binary.BigEndian.Uint16(d))
			}
		}
	}
	return tags
}

func keyTags(sets []wire.RRset) (tags []uint16) {
	for i := range sets {
		for _, d := range sets[i].RDATA {
			if sets[i].Type == wire.TypeDNSKEY {
				tags = append(tags, validate.KeyTag(d))
			}
		}
	}
	return tags
}

// maxKeptEvents bounds what is remembered of one resolution.
const maxKeptEvents = 48

// remembered is a resolution that ended not long ago.
type remembered struct {
	question question
	ended    time.Time
	took     time.Duration
	events   []iterate.Event
	lost     int
	failure  string
}

// recent is a ring of the last resolutions for clients and of refreshes.
type recent struct {
	mu   sync.Mutex
	ring []remembered // their events lie in memory that is used again
	next int
}

func (r *recent) init(size int) { r.ring = make([]remembered, size) }

// add remembers how a flight went. Resolutions that asked nobody are left out: their answer was put
// together from others'.
func (r *recent) add(fl *flight, trace *iterate.Trace, res *result, took time.Duration) {
	if len(r.ring) == 0 || trace.Len() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.ring[r.next]
	r.next = (r.next + 1) % len(r.ring)
	clear(m.events)
	m.events, m.lost = trace.AppendEvents(m.events[:0], maxKeptEvents)
	m.question, m.ended, m.took, m.failure = fl.question, time.Now(), took, ""
	if res != nil && res.failure != nil {
		m.failure = res.failure.text
	}
}

// find returns a copy of the last resolution of a question, or nil.
func (r *recent) find(q question) *remembered {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ring {
		m := &r.ring[(r.next-1-i+2*len(r.ring))%len(r.ring)]
		if m.question == q {
			found := *m
			found.events = slices.Clone(m.events)
			return &found
		}
	}
	return nil
}

// ServersOf returns the deepest known cut of a name and those above it, deepest first: what a
// resolution of the name would begin with.
func (r *Resolver) ServersOf(name wire.Name) (zones []Delegation) {
	now := r.now()
	for n := name.Canonical(); ; n = n.Parent() {
		c := r.cuts.Deepest(n, now)
		d := Delegation{Zone: c.Zone, Left: c.Expires - min(now, c.Expires), Configured: r.cuts.Configured(c.Zone) != nil, Forward: c.Forward}
		for _, s := range c.Servers {
			d.Servers = append(d.Servers, NameServer{Name: s.Name, Addrs: s.Addrs})
		}
		zones = append(zones, d)
		if n = c.Zone; n == wire.Root {
			return zones
		}
	}
}

// Delegation is a zone with who serves it, as far as is known.
type Delegation struct {
	Zone                wire.Name
	Left                uint32 // seconds until its lease ends
	Configured, Forward bool
	Servers             []NameServer
}

// NameServer is one of them. Name is "" for one configured by address.
type NameServer struct {
	Name  wire.Name
	Addrs []netip.AddrPort
}

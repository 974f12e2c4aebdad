package resolver

import (
	"maps"
	"net/netip"
	"slices"

	"bonsai/resolver/policy"
	"bonsai/resolver/zonecut"
)

// View is what some clients get instead of what all others do.
type View struct {
	Name    string
	Clients []netip.Prefix // the view with the most specific prefix that holds a client is the client's
	Policy  policy.Config  // in place of Config.Policy

	// Realm is where in the cache lies what the view resolves. 0 is the one that all clients have who
	// have no other; a view whose zones are other than theirs needs a realm of its own, and then Zones
	// takes the place of Config.Cuts.Configured.
	Realm uint16
	Zones []zonecut.Configured
}

// view is a View at work: rules, and who resolves what they pass.
type view struct {
	name      string
	r         *Resolver
	rules     policy.Order
	examiners []policy.AnswerRule
	index     int // of its counter
}

// viewTable finds the view of a client. It is replaced as a whole.
type viewTable struct {
	all    *view // of all who have no other
	groups []prefixGroup
}

// prefixGroup are prefixes of one length and family.
type prefixGroup struct {
	bits  int
	is4   bool
	views map[netip.Prefix]*view
}

// of returns the view of a client's address, unmapped.
func (t *viewTable) of(client netip.Addr) *view {
	for i := range t.groups {
		g := &t.groups[i]
		if client.Is4() != g.is4 {
			continue
		}
		if p, err := client.Prefix(g.bits); err == nil {
			if v := g.views[p]; v != nil {
				return v
			}
		}
	}
	return t.all
}

// add gives the clients of a prefix a view. The groups stay in order, longest prefixes first.
func (t *viewTable) add(p netip.Prefix, v *view) {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	p = p.Masked()
	at, found := slices.BinarySearchFunc(t.groups, p, func(g prefixGroup, p netip.Prefix) int {
		switch {
		case g.bits != p.Bits():
			return p.Bits() - g.bits
		case g.is4 == p.Addr().Is4():
			return 0
		case g.is4:
			return -1
		}
		return 1
	})
	if !found {
		t.groups = slices.Insert(t.groups, at, prefixGroup{p.Bits(), p.Addr().Is4(), map[netip.Prefix]*view{}})
	}
	t.groups[at].views[p] = v
}

// SetPolicy replaces the rules for all queries from now on, and who has which. Those under way end by
// the old ones. Of config it uses Policy and Views, whose realms are those that r was made with.
func (r *Resolver) SetPolicy(config *Config) {
	t := &viewTable{all: r.newView("", &config.Policy, 0)}
	for i := range config.Views {
		v := r.newView(config.Views[i].Name, &config.Views[i].Policy, config.Views[i].Realm)
		for _, p := range config.Views[i].Clients {
			t.add(p, v)
		}
	}
	r.views.Store(t)
}

func (r *Resolver) newView(name string, c *policy.Config, realm uint16) *view {
	v := &view{name: name, r: r, rules: policy.NewOrder(c), examiners: policy.NewAnswerRules(c), index: r.stats.viewIndex(name)}
	if realm != 0 {
		v.r = r.realms[realm]
	}
	return v
}

// RuleList is the rules of a view in the order in which they are asked: first those that look at queries,
// then those that look at answers.
type RuleList struct {
	View    string // "" is that of all who have no other
	Queries []policy.Description
	Answers []policy.Description
}

// Rules returns the list of all who have no view, and that of each view behind it by name.
func (r *Resolver) Rules() []RuleList {
	t := r.views.Load()
	seen := map[string]*view{}
	for i := range t.groups {
		for _, v := range t.groups[i].views {
			seen[v.name] = v
		}
	}
	lists := []RuleList{t.all.describe()}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		lists = append(lists, seen[name].describe())
	}
	return lists
}

func (v *view) describe() RuleList {
	l := RuleList{View: v.name}
	for _, rule := range v.rules {
		l.Queries = append(l.Queries, rule.Describe())
	}
	for _, rule := range v.examiners {
		l.Answers = append(l.Answers, rule.Describe())
	}
	return l
}

// For returns who resolves for a client: r, or the one of its view's realm.
func (r *Resolver) For(client netip.Addr) *Resolver { return r.views.Load().of(client).r }

// assembleRealms makes a Resolver for each realm of the views: over the same cache, under keys of its own.
func (r *Resolver) assembleRealms(config *Config) error {
	r.realms = make(map[uint16]*Resolver)
	for i := range config.Views {
		v := &config.Views[i]
		if v.Realm == 0 || r.realms[v.Realm] != nil {
			continue
		}
		own := *config
		own.Realm, own.Cuts.Configured = v.Realm, v.Zones
		own.Views, own.Policy, own.Anchors = nil, policy.Config{}, KeepAnchors{}
		realm := &Resolver{exchange: r.exchange, stats: r.stats, cookies: r.cookies, writes: r.writes, recent: new(recent)}
		realm.recent.init(own.Recent)
		if err := realm.assemble(own, nil); err != nil {
			return err
		}
		r.realms[v.Realm] = realm
	}
	return nil
}

// ownRealms counts the realms that the views of a configuration have beside the one of all others.
func (c *Config) ownRealms() int {
	realms := map[uint16]bool{}
	for i := range c.Views {
		if c.Views[i].Realm != 0 {
			realms[c.Views[i].Realm] = true
		}
	}
	return len(realms)
}

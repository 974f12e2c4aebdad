package iterate

import (
	"errors"
	"net/netip"
	"slices"

	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// way is how to come by a name server's addresses.
type way uint8

const (
	fromCuts    way = iota // glue in the cut that its name lies in: no query
	fromSource             // the resolver: the answer of the name's own zone
	fromNewCuts            // fromCuts again, where fromSource may have come upon that cut
	fromParent             // the servers of the parent of the cut: its glue, asked for by name
	ways
)

// lookup is an address lookup to do.
type lookup struct {
	server int
	family int
	way    way
}

// Points of name servers without an address, and how many end the search: five that do not exist,
// or three that cannot be looked up at all. A delegation can have hundreds of them ("NXNS").
const (
	pointsAbsent = 1
	pointsFailed = 2
	maxPoints    = 5
)

// maxExtra bounds the lookups for a second family of addresses, for servers of which one is known.
const maxExtra = 3

// findAddresses looks for an address not tried yet. It does one lookup. Where servers were asked for
// less than the whole name in vain, that may be why, and is the next thing to try.
func (r *resolution) findAddresses() step {
	if r.isMinimised() && r.minimise.mode != Strict && r.pool.failed > 0 {
		r.pool.rounds++
		return (*resolution).widen
	}
	l, ok := r.nextLookup()
	if !ok {
		return (*resolution).nextRound
	}
	r.pool.servers[l.server].done[l.family][l.way] = true
	if !r.lookUp(l) {
		return (*resolution).findAddresses
	}
	return (*resolution).chooseServer
}

// nextLookup returns the next lookup worth doing.
func (r *resolution) nextLookup() (lookup, bool) {
	p := &r.pool
	// First, those of whom no address is known.
	for i := range p.servers {
		if s := &p.servers[i]; !s.known[family4] && !s.known[family6] && !s.gone && p.missed < maxPoints {
			if l, ok := r.nextWay(i, fromCuts, fromSource, fromNewCuts, fromParent); ok {
				return l, true
			}
		}
	}
	// Then glue for those whose own zone gave an address that was no use.
	for i := range p.servers {
		if l, ok := r.nextWay(i, fromNewCuts); ok {
			return l, true
		}
	}
	// Last, the other family, where a server may be silent or out of reach for its family's sake or
	// is to be avoided.
	if len(p.silent) == 0 && r.trouble.count[troubleNetwork] == 0 && len(p.avoid) == 0 {
		return lookup{}, false
	}
	open := []way{fromCuts, fromSource, fromParent}
	if r.cut.Asked {
		open = open[:2]
	}
	for i := range p.servers {
		if l, ok := r.nextWay(i, open...); ok && p.extra < maxExtra {
			p.extra++
			return l, true
		}
	}
	return lookup{}, false
}

// nextWay returns the first lookup for a server, in the order of the ways, that is open and has not
// been done.
func (r *resolution) nextWay(server int, ways ...way) (lookup, bool) {
	s := &r.pool.servers[server]
	for _, w := range ways {
		if !r.isOpen(s, w) {
			continue
		}
		for _, f := range r.families() {
			if !s.done[f][w] && (!s.known[f] || w == fromNewCuts) {
				return lookup{server, f, w}, true
			}
		}
	}
	return lookup{}, false
}

// isOpen says whether a way to a server's addresses may lead anywhere.
func (r *resolution) isOpen(s *target, w way) bool {
	inDomain := s.name.IsSubdomainOf(r.cut.Zone)
	switch {
	case s.name == "":
		return false
	case w == fromParent:
		return inDomain && r.cut.Parent != r.cut.Zone
	case w == fromNewCuts:
		return s.done[family4][fromSource] || s.done[family6][fromSource]
	case w == fromSource && inDomain && !isConfigured(r.cut):
		// The zone's own servers know its names best; where none of them speaks, looking the name up
		// would only ask them again.
		return r.pool.heard || len(r.avoid) > 0
	}
	return w == fromSource || !inDomain
}

var (
	only4 = []int{family4}
	only6 = []int{family6}
	both4 = []int{family4, family6}
	both6 = []int{family6, family4}
)

// families returns the families in use, first the one that works if just one seems to.
func (r *resolution) families() []int {
	switch {
	case !r.config.IPv6:
		return only4
	case !r.config.IPv4:
		return only6
	}
	if ipv4, _ := r.config.Exchange.Families(); !ipv4 {
		return both6
	}
	return both4
}

// lookUp does a lookup, and says whether it gave an address that was not known.
func (r *resolution) lookUp(l lookup) bool {
	switch l.way {
	case fromSource:
		return r.lookUpSource(l)
	case fromParent:
		return r.lookUpParent(l)
	}
	return r.lookUpCuts(l)
}

// lookUpCuts takes the glue of the cut that the name server's name lies in, if it serves that zone,
// too: its parent gave it for the same purpose. A zone cut at the name itself, which leads nowhere,
// does not hide the one above.
func (r *resolution) lookUpCuts(l lookup) (found bool) {
	s := &r.pool.servers[l.server]
	for zone := s.name; ; {
		cut := r.config.Cuts.Deepest(zone, r.config.Now())
		for i := range cut.Servers {
			if cut.Servers[i].Name == s.name {
				found = r.addAll(l.server, cut.Servers[i].Addrs) || found
			}
		}
		if found || cut.Zone == wire.Root {
			return found
		}
		zone = cut.Zone.Parent()
	}
}

// lookUpSource asks the resolver.
func (r *resolution) lookUpSource(l lookup) bool {
	s := &r.pool.servers[l.server]
	t := familyType[l.family]
	if s.name.Equal(r.name) && t == r.qtype {
		return false // that is what is being resolved
	}
	if r.task.Budget.lookup(r.task.Depth) != nil {
		r.pool.missed = maxPoints
		r.trouble.limited = true
		return false
	}
	r.stats.lookups.Add(1)
	response, err := r.task.Source.Lookup(r.ctx, s.name, t)
	found := false
	if err == nil {
		for i := range response.Answer {
			if set := &response.Answer[i]; set.Type == t {
				found = r.addAll(l.server, appendAddrs(nil, set)) || found
			}
		}
	}
	if !s.known[l.family] {
		r.lookupFailed(s, response, err)
	}
	return found
}

// lookupFailed counts a lookup in vain, and leaves out those that would be, too.
func (r *resolution) lookupFailed(s *target, response *wire.Response, err error) {
	r.task.Budget.lookupFailed()
	last := true // of the families in use
	for _, f := range r.families() {
		last = last && s.done[f][fromSource]
	}
	switch {
	case err != nil:
		// What keeps one family's address from being found keeps the other's, too.
		for f := range s.done {
			s.done[f][fromSource] = true
		}
		r.trouble.lookupFailed(s.name, err)
		r.pool.missed += pointsFailed
	case response.RCODE == wire.RCODENXDomain:
		s.gone = true
		r.trouble.lookupFailed(s.name, errNoName)
		r.pool.missed += pointsAbsent
	case last && !s.known[family4] && !s.known[family6]:
		r.trouble.lookupFailed(s.name, errNoAddress)
		r.pool.missed += pointsAbsent
	}
}

var (
	errNoName    = errors.New("does not exist")
	errNoAddress = errors.New("has no address")
)

// lookUpParent asks the servers of the cut's parent for a name server's address: for glue that was
// left out of the referral, has expired, or was of one family only. What they say is used as glue.
func (r *resolution) lookUpParent(l lookup) (found bool) {
	// Another resolution may have asked for the other family while this one waited for servers.
	if s := &r.pool.servers[l.server]; !r.cut.Asked && (s.known[family4] || s.known[family6]) {
		if cut := r.config.Cuts.Deepest(r.cut.Zone, r.config.Now()); cut.Zone == r.cut.Zone && cut.Asked {
			r.cut = cut
			return r.takeKnown(cut)
		}
	}
	q := question{r.pool.servers[l.server].name, familyType[l.family]}
	s, parent := r.askParent(q)
	if s != nil {
		found = r.takeFromParent(s, parent, l)
	}
	if !found {
		r.pool.missed += pointsAbsent
	}
	if !r.cut.Asked {
		cut := *r.cut
		cut.Asked = true
		r.config.Cuts.Amend(&cut, r.config.Now(), r.task.Epoch)
		r.cut = &cut
	}
	return found
}

// maxParentServers bounds the parent's servers asked at one go, and maxParentAliases the aliases
// followed there.
const (
	maxParentServers = 3
	maxParentAliases = 2
)

// askParent asks the servers of the cut's parent, and returns what the first of them to speak says,
// which the others would say, too, and the zone in whose name it does. It is nil where none speaks.
func (r *resolution) askParent(q question) (s *said, zone wire.Name) {
	parent := r.config.Cuts.Deepest(r.cut.Zone.Parent(), r.config.Now())
	servers := newPool(parent, nil, r.config.Exchange)
	aliases := 0
	for range maxParentServers + maxParentAliases {
		server, ok := r.config.Exchange.Choose(parent.Zone, servers.addrs, servers.tried)
		if !ok {
			break
		}
		reply, err := r.send(parent, server, q, 0, false)
		if errors.Is(err, exchange.ErrBudget) || r.ctx.Err() != nil {
			break
		}
		if err == nil {
			s = new(said)
			err = s.scrub(&reply.Message, parent.Zone, q)
			r.config.Exchange.Release(reply)
		}
		switch {
		case err != nil || s.classify(parent.Zone, q, parent.Forward).isUseless():
			servers.tried = append(servers.tried, server)
		case s.target != "" && aliases < maxParentAliases:
			q.name = s.target
			aliases++
		default:
			return s, parent.Zone
		}
	}
	return nil, ""
}

// takeFromParent takes the addresses in a parent's response: of the server looked up, in the answer;
// and the glue of all servers in a referral, which is a new grant. The cut is kept with them.
func (r *resolution) takeFromParent(s *said, parent wire.Name, l lookup) (found bool) {
	now := r.config.Now()
	cut, renewed := *r.cut, false
	if s.below != nil && s.below.Owner.Equal(cut.Zone) {
		cut, renewed = *makeCut(s, parent, now, r.config.LaxGlue), true
	}
	cut.Servers = slices.Clone(cut.Servers)
	for i := range cut.Servers {
		server := &cut.Servers[i]
		if server.Name == r.pool.servers[l.server].name && len(s.answer) > 0 && s.answer[0].Type == familyType[l.family] {
			server.Addrs = appendAddrs(slices.Clone(server.Addrs), &s.answer[0])
		}
	}
	found = r.takeKnown(&cut)
	switch {
	case renewed:
		r.config.Cuts.Store(&cut, now, r.task.Epoch)
	case found:
		r.config.Cuts.Amend(&cut, now, r.task.Epoch)
	default:
		return false
	}
	r.cut = &cut
	return found
}

// takeKnown takes the addresses in a newer state of the cut.
func (r *resolution) takeKnown(cut *zonecut.Cut) (found bool) {
	for i := range cut.Servers {
		for j := range r.pool.servers {
			if r.pool.servers[j].name == cut.Servers[i].Name {
				found = r.addAll(j, cut.Servers[i].Addrs) || found
			}
		}
	}
	return found
}

// addAll adds addresses of a server, and says whether one of them is new.
func (r *resolution) addAll(server int, addrs []netip.AddrPort) (found bool) {
	for _, a := range addrs {
		found = r.pool.add(server, a, r.config.Exchange) || found
	}
	return found
}

package zonecut

import (
	"sync"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// Config says how a Map is made.
type Config struct {
	Cache      *cache.Cache
	Realm      uint16   // of the cuts in the cache
	Hints      []Server // of the root; none: the built-in ones
	Configured []Configured

	// Renew, if set, is called with each zone that a lookup used in the last quarter of its lease,
	// its ancestors' included. It may not wait, and may be called often for the same zone.
	Renew func(zone wire.Name)
}

// Map finds and keeps cuts. All its methods may be called at once by many goroutines.
type Map struct {
	cache      *cache.Cache
	realm      uint16
	configured map[wire.Name]*Configured // the root among them
	renew      func(zone wire.Name)
	memos      memos
}

// New returns a Map over a cache.
func New(config Config) *Map {
	m := &Map{cache: config.Cache, realm: config.Realm, configured: make(map[wire.Name]*Configured), renew: config.Renew}
	m.memos.init(config.Cache.Stats().Capacity)
	hints := config.Hints
	if len(hints) == 0 {
		hints = BuiltinHints()
	}
	m.configured[wire.Root] = &Configured{Zone: wire.Root, Servers: hints, Prime: true}
	for i := range config.Configured {
		c := config.Configured[i]
		c.Zone = c.Zone.Canonical()
		// A root to forward to first needs the hints where that fails.
		if c.Zone == wire.Root && c.First {
			m.configured[""] = m.configured[wire.Root]
		}
		m.configured[c.Zone] = &c
	}
	return m
}

// buffers holds room for one entry each.
var buffers sync.Pool

func (m *Map) buffer() *[]byte {
	if b, ok := buffers.Get().(*[]byte); ok {
		return b
	}
	b := m.cache.NewBuf()
	return &b
}

// Deepest returns the deepest live cut at or above name; it is never nil. The parent side of a cut
// is that of name.Parent().
func (m *Map) Deepest(name wire.Name, now uint32) *Cut {
	return m.deepest(name.Canonical(), now, func(c *Configured) bool { return true })
}

// Ordinary is Deepest without the configured zones that are First.
func (m *Map) Ordinary(name wire.Name, now uint32) *Cut {
	return m.deepest(name.Canonical(), now, func(c *Configured) bool { return !c.First })
}

func (m *Map) deepest(name wire.Name, now uint32, counts func(*Configured) bool) *Cut {
	base := m.base(name, counts)
	if !base.Forward {
		for n := name; len(n) > len(base.Zone); n = n.Parent() {
			c := m.load(n, now)
			if c == nil || c.Hearsay {
				continue
			}
			dead := m.dead(c, base.Zone, now)
			if dead == nil {
				return c
			}
			n = dead.Zone // and all between
		}
	}
	return m.baseCut(base, now)
}

// Shown is Deepest for those who may see the cache: below a zone that is forwarded it returns what the
// forwarder told of the zones there, if anything.
func (m *Map) Shown(name wire.Name, now uint32) *Cut {
	c := m.Deepest(name, now)
	if !c.Forward {
		return c
	}
	for n := name.Canonical(); len(n) > len(c.Zone); n = n.Parent() {
		if heard := m.load(n, now); heard != nil && heard.Hearsay {
			return heard
		}
	}
	return c
}

// base returns the deepest configured zone at or above name, the root if no other.
func (m *Map) base(name wire.Name, counts func(*Configured) bool) *Configured {
	for n := name; ; n = n.Parent() {
		if c := m.configured[n]; c != nil && counts(c) {
			return c
		}
		if len(n) <= 1 {
			return m.configured[""]
		}
	}
}

// dead returns the topmost cut from c up whose ancestors' grants do not run to the configured zone
// base, for with it all below are dead; or nil if c is live, and then asks for the renewal of those
// that end soon.
func (m *Map) dead(c *Cut, base wire.Name, now uint32) *Cut {
	var due []wire.Name
	for {
		if now >= c.Renew() {
			due = append(due, c.Zone)
		}
		if c.Parent == base {
			break
		}
		if !c.Parent.IsBelow(base) || !c.Zone.IsBelow(c.Parent) {
			return c
		}
		parent := m.load(c.Parent, now)
		if parent == nil || parent.Hearsay || c.Granted < parent.Since {
			return c
		}
		c = parent
	}
	if m.renew != nil {
		for _, zone := range due {
			m.renew(zone)
		}
	}
	return nil
}

// baseCut returns the cut of a configured zone: as it was primed, or its hints.
func (m *Map) baseCut(base *Configured, now uint32) *Cut {
	if base.Prime {
		if c := m.load(base.Zone, now); c != nil && c.Parent == c.Zone {
			if m.renew != nil && now >= c.Renew() {
				m.renew(c.Zone)
			}
			if base.TCP || base.First {
				primed := *c
				primed.TCP, primed.First = base.TCP, base.First
				return &primed
			}
			return c
		}
	}
	return &Cut{
		Zone: base.Zone, Parent: base.Zone, Servers: base.Servers, Expires: now + MaxLease,
		Prime: base.Prime, Forward: base.Forward, First: base.First, TCP: base.TCP, TLS: base.TLS,
	}
}

// Configured returns the configured servers of zone, which are hints where the zone is primed; nil
// if it is not configured.
func (m *Map) Configured(zone wire.Name) []Server {
	if c := m.configured[zone.Canonical()]; c != nil {
		return c.Servers
	}
	return nil
}

// load returns the cut of zone from the cache unless its own lease is over.
func (m *Map) load(zone wire.Name, now uint32) *Cut {
	buf := m.buffer()
	defer buffers.Put(buf)
	key := cache.MakeKey(entry.KindCut, m.realm, zone, wire.TypeNone)
	e, ok := m.cache.Lookup(&key, now, *buf)
	if !ok || e.Expires() <= now {
		return nil
	}
	if c := m.memos.get(zone, e, now); c != nil {
		return c
	}
	content, err := e.Unpack(now)
	if err != nil {
		return nil
	}
	c := fromContent(content, now)
	if c != nil {
		c.Expires = e.Expires()
		m.memos.put(e, c, now)
	}
	return c
}

// Store keeps a cut that zone's parent granted, or that priming gave, until c.Expires. It sets
// c.Granted and c.Since, and so comes before c is shared. Nothing is kept of a lease of 0 seconds.
// epoch is the cache's from the start of the resolution.
func (m *Map) Store(c *Cut, now uint32, epoch uint64) {
	c.Expires = min(c.Expires, now+MaxLease)
	c.Granted, c.Since = now, now
	if c.Expires <= now {
		return
	}
	if old := m.load(c.Zone, now); old != nil && overlap(old.Servers, c.Servers) {
		c.Since = old.Since
	}
	m.pack(c, now, epoch)
}

// Amend keeps a cut with addresses that it lacked when it was stored or looked up. It is no grant: the
// lease stays as it is, and a grant given meanwhile stays, too.
func (m *Map) Amend(c *Cut, now uint32, epoch uint64) {
	if old := m.load(c.Zone, now); old != nil && old.Granted == c.Granted && c.Expires > now {
		m.pack(c, now, epoch)
	}
}

func (m *Map) pack(c *Cut, now uint32, epoch uint64) {
	buf := m.buffer()
	defer buffers.Put(buf)
	content := toContent(c, now)
	content.Realm = m.realm
	packed, err := entry.Pack((*buf)[:0], content, now)
	if err != nil {
		return // used for this resolution, and not kept
	}
	key := cache.MakeKey(entry.KindCut, m.realm, c.Zone, wire.TypeNone)
	m.cache.Store(&key, packed, now, epoch)
}

// overlap says whether two server sets share a name.
func overlap(a, b []Server) bool {
	for i := range a {
		for j := range b {
			if a[i].Name == b[j].Name {
				return true
			}
		}
	}
	return false
}

package resolver

import (
	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// staleAnswer returns a copy of expired data that may be served in need (RFC 8767 §5), or nil; and
// whether it need not be tried to renew it, for that has just failed. The denial of the name is the
// later of the two where both are there: a positive answer would have taken it away. A chain is
// composed anew, for some of its links may have been renewed since.
func (r *Resolver) staleAnswer(key *cache.Key, now uint32) (e entry.Entry, failing bool) {
	if r.config.StaleTTL == 0 {
		return nil, false
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	denial := key.With(entry.KindDenial, wire.TypeNone)
	e, ok := r.cache.Lookup(&denial, now, *buf)
	if !ok {
		e, ok = r.cache.Lookup(key, now, *buf)
	}
	whole := append(entry.Entry(nil), e...)
	if !ok || isChain(whole, key) {
		if chain, failing := r.staleChain(key, now, *buf); chain != nil {
			return chain, failing
		}
	}
	return whole, false
}

// staleChain composes what is cached of a chain of aliases, of any age: it is stale as soon as one
// link is. nil where a link is missing. failing says that an expired one was just asked for in vain.
func (r *Resolver) staleChain(key *cache.Key, now uint32, buf []byte) (e entry.Entry, failing bool) {
	t := key.QType()
	c := chain{question: question{name: key.QName(), t: t}}
	for name := c.question.name; ; {
		l := r.anyAge(name, t, now, buf)
		if l == nil {
			return nil, false
		}
		if l.expired && !failing {
			f := r.keptFailure(name, t)
			failing = f != nil && mayBeStale(f.code)
		}
		c.links = append(c.links, l)
		if !leadsOn(l, t) {
			break
		}
		if name = l.target(); c.aliases() > maxAliases || c.passed(name) {
			return nil, false
		}
	}
	whole := c.compose(entry.KindAnswer)
	for _, sets := range [...][]wire.RRset{whole.Answer, whole.Authority, whole.Additional} {
		for i := range sets {
			sets[i].TTL = r.config.StaleTTL
		}
	}
	whole.Lifetime = r.config.StaleTTL
	packed, err := entry.Pack(nil, &whole.Content, now)
	if err != nil {
		return nil, false
	}
	return packed, failing
}

// hasAnyAge says whether something is cached that could be served stale for a question, or begin a chain
// that is.
func (r *Resolver) hasAnyAge(q question, now uint32) bool {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	for _, k := range r.keysOf(q.name, q.t) {
		if _, ok := r.cache.Lookup(&k, now, *buf); ok {
			return true
		}
	}
	return false
}

// keysOf are the keys under which an answer may lie, that which was stored last before those it would
// have taken away.
func (r *Resolver) keysOf(name wire.Name, t wire.Type) [3]cache.Key {
	key := cache.MakeKey(entry.KindDenial, r.config.Realm, name, wire.TypeNone)
	return [...]cache.Key{key, key.With(entry.KindAnswer, t), key.With(entry.KindAnswer, wire.TypeCNAME)}
}

// anyAge returns the cached link of name and type, live or within the stale limit, or nil. What was
// composed of links counts only where there is none of them.
func (r *Resolver) anyAge(name wire.Name, t wire.Type, now uint32, buf []byte) (l *link) {
	for _, k := range r.keysOf(name, t) {
		e, ok := r.cache.Lookup(&k, now, buf)
		if !ok {
			continue
		}
		c, err := e.Unpack(now)
		if err != nil {
			continue
		}
		found := &link{Content: *c, expired: e.Expires() <= now}
		switch {
		case k.QType() == wire.TypeCNAME && t != wire.TypeCNAME && !leadsOn(found, t):
			// A denial of CNAME says nothing of other types.
		case isChain(e, &k):
			l = found
		default:
			return found
		}
	}
	return l
}

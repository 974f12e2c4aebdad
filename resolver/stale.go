package resolver

import (
	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// staleAnswer returns a copy of expired data that may be served in need (RFC 8767 §5), or nil. The
// denial of the name is the later of the two where both are there: a positive answer would have
// taken it away.
func (r *Resolver) staleAnswer(key *cache.Key, now uint32) entry.Entry {
	if r.config.StaleTTL == 0 {
		return nil
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	denial := key.With(entry.KindDenial, wire.TypeNone)
	if e, ok := r.cache.Lookup(&denial, now, *buf); ok {
		return append(entry.Entry(nil), e...)
	}
	if e, ok := r.cache.Lookup(key, now, *buf); ok {
		return append(entry.Entry(nil), e...)
	}
	return r.staleChain(key, now, *buf)
}

// staleChain composes what is cached of a chain of aliases, of any age: it is stale as soon as one
// link is. nil where a link is missing.
func (r *Resolver) staleChain(key *cache.Key, now uint32, buf []byte) entry.Entry {
	t := key.QType()
	c := chain{question: question{name: key.QName(), t: t}}
	for name := c.question.name; ; {
		l := r.anyAge(name, t, now, buf)
		if l == nil {
			return nil
		}
		c.links = append(c.links, l)
		if !leadsOn(l, t) {
			break
		}
		if name = l.target(); c.aliases() > maxAliases || c.passed(name) {
			return nil
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
		return nil
	}
	return packed
}

// anyAge returns the cached link of name and type, live or within the stale limit, or nil.
func (r *Resolver) anyAge(name wire.Name, t wire.Type, now uint32, buf []byte) *link {
	key := cache.MakeKey(entry.KindDenial, 0, name, wire.TypeNone)
	for _, k := range [...]cache.Key{
		key, key.With(entry.KindAnswer, t), key.With(entry.KindAnswer, wire.TypeCNAME),
	} {
		e, ok := r.cache.Lookup(&k, now, buf)
		if !ok {
			continue
		}
		c, err := e.Unpack(now)
		if err != nil {
			continue
		}
		// A denial of CNAME says nothing of other types.
		if l := (&link{Content: *c}); k.QType() != wire.TypeCNAME || t == wire.TypeCNAME || leadsOn(l, t) {
			return l
		}
	}
	return nil
}

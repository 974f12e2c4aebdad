package resolver

import (
	"sync"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// scratch holds buffers that the largest entry fits.
var scratch = sync.Pool{New: func() any { b := make([]byte, cache.MaxEntry+16); return &b }}

// replaced are the types whose entries go when their name is denied, so that what was stored later
// wins. They are those that are asked for; another type's entry lives out its TTL.
var replaced = [...]wire.Type{
	wire.TypeA, wire.TypeAAAA, wire.TypeHTTPS, wire.TypeCNAME, wire.TypeTXT, wire.TypeMX,
	wire.TypeNS, wire.TypeSOA, wire.TypeSRV, wire.TypePTR, wire.TypeSVCB, wire.TypeDNAME,
}

// store packs and keeps one link. What has no lifetime is not kept (RFC 1035 §3.2.1: TTL 0 is for
// the transaction in progress). gone is what was missing under its name.
func (r *Resolver) store(c *link, now uint32, epoch uint64, gone *missing) {
	if c.Lifetime == 0 || c.QType == wire.TypeANY {
		return
	}
	c.Realm = r.config.Realm
	packed, err := entry.Pack(nil, &c.Content, now)
	if err != nil {
		return // answered and not cached
	}
	c.packed = packed
	r.storePacked(&c.Content, packed, now, epoch, gone)
}

// storeDNAME keeps the DNAME that made an alias under its own name: it redirects all that is below
// (RFC 6672 §2.4), which then needs no query.
func (r *Resolver) storeDNAME(c *link, now uint32, epoch uint64) {
	if len(c.Answer) != 2 || c.Answer[0].Type != wire.TypeDNAME {
		return
	}
	d := *c
	d.QName, d.QType, d.Status = c.Answer[0].Owner.Canonical(), wire.TypeDNAME, c.Answer[0].Status
	d.Answer, d.Authority, d.Additional = c.Answer[:1:1], nil, nil
	r.store(&d, now, epoch, &missing{})
}

// storePacked keeps an entry and takes away what it contradicts.
func (r *Resolver) storePacked(c *entry.Content, packed entry.Entry, now uint32, epoch uint64, gone *missing) {
	count := r.writes.of(c.QName)
	first := count.Add(1)
	defer count.Add(1)
	key := cache.MakeKey(c.Kind, r.config.Realm, c.QName, c.QType)
	if !r.cache.Store(&key, packed, now, epoch) {
		return
	}
	switch c.Kind {
	case entry.KindDenial:
		if c.Status == wire.Secure {
			r.stats.denials.Add(1)
		}
		r.removeReplaced(c.QName, wire.TypeNone)
	case entry.KindAnswer:
		if !hasAlias(c.Answer) && gone.isAlone(c.QName, c.QType, first) && count.Load() == first {
			return
		}
		r.remove(entry.KindFailure, c.QName, c.QType)
		r.remove(entry.KindDenial, c.QName, wire.TypeNone)
		switch {
		case c.QType == wire.TypeDNAME && len(c.Answer) > 0:
			r.stats.dnames.Add(1)
		case c.QType == wire.TypeCNAME && len(c.Answer) > 0:
			// An alias has no other data (RFC 1034 §3.6.2): what says otherwise is older.
			// Chains composed under it go too, and are composed anew from their links.
			r.removeReplaced(c.QName, wire.TypeCNAME)
		case !hasAlias(c.Answer) && !standsBeside(c.QType):
			// Nor has other data an alias: with it go the chains that were composed under it.
			if r.remove(entry.KindAnswer, c.QName, wire.TypeCNAME) {
				r.removeReplaced(c.QName, c.QType)
			}
		}
	}
}

func hasAlias(sets []wire.RRset) bool {
	return len(sets) > 0 && (sets[0].Type == wire.TypeCNAME || sets[0].Type == wire.TypeDNAME)
}

// removeReplaced takes away what is kept under name but for one type.
func (r *Resolver) removeReplaced(name wire.Name, but wire.Type) {
	for _, t := range replaced {
		if t != but {
			r.remove(entry.KindAnswer, name, t)
		}
	}
}

// remove says whether there was an entry.
func (r *Resolver) remove(kind entry.Kind, name wire.Name, t wire.Type) bool {
	key := cache.MakeKey(kind, r.config.Realm, name, t)
	return r.cache.Remove(&key)
}

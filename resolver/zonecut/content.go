package zonecut

import (
	"encoding/binary"
	"net/netip"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// grantLen is the length of the RDATA that holds Since and Granted, and flags where there are any. Its
// type is NULL (RFC 1035 §3.3.10: anything at all), and its owner the parent zone.
const grantLen = 8

const (
	flagHearsay = 1 << iota
	flagAsked
)

func appendGrant(dst []byte, c *Cut) []byte {
	dst = binary.BigEndian.AppendUint32(dst, c.Since)
	dst = binary.BigEndian.AppendUint32(dst, c.Granted)
	flags := byte(0)
	if c.Hearsay {
		flags |= flagHearsay
	}
	if c.Asked {
		flags |= flagAsked
	}
	if flags != 0 {
		dst = append(dst, flags)
	}
	return dst
}

func (c *Cut) takeGrant(rdata []byte) {
	c.Since, c.Granted = binary.BigEndian.Uint32(rdata), binary.BigEndian.Uint32(rdata[4:])
	if len(rdata) > grantLen {
		c.Hearsay = rdata[grantLen]&flagHearsay != 0
		c.Asked = rdata[grantLen]&flagAsked != 0
	}
}

// toContent lays a cut out as an entry.
func toContent(c *Cut, now uint32) *entry.Content {
	lease := c.Expires - now
	ns := wire.RRset{Owner: c.Zone, Type: wire.TypeNS, Class: wire.ClassIN, TTL: lease}
	grant := appendGrant(make([]byte, 0, grantLen+1), c)
	content := &entry.Content{
		Kind: entry.KindCut, QName: c.Zone, Lifetime: lease,
		Authority: make([]wire.RRset, len(c.DS)),
		Additional: []wire.RRset{{
			Owner: c.Parent, Type: wire.TypeNULL, Class: wire.ClassIN, TTL: lease, RDATA: [][]byte{grant},
		}},
		Used: c.Zone.Labels() <= 1,
	}
	for i, s := range c.DS {
		s.TTL = min(s.TTL, lease)
		content.Authority[i] = s
	}
	for i := range c.Servers {
		s := &c.Servers[i]
		ns.RDATA = append(ns.RDATA, []byte(s.Name))
		ttl := lease
		if s.Expires != 0 {
			ttl = min(lease, s.Expires-min(now, s.Expires))
		}
		content.Additional = appendGlue(content.Additional, s, wire.TypeA, ttl)
		content.Additional = appendGlue(content.Additional, s, wire.TypeAAAA, ttl)
	}
	content.Answer = []wire.RRset{ns}
	return content
}

// appendGlue appends the addresses of one family as an RRset, if there are any.
func appendGlue(sets []wire.RRset, s *Server, t wire.Type, ttl uint32) []wire.RRset {
	var rdata [][]byte
	for _, a := range s.Addrs {
		if ip := a.Addr(); ip.Is4() == (t == wire.TypeA) {
			rdata = append(rdata, ip.AsSlice())
		}
	}
	if len(rdata) == 0 || ttl == 0 {
		return sets
	}
	return append(sets, wire.RRset{Owner: s.Name, Type: t, Class: wire.ClassIN, TTL: ttl, RDATA: rdata})
}

// fromContent reads a cut back, without what has expired by now; nil if it is none.
func fromContent(content *entry.Content, now uint32) *Cut {
	if len(content.Answer) != 1 || len(content.Additional) == 0 {
		return nil
	}
	grant := &content.Additional[0]
	if grant.Type != wire.TypeNULL || len(grant.RDATA) != 1 || len(grant.RDATA[0]) < grantLen {
		return nil
	}
	c := &Cut{
		Zone:    content.QName.Canonical(),
		Parent:  grant.Owner.Canonical(),
		Servers: make([]Server, len(content.Answer[0].RDATA)),
	}
	c.takeGrant(grant.RDATA[0])
	for i, name := range content.Answer[0].RDATA {
		c.Servers[i].Name = wire.Name(name)
	}
	for i := range content.Authority {
		if content.Authority[i].TTL > 0 {
			c.DS = append(c.DS, content.Authority[i])
		}
	}
	for i := range content.Additional[1:] {
		c.addGlue(&content.Additional[1+i], content.Lifetime, now)
	}
	return c
}

func (c *Cut) addGlue(set *wire.RRset, lease, now uint32) {
	if set.TTL == 0 {
		return
	}
	for i := range c.Servers {
		s := &c.Servers[i]
		if s.Name != set.Owner {
			continue
		}
		for _, rdata := range set.RDATA {
			if ip, ok := netip.AddrFromSlice(rdata); ok {
				s.Addrs = append(s.Addrs, netip.AddrPortFrom(ip, Port))
			}
		}
		if set.TTL < lease {
			s.Expires = now + set.TTL
		}
	}
}

package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// AppendTo writes the records of e into b, by sections, a RRset at a time. The builder's question
// has e's QNAME (the client's spelling of it). Where an RRset does not fit, it and all behind it are
// left out.
func (e Entry) AppendTo(b *wire.Builder, now uint32, o *Options) {
	c, err := e.Unpack(now)
	if err != nil {
		return
	}
	for s, sets := range [][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for i := range sets {
			if !o.DO && isDNSSEC(sets[i].Type) && sets[i].Type != c.QType {
				continue
			}
			if !e.appendRRset(b, c, wire.Section(s), &sets[i], o) {
				return
			}
		}
	}
}

func isDNSSEC(t wire.Type) bool {
	return t == wire.TypeRRSIG || t == wire.TypeNSEC || t == wire.TypeNSEC3
}

func (e Entry) appendRRset(b *wire.Builder, c *Content, s wire.Section, set *wire.RRset, o *Options) bool {
	owner, ttl := []byte(set.Owner), set.TTL
	if set.Owner.Equal(c.QName) {
		owner = []byte{0xC0, wire.HeaderSize}
	}
	if o.Stale {
		ttl = min(o.StaleTTL, ttl+e.Original())
	}
	mark, n := b.Mark(), len(set.RDATA)
	for i := range n {
		r := set.RDATA[(i+int(o.Rotate))%n]
		b.Buf = wire.AppendRecordHeader(b.Buf, owner, set.Type, ttl, len(r))
		b.Buf = append(b.Buf, r...)
	}
	if o.DO {
		n += len(set.Sigs)
		for _, r := range set.Sigs {
			b.Buf = wire.AppendRecordHeader(b.Buf, owner, wire.TypeRRSIG, ttl, len(r))
			b.Buf = append(b.Buf, r...)
		}
	}
	return b.Commit(mark, s, n)
}

// Unpack returns what was packed, with TTLs less the entry's age. The content borrows e.
func (e Entry) Unpack(now uint32) (*Content, error) {
	q := e.QName()
	c := &Content{Kind: e.Kind(), Realm: e.Realm(), QName: wire.Name(q), QType: e.QType(), RCODE: e.RCODE(),
		AA: e.AA(), Status: e.Status(), EDE: e.EDE(), Used: e.Used()}
	if now < e.Expires() {
		c.Lifetime = min(e.Expires()-now, e.Original())
	}
	age := e.Original() - c.Lifetime
	p := 19 + int(e[17])
	for _, d := range c.EDE {
		p += 3 + len(d.Text)
	}
	for p < len(e) {
		sections := [...]*[]wire.RRset{&c.Answer, &c.Authority, &c.Additional}
		list := sections[e[p]]
		set := wire.RRset{Status: wire.Status(e[p+1]), Type: wire.Type(binary.BigEndian.Uint16(e[p+2:])), Class: wire.ClassIN}
		set.TTL = binary.BigEndian.Uint32(e[p+4:])
		set.TTL -= min(age, set.TTL)
		set.Owner = wire.Name(e[p+9 : p+9+int(e[p+8])])
		p += 9 + int(e[p+8])
		set.RDATA, p = e.list(p)
		set.Sigs, p = e.list(p)
		*list = append(*list, set)
	}
	return c, nil
}

func (e Entry) list(p int) ([][]byte, int) {
	var list [][]byte
	n := int(binary.BigEndian.Uint16(e[p:]))
	p += 2
	for range n {
		l := int(binary.BigEndian.Uint16(e[p:]))
		list = append(list, e[p+2:p+2+l])
		p += 2 + l
	}
	return list, p
}

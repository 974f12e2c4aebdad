package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// Unpack returns what was packed, with TTLs and lifetime less the entry's age, in the canonical
// spelling of the QNAME where names end in it. It borrows nothing of e. A damaged entry gives
// ErrDamaged or content that was never packed, and nothing worse.
func (e Entry) Unpack(now uint32) (*Content, error) {
	c, n := e.begin()
	if c.bad {
		return nil, ErrDamaged
	}
	qname := string(e[qnameAt : qnameAt+n])
	// The entry is written as a message, and read from there: names may point to anywhere before.
	var b wire.Builder
	b.BeginMessage(make([]byte, 0, n+2*len(e)+64), e[qnameAt:qnameAt+n], e.QType(), MaxSize)
	var w writer
	w.begin(e, n, &b, now, &Options{DO: true})
	h := &w.header
	out := &Content{
		Kind: h.kind, Realm: h.realm, QName: wire.Name(qname), QType: h.qtype,
		RCODE: h.rcode, AA: h.flags&flagAA != 0, Status: h.status, EDE: e.EDE(),
		Lifetime: h.lifetime - min(h.lifetime, w.age), Used: h.ext&extUsed != 0,
	}
	sections := [...]*[]wire.RRset{&out.Answer, &out.Authority, &out.Additional}
	for first := true; !w.c.bad && (first && h.hasPlain() || w.c.p < len(e)); first = false {
		s, mark := w.c.set(h, first), b.Mark()
		if w.c.bad || !w.set(&s) {
			return nil, ErrDamaged
		}
		set := wire.RRset{Type: s.typ, Class: wire.ClassIN, Status: s.status, TTL: w.o.shownTTL(s.ttl, w.age)}
		if !readSet(&set, b.Buf, mark, s.count) {
			return nil, ErrDamaged
		}
		*sections[s.section] = append(*sections[s.section], set)
	}
	if w.c.bad || h.kind >= kinds {
		return nil, ErrDamaged
	}
	return out, nil
}

// readSet reads the records of one RRset at the end of a message: so many of data, then signatures.
func readSet(set *wire.RRset, message []byte, off, count int) (ok bool) {
	owner, _, err := wire.ReadName(message, off)
	if err != nil {
		return false
	}
	set.Owner = owner
	set.RDATA = make([][]byte, 0, count)
	for i := 0; off < len(message); i++ {
		end, err := wire.NameEnd(message, off)
		if err != nil {
			return false
		}
		off = end + recordHead
		end = off + int(binary.BigEndian.Uint16(message[off-2:]))
		list, t := &set.RDATA, set.Type
		if i >= count {
			list, t = &set.Sigs, wire.TypeRRSIG
		}
		r, ok := wire.AppendRDATA(make([]byte, 0, end-off), message, t, off, end)
		if !ok {
			return false
		}
		*list = append(*list, r)
		off = end
	}
	return true
}

// Check returns ErrDamaged where e is not exactly what Pack makes of some content.
func (e Entry) Check() error {
	c, err := e.Unpack(e.Expires() - e.Original())
	if err != nil {
		return err
	}
	again, err := pack(nil, c, e.Expires()-c.Lifetime)
	if err != nil || string(again) != string(e) {
		return ErrDamaged
	}
	return nil
}

package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// Unpack returns what was packed, with TTLs and lifetime less the entry's age, and names in the
// canonical spelling of the QNAME where they end in it. It borrows nothing of e, and takes five
// allocations or six. A damaged entry gives ErrDamaged or content that was never packed, and nothing
// worse.
func (e Entry) Unpack(now uint32) (*Content, error) {
	h, c := e.read()
	if c.bad || h.kind >= kinds {
		return nil, ErrDamaged
	}
	sets, records, ok := c.count(h, e.QName())
	if !ok {
		return nil, ErrDamaged
	}
	u := unpacker{sets: make([]wire.RRset, 0, sets), lists: make([][]byte, 0, records)}
	return u.unpack(e, now, len(e)+records*recordStartSize)
}

// count returns how many RRsets and records an entry has; the cursor, behind the header, is a copy.
func (c cursor) count(h header, qname []byte) (sets, records int, ok bool) {
	var k sigKey
	for first := true; !c.bad && (first && h.hasPlain() || c.p < len(c.e)); first = false {
		s := c.set(&h, first)
		sets++
		records += s.count
		for range s.count {
			c.skipRecord(codeForms[s.code])
			if c.bad {
				return 0, 0, false
			}
		}
		for more := s.signed; more && !c.bad; records++ {
			more = c.signature(&k, qname, 0).more
		}
	}
	return sets, records, !c.bad
}

// An unpacker writes an entry as a message and reads it from there, for names may point to anywhere
// before. What it gives borrows that message.
type unpacker struct {
	content Content
	builder wire.Builder
	options Options
	writer  writer
	sets    []wire.RRset
	lists   [][]byte
	names   wire.Expander
}

func (u *unpacker) unpack(e Entry, now uint32, size int) (*Content, error) {
	qname := e.QName()
	u.options.DO = true
	u.builder.BeginMessage(make([]byte, 0, wire.HeaderSize+len(qname)+4+size), qname, e.QType(), MaxSize)
	w := &u.writer
	w.begin(e, len(qname), &u.builder, now, &u.options)
	h := &w.header
	u.content = Content{
		Kind: h.kind, Realm: h.realm, QName: wire.BorrowName(u.builder.Buf[wire.HeaderSize:][:len(qname)]), QType: h.qtype,
		RCODE: h.rcode, AA: h.flags&flagAA != 0, Status: h.status, EDE: e.EDE(),
		Lifetime: h.lifetime - min(h.lifetime, w.age), Used: h.ext&extUsed != 0,
	}
	section, begin := wire.Answer, 0
	for first := true; first && h.hasPlain() || w.c.p < len(e); first = false {
		s, mark := w.c.set(h, first), u.builder.Mark()
		if w.c.bad || s.section < section {
			return nil, ErrDamaged
		}
		for ; section < s.section; section++ {
			*u.section(section), begin = u.sets[begin:len(u.sets):len(u.sets)], len(u.sets)
		}
		if !w.set(&s) || !u.read(&s, mark) {
			return nil, ErrDamaged
		}
	}
	*u.section(section) = u.sets[begin:]
	return &u.content, nil
}

// section returns a section of the content.
func (u *unpacker) section(s wire.Section) *[]wire.RRset {
	return [...]*[]wire.RRset{&u.content.Answer, &u.content.Authority, &u.content.Additional}[s]
}

// read appends the RRset that was just written to sets.
func (u *unpacker) read(s *set, off int) (ok bool) {
	message := u.builder.Buf
	owner, ok := u.names.Name(message, off)
	if !ok {
		return false
	}
	at := len(u.lists)
	for off < len(message) {
		end, err := wire.NameEnd(message, off)
		if err != nil {
			return false
		}
		off = end + recordHead
		end = off + int(binary.BigEndian.Uint16(message[off-2:]))
		t := s.typ
		if len(u.lists)-at >= s.count {
			t = wire.TypeRRSIG
		}
		r, ok := u.names.RDATA(message, t, off, end)
		if !ok {
			return false
		}
		u.lists = append(u.lists, r)
		off = end
	}
	set := wire.RRset{Owner: owner, Type: s.typ, Class: wire.ClassIN, Status: s.status, TTL: u.options.shownTTL(s.ttl, u.writer.age)}
	set.RDATA = u.lists[at : at+s.count : at+s.count]
	if sigs := u.lists[at+s.count:]; len(sigs) > 0 {
		set.Sigs = sigs[:len(sigs):len(sigs)]
	}
	u.sets = append(u.sets, set)
	return true
}

// Question is what an entry is found by. QName is borrowed from it.
type Question struct {
	Kind  Kind
	Realm uint16
	QName []byte
	QType wire.Type
}

// Scan reads e from its start to its end, in a small part of the time that Check takes, and returns
// what it is found by. It says false where e is cut or anything else that can't be read: that is most
// of what is no entry, but not what was changed within a field.
func (e Entry) Scan() (q Question, ok bool) {
	c, n := e.begin()
	if c.bad {
		return q, false
	}
	h := c.header()
	if c.bad || h.kind >= kinds {
		return q, false
	}
	q = Question{Kind: h.kind, Realm: h.realm, QName: e[qnameAt : qnameAt+n : qnameAt+n], QType: h.qtype}
	// Most entries are a few addresses and nothing behind them.
	if h.flags&flagSigned == 0 {
		records := int(h.flags & countMask)
		switch codeForms[h.code] {
		case formFixed4:
			ok = len(e)-c.p == 4*records
		case formFixed16:
			ok = len(e)-c.p == 16*records
		}
	}
	if !ok {
		_, _, ok = c.count(h, q.QName)
	}
	return q, ok
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

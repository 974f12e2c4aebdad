package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// AppendTo writes the records of e into b, by sections, a RRset at a time with its signatures. Where
// one does not fit, it and all behind it are left out (RFC 2181 §9). A TTL shown is the RRset's less
// the entry's age. b's question is e's QNAME, in any spelling, and b has no records yet. It allocates
// only where b's buffer has to grow.
func (e Entry) AppendTo(b *wire.Builder, now uint32, o *Options) {
	if invariants {
		assertQuestion(e, b)
	}
	if !e.appendPlain(b, now, o) {
		e.appendAll(b, now, o)
	}
}

// age returns how many seconds ago an entry was stored. The clock may have been set back, and then
// the entry is as old as it was.
func age(expires, lifetime, now uint32) uint32 {
	stored := expires - lifetime
	if now < stored {
		return 0
	}
	return now - stored
}

// shownTTL returns the TTL to show of an RRset that was stored with a TTL so many seconds ago.
func (o *Options) shownTTL(ttl, age uint32) uint32 {
	if o.Stale {
		return min(ttl, o.StaleTTL)
	}
	return ttl - min(ttl, age)
}

// appendAll writes any entry.
func (e Entry) appendAll(b *wire.Builder, now uint32, o *Options) {
	n := b.QNameLen()
	if n == 0 || qnameAt+n > len(e) {
		return
	}
	var w writer
	w.begin(e, n, b, now, o)
	for first := true; !w.c.bad && (first && w.header.hasPlain() || w.c.p < len(e)); first = false {
		s := w.c.set(&w.header, first)
		if !o.DO && isDNSSEC(s.typ, w.header.qtype, s.section) {
			w.skip(&s)
		} else if !w.set(&s) {
			return
		}
	}
}

func (h *header) hasPlain() bool { return h.flags&countMask != 0 }

// set is the head of an RRset.
type set struct {
	section wire.Section
	owner   byte // its form
	code    byte
	typ     wire.Type
	count   int
	signed  bool
	status  wire.Status
	ttl     uint32
	suffix  int // where in the QNAME the owner's suffix begins
	literal []byte
}

// set reads the head of the next RRset, which for the plain one is in the header.
func (c *cursor) set(h *header, first bool) (s set) {
	s = set{status: h.status, ttl: h.lifetime}
	if first && h.hasPlain() {
		s.code, s.typ = h.code, plainType(h.kind, h.qtype)
		s.count, s.signed = int(h.flags&countMask), h.flags&flagSigned != 0
		return s
	}
	bits, codes := c.byte(), c.byte()
	s.section, s.owner, s.signed = wire.Section(bits>>sectionShift), bits&ownerMask>>ownerShift, bits&setSigned != 0
	s.code, s.count = codes>>3, int(codes&countMask)
	s.typ = codeTypes[s.code]
	if s.code == codeOther {
		s.typ = wire.Type(c.uint16())
	}
	if s.count == 0 {
		s.count = 1 + int(c.byte())
	}
	c.owner(&s)
	if bits&setTTL != 0 {
		s.ttl = c.span()
	}
	if bits&setStatus != 0 {
		s.status = wire.Status(c.byte())
	}
	if s.section > wire.Additional || s.status > wire.Indeterminate {
		c.fail()
	}
	return s
}

func (c *cursor) owner(s *set) {
	switch s.owner {
	case ownerQName, ownerTarget, ownerPrevious:
	case ownerSuffix:
		s.suffix = int(c.byte())
	case ownerHashLower, ownerHashUpper:
		s.suffix = int(c.byte())
		s.literal = c.take(hashSize)
	case ownerLiteral:
		start := c.p
		for {
			l := int(c.byte())
			if l == 0 {
				break
			}
			if l > wire.MaxLabelLen {
				c.byte()
				break
			}
			c.take(l)
		}
		s.literal = c.e[start:c.p]
	default:
		c.fail()
	}
}

// writer is the state of one AppendTo.
type writer struct {
	c      cursor
	b      *wire.Builder
	o      *Options
	header header
	age    uint32
	qname  []byte
	key    sigKey

	previous ownerBytes // of the RRset before
	target   int        // offset in the message of the canonical name in the CNAME just before, 0 for none

	limit int  // the buffer may not pass it
	full  bool // a record would have
}

// begin reads the header.
func (w *writer) begin(e Entry, qnameLen int, b *wire.Builder, now uint32, o *Options) {
	w.b, w.o, w.limit = b, o, b.Mark()+b.Room()
	w.c = cursor{e: e, p: qnameAt + qnameLen}
	w.qname = e[qnameAt:w.c.p]
	w.header = w.c.header()
	w.age = age(e.Expires(), w.header.lifetime, now)
}

// fits says whether n more bytes have room.
func (w *writer) fits(dst []byte, n int) bool {
	if len(dst)+n > w.limit {
		w.full = true
		return false
	}
	return true
}

// ownerBytes is an owner in two octets or one, as it is written again; none where it has to be whole.
type ownerBytes struct {
	b [2]byte
	n int
}

// pointerTo returns a pointer to an offset of the message.
func pointerTo(at int) (o ownerBytes) {
	if at > maxPointer {
		return o
	}
	return ownerBytes{[2]byte{0xC0 | byte(at>>8), byte(at)}, 2}
}

// suffixPointer returns the ancestor of the QNAME that begins at an offset of it.
func (w *writer) suffixPointer(off int) ownerBytes {
	if off >= len(w.qname)-1 {
		w.c.bad = w.c.bad || off >= len(w.qname)
		return ownerBytes{n: 1}
	}
	return pointerTo(wire.HeaderSize + off)
}

// shortOwner returns an RRset's owner where it is short even in its first record.
func (w *writer) shortOwner(s *set) (o ownerBytes) {
	switch s.owner {
	case ownerQName:
		return w.suffixPointer(0)
	case ownerSuffix:
		return w.suffixPointer(s.suffix)
	case ownerTarget:
		w.c.bad = w.c.bad || w.target == 0
		return pointerTo(w.target)
	case ownerPrevious:
		w.c.bad = w.c.bad || w.previous.n == 0
		return w.previous
	case ownerLiteral:
		if len(s.literal) <= 2 {
			o.n = copy(o.b[:], s.literal)
		}
	}
	return o
}

// head writes a record's fields before its RDLENGTH, for which it leaves room.
func (w *writer) head(dst []byte, s *set, t wire.Type, ttl uint32, owner *ownerBytes) []byte {
	if owner.n > 0 {
		if !w.fits(dst, owner.n+recordHead) {
			return dst
		}
		dst = append(dst, owner.b[:owner.n]...)
	} else {
		at := len(dst) - w.b.Start()
		dst = w.wholeOwner(dst, s)
		*owner = pointerTo(at)
	}
	if w.full {
		return dst
	}
	dst = append(dst, byte(t>>8), byte(t), 0, byte(wire.ClassIN))
	return binary.BigEndian.AppendUint32(dst, ttl)
}

// wholeOwner writes an owner that is not short.
func (w *writer) wholeOwner(dst []byte, s *set) []byte {
	if s.owner == ownerLiteral {
		if w.fits(dst, len(s.literal)+recordHead) {
			dst = append(dst, s.literal...)
		}
		return dst
	}
	suffix := w.suffixPointer(s.suffix)
	if !w.fits(dst, 1+hashLabel+suffix.n+recordHead) {
		return dst
	}
	alphabet := &base32Lower
	if s.owner == ownerHashUpper {
		alphabet = &base32Upper
	}
	dst = alphabet.appendLabel(dst, s.literal)
	return append(dst, suffix.b[:suffix.n]...)
}

// skip passes over an RRset.
func (w *writer) skip(s *set) {
	for range s.count {
		w.c.skipRecord(codeForms[s.code])
	}
	if s.signed {
		w.c.skipSignatures(&w.key, w.qname)
	}
}

// set writes one RRset with its signatures; it says no where nothing may follow.
func (w *writer) set(s *set) bool {
	b, c, f := w.b, &w.c, codeForms[s.code]
	ttl, owner := w.o.shownTTL(s.ttl, w.age), w.shortOwner(s)
	turn, begin, end := 0, c.p, 0
	if s.count > 1 && isRotated(f, w.header.kind, s.section) {
		turn = rotation(w.o.Rotate, s.count)
		for range turn {
			c.skipRecord(f)
		}
	}
	mark, rdataAt := b.Mark(), 0
	dst := b.Buf
	for i := range s.count {
		if turn > 0 && i == s.count-turn {
			end, c.p = c.p, begin
		}
		dst = w.head(dst, s, s.typ, ttl, &owner)
		rdataAt = len(dst) + 2 - b.Start()
		dst = w.rdata(dst, f)
		if c.bad || w.full {
			return w.stop(s, mark)
		}
	}
	if turn > 0 {
		c.p = end
	}
	if !isDNSSEC(s.typ, w.header.qtype, s.section) {
		w.previous, w.target = owner, 0
		if s.typ == wire.TypeCNAME && s.count == 1 {
			w.target = rdataAt
		}
	}
	count := s.count
	if s.signed {
		dst, count = w.signatures(dst, s, ttl, &owner)
	}
	if c.bad || w.full {
		return w.stop(s, mark)
	}
	b.Buf = dst
	return b.Commit(mark, s.section, count)
}

// stop takes an RRset back that is damaged or does not fit.
func (w *writer) stop(s *set, mark int) bool {
	if w.c.bad {
		w.b.Rollback(mark)
	} else {
		w.b.Omit(mark, s.section)
	}
	return false
}

// signatures writes those of an RRset, or passes over them, and returns how many records there now
// are.
func (w *writer) signatures(dst []byte, s *set, ttl uint32, owner *ownerBytes) (out []byte, count int) {
	if !w.o.DO {
		w.c.skipSignatures(&w.key, w.qname)
		return dst, s.count
	}
	count = s.count
	for more := true; more && !w.c.bad && !w.full; count++ {
		sig := w.c.signature(&w.key, w.qname, s.ttl)
		dst = w.head(dst, s, wire.TypeRRSIG, ttl, owner)
		dst = w.signature(dst, s.typ, &sig)
		more = sig.more
	}
	return dst, count
}

package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// rdata packs an RDATA without names.
func (h *headPacker) rdata(f form, r []byte) {
	if f == formCopied {
		h.dst = appendLength(h.dst, len(r))
	}
	h.dst = append(h.dst, r...)
}

// record packs the RDATA of one record, of which h.at is the place in the message, and moves h.at
// behind it.
func (p *packer) record(f form, t wire.Type, r []byte) {
	switch f {
	case formFixed4, formFixed16, formString:
		p.rdata(f, r)
	case formSOA:
		p.soa(r)
		return
	case formNSEC:
		p.named(r, 0)
	case formSRV:
		p.named(r, 6)
	case formNSEC3:
		p.nsec3(r)
	default:
		p.at += p.copied(t, r)
		return
	}
	p.at += len(r)
}

// copied packs RDATA as the message has it, its names compressed where they may be, and returns its
// length.
func (p *packer) copied(t wire.Type, r []byte) int {
	head := 0
	switch t {
	case wire.TypeCNAME, wire.TypeNS, wire.TypePTR:
	case wire.TypeMX:
		head = 2
	default:
		p.rdata(formCopied, r)
		return len(r)
	}
	mark := p.open()
	p.dst = append(p.dst, r[:head]...)
	p.name(wire.BorrowName(r[head:]), p.at+head)
	return p.close(mark)
}

// open leaves room for a length, and close writes it.
func (p *packer) open() (mark int) {
	p.dst = append(p.dst, 0)
	return len(p.dst)
}

func (p *packer) close(mark int) (length int) {
	n := len(p.dst) - mark
	if n < length2 {
		p.dst[mark-1] = byte(n)
		return n
	}
	var code [3]byte
	long := appendLength(code[:0], n)
	p.dst = append(p.dst, long[1:]...)
	copy(p.dst[mark+len(long)-1:], p.dst[mark:mark+n])
	copy(p.dst[mark-1:], long)
	return n
}

// soaNumbers is the length of what follows the names of an SOA (RFC 1035 §3.3.13).
const soaNumbers = 20

func (p *packer) soa(r []byte) {
	names := wire.BorrowName(r[:len(r)-soaNumbers])
	mname := 0
	for names[mname] != 0 {
		mname += 1 + int(names[mname])
	}
	mname++
	mark := p.open()
	p.name(names[:mname], p.at)
	p.name(names[mname:], p.at+len(p.dst)-mark)
	p.at += p.close(mark) + soaNumbers
	numbers := r[len(r)-soaNumbers:]
	p.dst = append(p.dst, numbers[:4]...)
	for i := 4; i < soaNumbers; i += 4 {
		p.dst = appendSpan(p.dst, binary.BigEndian.Uint32(numbers[i:]))
	}
}

// named packs RDATA with a name behind so many octets, which is written whole (RFC 3597 §4).
func (p *packer) named(r []byte, head int) {
	end := head
	for r[end] != 0 {
		end += 1 + int(r[end])
	}
	end++
	mark := p.open()
	p.dst = append(p.dst, r[:head]...)
	p.packedName(wire.BorrowName(r[head:end]))
	p.dst = append(p.dst, r[end:]...)
	p.close(mark)
}

// RFC 9276 §3.1: SHA-1, no iterations and no salt are what an NSEC3 has. Of its head such a record
// keeps the flags; another keeps nsec3Whole and all of it.
const (
	nsec3Head  = 6
	nsec3Whole = 0xFF
)

func isUsualNSEC3(r []byte) bool {
	return len(r) >= nsec3Head && r[0] == 1 && r[1] != nsec3Whole && r[2] == 0 && r[3] == 0 && r[4] == 0 && r[5] == hashSize
}

func (p *packer) nsec3(r []byte) {
	if isUsualNSEC3(r) {
		p.dst = appendLength(p.dst, 1+len(r)-nsec3Head)
		p.dst = append(p.dst, r[1])
		p.dst = append(p.dst, r[nsec3Head:]...)
		return
	}
	p.dst = appendLength(p.dst, 1+len(r))
	p.dst = append(p.dst, nsec3Whole)
	p.dst = append(p.dst, r...)
}

// rdata writes RDLENGTH and RDATA of one record.
func (w *writer) rdata(dst []byte, f form) []byte {
	c := &w.c
	switch f {
	case formCopied:
		return w.copied(dst, c.length())
	case formFixed4:
		return w.copied(dst, 4)
	case formFixed16:
		return w.copied(dst, 16)
	case formString:
		return w.copied(dst, c.peekString())
	case formSOA:
		return w.soa(dst)
	case formNSEC:
		return w.named(dst, 0)
	case formSRV:
		return w.named(dst, 6)
	}
	return w.nsec3(dst)
}

// rdlength writes an RDLENGTH where so many octets have room behind it.
func (w *writer) rdlength(dst []byte, n int) (out []byte, ok bool) {
	if !w.fits(dst, 2+n) {
		return dst, false
	}
	return append(dst, byte(n>>8), byte(n)), true
}

func (w *writer) copied(dst []byte, n int) []byte {
	if dst, ok := w.rdlength(dst, n); ok {
		return append(dst, w.c.take(n)...)
	}
	return dst
}

func (w *writer) soa(dst []byte) []byte {
	names := w.c.take(w.c.length())
	dst, ok := w.rdlength(dst, len(names)+soaNumbers)
	if !ok {
		return dst
	}
	dst = append(dst, names...)
	dst = append(dst, w.c.take(4)...)
	for range (soaNumbers - 4) / 4 {
		dst = binary.BigEndian.AppendUint32(dst, w.c.span())
	}
	return dst
}

// peekString returns the length of the character-string at the cursor with its own length octet.
func (c *cursor) peekString() int {
	if c.p >= len(c.e) {
		c.fail()
		return 0
	}
	return 1 + int(c.e[c.p])
}

// named writes RDATA with a packed name behind so many octets.
func (w *writer) named(dst []byte, head int) []byte {
	r := w.c.take(w.c.length())
	end := head
	for end < len(r) && r[end] != 0 && r[end] < packedSuffix {
		end += 1 + int(r[end])
	}
	if end >= len(r) {
		w.c.fail()
		return dst
	}
	// The last octet is the root label, or says how many labels of the QNAME to leave out.
	suffix := w.qname[len(w.qname)-1:]
	if r[end] != 0 {
		suffix = dropLabels(w.qname, int(r[end]-packedSuffix))
	}
	dst, ok := w.rdlength(dst, len(r)-1+len(suffix))
	if !ok {
		return dst
	}
	dst = append(dst, r[:end]...)
	dst = append(dst, suffix...)
	return append(dst, r[end+1:]...)
}

// dropLabels returns a name without its first labels, nil where it has fewer.
func dropLabels(name []byte, labels int) []byte {
	for ; labels > 0; labels-- {
		if len(name) == 0 || len(name) < 1+int(name[0]) {
			return nil
		}
		name = name[1+int(name[0]):]
	}
	return name
}

func (w *writer) nsec3(dst []byte) []byte {
	r := w.c.take(w.c.length())
	if len(r) == 0 {
		w.c.fail()
		return dst
	}
	flags, r := r[0], r[1:]
	if flags == nsec3Whole {
		if dst, ok := w.rdlength(dst, len(r)); ok {
			return append(dst, r...)
		}
		return dst
	}
	dst, ok := w.rdlength(dst, nsec3Head+len(r))
	if !ok {
		return dst
	}
	dst = append(dst, 1, flags, 0, 0, 0, hashSize)
	return append(dst, r...)
}

// skipRecord passes over one record.
func (c *cursor) skipRecord(f form) {
	switch f {
	case formFixed4:
		c.take(4)
	case formFixed16:
		c.take(16)
	case formString:
		c.take(c.peekString())
	case formSOA:
		c.take(c.length())
		c.take(4)
		for range 4 {
			c.span()
		}
	default:
		c.take(c.length())
	}
}

package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// appendPlain is appendAll for the usual entry: a plain RRset and nothing else, with RDATA stored as
// it is sent, whose signatures, if it has any, are not wanted. Where e is of another kind it writes
// nothing and says no.
func (e Entry) appendPlain(b *wire.Builder, now uint32, o *Options) bool {
	n := b.QNameLen()
	c := cursor{e: e, p: qnameAt + n}
	if n <= 1 || c.p >= len(e) {
		return false
	}
	flags, code := e[flagsAt], e[kindAt]&codeMask
	count, f := int(flags&countMask), codeForms[code]
	if flags&flagExtended != 0 || count == 0 || code == codeOther || f > formString ||
		flags&flagSigned != 0 && o.DO || Kind(e[kindAt]>>codeBits) == KindCut {
		return false
	}
	lifetime := c.span()
	first, turn := c.p, rotation(o.Rotate, count)
	start := c.skipRecords(f, count, turn)
	last := c.p
	if flags&flagSigned != 0 {
		var k sigKey
		c.skipSignatures(&k, e[qnameAt:qnameAt+n])
	}
	if c.bad || c.p != len(e) {
		return false
	}
	head := startRecord(codeTypes[code], o.shownTTL(lifetime, age(binary.BigEndian.Uint32(e), lifetime, now)))
	records := e[first:last]
	switch f {
	case formFixed4:
		return head.append4(b, records, turn*4)
	case formFixed16:
		return head.append16(b, records, turn*16)
	}
	return head.appendStrings(b, records, start-first, f, count)
}

// skipRecords passes over the records of a plain RRset and returns where the given one begins; of
// addresses that is not asked.
func (c *cursor) skipRecords(f form, count, which int) (start int) {
	switch f {
	case formFixed4:
		c.take(4 * count)
		return 0
	case formFixed16:
		c.take(16 * count)
		return 0
	}
	for i := range count {
		if i == which {
			start = c.p
		}
		c.take(c.stringLength(f))
	}
	return start
}

// stringLength returns the length of a record's RDATA, which then lies at the cursor.
func (c *cursor) stringLength(f form) int {
	if f == formString {
		return c.peekString()
	}
	return c.length()
}

// rotation returns which of count records comes first.
func rotation(rotate uint16, count int) int {
	if count == 1 {
		return 0
	}
	return int(uint32(rotate) % uint32(count))
}

// recordStart is what every record of a plain RRset begins with, in two numbers: a pointer to the
// QNAME, TYPE, CLASS and the upper half of the TTL; its lower half, with room for the RDLENGTH.
type recordStart struct {
	high uint64
	low  uint32
}

// recordStartSize is its length with the RDLENGTH.
const recordStartSize = 12

func startRecord(t wire.Type, ttl uint32) recordStart {
	return recordStart{
		high: (0xC000|wire.HeaderSize)<<48 | uint64(t)<<32 | uint64(wire.ClassIN)<<16 | uint64(ttl>>16),
		low:  ttl << 16,
	}
}

// append4 writes IPv4 addresses, beginning with the one at start.
func (h *recordStart) append4(b *wire.Builder, records []byte, start int) bool {
	const size = recordStartSize + 4
	mark, count := b.Mark(), len(records)/4
	if count*size > b.Room() {
		b.Omit(mark, wire.Answer)
		return true
	}
	for out := b.Extend(count * size); len(out) >= size; out = out[size:] {
		binary.BigEndian.PutUint64(out, h.high)
		binary.BigEndian.PutUint32(out[8:], h.low|4)
		copy(out[recordStartSize:size], records[start:start+4])
		if start += 4; start == len(records) {
			start = 0
		}
	}
	return b.Commit(mark, wire.Answer, count)
}

// append16 writes IPv6 addresses, beginning with the one at start.
func (h *recordStart) append16(b *wire.Builder, records []byte, start int) bool {
	const size = recordStartSize + 16
	mark, count := b.Mark(), len(records)/16
	if count*size > b.Room() {
		b.Omit(mark, wire.Answer)
		return true
	}
	for out := b.Extend(count * size); len(out) >= size; out = out[size:] {
		binary.BigEndian.PutUint64(out, h.high)
		binary.BigEndian.PutUint32(out[8:], h.low|16)
		copy(out[recordStartSize:size], records[start:start+16])
		if start += 16; start == len(records) {
			start = 0
		}
	}
	return b.Commit(mark, wire.Answer, count)
}

// appendStrings writes records of any length, beginning with the one at start.
func (h *recordStart) appendStrings(b *wire.Builder, records []byte, start int, f form, count int) bool {
	mark := b.Mark()
	c := cursor{e: records, p: start}
	for range count {
		if c.p == len(records) {
			c.p = 0
		}
		n := c.stringLength(f)
		if recordStartSize+n > b.Room() {
			b.Omit(mark, wire.Answer)
			return true
		}
		out := b.Extend(recordStartSize + n)
		binary.BigEndian.PutUint64(out, h.high)
		binary.BigEndian.PutUint32(out[8:], h.low|uint32(n))
		copy(out[recordStartSize:], c.take(n))
	}
	return b.Commit(mark, wire.Answer, count)
}

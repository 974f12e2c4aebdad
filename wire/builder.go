package wire

import (
	"encoding/binary"
	"slices"
)

// OPTSize is the length of an OPT without options.
const OPTSize = 11

// Builder writes one response to the end of a buffer: Begin, records section by section, Finish.
// Records are appended to Buf by whoever has their bytes, between Mark and Commit, so that a set of
// them is taken whole or not at all (RFC 2181 §9). The question always lies at offset HeaderSize of
// the message, so that a compression pointer into it, 0xC00C plus an offset, holds in any record.
type Builder struct {
	Buf []byte

	start     int
	qnameLen  int // of the question written, 0 where there is none
	limit     int // len(Buf) may not pass it; room for the OPT is already taken off
	counts    [3]uint16
	truncated bool
}

// Begin starts a response to q behind dst. limit is how many bytes the message may have in all,
// of which reserve is kept for the OPT that Finish writes.
func (b *Builder) Begin(dst []byte, q *Query, limit, reserve int) {
	*b = Builder{Buf: dst, start: len(dst), qnameLen: q.nameLen, limit: len(dst) + limit - reserve}
	b.Buf = append(b.Buf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b.Buf = append(b.Buf, q.Question()...)
}

// BeginMessage is Begin for a message that answers no client: its question is qname (wire bytes)
// and t in class IN.
func (b *Builder) BeginMessage(dst, qname []byte, t Type, limit int) {
	*b = Builder{Buf: dst, start: len(dst), qnameLen: len(qname), limit: len(dst) + limit}
	b.Buf = append(b.Buf, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	b.Buf = append(b.Buf, qname...)
	b.Buf = append(b.Buf, byte(t>>8), byte(t), 0, byte(ClassIN))
}

// Start returns where in Buf the message begins.
func (b *Builder) Start() int { return b.start }

// QNameLen returns the length of the QNAME in the question written, 0 where there is none.
func (b *Builder) QNameLen() int { return b.qnameLen }

// Mark returns the place to come back to with Rollback.
func (b *Builder) Mark() int { return len(b.Buf) }

// Room returns how many bytes records may still take.
func (b *Builder) Room() int { return b.limit - len(b.Buf) }

// Extend appends n bytes to Buf for the caller to fill. They hold anything.
func (b *Builder) Extend(n int) []byte {
	at := len(b.Buf)
	if n > cap(b.Buf)-at {
		b.Buf = slices.Grow(b.Buf, n)
	}
	b.Buf = b.Buf[:at+n]
	return b.Buf[at:]
}

// Commit counts n records of a section that were appended since mark. Where they pass the limit
// they are taken back and ok is false; unless the section is additional the response is then
// truncated (RFC 2181 §9: TC only where required data is left out).
func (b *Builder) Commit(mark int, s Section, n int) (ok bool) {
	if len(b.Buf) > b.limit {
		b.Omit(mark, s)
		return false
	}
	b.counts[s] += uint16(n)
	return true
}

// Omit takes back what was appended since mark because the records of a section that begin there do
// not fit, as Commit would do once they were written.
func (b *Builder) Omit(mark int, s Section) {
	b.Buf = b.Buf[:mark]
	b.truncated = b.truncated || s != Additional
}

// Rollback takes back what was appended since mark.
func (b *Builder) Rollback(mark int) { b.Buf = b.Buf[:mark] }

// Truncate sets TC whatever fits.
func (b *Builder) Truncate() { b.truncated = true }

// Truncated says whether something required was left out.
func (b *Builder) Truncated() bool { return b.truncated }

// Count returns the records committed to a section.
func (b *Builder) Count(s Section) int { return int(b.counts[s]) }

// responseFlags are those bits of a query that its response echoes (RFC 1035 §4.1.1, RFC 4035
// §3.2.2): opcode, RD and CD.
const responseFlags = 0xF<<11 | FlagRD | FlagCD

// Finish writes header, counts and, for a query with EDNS, the OPT with the encoded options
// (RFC 6891 §6.1.1: an OPT only where the query had one), and returns the buffer. flags are AA, RA
// and AD as they apply; udpSize is the payload size we offer.
func (b *Builder) Finish(q *Query, flags uint16, rcode RCODE, udpSize uint16, options []byte) []byte {
	flags |= FlagQR | q.Flags&responseFlags | uint16(rcode&0xF)
	if b.truncated {
		flags |= FlagTC
	}
	h := b.Buf[b.start:]
	binary.BigEndian.PutUint16(h, q.ID)
	binary.BigEndian.PutUint16(h[2:], flags)
	if q.HasQuestion() {
		h[5] = 1
	}
	additional := b.counts[Additional]
	if q.EDNS.Present {
		additional++
	}
	binary.BigEndian.PutUint16(h[6:], b.counts[Answer])
	binary.BigEndian.PutUint16(h[8:], b.counts[Authority])
	binary.BigEndian.PutUint16(h[10:], additional)
	if q.EDNS.Present {
		b.Buf = appendOPT(b.Buf, udpSize, uint32(rcode>>4)<<24|responseOPTFlags(q), options)
	}
	return b.Buf
}

// responseOPTFlags echoes DO (RFC 3225 §3) and CO (RFC 9824 §5.1).
func responseOPTFlags(q *Query) (ttl uint32) {
	if q.EDNS.DO {
		ttl |= ednsDO
	}
	if q.EDNS.CO {
		ttl |= ednsCO
	}
	return ttl
}

// AppendRecordHeader appends owner, TYPE, CLASS IN, TTL and RDLENGTH; the RDATA follows.
func AppendRecordHeader(dst []byte, owner []byte, t Type, ttl uint32, rdlen int) []byte {
	dst = append(dst, owner...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(t))
	dst = append(dst, 0, byte(ClassIN))
	dst = binary.BigEndian.AppendUint32(dst, ttl)
	return binary.BigEndian.AppendUint16(dst, uint16(rdlen))
}

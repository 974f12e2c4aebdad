package wire

import "encoding/binary"

// Query is a parsed client query. It borrows the packet; the zero value is ready for Parse and is
// used again without allocating.
type Query struct {
	Bytes  []byte
	ID     uint16
	Flags  uint16
	QType  Type
	QClass Class
	EDNS   EDNS

	qnameEnd int // offset behind the QNAME, 0 where there is no question
	nameLen  int
	name     [MaxNameLen + 1]byte // canonical QNAME; a multiple of 8 for foldName
}

// Verdict is what the shape of a query alone decides.
type Verdict uint8

// Verdicts of Query.Parse.
const (
	QueryOK         Verdict = iota
	QueryDrop               // not a query, or too short to answer
	QueryFormErr            // FORMERR
	QueryNotImp             // NOTIMP
	QueryBadVers            // BADVERS
	QueryCookieOnly         // RFC 7873 §5.4: no question, a COOKIE option: NOERROR with a cookie
)

// maxQueryAdditional bounds the additional records looked at for an OPT: OPT, TSIG or SIG(0), and
// one to spare.
const maxQueryAdditional = 3

// Parse reads a query and says what its shape decides. After any verdict but QueryDrop the header
// fields hold; question and EDNS hold as far as they could be read.
func (q *Query) Parse(pkt []byte) Verdict {
	q.Bytes, q.qnameEnd, q.nameLen, q.EDNS = pkt, 0, 0, EDNS{}
	q.QType, q.QClass, q.ID, q.Flags = 0, 0, 0, 0
	// A response, or what has no header, is never answered: two servers would answer each other.
	if len(pkt) < HeaderSize || pkt[2]&0x80 != 0 {
		return QueryDrop
	}
	q.ID = binary.BigEndian.Uint16(pkt)
	q.Flags = binary.BigEndian.Uint16(pkt[2:])
	if Opcode(q.Flags>>11&0xF) != OpcodeQuery {
		return QueryNotImp
	}
	off := HeaderSize
	qdcount := binary.BigEndian.Uint16(pkt[4:])
	// RFC 9619 §4: a query of opcode 0 with QDCOUNT above 1 is FORMERR. RFC 1035 §4.1: answer and
	// authority are sections of responses; no query of opcode 0 but IXFR has records there.
	if qdcount > 1 || binary.BigEndian.Uint32(pkt[6:]) != 0 {
		return QueryFormErr
	}
	if qdcount == 1 {
		if off = q.parseQuestion(); off == 0 {
			return QueryFormErr
		}
	}
	if !q.parseAdditional(off, int(binary.BigEndian.Uint16(pkt[10:]))) {
		return QueryFormErr
	}
	if q.EDNS.Version != 0 {
		return QueryBadVers
	}
	if qdcount == 0 {
		if _, ok := q.EDNS.Option(OptionCookie); ok {
			return QueryCookieOnly
		}
		return QueryFormErr
	}
	return QueryOK
}

// parseQuestion copies the QNAME in canonical case and returns the offset behind the question, 0
// where it is malformed. A QNAME has nothing to point back to, so pointers are malformed.
func (q *Query) parseQuestion() int {
	pkt, off := q.Bytes, HeaderSize
	for {
		if off >= len(pkt) {
			return 0
		}
		c := int(pkt[off])
		off += 1 + c
		if c == 0 {
			break
		}
		if c > MaxLabelLen {
			return 0
		}
	}
	if off > HeaderSize+MaxNameLen || off+4 > len(pkt) {
		return 0
	}
	q.nameLen, q.qnameEnd = off-HeaderSize, off
	foldName(&q.name, pkt[HeaderSize:off])
	q.QType = Type(binary.BigEndian.Uint16(pkt[off:]))
	q.QClass = Class(binary.BigEndian.Uint16(pkt[off+2:]))
	return off + 4
}

// foldName copies a name in canonical case, eight octets at a time.
func foldName(dst *[MaxNameLen + 1]byte, name []byte) {
	i := 0
	for ; i+8 <= len(name); i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], fold8(binary.LittleEndian.Uint64(name[i:])))
	}
	if i > 0 {
		last := len(name) - 8
		binary.LittleEndian.PutUint64(dst[last:], fold8(binary.LittleEndian.Uint64(name[last:])))
		return
	}
	for ; i < len(name); i++ {
		dst[i] = lower(name[i])
	}
}

// fold8 is lower for each octet of x. Added to the lower seven bits of an octet, the first number
// sets the eighth from 'A' on, the second from behind 'Z' on.
func fold8(x uint64) uint64 {
	const each = 0x0101010101010101
	low := x & (0x7F * each)
	upper := (low + (0x80-'A')*each) &^ (low + (0x7F-'Z')*each) &^ x & (0x80 * each)
	return x | upper>>2
}

// parseAdditional finds the OPT and checks that nothing lies behind the last record.
func (q *Query) parseAdditional(off, count int) bool {
	if count > maxQueryAdditional {
		return false
	}
	for range count {
		_, end, ok := walkName(q.Bytes, off)
		if !ok || end+10 > len(q.Bytes) {
			return false
		}
		h := q.Bytes[end : end+10]
		next := end + 10 + int(binary.BigEndian.Uint16(h[8:]))
		if next > len(q.Bytes) {
			return false
		}
		if Type(binary.BigEndian.Uint16(h)) == TypeOPT {
			// RFC 6891 §6.1.1: a second OPT, or one not owned by the root, is FORMERR.
			if q.EDNS.Present || end != off+1 {
				return false
			}
			ttl := binary.BigEndian.Uint32(h[4:])
			if q.EDNS.parse(binary.BigEndian.Uint16(h[2:]), ttl, q.Bytes[end+10:next]) != nil {
				return false
			}
		}
		off = next
	}
	return off == len(q.Bytes)
}

// Name returns the QNAME in canonical case as wire bytes, borrowed until the next Parse.
func (q *Query) Name() []byte { return q.name[:q.nameLen] }

// HasQuestion says whether a question was read.
func (q *Query) HasQuestion() bool { return q.qnameEnd != 0 }

// Question returns the question section as the client sent it, in its own spelling.
func (q *Query) Question() []byte {
	if q.qnameEnd == 0 {
		return nil
	}
	return q.Bytes[HeaderSize : q.qnameEnd+4]
}

// Has says whether a header flag is set.
func (q *Query) Has(flag uint16) bool { return q.Flags&flag != 0 }

// DO says whether the client wants DNSSEC records.
func (q *Query) DO() bool { return q.EDNS.DO }

// WantsAD says whether the client understands the AD bit (RFC 6840 §5.7: DO or AD in the query).
func (q *Query) WantsAD() bool { return q.EDNS.DO || q.Flags&FlagAD != 0 }

// minUDPSize is what every client takes (RFC 1035 §4.2.1), and the least that EDNS can mean
// (RFC 6891 §6.2.3).
const minUDPSize = 512

// UDPLimit returns how many bytes of response the client takes over UDP, at most ours.
func (q *Query) UDPLimit(ours int) int {
	if !q.EDNS.Present {
		return minUDPSize
	}
	return max(minUDPSize, min(int(q.EDNS.UDPSize), ours))
}

// AppendQuery appends a query of one question for a server: header, question and, where udpSize is
// not 0, an OPT with DO set and the given encoded options.
func AppendQuery(dst []byte, id uint16, flags uint16, qname []byte, t Type, udpSize uint16, options []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, id)
	dst = binary.BigEndian.AppendUint16(dst, flags)
	dst = append(dst, 0, 1, 0, 0, 0, 0, 0, 0)
	if udpSize != 0 {
		dst[len(dst)-1] = 1
	}
	dst = append(dst, qname...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(t))
	dst = binary.BigEndian.AppendUint16(dst, uint16(ClassIN))
	if udpSize != 0 {
		dst = appendOPT(dst, udpSize, ednsDO, options)
	}
	return dst
}

func appendOPT(dst []byte, udpSize uint16, ttl uint32, options []byte) []byte {
	dst = append(dst, 0, 0, byte(TypeOPT))
	dst = binary.BigEndian.AppendUint16(dst, udpSize)
	dst = binary.BigEndian.AppendUint32(dst, ttl)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(options)))
	return append(dst, options...)
}

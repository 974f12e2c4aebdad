// Package entry is the packed layout of one cached response: pack once, append many times.
//
// An entry is a fixed-size slice without a pointer in it. Pack makes it of a response's RRsets,
// AppendTo writes it into another response by copying, Unpack gives the RRsets back. The package
// knows nothing of keys, storage or networks, and the current second is an argument.
//
// What most responses are, one RRset of the QTYPE at the QNAME, costs two bytes beyond the question,
// the expiry and the RDATA, less one that the QTYPE saves; all else is paid for by those who have it.
// Numbers are big-endian, a span of seconds takes one to five bytes (appendSpan), a length one to
// three (appendLength).
//
//	header
//	   4  expires: the second from which the entry is stale
//	   1  kind (3 bits), code of the QTYPE (5 bits; 0: QTYPE follows the QNAME)
//	   1  extended (1 bit), status (2), AA (1), signed or alias (1), count of the plain RRset (3)
//	   n  QNAME in canonical case; a name that ends in its root label needs no length
//	 0,2  QTYPE
//	1..5  lifetime: a span. The entry was stored at expires less lifetime
//	 0,1  extension: what follows of realm (2), RCODE (1), extended errors (n); used, special address
//
//	the plain RRset, where its count is not 0: of the QTYPE (in a cut of NS), at the QNAME, in the
//	answer section, its TTL the lifetime, its status the entry's
//	   n  records, then signatures if signed
//
//	any further RRsets, to the end of the entry
//	   1  section (2), form of the owner (3), own TTL (1), own status (1), signed (1)
//	   1  code of the type (5; 0: two bytes follow), count (3; 0: a byte, count less one, follows)
//	   n  owner: nothing where it is the QNAME, the canonical name just before or as before; a byte
//	      where it is a suffix of the QNAME; with the 20 bytes of a hash in front; else literal
//	 0..5 TTL: a span
//	 0,1  status
//	   n  records, then signatures if signed
//
//	a record is the RDATA in one of these forms, which the code of the type tells
//	   A, AAAA, and TXT of one string each   as it is
//	   CNAME, NS, PTR, MX                    length, octets, the name as the message has it
//	   SOA                                   length of both names, names, serial, four spans
//	   NSEC, SRV                             length, octets, the name packed: its labels, then 0 or
//	                                         0x40 plus how many labels of the QNAME to leave out
//	   NSEC3                                 length, flags, hash on (SHA-1, no iterations, no salt),
//	                                         or length, 0xFF, all
//	   any other                             length, octets
//
//	a signature
//	   1  labels (3; 7: a byte follows), key and times as before (1, 1), original TTL (1),
//	      usual length (1), more (1)
//	 0,n  algorithm (1), key tag (2), signer: where in the QNAME it begins, or 0xFF and the name
//	 0..5 original TTL: a span, where it is not the RRset's
//	 0..9 expiration (4), and inception as the span before it
//	 0..3 length, where it is not what the algorithm's signatures have
//	   n  signature
//
// Names in owners and RDATA that may be compressed (RFC 3597 §4) are stored as the message has them:
// labels, then the root's or a compression pointer. The pointers hold because an entry is written
// behind its question, which lies at offset 12 of every response, and what they point to behind it is
// always at the same place: all before it is written whatever the options, in the same order.
//
// Invariants, which Check holds and the build tag invariants asserts:
//
//   - Sections come in order, and the last record or signature ends the entry.
//   - A pointer leads to the start of a label in the QNAME, or in an owner or RDATA before it.
//   - "The canonical name just before" comes behind a CNAME of one record, "as before" behind an
//     owner; neither refers across an RRset that is written for DO only.
//   - No shorter form would do: an entry is what Pack makes of what Unpack gives.
//
// The layout is frozen: what Pack makes of a content is the same in every version of the program with
// the same LayoutVersion. testdata holds examples with each byte annotated, and which of them belong to
// which version.
package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// LayoutVersion is that of the layout. Who changes what Pack makes raises it, so that entries in files
// of another version are not taken for entries.
const LayoutVersion = 1

// Places in the fixed part of the header.
const (
	kindAt  = 4 // kind in the upper three bits, code of the QTYPE in the lower five
	flagsAt = 5
	qnameAt = 6

	codeBits = 5
	codeMask = 1<<codeBits - 1
)

// Bits of the byte at flagsAt. Where the count is 0 there is no plain RRset, and the bit flagSigned
// means flagAlias.
const (
	flagExtended = 0x80
	statusMask   = 0x60
	statusShift  = 5
	statusFailed = 3 // bogus, or indeterminate where extIndeterminate is set
	flagAA       = 0x10
	flagSigned   = 0x08
	flagAlias    = 0x08
	countMask    = 0x07
)

// Bits of the extension byte.
const (
	extRealm         = 0x01
	extRCODE         = 0x02
	extEDE           = 0x04
	extUsed          = 0x08
	extSpecial       = 0x10
	extIndeterminate = 0x20
	extReserved      = 0xC0
)

// Bits of the first head byte of an explicit RRset. Above them lies its section.
const (
	setSigned    = 0x01
	setStatus    = 0x02
	setTTL       = 0x04
	ownerMask    = 0x38
	ownerShift   = 3
	sectionShift = 6
)

// Forms of an RRset's owner.
const (
	ownerQName     = iota // the QNAME
	ownerSuffix           // an ancestor of it: where in the QNAME it begins
	ownerTarget           // the canonical name in the CNAME record just before
	ownerPrevious         // that of the RRset before
	ownerLiteral          // labels, then 0 or a compression pointer, as the message has them
	ownerHashLower        // a suffix of the QNAME below the base32hex of a hash, in lower case
	ownerHashUpper        // the same in upper case
)

// hashSize is the length of a SHA-1 hash, the one that NSEC3 has (RFC 5155 §11), and hashLabel of
// its base32hex.
const (
	hashSize  = 20
	hashLabel = 32
)

// form says how the RDATA of an RRset is stored.
type form uint8

const (
	formCopied form = iota // length, then the octets as the message has them
	formFixed4             // 4 octets
	formFixed16
	formString // one character-string, which tells its own length
	formSOA    // length of the names, names, serial, four spans of seconds
	formNSEC   // length, next name packed against the QNAME, bitmap
	formSRV    // length, 6 octets, target packed against the QNAME
	formNSEC3  // length, head, hash and bitmap
)

// Codes of types, five bits. 0 stands for a type that follows in two octets.
const (
	codeOther        = 0
	codeA            = 1
	codeAAAA         = 2
	codeTXT          = 3
	codeTXTString    = 4 // TXT in which each record is one character-string
	codeNone         = 28
	codeASpecial     = 29 // A with a special-purpose address inside
	codeAAAASpecial  = 30
	codeInvalid      = 31
	firstPlainCode   = 5
	firstSpecialCode = codeASpecial
)

// codeTypes and codeForms give type and form of a code.
var codeTypes = [32]wire.Type{
	codeA: wire.TypeA, codeAAAA: wire.TypeAAAA, codeTXT: wire.TypeTXT, codeTXTString: wire.TypeTXT,
	5: wire.TypeCNAME, 6: wire.TypeNS, 7: wire.TypeSOA, 8: wire.TypePTR, 9: wire.TypeMX,
	10: wire.TypeSRV, 11: wire.TypeHTTPS, 12: wire.TypeSVCB, 13: wire.TypeDS, 14: wire.TypeDNSKEY,
	15: wire.TypeNSEC, 16: wire.TypeNSEC3, 17: wire.TypeRRSIG, 18: wire.TypeCAA, 19: wire.TypeTLSA,
	20: wire.TypeNAPTR, 21: wire.TypeDNAME, 22: wire.TypeSPF, 23: wire.TypeNSEC3PARAM,
	24: wire.TypeCDS, 25: wire.TypeCDNSKEY, 26: wire.TypeHINFO, 27: wire.TypeSSHFP,
	codeNone: wire.TypeNone, codeASpecial: wire.TypeA, codeAAAASpecial: wire.TypeAAAA,
}

var codeForms = [32]form{
	codeA: formFixed4, codeAAAA: formFixed16, codeTXTString: formString,
	7: formSOA, 10: formSRV, 15: formNSEC, 16: formNSEC3,
	codeASpecial: formFixed4, codeAAAASpecial: formFixed16,
}

// typeCodes is codeTypes the other way round, without special forms. CAA is the last type with a code.
var typeCodes = func() (a [wire.TypeCAA + 1]byte) {
	a[wire.TypeA], a[wire.TypeAAAA], a[wire.TypeTXT] = codeA, codeAAAA, codeTXT
	for code := firstPlainCode; code < firstSpecialCode; code++ {
		a[codeTypes[code]] = byte(code)
	}
	return a
}()

// codeOf returns the code of a type that is not stored in a special form, codeOther where it has none.
func codeOf(t wire.Type) byte {
	if int(t) < len(typeCodes) {
		return typeCodes[t]
	}
	return codeOther
}

// isDNSSEC says whether records of this type are served with DO only, unless asked for by QTYPE
// (RFC 4035 §3.2.1). DS is data of its own; beside a delegation it is proof like the rest (RFC 4035
// §3.1.4).
func isDNSSEC(t, qtype wire.Type, s wire.Section) bool {
	switch t {
	case wire.TypeRRSIG, wire.TypeNSEC, wire.TypeNSEC3:
		return t != qtype
	case wire.TypeDS:
		return t != qtype && s == wire.Authority
	}
	return false
}

// isRotated says whether the records of an RRset may be written beginning at any of them. Addresses
// are all of one size, so that what lies behind them stays in place.
func isRotated(f form, k Kind, s wire.Section) bool {
	return f == formFixed4 || f == formFixed16 || s == wire.Answer && k != KindCut
}

// plainType returns the type of the plain RRset of a kind: the QTYPE, but a delegation's name servers.
func plainType(k Kind, qtype wire.Type) wire.Type {
	if k == KindCut {
		return wire.TypeNS
	}
	return qtype
}

// defaultRCODE returns the RCODE of a kind that is not stored.
func defaultRCODE(k Kind) wire.RCODE {
	switch k {
	case KindDenial:
		return wire.RCODENXDomain
	case KindFailure:
		return wire.RCODEServFail
	}
	return wire.RCODENoError
}

// A span of seconds takes one byte where it is less than a minute or a whole number of minutes,
// hours or days that people write into zones, and else the least number of bytes:
//
//	0 to 59       0 to 59 seconds
//	60 to 119     1 to 60 minutes
//	120 to 168    2 to 50 hours
//	169 to 197    3 to 31 days
//	198 to 243    two bytes, 60 to 11,835 seconds
//	244 to 253    three bytes, 11,836 to 667,195 seconds, which is above a week
//	254, 255      three or four bytes follow, big-endian
const (
	spanMinutes = 60
	spanHours   = 120
	spanDays    = 169
	span2       = 198
	span3       = 244
	span4       = 254
	span5       = 255

	span2Base = 60
	span3Base = span2Base + (span3-span2)<<8
	span3End  = span3Base + (span4-span3)<<16
)

// spanValues are the spans of one byte.
var spanValues = func() (a [span2]uint32) {
	for i := range uint32(span2) {
		switch {
		case i < spanMinutes:
			a[i] = i
		case i < spanHours:
			a[i] = (i - spanMinutes + 1) * 60
		case i < spanDays:
			a[i] = (i - spanHours + 2) * 3600
		default:
			a[i] = (i - spanDays + 3) * 86400
		}
	}
	return a
}()

// appendSpan appends a span of seconds.
func appendSpan(dst []byte, v uint32) []byte {
	switch {
	case v < 60:
		return append(dst, byte(v))
	case v%60 == 0 && v <= 3600:
		return append(dst, byte(spanMinutes+v/60-1))
	case v%3600 == 0 && v <= 50*3600:
		return append(dst, byte(spanHours+v/3600-2))
	case v%86400 == 0 && v <= 31*86400:
		return append(dst, byte(spanDays+v/86400-3))
	case v < span3Base:
		v -= span2Base
		return append(dst, byte(span2+v>>8), byte(v))
	case v < span3End:
		v -= span3Base
		return append(dst, byte(span3+v>>16), byte(v>>8), byte(v))
	case v < 1<<24:
		return append(dst, span4, byte(v>>16), byte(v>>8), byte(v))
	}
	return binary.BigEndian.AppendUint32(append(dst, span5), v)
}

// A length takes one byte below 248, two below 2,040 and three above.
const (
	length2     = 248
	length3     = 255
	length2Ends = length2 + (length3-length2)<<8
)

// appendLength appends a length of at most 65,535.
func appendLength(dst []byte, n int) []byte {
	switch {
	case n < length2:
		return append(dst, byte(n))
	case n < length2Ends:
		n -= length2
		return append(dst, byte(length2+n>>8), byte(n))
	}
	return append(dst, length3, byte(n>>8), byte(n))
}

// A cursor reads an entry from front to back. Reading past the end gives zeros and sets bad.
type cursor struct {
	e   []byte
	p   int
	bad bool
}

func (c *cursor) fail() byte {
	c.bad = true
	c.p = len(c.e)
	return 0
}

func (c *cursor) byte() byte {
	if c.p >= len(c.e) {
		return c.fail()
	}
	v := c.e[c.p]
	c.p++
	return v
}

func (c *cursor) uint16() uint16 {
	if c.p+2 > len(c.e) {
		return uint16(c.fail())
	}
	c.p += 2
	return binary.BigEndian.Uint16(c.e[c.p-2:])
}

func (c *cursor) uint32() uint32 {
	if c.p+4 > len(c.e) {
		return uint32(c.fail())
	}
	c.p += 4
	return binary.BigEndian.Uint32(c.e[c.p-4:])
}

// take returns the next n bytes, nil where there are not so many.
func (c *cursor) take(n int) []byte {
	if n > len(c.e)-c.p {
		c.fail()
		return nil
	}
	c.p += n
	return c.e[c.p-n : c.p]
}

func (c *cursor) span() uint32 {
	b := c.byte()
	if b < span2 {
		return spanValues[b]
	}
	return c.longSpan(b)
}

func (c *cursor) longSpan(b byte) uint32 {
	switch {
	case b < span3:
		return span2Base + (uint32(b)-span2)<<8 + uint32(c.byte())
	case b < span4:
		return span3Base + (uint32(b)-span3)<<16 + uint32(c.uint16())
	case b < span5:
		return uint32(c.byte())<<16 | uint32(c.uint16())
	}
	return c.uint32()
}

func (c *cursor) length() int {
	b := int(c.byte())
	if b < length2 {
		return b
	}
	if b < length3 {
		return length2 + (b-length2)<<8 + int(c.byte())
	}
	return int(c.uint16())
}

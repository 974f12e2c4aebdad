package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// Entry is one packed, immutable response. It holds no pointer: its bytes may lie anywhere. Its
// methods keep inside it whatever its bytes are; what they return of a damaged one means nothing
// (see Check).
type Entry []byte

// header is what lies before the first RRset.
type header struct {
	kind     Kind
	code     byte // of the plain RRset's type
	flags    byte
	ext      byte
	status   wire.Status
	qtype    wire.Type
	rcode    wire.RCODE
	realm    uint16
	lifetime uint32
	ede      int // where the extended errors begin, 0 for none
}

// minSize is the length of the smallest entry: of a failure of the root.
const minSize = qnameAt + 2

// begin returns a cursor behind the QNAME; it is bad where e has none.
func (e Entry) begin() (c cursor, qnameLen int) {
	c = cursor{e: e}
	if len(e) < minSize {
		c.fail()
		return c, 0
	}
	n := wire.NameLen(e[qnameAt:])
	c.p = qnameAt + n
	c.bad = n == 0
	return c, n
}

// header reads what lies between the QNAME and the first RRset.
func (c *cursor) header() (h header) {
	if len(c.e) < minSize {
		c.fail()
		return h
	}
	h.kind = Kind(c.e[kindAt] >> codeBits)
	h.code = c.e[kindAt] & codeMask
	h.flags = c.e[flagsAt]
	h.status = wire.Status(h.flags & statusMask >> statusShift)
	h.rcode = defaultRCODE(h.kind)
	h.qtype = codeTypes[h.code]
	if h.code == codeOther {
		h.qtype = wire.Type(c.uint16())
	}
	if h.kind == KindCut {
		h.code = codeOf(wire.TypeNS)
	}
	h.lifetime = c.span()
	if h.flags&flagExtended != 0 {
		c.extension(&h)
	}
	return h
}

func (c *cursor) extension(h *header) {
	h.ext = c.byte()
	if h.ext&extIndeterminate != 0 {
		h.status++
	}
	if h.ext&extRealm != 0 {
		h.realm = c.uint16()
	}
	if h.ext&extRCODE != 0 {
		h.rcode = wire.RCODE(c.byte())
	}
	if h.ext&extEDE == 0 {
		return
	}
	h.ede = c.p
	for range c.byte() {
		c.uint16()
		c.take(int(c.byte()))
	}
}

// read is begin and header.
func (e Entry) read() (h header, c cursor) {
	c, _ = e.begin()
	if !c.bad {
		h = c.header()
	}
	return h, c
}

// Kind returns the kind.
func (e Entry) Kind() Kind {
	if len(e) < minSize {
		return 0
	}
	return Kind(e[kindAt] >> codeBits)
}

// QName returns the QNAME in canonical case as wire bytes, borrowed from e.
func (e Entry) QName() []byte {
	_, n := e.begin()
	if n == 0 {
		return nil
	}
	return e[qnameAt : qnameAt+n : qnameAt+n]
}

// QType returns the QTYPE.
func (e Entry) QType() wire.Type {
	if len(e) >= minSize && e[kindAt]&codeMask != codeOther {
		return codeTypes[e[kindAt]&codeMask]
	}
	h, _ := e.read()
	return h.qtype
}

// Matches says whether e is of this kind, realm, QNAME (wire bytes in canonical case) and QTYPE. It
// may be asked of any bytes.
func (e Entry) Matches(kind Kind, realm uint16, qname []byte, t wire.Type) bool {
	n := len(qname)
	if len(e) < qnameAt+n+1 || e.Kind() != kind || string(e[qnameAt:qnameAt+n]) != string(qname) {
		return false
	}
	// The name equal, its end is that of qname: a name that ends in a root label begins no other.
	code := e[kindAt] & codeMask
	if code != codeOther && e[flagsAt]&flagExtended == 0 {
		return codeTypes[code] == t && realm == 0
	}
	c := cursor{e: e, p: qnameAt + n}
	h := c.header()
	return h.qtype == t && h.realm == realm
}

// Realm returns the realm.
func (e Entry) Realm() uint16 {
	if !e.isExtended() {
		return 0
	}
	h, _ := e.read()
	return h.realm
}

func (e Entry) isExtended() bool { return len(e) >= minSize && e[flagsAt]&flagExtended != 0 }

// Expires returns the Unix second from which on the entry is stale.
func (e Entry) Expires() uint32 {
	if len(e) < minSize {
		return 0
	}
	return binary.BigEndian.Uint32(e)
}

// Shift puts the expiry off by so many seconds, modulo 2^32. It writes to e.
func (e Entry) Shift(seconds uint32) {
	if len(e) >= minSize {
		binary.BigEndian.PutUint32(e, binary.BigEndian.Uint32(e)+seconds)
	}
}

// Original returns the lifetime in seconds that the entry had when it was packed.
func (e Entry) Original() uint32 {
	c, _ := e.begin()
	if c.bad {
		return 0
	}
	if e[kindAt]&codeMask == codeOther {
		c.uint16()
	}
	return c.span()
}

// Status returns the status of the response.
func (e Entry) Status() wire.Status {
	if len(e) < minSize {
		return 0
	}
	status := wire.Status(e[flagsAt] & statusMask >> statusShift)
	if status == statusFailed && e.isExtended() {
		h, _ := e.read()
		status = h.status
	}
	return status
}

// RCODE returns the response code.
func (e Entry) RCODE() wire.RCODE {
	if !e.isExtended() {
		return defaultRCODE(e.Kind())
	}
	h, _ := e.read()
	return h.rcode
}

// AA says whether an authoritative server gave it.
func (e Entry) AA() bool { return len(e) >= minSize && e[flagsAt]&flagAA != 0 }

// HasAlias says whether a CNAME or DNAME is in the answer section.
func (e Entry) HasAlias() bool {
	if len(e) < minSize {
		return false
	}
	if e[flagsAt]&countMask == 0 {
		return e[flagsAt]&flagAlias != 0
	}
	return e.Kind() != KindCut && isAlias(codeTypes[e[kindAt]&codeMask])
}

// HasSpecialAddress says whether the answer or additional section has an address, or a service
// binding with an address hint, in a special-purpose block: all outside 2000::/3, 2001::/23 and
// 2002::/16; 0/8, 10/8, 100.64/10, 127/8, 169.254/16, 172.16/12, 192.0.0/24, 192.168/16, 198.18/15
// and 224/3. A rule that looks for others has to look into every entry.
func (e Entry) HasSpecialAddress() bool {
	if len(e) < minSize {
		return false
	}
	if e[kindAt]&codeMask >= firstSpecialCode {
		return true
	}
	if !e.isExtended() {
		return false
	}
	h, _ := e.read()
	return h.ext&extSpecial != 0
}

// Used returns the hint that Content.Used gave.
func (e Entry) Used() bool {
	if !e.isExtended() {
		return false
	}
	h, _ := e.read()
	return h.ext&extUsed != 0
}

// EDE returns the extended errors, nil where there are none.
func (e Entry) EDE() (list []wire.EDE) {
	h, c := e.read()
	if h.ede == 0 {
		return nil
	}
	c = cursor{e: e, p: h.ede}
	for range c.byte() {
		code := wire.EDECode(c.uint16())
		list = append(list, wire.EDE{Code: code, Text: string(c.take(int(c.byte())))})
	}
	return list
}

// HasEDE says whether there are extended errors.
func (e Entry) HasEDE() bool {
	if !e.isExtended() {
		return false
	}
	h, _ := e.read()
	return h.ede != 0
}

// AppendEDE appends the extended errors as EDNS options (RFC 8914 §2).
func (e Entry) AppendEDE(dst []byte) []byte {
	if !e.isExtended() {
		return dst
	}
	h, c := e.read()
	if h.ede == 0 || c.bad {
		return dst
	}
	c = cursor{e: e, p: h.ede}
	for range c.byte() {
		code := c.uint16()
		text := c.take(int(c.byte()))
		dst = binary.BigEndian.AppendUint16(dst, uint16(wire.OptionEDE))
		dst = binary.BigEndian.AppendUint16(dst, uint16(2+len(text)))
		dst = binary.BigEndian.AppendUint16(dst, code)
		dst = append(dst, text...)
	}
	return dst
}

package entry

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"bonsai/wire"
)

// Errors of packing and reading.
var (
	ErrTooLarge   = errors.New("entry: response too large to pack")
	ErrUnpackable = errors.New("entry: response has what an entry can't hold")
	ErrDamaged    = errors.New("entry: damaged")
)

// MaxSize is the length of the largest entry, and of the largest response that one may make, in
// bytes.
const MaxSize = 0xFFFF

// maxPointer is the highest offset that a compression pointer holds (RFC 1035 §4.1.4).
const maxPointer = 0x3FFF

// Pack appends the entry of c to dst. It fails with ErrTooLarge or ErrUnpackable, and then returns
// dst as it was. It keeps nothing of c, and allocates only where dst has to grow.
func Pack(dst []byte, c *Content, now uint32) ([]byte, error) {
	out, err := pack(dst, c, now)
	if invariants && err == nil {
		assertPacked(c, out[len(dst):], now)
	}
	return out, err
}

func pack(dst []byte, c *Content, now uint32) ([]byte, error) {
	if !packable(c) {
		return dst, ErrUnpackable
	}
	if cap(dst)-len(dst) < roomForAny {
		dst = append(make([]byte, 0, len(dst)+estimate(c)), dst...)
	}
	h := headPacker{c: c, dst: dst, start: len(dst), lifetime: c.Lifetime}
	if h.lifetime == 0 {
		h.lifetime = leastTTL(c)
	}
	h.lifetime = min(h.lifetime, math.MaxUint32-now)
	h.plain = h.isPlain()
	if h.plain {
		h.plainCode = setCode(&c.Answer[0])
	}
	h.alone = h.plain && len(c.Answer)+len(c.Authority)+len(c.Additional) == 1
	h.header(now)
	if h.alone && h.isOpaque(&c.Answer[0]) {
		return h.only(dst)
	}
	return h.all(dst)
}

// all packs the RRsets of any entry. It is apart from pack for what it keeps on the stack is large.
func (h *headPacker) all(dst []byte) ([]byte, error) {
	c := h.c
	p := packer{headPacker: *h, static: true, at: wire.HeaderSize + len(c.QName) + 4}
	p.names.init(wire.BorrowName(p.dst[p.start+qnameAt:][:len(c.QName)]))
	for s, sets := range [...][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for i := range sets {
			if err := p.set(&sets[i], wire.Section(s), s == 0 && i == 0 && p.plain); err != nil {
				return dst, err
			}
		}
	}
	return p.dst, nil
}

// isOpaque says whether the plain RRset is packed as it is, whatever names are in it.
func (h *headPacker) isOpaque(set *wire.RRset) bool {
	return len(set.Sigs) == 0 && codeForms[h.plainCode] <= formString && !wire.HasCompressibleNames(set.Type)
}

// only packs an opaque plain RRset of an entry that has no other: most are such.
func (h *headPacker) only(dst []byte) ([]byte, error) {
	set, f := &h.c.Answer[0], codeForms[h.plainCode]
	if !validRecords(set) { // its owner is the QNAME
		return dst, ErrUnpackable
	}
	size := wire.HeaderSize + len(h.c.QName) + 4
	for _, r := range set.RDATA {
		size += 2 + recordHead + len(r)
		h.rdata(f, r)
	}
	if size > MaxSize {
		return dst, ErrTooLarge
	}
	return h.dst, nil
}

// roomForAny is a room in bytes that is taken to be enough without a look at the content.
const roomForAny = 4096

// estimate returns how many bytes an entry takes at most, more or less.
func estimate(c *Content) int {
	n := 32 + len(c.QName)
	for _, e := range c.EDE {
		n += 4 + len(e.Text)
	}
	for _, sets := range [...][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for i := range sets {
			n += 8 + len(sets[i].Owner)
			for _, r := range sets[i].RDATA {
				n += 2 + len(r)
			}
			for _, r := range sets[i].Sigs {
				n += len(r)
			}
		}
	}
	return min(n, MaxSize)
}

// packable says whether the header can hold what c says.
func packable(c *Content) bool {
	return c.Kind < kinds && c.QName.Valid() && c.RCODE <= 0xFF && c.Status <= wire.Indeterminate
}

func leastTTL(c *Content) uint32 {
	least, found := uint32(math.MaxUint32), false
	for _, sets := range [...][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for i := range sets {
			least, found = min(least, sets[i].TTL), true
		}
	}
	if !found {
		return 0
	}
	return least
}

// headPacker packs all before the first RRset.
type headPacker struct {
	c         *Content
	dst       []byte
	start     int // of the entry in dst
	lifetime  uint32
	plain     bool // the first RRset's head is in the header
	alone     bool // and there is no other
	plainCode byte // of its type
}

// packer is the state of one Pack.
type packer struct {
	headPacker
	names names

	// at is how long the message is with all that has been packed in it, DNSSEC included. While
	// static is true that is where the next record will lie whatever the options are, so that
	// pointers to what is there may be packed.
	at     int
	static bool

	previous wire.Name // owner of the RRset before; "" where none may point to it
	target   wire.Name // canonical name of the CNAME record just before; "" likewise
	key      sigKey
}

func (h *headPacker) header(now uint32) {
	c := h.c
	code := codeOf(c.QType)
	if h.plain && c.Kind != KindCut {
		code = h.plainCode
	}
	flags, ext := h.flags(code)
	h.dst = binary.BigEndian.AppendUint32(h.dst, now+h.lifetime)
	h.dst = append(h.dst, byte(c.Kind)<<codeBits|code, flags)
	h.dst = wire.AppendCanonical(h.dst, c.QName)
	if code == codeOther {
		h.dst = binary.BigEndian.AppendUint16(h.dst, uint16(c.QType))
	}
	h.dst = appendSpan(h.dst, h.lifetime)
	if ext != 0 {
		h.extension(ext)
	}
}

// isPlain says whether the first RRset is what most responses are: of the QTYPE, at the QNAME, with
// the entry's lifetime and status, and few records. The only alias it may go with is itself.
func (h *headPacker) isPlain() bool {
	if len(h.c.Answer) == 0 {
		return false
	}
	set := &h.c.Answer[0]
	return set.Type == plainType(h.c.Kind, h.c.QType) && set.Type != wire.TypeNone &&
		set.TTL == h.lifetime && set.Status == h.c.Status &&
		len(set.RDATA) <= countMask && set.Owner.Equal(h.c.QName) &&
		(isAlias(set.Type) || !hasAlias(h.c.Answer))
}

func (h *headPacker) flags(code byte) (flags, ext byte) {
	c := h.c
	status := min(byte(c.Status), statusFailed)
	flags = status << statusShift
	if c.Status == wire.Indeterminate {
		ext |= extIndeterminate
	}
	if c.AA {
		flags |= flagAA
	}
	switch {
	case h.plain:
		flags |= byte(len(c.Answer[0].RDATA))
		if len(c.Answer[0].Sigs) > 0 {
			flags |= flagSigned
		}
	case hasAlias(c.Answer):
		flags |= flagAlias
	}
	if c.Realm != 0 {
		ext |= extRealm
	}
	if c.RCODE != defaultRCODE(c.Kind) {
		ext |= extRCODE
	}
	if len(c.EDE) > 0 {
		ext |= extEDE
	}
	if c.Used {
		ext |= extUsed
	}
	// Of addresses alone the code has said it.
	if code < firstSpecialCode && !(h.alone && codeForms[code] != formCopied) && hasSpecialAddress(c) {
		ext |= extSpecial
	}
	if ext != 0 {
		flags |= flagExtended
	}
	return flags, ext
}

func (h *headPacker) extension(ext byte) {
	c := h.c
	h.dst = append(h.dst, ext)
	if ext&extRealm != 0 {
		h.dst = binary.BigEndian.AppendUint16(h.dst, c.Realm)
	}
	if ext&extRCODE != 0 {
		h.dst = append(h.dst, byte(c.RCODE))
	}
	if ext&extEDE == 0 {
		return
	}
	list := c.EDE[:min(len(c.EDE), MaxEDE)]
	h.dst = append(h.dst, byte(len(list)))
	for _, e := range list {
		text := cutText(e.Text)
		h.dst = binary.BigEndian.AppendUint16(h.dst, uint16(e.Code))
		h.dst = append(h.dst, byte(len(text)))
		h.dst = append(h.dst, text...)
	}
}

// cutText shortens a text to MaxEDEText bytes, between characters.
func cutText(s string) string {
	if len(s) <= MaxEDEText {
		return s
	}
	n := MaxEDEText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func isAlias(t wire.Type) bool { return t == wire.TypeCNAME || t == wire.TypeDNAME }

func hasAlias(sets []wire.RRset) bool {
	for i := range sets {
		if isAlias(sets[i].Type) {
			return true
		}
	}
	return false
}

// setCode returns the code of an RRset's type, with the form that its records allow.
func setCode(set *wire.RRset) byte {
	code := codeOf(set.Type)
	switch code {
	case codeA, codeAAAA:
		if isSpecialSet(set) {
			code += codeASpecial - codeA
		}
	case codeTXT:
		for _, r := range set.RDATA {
			if len(r) == 0 || int(r[0]) != len(r)-1 {
				return code
			}
		}
		code = codeTXTString
	}
	return code
}

// set packs one RRset.
func (p *packer) set(set *wire.RRset, s wire.Section, plain bool) error {
	if !validSet(set) {
		return ErrUnpackable
	}
	proof := isDNSSEC(set.Type, p.c.QType, s)
	p.static = p.static && !proof
	code, ownerLen := p.plainCode, p.pointerLen(0)
	if !plain {
		code = setCode(set)
		ownerLen = p.head(set, s, code, proof)
	}
	if !proof {
		p.target = ""
	}
	form := codeForms[code]
	if len(set.RDATA) > 1 && form != formFixed4 && form != formFixed16 && isRotated(form, p.c.Kind, s) {
		p.static = false
	}
	first := p.at
	for i, r := range set.RDATA {
		p.at += p.ownerLen(i, ownerLen, first) + recordHead
		if !proof && set.Type == wire.TypeCNAME && len(set.RDATA) == 1 && p.at <= maxPointer {
			p.target = wire.BorrowName(r)
		}
		p.record(form, set.Type, r)
	}
	for i, r := range set.Sigs {
		p.static = false
		p.at += p.ownerLen(1, ownerLen, first) + recordHead + len(r)
		if !p.sig(set, r, i == len(set.Sigs)-1) {
			return ErrUnpackable
		}
	}
	if p.at > MaxSize || len(p.dst)-p.start > MaxSize {
		return ErrTooLarge
	}
	return nil
}

// validSet says whether an RRset is one that a response in class IN can have.
func validSet(set *wire.RRset) bool {
	return set.Owner.Valid() && validRecords(set)
}

// validRecords is validSet but for the owner.
func validRecords(set *wire.RRset) bool {
	if set.Class != wire.ClassIN || set.Status > wire.Indeterminate ||
		len(set.RDATA) == 0 || len(set.RDATA) > wire.MaxRRsetRecords {
		return false
	}
	for _, r := range set.RDATA {
		if !wire.ValidRDATA(set.Type, r) {
			return false
		}
	}
	return true
}

// recordHead is the length of a record's fixed fields: TYPE, CLASS, TTL, RDLENGTH.
const recordHead = 10

// ownerLen returns how long the owner of an RRset's i-th record is in the message: past the first it
// is a pointer to that one, unless that lies too far back.
func (p *packer) ownerLen(i, firstLen, first int) int {
	if i > 0 && first <= maxPointer {
		return min(firstLen, 2)
	}
	return firstLen
}

// pointerLen returns how long a suffix of the QNAME is in the message: the root is not worth a pointer.
func (p *packer) pointerLen(off int) int {
	if off == len(p.c.QName)-1 {
		return 1
	}
	return 2
}

// head packs the head of an explicit RRset and returns the length of its owner in the message.
func (p *packer) head(set *wire.RRset, s wire.Section, code byte, proof bool) (ownerLen int) {
	at := len(p.dst)
	bits := byte(s) << sectionShift
	count := len(set.RDATA)
	p.dst = append(p.dst, 0, code<<3)
	if code == codeOther {
		p.dst = binary.BigEndian.AppendUint16(p.dst, uint16(set.Type))
	}
	if count <= countMask {
		p.dst[at+1] |= byte(count)
	} else {
		p.dst = append(p.dst, byte(count-1))
	}
	form, ownerLen := p.owner(set, proof)
	bits |= form << ownerShift
	if set.TTL != p.lifetime {
		bits |= setTTL
		p.dst = appendSpan(p.dst, set.TTL)
	}
	if set.Status != p.c.Status {
		bits |= setStatus
		p.dst = append(p.dst, byte(set.Status))
	}
	if len(set.Sigs) > 0 {
		bits |= setSigned
	}
	p.dst[at] = bits
	return ownerLen
}

package entry

import "bonsai/wire"

// maxKnown bounds the names outside the question that others are compressed against. A cut of
// thirteen servers in one domain has fifteen.
const maxKnown = 40

// names knows where in the message names lie that others may point to: in the question, and in what
// is always written at the same place behind it.
type names struct {
	qname  wire.Name // in canonical case
	starts [4]uint64 // a bit for each octet of the QNAME at which a label begins
	count  int
	known  [maxKnown]knownName
}

type knownName struct {
	name wire.Name
	at   uint16
}

func (s *names) init(qname wire.Name) {
	s.qname = qname
	for i := 0; i < len(qname); i += 1 + int(qname[i]) {
		s.starts[i>>6] |= 1 << (i & 63)
	}
}

// suffix returns where in the QNAME a name begins that is an ancestor of it or itself.
func (s *names) suffix(n wire.Name) (off int, ok bool) {
	off = len(s.qname) - len(n)
	return off, s.startsAt(off) && s.qname[off:].Equal(n)
}

// exactSuffix is suffix where the spelling is canonical, too.
func (s *names) exactSuffix(n wire.Name) (off int, ok bool) {
	off = len(s.qname) - len(n)
	return off, s.startsAt(off) && s.qname[off:] == n
}

func (s *names) startsAt(off int) bool {
	return off >= 0 && s.starts[off>>6]>>(off&63)&1 != 0
}

// labelsBefore counts the labels of the QNAME before an offset.
func (s *names) labelsBefore(off int) (labels int) {
	for i := 0; i < off; i += 1 + int(s.qname[i]) {
		labels++
	}
	return labels
}

// find returns the message offset of a name.
func (s *names) find(n wire.Name) (at int, ok bool) {
	if off, ok := s.suffix(n); ok {
		return wire.HeaderSize + off, true
	}
	for i := range s.known[:s.count] {
		if k := &s.known[i]; len(k.name) == len(n) && k.name.Equal(n) {
			return int(k.at), true
		}
	}
	return 0, false
}

// learn notes that a name lies at an offset.
func (s *names) learn(n wire.Name, at int) {
	if s.count < maxKnown && at <= maxPointer {
		s.known[s.count] = knownName{n, uint16(at)}
		s.count++
	}
}

// base32hex is the alphabet of NSEC3 owners (RFC 5155 §1.3, RFC 4648 §7), in one case, and its
// inverse, 0xFF where a character is not in it.
type base32hex struct {
	digits string
	values [256]byte
}

var (
	base32Lower = newBase32hex("0123456789abcdefghijklmnopqrstuv")
	base32Upper = newBase32hex("0123456789ABCDEFGHIJKLMNOPQRSTUV")
)

func newBase32hex(digits string) (a base32hex) {
	a.digits = digits
	for i := range a.values {
		a.values[i] = 0xFF
	}
	for i := range len(digits) {
		a.values[digits[i]] = byte(i)
	}
	return a
}

// decode reads the 32 digits of a hash.
func (a *base32hex) decode(h *[hashSize]byte, label string) bool {
	if len(label) != hashLabel {
		return false
	}
	for i := range hashSize / 5 {
		var group uint64
		for j := range 8 {
			v := a.values[label[8*i+j]]
			if v == 0xFF {
				return false
			}
			group = group<<5 | uint64(v)
		}
		for j := range 5 {
			h[5*i+j] = byte(group >> (32 - 8*j))
		}
	}
	return true
}

// appendLabel appends the label of a hash, with its length octet.
func (a *base32hex) appendLabel(dst, h []byte) []byte {
	dst = append(dst, hashLabel)
	for ; len(h) >= 5; h = h[5:] {
		group := uint64(h[0])<<32 | uint64(h[1])<<24 | uint64(h[2])<<16 | uint64(h[3])<<8 | uint64(h[4])
		for shift := 35; shift >= 0; shift -= 5 {
			dst = append(dst, a.digits[group>>shift&31])
		}
	}
	return dst
}

// owner packs the owner in its shortest form. A proof is not always written, so that nothing else
// may refer to it, and it refers to nothing whose place depends on what was written before.
func (p *packer) owner(set *wire.RRset, proof bool) (form byte, messageLen int) {
	owner := set.Owner
	previous, target := p.previous, p.target
	if proof {
		previous, target = "", ""
	} else {
		p.previous = ""
	}
	if off, ok := p.names.suffix(owner); ok {
		if off == 0 {
			return ownerQName, p.pointerLen(0)
		}
		p.dst = append(p.dst, byte(off))
		return ownerSuffix, p.pointerLen(off)
	}
	if !proof && p.at <= maxPointer {
		p.previous = owner
	}
	if target != "" && target.Equal(owner) {
		return ownerTarget, 2
	}
	if previous != "" && previous.Equal(owner) {
		return ownerPrevious, 2
	}
	if off, ok := p.names.suffix(owner.Parent()); ok && owner[0] == hashLabel {
		if form := p.hash(owner.Label(), off); form != 0 {
			return form, 1 + hashLabel + p.pointerLen(off)
		}
	}
	mark := len(p.dst)
	p.name(owner, p.at)
	return ownerLiteral, len(p.dst) - mark
}

// hash packs the label of an NSEC3 owner; form is 0 where it is not the base32hex of a hash.
func (p *packer) hash(label string, suffix int) (form byte) {
	var h [hashSize]byte
	for _, alphabet := range []*base32hex{&base32Lower, &base32Upper} {
		if alphabet.decode(&h, label) {
			p.dst = append(p.dst, byte(suffix))
			p.dst = append(p.dst, h[:]...)
			if alphabet == &base32Lower {
				return ownerHashLower
			}
			return ownerHashUpper
		}
	}
	return 0
}

// name packs a name as the message will have it at the given offset: labels, then 0 or a pointer.
func (p *packer) name(n wire.Name, at int) {
	for n[0] != 0 {
		if off, ok := p.names.find(n); ok {
			p.dst = append(p.dst, 0xC0|byte(off>>8), byte(off))
			return
		}
		if p.static {
			p.names.learn(n, at)
		}
		l := 1 + int(n[0])
		p.dst = append(p.dst, n[:l]...)
		n, at = n[l:], at+l
	}
	p.dst = append(p.dst, 0)
}

// packedName packs a name that is written whole: labels, then 0 or packedSuffix and how many labels
// of the QNAME to leave out.
func (p *packer) packedName(n wire.Name) {
	for n[0] != 0 {
		if off, ok := p.names.exactSuffix(n); ok {
			p.dst = append(p.dst, packedSuffix+byte(p.names.labelsBefore(off)))
			return
		}
		l := 1 + int(n[0])
		p.dst = append(p.dst, n[:l]...)
		n = n[l:]
	}
	p.dst = append(p.dst, 0)
}

// packedSuffix is the least octet that ends a packed name with a suffix of the QNAME. A length octet
// is below it.
const packedSuffix = wire.MaxLabelLen + 1

package entry

import (
	"encoding/binary"

	"bonsai/wire"
)

// Bits of a signature's head. Above them lies the RRSIG's labels field, sigLabelsFollow where it
// does not fit.
const (
	sigMore         = 0x01 // another signature of the RRset follows
	sigUsualLen     = 0x02 // the signature is as long as those of its algorithm are
	sigOriginalTTL  = 0x04 // the original TTL is not the RRset's TTL and follows
	sigSameTimes    = 0x08 // expiration and inception are those of the signature before
	sigSameKey      = 0x10 // algorithm, key tag and signer are those of the signature before
	sigLabelsShift  = 5
	sigLabelsFollow = 7
)

// rrsigHead is the length of an RRSIG's fields before the signer (RFC 4034 §3.1).
const rrsigHead = 18

// signerLiteral stands for a signer that is not a suffix of the QNAME and follows whole.
const signerLiteral = 0xFF

// usualSignature is the length of an algorithm's signatures, 0 where they differ: P-256 and Ed25519
// (RFC 6605 §4, RFC 8080 §4), P-384, Ed448, and RSA with the modulus most used.
var usualSignature = [32]int{5: 256, 7: 256, 8: 256, 10: 256, 13: 64, 14: 96, 15: 64, 16: 114}

// sigKey is what a signature may share with the one before it.
type sigKey struct {
	algorithm             byte
	tag                   uint16
	signer                []byte
	expiration, inception uint32
	keyed, timed          bool
}

// sig packs the RDATA of one RRSIG that covers set.
func (p *packer) sig(set *wire.RRset, r []byte, last bool) (ok bool) {
	if !wire.ValidRDATA(wire.TypeRRSIG, r) || wire.CoveredType(r) != set.Type {
		return false
	}
	end := rrsigHead
	for r[end] != 0 {
		end += 1 + int(r[end])
	}
	end++
	algorithm, labels, originalTTL := r[2], r[3], binary.BigEndian.Uint32(r[4:])
	expiration, inception := binary.BigEndian.Uint32(r[8:]), binary.BigEndian.Uint32(r[12:])
	tag, signer, signature := binary.BigEndian.Uint16(r[16:]), r[rrsigHead:end], r[end:]
	at, bits := len(p.dst), byte(0)
	p.dst = append(p.dst, 0)
	if labels < sigLabelsFollow {
		bits |= labels << sigLabelsShift
	} else {
		bits |= sigLabelsFollow << sigLabelsShift
		p.dst = append(p.dst, labels)
	}
	k := &p.key
	if k.keyed && k.algorithm == algorithm && k.tag == tag && string(k.signer) == string(signer) {
		bits |= sigSameKey
	} else {
		p.dst = append(p.dst, algorithm)
		p.dst = binary.BigEndian.AppendUint16(p.dst, tag)
		p.signer(signer)
		k.algorithm, k.tag, k.signer, k.keyed = algorithm, tag, signer, true
	}
	if originalTTL != set.TTL {
		bits |= sigOriginalTTL
		p.dst = appendSpan(p.dst, originalTTL)
	}
	if k.timed && k.expiration == expiration && k.inception == inception {
		bits |= sigSameTimes
	} else {
		p.dst = binary.BigEndian.AppendUint32(p.dst, expiration)
		p.dst = appendSpan(p.dst, expiration-inception)
		k.expiration, k.inception, k.timed = expiration, inception, true
	}
	if len(signature) == usualLen(algorithm) {
		bits |= sigUsualLen
	} else {
		p.dst = appendLength(p.dst, len(signature))
	}
	if !last {
		bits |= sigMore
	}
	p.dst[at] = bits
	p.dst = append(p.dst, signature...)
	return true
}

// signer packs the signer's name: where in the QNAME it begins, or the name whole.
func (p *packer) signer(name []byte) {
	if off, ok := p.names.exactSuffix(wire.BorrowName(name)); ok {
		p.dst = append(p.dst, byte(off))
		return
	}
	p.dst = append(p.dst, signerLiteral)
	p.dst = append(p.dst, name...)
}

func usualLen(algorithm byte) int {
	if int(algorithm) < len(usualSignature) {
		return usualSignature[algorithm]
	}
	return 0
}

// signature is one signature as it lies in the entry.
type signature struct {
	labels      byte
	originalTTL uint32
	bytes       []byte
	more        bool
}

// signature reads one signature of an RRset with this TTL, and keeps in k what the next may share.
func (c *cursor) signature(k *sigKey, qname []byte, ttl uint32) (s signature) {
	bits := c.byte()
	s.more = bits&sigMore != 0
	s.labels = bits >> sigLabelsShift
	if s.labels == sigLabelsFollow {
		s.labels = c.byte()
	}
	if bits&sigSameKey == 0 {
		k.algorithm, k.tag = c.byte(), c.uint16()
		k.signer = c.signer(qname)
	}
	s.originalTTL = ttl
	if bits&sigOriginalTTL != 0 {
		s.originalTTL = c.span()
	}
	if bits&sigSameTimes == 0 {
		k.expiration = c.uint32()
		k.inception = k.expiration - c.span()
	}
	n := usualLen(k.algorithm)
	if bits&sigUsualLen == 0 {
		n = c.length()
	}
	s.bytes = c.take(n)
	return s
}

func (c *cursor) signer(qname []byte) []byte {
	if off := int(c.byte()); off != signerLiteral {
		if off >= len(qname) {
			c.fail()
			return nil
		}
		return qname[off:]
	}
	return c.take(wire.NameLen(c.e[c.p:]))
}

// skipSignatures passes over the signatures of an RRset. It has to read them, for each may lean on
// the one before.
func (c *cursor) skipSignatures(k *sigKey, qname []byte) {
	for c.signature(k, qname, 0).more && !c.bad {
	}
}

// signature writes RDLENGTH and RDATA of an RRSIG.
func (w *writer) signature(dst []byte, t wire.Type, s *signature) []byte {
	k := &w.key
	dst, ok := w.rdlength(dst, rrsigHead+len(k.signer)+len(s.bytes))
	if !ok {
		return dst
	}
	dst = append(dst, byte(t>>8), byte(t), k.algorithm, s.labels)
	dst = binary.BigEndian.AppendUint32(dst, s.originalTTL)
	dst = binary.BigEndian.AppendUint32(dst, k.expiration)
	dst = binary.BigEndian.AppendUint32(dst, k.inception)
	dst = binary.BigEndian.AppendUint16(dst, k.tag)
	dst = append(dst, k.signer...)
	return append(dst, s.bytes...)
}

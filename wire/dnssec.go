package wire

import "encoding/binary"

// RRSIG is the RDATA of an RRSIG record (RFC 4034 §3.1). Signer and Signature borrow it.
type RRSIG struct {
	Covered     Type
	Algorithm   uint8
	Labels      uint8
	OriginalTTL uint32
	Expiration  uint32 // Unix seconds modulo 2^32, to be compared as serial numbers (RFC 1982)
	Inception   uint32
	KeyTag      uint16
	Signer      Name
	Signature   []byte
}

// rrsigFixed is the length of what precedes the signer in an RRSIG.
const rrsigFixed = 18

// ParseRRSIG reads the RDATA of an RRSIG; ok is false where it is malformed.
func ParseRRSIG(rdata []byte) (s RRSIG, ok bool) {
	if len(rdata) < rrsigFixed {
		return s, false
	}
	end, ok := plainNameEnd(rdata, rrsigFixed)
	if !ok {
		return s, false
	}
	return RRSIG{
		Covered:     Type(binary.BigEndian.Uint16(rdata)),
		Algorithm:   rdata[2],
		Labels:      rdata[3],
		OriginalTTL: binary.BigEndian.Uint32(rdata[4:]),
		Expiration:  binary.BigEndian.Uint32(rdata[8:]),
		Inception:   binary.BigEndian.Uint32(rdata[12:]),
		KeyTag:      binary.BigEndian.Uint16(rdata[16:]),
		Signer:      BorrowName(rdata[rrsigFixed:end]),
		Signature:   rdata[end:],
	}, true
}

// NSEC is the RDATA of an NSEC record (RFC 4034 §4.1). Its fields borrow it.
type NSEC struct {
	Next  Name
	Types Bitmap
}

// ParseNSEC reads the RDATA of an NSEC; ok is false where it is malformed.
func ParseNSEC(rdata []byte) (n NSEC, ok bool) {
	end, ok := plainNameEnd(rdata, 0)
	if !ok {
		return n, false
	}
	n = NSEC{Next: BorrowName(rdata[:end]), Types: Bitmap(rdata[end:])}
	return n, n.Types.Valid()
}

// NSEC3 is the RDATA of an NSEC3 record (RFC 5155 §3.1). Its fields borrow it.
type NSEC3 struct {
	Hash       uint8
	Flags      uint8
	Iterations uint16
	Salt       []byte
	Next       []byte // a hash, not encoded
	Types      Bitmap
}

// Values of the fields of an NSEC3 (RFC 5155 §11).
const (
	NSEC3HashSHA1   uint8 = 1
	NSEC3FlagOptOut uint8 = 1
)

// ParseNSEC3 reads the RDATA of an NSEC3; ok is false where it is malformed.
func ParseNSEC3(rdata []byte) (n NSEC3, ok bool) {
	const fixed = 5
	if len(rdata) < fixed {
		return n, false
	}
	n = NSEC3{Hash: rdata[0], Flags: rdata[1], Iterations: binary.BigEndian.Uint16(rdata[2:])}
	rest := rdata[fixed-1:]
	if n.Salt, rest, ok = cutString(rest); !ok {
		return n, false
	}
	if n.Next, rest, ok = cutString(rest); !ok || len(n.Next) == 0 {
		return n, false
	}
	n.Types = Bitmap(rest)
	return n, n.Types.Valid()
}

// cutString takes a field led by its length octet off b.
func cutString(b []byte) (field, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	end := 1 + int(b[0])
	return b[1:end:end], b[end:], true
}

// plainNameEnd returns the offset behind the uncompressed name at off.
func plainNameEnd(b []byte, off int) (end int, ok bool) {
	for start := off; off < len(b); {
		n := int(b[off])
		off += 1 + n
		if n == 0 {
			return off, off-start <= MaxNameLen
		}
		if n > MaxLabelLen {
			break
		}
	}
	return 0, false
}

// Bitmap is a Type Bit Maps field (RFC 4034 §4.1.2).
type Bitmap []byte

// Valid says whether the bitmap is well-formed: windows in ascending order, of 1 to 32 octets.
func (b Bitmap) Valid() bool {
	last := -1
	for len(b) > 0 {
		if len(b) < 2 || int(b[0]) <= last || b[1] == 0 || b[1] > 32 || len(b) < 2+int(b[1]) {
			return false
		}
		last, b = int(b[0]), b[2+int(b[1]):]
	}
	return true
}

// Has says whether a type's bit is set in a valid bitmap.
func (b Bitmap) Has(t Type) bool {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		if b[0] == byte(t>>8) {
			octet := int(t&0xFF) / 8
			return octet < int(b[1]) && b[2+octet]&(0x80>>(t%8)) != 0
		}
		b = b[2+int(b[1]):]
	}
	return false
}

// HasOther says whether a bit is set for any type but these.
func (b Bitmap) HasOther(types ...Type) bool {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		for octet, bits := range b[2 : 2+int(b[1])] {
			for _, t := range types {
				if b[0] == byte(t>>8) && octet == int(t&0xFF)/8 {
					bits &^= 0x80 >> (t % 8)
				}
			}
			if bits != 0 {
				return true
			}
		}
		b = b[2+int(b[1]):]
	}
	return false
}

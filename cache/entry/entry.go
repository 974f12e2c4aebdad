// Package entry is the packed layout of one cached response: packed once, appended many times.
package entry

import (
	"encoding/binary"
	"errors"
	"math"

	"bonsai/wire"
)

// Entry is one packed, immutable response. It holds no pointer: its bytes may lie anywhere.
type Entry []byte

// Errors of packing and of reading.
var (
	ErrTooLarge   = errors.New("entry: response too large to pack")
	ErrUnpackable = errors.New("entry: response has what an entry can't hold")
	ErrDamaged    = errors.New("entry: damaged")
)

// MaxSize is the largest entry in bytes.
const MaxSize = 0xFFFF

const (
	flagAA = 1 << iota
	flagAlias
	flagUsed
)

// Pack appends the entry of c to dst. It fails with ErrTooLarge or ErrUnpackable, and then returns
// dst as it was. It keeps nothing of c.
func Pack(dst []byte, c *Content, now uint32) ([]byte, error) {
	if !c.QName.Valid() {
		return dst, ErrUnpackable
	}
	start := len(dst)
	lifetime, flags := c.Lifetime, byte(0)
	if lifetime == 0 {
		lifetime = leastTTL(c)
	}
	if c.AA {
		flags |= flagAA
	}
	if c.Used {
		flags |= flagUsed
	}
	for i := range c.Answer {
		if t := c.Answer[i].Type; t == wire.TypeCNAME || t == wire.TypeDNAME {
			flags |= flagAlias
		}
	}
	dst = binary.BigEndian.AppendUint32(dst, now+lifetime)
	dst = binary.BigEndian.AppendUint32(dst, lifetime)
	dst = append(dst, byte(c.Kind), byte(c.Status), flags)
	dst = binary.BigEndian.AppendUint16(dst, c.Realm)
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.QType))
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.RCODE))
	dst = append(dst, byte(len(c.QName)))
	dst = wire.AppendCanonical(dst, c.QName)
	ede := c.EDE[:min(len(c.EDE), MaxEDE)]
	dst = append(dst, byte(len(ede)))
	for _, e := range ede {
		text := e.Text[:min(len(e.Text), MaxEDEText)]
		dst = binary.BigEndian.AppendUint16(dst, uint16(e.Code))
		dst = append(append(dst, byte(len(text))), text...)
	}
	for s, sets := range [][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for i := range sets {
			set := &sets[i]
			if set.Class != wire.ClassIN || len(set.RDATA) == 0 || !set.Owner.Valid() {
				return dst[:start], ErrUnpackable
			}
			dst = append(dst, byte(s), byte(set.Status))
			dst = binary.BigEndian.AppendUint16(dst, uint16(set.Type))
			dst = binary.BigEndian.AppendUint32(dst, set.TTL)
			dst = append(append(dst, byte(len(set.Owner))), set.Owner...)
			dst = appendList(dst, set.RDATA)
			dst = appendList(dst, set.Sigs)
		}
	}
	if len(dst)-start > MaxSize {
		return dst[:start], ErrTooLarge
	}
	return dst, nil
}

func appendList(dst []byte, list [][]byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(list)))
	for _, r := range list {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(r)))
		dst = append(dst, r...)
	}
	return dst
}

func leastTTL(c *Content) uint32 {
	least := uint32(math.MaxUint32)
	for _, sets := range [][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for i := range sets {
			least = min(least, sets[i].TTL)
		}
	}
	if least == math.MaxUint32 {
		return 0
	}
	return least
}

// Kind returns the kind.
func (e Entry) Kind() Kind { return Kind(e[8]) }

// Status returns the weakest status of its RRsets.
func (e Entry) Status() wire.Status { return wire.Status(e[9]) }

// AA says whether an authoritative server gave it.
func (e Entry) AA() bool { return e[10]&flagAA != 0 }

// HasAlias says whether a CNAME or DNAME is in the answer section.
func (e Entry) HasAlias() bool { return e[10]&flagAlias != 0 }

// Used returns the hint that Content.Used gave.
func (e Entry) Used() bool { return e[10]&flagUsed != 0 }

// Realm returns the realm.
func (e Entry) Realm() uint16 { return binary.BigEndian.Uint16(e[11:]) }

// QType returns the QTYPE.
func (e Entry) QType() wire.Type { return wire.Type(binary.BigEndian.Uint16(e[13:])) }

// RCODE returns the response code.
func (e Entry) RCODE() wire.RCODE { return wire.RCODE(binary.BigEndian.Uint16(e[15:])) }

// QName returns the QNAME in canonical case as wire bytes, borrowed from e.
func (e Entry) QName() []byte { return e[18 : 18+int(e[17])] }

// Matches says whether e is of this kind, realm, QNAME (wire bytes in canonical case) and QTYPE.
func (e Entry) Matches(kind Kind, realm uint16, qname []byte, t wire.Type) bool {
	return e.Kind() == kind && e.Realm() == realm && e.QType() == t && string(e.QName()) == string(qname)
}

// Expires returns the Unix second from which on the entry is stale.
func (e Entry) Expires() uint32 { return binary.BigEndian.Uint32(e) }

// Original returns the lifetime in seconds that the entry had when it was packed.
func (e Entry) Original() uint32 { return binary.BigEndian.Uint32(e[4:]) }

// EDE returns the extended errors; nil where there are none.
func (e Entry) EDE() []wire.EDE {
	var list []wire.EDE
	p := 18 + int(e[17])
	n := int(e[p])
	p++
	for range n {
		l := int(e[p+2])
		list = append(list, wire.EDE{Code: wire.EDECode(binary.BigEndian.Uint16(e[p:])), Text: string(e[p+3 : p+3+l])})
		p += 3 + l
	}
	return list
}

// HasEDE says whether there are extended errors, without allocating.
func (e Entry) HasEDE() bool { return e[18+int(e[17])] != 0 }

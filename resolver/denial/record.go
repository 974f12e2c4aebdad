package denial

import (
	"encoding/base32"
	"encoding/binary"

	"bonsai/wire"
)

// record is what is to be stored, its zone known.
type record struct {
	kind    kind
	zone    wire.Name // canonical
	key     []byte
	payload []byte
	ttl     uint32

	salt       []byte // of an NSEC3
	iterations uint16
}

// hashLength is that of NSEC3 hash algorithm 1, in octets.
const hashLength = 20

// Lengths of what precedes and follows the signer in an RRSIG's RDATA, which is the zone's name and
// is not stored.
const rrsigFixed = 18

// The payload of a record is its RDATA as one field (SOA), as several with their count before them
// (wildcard), or as below (NSEC, NSEC3), then the count of signatures and each as a field: the RRSIG's
// RDATA less the signer. A field is led by its length in two octets.

func appendField(dst []byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

func cutField(b []byte) (field, rest []byte) {
	n := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:n:n], b[n:]
}

// appendSigs appends the signatures that the zone made.
func appendSigs(dst []byte, sigs [][]byte, zone wire.Name) []byte {
	at := len(dst)
	dst = append(dst, 0)
	for _, raw := range sigs {
		s, ok := wire.ParseRRSIG(raw)
		if ok && s.Signer.Equal(zone) && dst[at] < 255 {
			dst = appendField(dst, raw[:rrsigFixed], s.Signature)
			dst[at]++
		}
	}
	return dst
}

func readSigs(b []byte, zone wire.Name) [][]byte {
	sigs := make([][]byte, b[0])
	b = b[1:]
	for i := range sigs {
		var f []byte
		f, b = cutField(b)
		sig := make([]byte, 0, len(f)+len(zone))
		sig = append(append(append(sig, f[:rrsigFixed]...), zone...), f[rrsigFixed:]...)
		sigs[i] = sig
	}
	return sigs
}

// appendNSEC appends an NSEC's RDATA: how much of the next name lies before the zone's, plus one, that
// and the types; or 0 and all of it where it ends in another spelling.
func appendNSEC(dst []byte, n *wire.NSEC, zone wire.Name) []byte {
	if before := len(n.Next) - len(zone); before >= 0 && n.Next[before:] == zone {
		return appendField(dst, []byte{byte(before + 1)}, []byte(n.Next[:before]), n.Types)
	}
	return appendField(dst, []byte{0}, []byte(n.Next), n.Types)
}

// readNSEC returns the RDATA and where in it the types begin.
func readNSEC(field []byte, zone wire.Name) (n wire.NSEC, rdata []byte) {
	before := int(field[0]) - 1
	if before < 0 {
		rdata = append(rdata, field[1:]...)
	} else {
		rdata = make([]byte, 0, len(field)+len(zone))
		rdata = append(append(append(rdata, field[1:1+before]...), zone...), field[1+before:]...)
	}
	n, _ = wire.ParseNSEC(rdata)
	return n, rdata
}

// nsec is a stored NSEC or NSEC3 as it is looked at: the keys of both ends of its span. It borrows
// the ring.
type span struct {
	at         ref
	owner      []byte
	next       []byte // "" for the apex: the span is the last
	types      wire.Bitmap
	rdata      []byte // of an NSEC; made anew
	signatures []byte
}

// expires is that of the record, and readable says that it has not.
func (s *Store) readable(at ref, now uint32) bool { return at != 0 && s.ring.expires(at) > now }

func (s *Store) nsecSpan(z *zone, at ref) span {
	x := span{at: at, owner: s.ring.key(at)}
	var field []byte
	field, x.signatures = cutField(s.ring.payload(at))
	n, rdata := readNSEC(field, z.name)
	x.next = appendKey(make([]byte, 0, len(n.Next)), n.Next, z.name)
	x.types, x.rdata = n.Types, rdata
	return x
}

func (s *Store) nsec3Span(at ref) span {
	x := span{at: at, owner: s.ring.key(at)}
	var field []byte
	field, x.signatures = cutField(s.ring.payload(at))
	x.next, x.types = field[:hashLength], wire.Bitmap(field[hashLength:])
	return x
}

// rrset makes a record's RRset anew, with what is left of its TTL.
func (s *Store) rrset(z *zone, at ref, now uint32) wire.RRset {
	s.ring.touch(at)
	out := wire.RRset{Class: wire.ClassIN, Status: wire.Secure, TTL: s.ring.expires(at) - now}
	key, payload := s.ring.key(at), s.ring.payload(at)
	var field []byte
	switch s.ring.kind(at) {
	case soaKind:
		out.Owner, out.Type = z.name, wire.TypeSOA
		field, payload = cutField(payload)
		out.RDATA = [][]byte{append([]byte(nil), field...)}
	case nsecKind:
		out.Owner, out.Type = nameOf(key, z.name), wire.TypeNSEC
		field, payload = cutField(payload)
		_, rdata := readNSEC(field, z.name)
		out.RDATA = [][]byte{rdata}
	case nsec3Kind:
		out.Owner, out.Type = hashOwner(key, z.name), wire.TypeNSEC3
		field, payload = cutField(payload)
		out.RDATA = [][]byte{z.nsec3RDATA(field)}
	case wildcardKind:
		end := len(key) - 2
		out.Owner, out.Type = nameOf(key[:end], z.name), wire.Type(binary.BigEndian.Uint16(key[end:]))
		count := int(payload[0])
		payload = payload[1:]
		for range count {
			field, payload = cutField(payload)
			out.RDATA = append(out.RDATA, append([]byte(nil), field...))
		}
	}
	out.Sigs = readSigs(payload, z.name)
	return out
}

// nsec3RDATA puts together the RDATA of an NSEC3 of the zone's parameters, without flags.
func (z *zone) nsec3RDATA(field []byte) []byte {
	rdata := []byte{wire.NSEC3HashSHA1, 0, byte(z.iterations >> 8), byte(z.iterations), byte(len(z.salt))}
	rdata = append(append(rdata, z.salt...), hashLength)
	return append(rdata, field...)
}

var hexEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// hashOwner is the owner of the NSEC3 with this hash (RFC 5155 §3).
func hashOwner(hash []byte, zone wire.Name) wire.Name {
	n, _ := zone.Prepend(hexEncoding.EncodeToString(hash))
	return n
}

// Package bench compares what each idea of the cache's layout is worth, and measures hit path, miss
// path and memory.
//
// All layouts are fed the same responses, made from an index and a seed and never kept, and write
// the same bytes. BENCHMARKS.md holds the last run; `go run ./bench/report` makes it anew.
package bench

import (
	"encoding/binary"

	"bonsai/wire"
)

// Mix makes responses of a kind. The i-th is the same in every process with the same seed.
type Mix struct {
	Seed   uint64
	Signed bool // negative and DNSSEC-signed responses among them
}

// rng is splitmix64: small, fast, and good enough to draw names and sizes from.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below returns a number in [0, n).
func (r *rng) below(n int) int { return int(r.next() >> 33 % uint64(n)) }

// between returns a number in [from, to].
func (r *rng) between(from, to int) int { return from + r.below(to-from+1) }

func (m *Mix) rng(i int, use uint64) rng {
	r := rng(m.Seed ^ uint64(i)*0xD1B54A32D192ED03 ^ use<<56)
	r.next()
	return r
}

// The type mix that the idea was measured with: 56 % A, 25 % AAAA, 19 % TXT.
const (
	percentA    = 56
	percentAAAA = 25
)

// Shares of the rest, in percent of the responses.
const (
	percentAliased  = 8 // A and AAAA behind one or two aliases
	percentFull     = 6 // with the zone's NS set and its glue
	percentNegative = 20
	percentNXDomain = 12 // of the negative ones, the rest is NODATA; of 20
	percentSigned   = 40
)

// Question returns the i-th QNAME, appended to dst in wire format and canonical case, and its type.
func (m *Mix) Question(dst []byte, i int) (qname []byte, t wire.Type) {
	r := m.rng(i, 1)
	switch p := r.below(100); {
	case p < percentA:
		t = wire.TypeA
	case p < percentA+percentAAAA:
		t = wire.TypeAAAA
	default:
		t = wire.TypeTXT
	}
	if r.below(4) > 0 {
		dst = appendLabel(dst, &r, 3, 14)
	}
	// The index itself is a label, so that no two names are the same.
	dst = appendIndex(dst, i)
	return appendZone(dst, &r), t
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

func appendLabel(dst []byte, r *rng, from, to int) []byte {
	n := r.between(from, to)
	dst = append(dst, byte(n))
	for range n {
		dst = append(dst, letters[r.below(26)])
	}
	return dst
}

// appendIndex writes i in base 36, four digits at least.
func appendIndex(dst []byte, i int) []byte {
	var digits [13]byte
	n := len(digits)
	for i > 0 || len(digits)-n < 4 {
		n--
		digits[n] = letters[(i+26)%36]
		i /= 36
	}
	return append(append(dst, byte(len(digits)-n)), digits[n:]...)
}

var tops = []string{"\x03com\x00", "\x03com\x00", "\x03net\x00", "\x03org\x00", "\x02de\x00", "\x02cz\x00", "\x02co\x02uk\x00", "\x04info\x00"}

// zones is the number of zones that the names lie in.
const zones = 50_000

func appendZone(dst []byte, r *rng) []byte {
	z := rng(r.below(zones))
	z.next()
	dst = appendLabel(dst, &z, 5, 15)
	return append(dst, tops[z.below(len(tops))]...)
}

// zoneOf returns the zone that a name of the mix lies in, as a part of the name.
func zoneOf(qname []byte) []byte {
	n := wire.BorrowName(qname)
	keep := 2
	if n.Suffix(1) == "\x02uk\x00" {
		keep = 3
	}
	return qname[len(qname)-len(n.Suffix(keep)):]
}

// message appends records to a response as an authoritative server sends it. What records are made
// of is appended to parts, so that to make a response allocates nothing.
type message struct {
	b      []byte
	counts [3]uint16
	used   int // of parts
	parts  [partsSize]byte
}

// partsSize is room for all parts of one response.
const partsSize = 2048

// part returns an empty slice to append a part to; keep must follow.
func (m *message) part() []byte { return m.parts[m.used:m.used] }

// keep keeps what was appended to a part.
func (m *message) keep(part []byte) []byte {
	m.used += len(part)
	return part
}

// under returns a name of one label, drawn anew, in a zone.
func (m *message) under(zone []byte, r *rng, from, to int) []byte {
	return m.keep(append(appendLabel(m.part(), r, from, to), zone...))
}

func (m *message) record(s wire.Section, owner []byte, t wire.Type, ttl uint32, rdata []byte) {
	m.b = append(wire.AppendRecordHeader(m.b, owner, t, ttl, len(rdata)), rdata...)
	m.counts[s]++
}

// Response appends the i-th response to dst, uncompressed, as it comes from the network.
func (m *Mix) Response(dst []byte, i int) []byte {
	var buf [wire.MaxNameLen]byte
	qname, t := m.Question(buf[:0], i)
	r := m.rng(i, 2)
	start := len(dst)
	dst = append(dst, byte(i>>8), byte(i), 0x84, 0x00, 0, 1, 0, 0, 0, 0, 0, 0)
	dst = append(dst, qname...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(t))
	dst = append(dst, 0, 1)
	out := message{b: dst}
	if m.Signed && r.below(100) < percentNegative {
		out.negative(qname, &r)
	} else {
		out.positive(qname, t, &r, m.Signed && r.below(100) < percentSigned)
	}
	for s, n := range out.counts {
		binary.BigEndian.PutUint16(out.b[start+6+2*s:], n)
	}
	return out.b
}

var ttls = []uint32{30, 60, 60, 300, 300, 300, 600, 900, 1800, 3600, 3600, 3600, 14400, 21600, 43200, 86400, 86400}

func (m *message) positive(qname []byte, t wire.Type, r *rng, signed bool) {
	ttl := ttls[r.below(len(ttls))]
	zone := zoneOf(qname)
	owner := qname
	if t != wire.TypeTXT && r.below(100) < percentAliased {
		for range r.between(1, 2) {
			target := m.under(zone, r, 4, 12)
			m.record(wire.Answer, owner, wire.TypeCNAME, ttl, target)
			owner = target
		}
	}
	for range recordsOf(t, r) {
		m.record(wire.Answer, owner, t, ttl, m.rdata(t, r))
	}
	if signed {
		m.signature(wire.Answer, owner, t, ttl, zone, r)
	}
	if r.below(100) < percentFull {
		ns1 := m.keep(append(append(m.part(), "\x03ns1"...), zone...))
		ns2 := m.keep(append(append(m.part(), "\x03ns2"...), zone...))
		m.record(wire.Authority, zone, wire.TypeNS, 86400, ns1)
		m.record(wire.Authority, zone, wire.TypeNS, 86400, ns2)
		m.record(wire.Additional, ns1, wire.TypeA, 86400, m.rdata(wire.TypeA, r))
		m.record(wire.Additional, ns2, wire.TypeA, 86400, m.rdata(wire.TypeA, r))
	}
}

func recordsOf(t wire.Type, r *rng) int {
	if t == wire.TypeTXT {
		return 1
	}
	return r.between(1, 4)
}

// rdata draws an RDATA. TXT has one to three strings, 20 to 240 bytes in all.
func (m *message) rdata(t wire.Type, r *rng) []byte {
	b := m.part()
	switch t {
	case wire.TypeA:
		b = binary.BigEndian.AppendUint32(b, uint32(r.next())&0x1FFFFFFF|0x20000000)
	case wire.TypeAAAA:
		b = binary.BigEndian.AppendUint64(b, 0x2A00<<48|r.next()>>16)
		b = binary.BigEndian.AppendUint64(b, r.next())
	default:
		b = appendStrings(b, r)
	}
	return m.keep(b)
}

func appendStrings(b []byte, r *rng) []byte {
	left := r.between(20, 240)
	for parts := r.between(1, 3); parts > 0; parts-- {
		n := left / parts
		left -= n
		b = append(b, byte(n))
		for range n {
			b = append(b, letters[r.below(36)])
		}
	}
	return b
}

// signature appends an RRSIG of ECDSA P-256's size (RFC 6605 §4).
func (m *message) signature(s wire.Section, owner []byte, t wire.Type, ttl uint32, zone []byte, r *rng) {
	b := binary.BigEndian.AppendUint16(m.part(), uint16(t))
	b = append(b, 13, byte(wire.BorrowName(owner).Labels()))
	b = binary.BigEndian.AppendUint32(b, ttl)
	b = binary.BigEndian.AppendUint32(b, 1_802_000_000)
	b = binary.BigEndian.AppendUint32(b, 1_799_000_000)
	b = binary.BigEndian.AppendUint16(b, uint16(r.next()))
	b = append(b, zone...)
	for range 8 {
		b = binary.BigEndian.AppendUint64(b, r.next())
	}
	m.record(s, owner, wire.TypeRRSIG, ttl, m.keep(b))
}

// negative appends an NXDOMAIN or NODATA with SOA, NSEC and their signatures.
func (m *message) negative(qname []byte, r *rng) {
	zone := zoneOf(qname)
	const ttl = 3600
	if r.below(percentNegative) < percentNXDomain {
		m.b[len(m.b)-len(qname)-4-wire.HeaderSize+3] |= byte(wire.RCODENXDomain)
	}
	soa := append(append(m.part(), "\x03ns1"...), zone...)
	soa = append(append(soa, "\x0ahostmaster"...), zone...)
	for _, n := range [...]uint32{2026110100 + uint32(r.below(100)), 7200, 3600, 1209600, ttl} {
		soa = binary.BigEndian.AppendUint32(soa, n)
	}
	m.record(wire.Authority, zone, wire.TypeSOA, ttl, m.keep(soa))
	m.signature(wire.Authority, zone, wire.TypeSOA, ttl, zone, r)
	owner := m.under(zone, r, 4, 10)
	next := m.keep(append(append(appendLabel(m.part(), r, 4, 10), zone...), 0, 6, 0x40, 0, 0, 0, 0, 3))
	m.record(wire.Authority, owner, wire.TypeNSEC, ttl, next)
	m.signature(wire.Authority, owner, wire.TypeNSEC, ttl, zone, r)
}

// Query appends the query for the i-th name, as a stub resolver sends it.
func (m *Mix) Query(dst []byte, i int) []byte {
	var buf [wire.MaxNameLen]byte
	qname, t := m.Question(buf[:0], i)
	dst = append(dst, byte(i>>8), byte(i), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	dst = append(dst, qname...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(t))
	return append(dst, 0, 1)
}

// Floor returns what no layout that keeps the answer can go below: QNAME, type, expiry and the RDATA
// of all records, in bytes.
func Floor(msg []byte) int {
	var m wire.Message
	if m.Parse(msg) != nil {
		return 0
	}
	n := len(m.QNameBytes()) + 2 + 4
	for i := range m.Records {
		n += len(m.RDATA(&m.Records[i]))
	}
	return n
}

package validate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"bonsai/wire"
)

// finding is what was found of one RRset.
type finding struct {
	status wire.Status
	reason reason
	signer wire.Name // of the signature that held; "" else
	labels int       // of that signature
}

// reason says why something is not secure.
type reason struct {
	ede   wire.EDE // Code is wire.NoEDE for none
	zone  wire.Name
	err   error
	clock Clock
}

var noReason = reason{ede: wire.EDE{Code: wire.NoEDE}}

// maxText bounds the text of an extended error, in octets.
const maxText = 200

// because makes a reason; the text names the zone first.
func because(code wire.EDECode, zone wire.Name, format string, args ...any) reason {
	text := zone.String() + ": " + fmt.Sprintf(format, args...)
	if len(text) > maxText {
		text = text[:maxText]
	}
	return reason{ede: wire.EDE{Code: code, Text: text}, zone: zone}
}

// describe names an RRset for texts.
func describe(set *wire.RRset) string { return set.Owner.String() + " " + set.Type.String() }

// expanded says whether the signature that held is of a wildcard that set was made from.
func (f *finding) expanded(set *wire.RRset) bool {
	n := set.Owner.Labels()
	// RFC 4034 §3.1.3: the label of the asterisk is not counted.
	if set.Owner.IsWildcard() {
		n--
	}
	return f.status == wire.Secure && f.labels < n
}

// admissible says whether s can be a signature of set at all, whoever made it (RFC 4035 §5.3.1).
func admissible(set *wire.RRset, s *wire.RRSIG) bool {
	if s.Covered != set.Type || !set.Owner.IsSubdomainOf(s.Signer) {
		return false
	}
	// The wildcard that a lesser count stands for must lie in the signer's zone, too.
	labels, signer := int(s.Labels), s.Signer.Labels()
	if labels > set.Owner.Labels() || labels < signer {
		return false
	}
	switch set.Type {
	case wire.TypeDS:
		// RFC 4035 §5.2: a DS RRset is the parent's.
		return signer < set.Owner.Labels()
	case wire.TypeDNSKEY, wire.TypeSOA, wire.TypeNSEC3PARAM:
		// They are at the apex, and signed there.
		return signer == set.Owner.Labels()
	case wire.TypeNSEC3:
		// RFC 5155 §3: the owner is the hash as one label before the zone's name.
		return signer+1 == set.Owner.Labels() && labels == set.Owner.Labels()
	}
	return true
}

// validity says where now is: -1 before inception, 1 after expiration, 0 between. RFC 4034 §3.1.5:
// they are compared in serial number arithmetic (RFC 1982).
func validity(s *wire.RRSIG, now uint32) int {
	switch {
	case int32(s.Expiration-s.Inception) < 0 || int32(s.Expiration-now) < 0:
		return 1
	case int32(now-s.Inception) < 0:
		return -1
	}
	return 0
}

// trial collects what came of the signatures of one RRset.
type trial struct {
	set    *wire.RRset
	failed int // verifications that failed

	zone                             wire.Name // the secure zone that should have signed
	expired, early, keyless, unknown int       // signatures that are out of time, without key, of unknown algorithms
	spent                            bool      // the cost of the whole query is at its bound
}

// try verifies one signature with each key it may be of, and says whether one holds.
func (j *judgement) try(t *trial, s *wire.RRSIG, keys []*key) bool {
	var data []byte
	matched := false
	for _, k := range keys {
		if k.tag != s.KeyTag || k.algorithm != s.Algorithm || !k.signs {
			continue
		}
		if t.failed >= j.v.config.MaxFailedRRset || j.spent() {
			t.spent = t.spent || j.spent()
			return false
		}
		if data == nil {
			data = appendSignedData(j.buf[:0], t.set, s)
			j.buf = data[:0]
		}
		matched = true
		if j.v.verify(k, data, s.Signature, j.cost) {
			return true
		}
		t.failed++
	}
	if !matched {
		t.keyless++
	}
	return false
}

// verify checks one signature, remembering those that hold, and counts.
func (v *Validator) verify(k *key, data, signature []byte, cost *Cost) bool {
	id := signatureID(k, data, signature)
	if v.signatures.has(id) {
		return true
	}
	if !k.verify(data, signature) {
		cost.failed.Add(1)
		v.stats.failed.Add(1)
		return false
	}
	cost.verified.Add(1)
	v.stats.verified.Add(1)
	v.signatures.add(id)
	return true
}

// signatureCache remembers signatures that held, by a hash of all that went into them: those of a
// zone's SOA and of the NSEC3 RRset at its apex come with every denial. The validity period
// is no part of it and is checked each time.
type signatureCache struct {
	recent[[sha256.Size]byte, struct{}]
}

func signatureID(k *key, data, signature []byte) (id [sha256.Size]byte) {
	h := sha256.New()
	var lengths [8]byte
	binary.BigEndian.PutUint32(lengths[:], uint32(len(data)))
	binary.BigEndian.PutUint32(lengths[4:], uint32(len(signature)))
	h.Write(lengths[:])
	h.Write(data)
	h.Write(signature)
	h.Write([]byte(k.rdata))
	h.Sum(id[:0])
	return id
}

func (c *signatureCache) has(id [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.lookup(id)
	return ok
}

func (c *signatureCache) add(id [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(id, struct{}{})
}

// inTime says whether a signature is within its validity period, and notes where not.
func (t *trial) inTime(s *wire.RRSIG, now uint32) bool {
	switch validity(s, now) {
	case 1:
		t.expired++
	case -1:
		t.early++
	default:
		return true
	}
	return false
}

// clamp bounds the TTL of an RRset by its signature. RFC 4035 §5.3.3: by the original TTL and what
// is left until expiration.
func clamp(set *wire.RRset, s *wire.RRSIG, now uint32) {
	set.TTL = min(set.TTL, s.OriginalTTL, s.Expiration-now)
}

// bogus says why none of the signatures counts.
func (t *trial) bogus() finding {
	f := finding{status: wire.Bogus}
	what := describe(t.set)
	switch {
	case t.spent:
		return finding{status: wire.Indeterminate, reason: spentReason(t.zone)}
	case t.failed > 0:
		f.reason = because(wire.EDEBogus, t.zone, "no RRSIG of %s verifies", what)
	case t.expired > 0:
		f.reason = because(wire.EDESignatureExpired, t.zone, "the RRSIG of %s has expired", what)
	case t.early > 0:
		f.reason = because(wire.EDESignatureNotYet, t.zone, "the RRSIG of %s is not valid yet", what)
	case t.keyless > 0:
		f.reason = because(wire.EDEDNSKEYMissing, t.zone, "no DNSKEY matches the RRSIG of %s", what)
	case t.unknown > 0:
		f.reason = because(wire.EDEUnsupportedDNSKEY, t.zone, "%s has no RRSIG of a supported algorithm", what)
	default:
		f.reason = because(wire.EDERRSIGsMissing, t.zone, "%s has no usable RRSIG", what)
	}
	return f
}

func spentReason(zone wire.Name) reason {
	if zone == "" {
		zone = wire.Root
	}
	r := because(wire.EDEIndeterminate, zone, "validation needs too much work")
	r.err = ErrCost
	return r
}

// hasLoweredNames says of which types the names in the RDATA are in lower case in canonical form
// (RFC 4034 §6.2, less HINFO, RRSIG and NSEC, see RFC 6840 §5.1; types that came after RFC 3597
// are not).
func hasLoweredNames(t wire.Type) bool {
	switch t {
	case wire.TypeNS, wire.TypeMD, wire.TypeMF, wire.TypeCNAME, wire.TypeSOA, wire.TypeMB, wire.TypeMG,
		wire.TypeMR, wire.TypePTR, wire.TypeMINFO, wire.TypeMX, wire.TypeRP, wire.TypeAFSDB, wire.TypeRT,
		wire.TypeSIG, wire.TypePX, wire.TypeNXT, wire.TypeNAPTR, wire.TypeKX, wire.TypeSRV, wire.TypeDNAME:
		return true
	}
	return false
}

// appendSignedData appends what s signs (RFC 4035 §5.3.2): its own RDATA less the signature, and
// the RRset in canonical form and order.
func appendSignedData(dst []byte, set *wire.RRset, s *wire.RRSIG) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(s.Covered))
	dst = append(dst, s.Algorithm, s.Labels)
	dst = binary.BigEndian.AppendUint32(dst, s.OriginalTTL)
	dst = binary.BigEndian.AppendUint32(dst, s.Expiration)
	dst = binary.BigEndian.AppendUint32(dst, s.Inception)
	dst = binary.BigEndian.AppendUint16(dst, s.KeyTag)
	dst = wire.AppendCanonical(dst, s.Signer)
	for _, rdata := range canonicalRDATA(set) {
		dst = appendSignedOwner(dst, set.Owner, int(s.Labels))
		dst = binary.BigEndian.AppendUint16(dst, uint16(set.Type))
		dst = binary.BigEndian.AppendUint16(dst, uint16(set.Class))
		dst = binary.BigEndian.AppendUint32(dst, s.OriginalTTL)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(rdata)))
		dst = append(dst, rdata...)
	}
	return dst
}

// appendSignedOwner appends the owner, or the wildcard it was made from where the RRSIG counts
// fewer labels than it has.
func appendSignedOwner(dst []byte, owner wire.Name, labels int) []byte {
	if n := owner.Labels(); labels < n {
		dst = append(dst, 1, '*')
		owner = owner.Suffix(labels)
	}
	return wire.AppendCanonical(dst, owner)
}

// canonicalRDATA returns the RDATA in canonical form and order, duplicates once (RFC 4034 §6.3).
func canonicalRDATA(set *wire.RRset) [][]byte {
	lower := hasLoweredNames(set.Type)
	if len(set.RDATA) == 1 && !lower {
		return set.RDATA
	}
	out := make([][]byte, len(set.RDATA))
	for i, rdata := range set.RDATA {
		if out[i] = rdata; lower {
			out[i] = lowerNames(set.Type, rdata)
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return slices.CompactFunc(out, bytes.Equal)
}

// lowerNames returns the RDATA with its names in lower case, itself where they are already.
func lowerNames(t wire.Type, rdata []byte) []byte {
	out := rdata
	wire.NameFields(t, rdata, func(off, end int, _ bool) {
		name := wire.BorrowName(rdata[off:end])
		if lowered := name.Canonical(); lowered != name {
			if &out[0] == &rdata[0] {
				out = slices.Clone(rdata)
			}
			copy(out[off:], lowered)
		}
	})
	return out
}

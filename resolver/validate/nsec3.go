package validate

import (
	"bytes"
	"crypto/sha1"

	"bonsai/wire"
)

// nsec3Hash is a hash of algorithm 1.
type nsec3Hash [sha1.Size]byte

// HashName appends the NSEC3 hash of name (RFC 5155 §5) to dst.
func HashName(dst []byte, name wire.Name, salt []byte, iterations uint16) []byte {
	buf := wire.AppendCanonical(make([]byte, 0, wire.MaxNameLen+len(salt)), name)
	h := sha1.Sum(append(buf, salt...))
	for range iterations {
		buf = append(append(buf[:0], h[:]...), salt...)
		h = sha1.Sum(buf)
	}
	return append(dst, h[:]...)
}

// hashBlocks counts the SHA-1 blocks of one name's hash: 64 octets each, of which nine pad the last.
func hashBlocks(name wire.Name, salt []byte, iterations uint16) int {
	blocks := func(n int) int { return (n + 9 + 63) / 64 }
	return blocks(len(name)+len(salt)) + int(iterations)*blocks(sha1.Size+len(salt))
}

// hashed is a name with its hash, for the rest of a judgement.
type hashed struct {
	name       wire.Name
	salt       []byte
	iterations uint16
	hash       nsec3Hash
}

// hash returns the hash of a name; ok is false where the query's share of hashing is spent.
func (j *judgement) hash(name wire.Name, salt []byte, iterations uint16) (h nsec3Hash, ok bool) {
	for i := range j.hashes {
		k := &j.hashes[i]
		if k.iterations == iterations && k.name.Equal(name) && bytes.Equal(k.salt, salt) {
			return k.hash, true
		}
	}
	blocks := hashBlocks(name, salt, iterations)
	if int(j.cost.blocks.Load())+blocks > j.v.config.MaxBlocks {
		j.hashesSpent = true
		return h, false
	}
	j.cost.blocks.Add(int32(blocks))
	j.v.stats.blocks.Add(uint64(blocks))
	HashName(h[:0], name, salt, iterations)
	j.hashes = append(j.hashes, hashed{name, salt, iterations, h})
	return h, true
}

// ownerHash reads the hash that is an NSEC3's first label, in base32hex without padding (RFC 5155
// §3, RFC 4648 §7).
func ownerHash(owner wire.Name) (h nsec3Hash, ok bool) {
	label := owner.Label()
	if len(label) != 32 {
		return h, false
	}
	var bits, n uint
	out := h[:0]
	for i := 0; i < len(label); i++ {
		c := label[i] | 0x20
		switch {
		case label[i] >= '0' && label[i] <= '9':
			c = label[i] - '0'
		case c >= 'a' && c <= 'v':
			c -= 'a' - 10
		default:
			return h, false
		}
		if bits, n = bits<<5|uint(c), n+5; n >= 8 {
			n -= 8
			out = append(out, byte(bits>>n))
			bits &= 1<<n - 1
		}
	}
	return h, true
}

// nsec3 is an NSEC3 RRset that may serve as evidence.
type nsec3 struct {
	index  int // in the authority section
	owner  nsec3Hash
	next   nsec3Hash
	types  wire.Bitmap
	optOut bool
}

// addNSEC3 takes a secure NSEC3 RRset as evidence of its zone, with others of the same salt and count
// of iterations, unless it is to be ignored.
func (j *judgement) addNSEC3(zone wire.Name, index int, set *wire.RRset) {
	n, ok := wire.ParseNSEC3(set.RDATA[0])
	own, okHash := ownerHash(set.Owner)
	// RFC 5155 §8.1 and §8.2: unknown hash algorithms and flags are ignored.
	if !ok || !okHash || n.Hash != wire.NSEC3HashSHA1 || n.Flags&^wire.NSEC3FlagOptOut != 0 || len(n.Next) != sha1.Size {
		return
	}
	e := j.evidenceOf(evidence{zone: zone, hashed: true, salt: n.Salt, iterations: n.Iterations})
	x := nsec3{index: index, owner: own, types: n.Types, optOut: n.Flags&wire.NSEC3FlagOptOut != 0}
	copy(x.next[:], n.Next)
	e.nsec3s = append(e.nsec3s, x)
}

// covers says whether h lies strictly between the two hashes. What equals either is there, so that
// an exact match is no cover.
func (x *nsec3) covers(h nsec3Hash) bool {
	after := bytes.Compare(x.owner[:], h[:]) < 0
	before := bytes.Compare(h[:], x.next[:]) < 0
	if bytes.Compare(x.owner[:], x.next[:]) < 0 {
		return after && before
	}
	return after || before // the last of the zone, or the only one
}

// matching returns the NSEC3 at name.
func (p *prover) matching(name wire.Name) *nsec3 {
	h, ok := p.j.hash(name, p.e.salt, p.e.iterations)
	for i := range p.e.nsec3s {
		if x := &p.e.nsec3s[i]; ok && x.owner == h {
			return x
		}
	}
	return nil
}

// covering returns an NSEC3 that proves that there is no NSEC3 at name.
func (p *prover) covering(name wire.Name) *nsec3 {
	h, ok := p.j.hash(name, p.e.salt, p.e.iterations)
	for i := range p.e.nsec3s {
		if x := &p.e.nsec3s[i]; ok && x.covers(h) {
			return x
		}
	}
	return nil
}

// byNSEC3 is denied by NSEC3 (RFC 5155 §8.4 to §8.7).
func (p *prover) byNSEC3(name wire.Name, qtype wire.Type) (proof, string) {
	if x := p.matching(name); x != nil {
		return p.atName(name, qtype, x.types, x.index)
	}
	encloser, next, x := p.closestEncloser(name)
	if x == nil {
		return proof{}, "no NSEC3 matches a closest encloser of " + name.String()
	}
	// RFC 5155 §8.3: the match must be the zone's own; RFC 6840 §4.1.
	if isAncestorDelegation(x.types) || x.types.Has(wire.TypeDNAME) {
		return proof{}, "the closest encloser of " + name.String() + " is a delegation or DNAME"
	}
	cover := p.covering(next)
	if cover == nil {
		return proof{}, "no NSEC3 covers " + next.String()
	}
	out := proof{optOut: cover.optOut, used: []int{x.index, cover.index}}
	wildcard, ok := encloser.Prepend("*")
	if !ok {
		out.denial = NXDomain // too long a name cannot exist
		return out, ""
	}
	if w := p.matching(wildcard); w != nil {
		if !deniesType(w.types, qtype, wildcard) {
			return proof{}, "the wildcard " + wildcard.String() + " answers"
		}
		out.denial, out.used = NoData, append(out.used, w.index)
		return out, ""
	}
	if w := p.covering(wildcard); w != nil {
		out.denial, out.used = NXDomain, append(out.used, w.index)
		return out, ""
	}
	if cover.optOut {
		// RFC 5155 §8.6: a DS that is not there by opt-out; names that are there only for the sake
		// of such delegations have no NSEC3 either.
		out.denial = NoData
		return out, ""
	}
	return proof{}, "no NSEC3 denies the wildcard " + wildcard.String()
}

// closestEncloser returns the longest ancestor of name that an NSEC3 matches, and the name one label
// longer (RFC 5155 §8.3), from the bottom up: each step costs a hash.
func (p *prover) closestEncloser(name wire.Name) (encloser, next wire.Name, match *nsec3) {
	for next = name; len(next) > len(p.e.zone); next = encloser {
		encloser = next.Parent()
		if match = p.matching(encloser); match != nil || p.j.hashesSpent {
			return encloser, next, match
		}
	}
	return "", "", nil
}

// wildcardByNSEC3 proves that the next closer name of an expanded wildcard is not there (RFC 5155
// §8.8).
func (p *prover) wildcardByNSEC3(next wire.Name) (proof, string) {
	if x := p.covering(next); x != nil {
		return proof{optOut: x.optOut, used: []int{x.index}}, ""
	}
	return proof{}, "no NSEC3 covers " + next.String()
}

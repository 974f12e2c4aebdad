package lab

import (
	"crypto"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// key is a signing key of a zone.
type key struct {
	record *dns.DNSKEY
	signer crypto.Signer
	tag    uint16
}

// nsec3Spec is how a zone hashes its names (RFC 5155 §3).
type nsec3Spec struct {
	iterations uint16
	salt       string // hexadecimal
	optOut     bool
}

// hashed is one NSEC3 record with its signature.
type hashed struct {
	hash   string // base32hex, upper case as HashName gives it
	record *dns.NSEC3
	sig    dns.RR
}

// window is the validity of signatures, in Unix seconds.
type window struct{ inception, expiration int64 }

const (
	day        = 24 * 60 * 60
	flagZone   = 256
	flagSEP    = 257
	keyTTL     = 3600
	rsaKSKBits = 2048
	rsaZSKBits = 1024 // the least that Go makes: the lab starts sooner
)

func bits(algorithm uint8, flags uint16) int {
	switch {
	case algorithm == dns.RSASHA256 && flags == flagSEP:
		return rsaKSKBits
	case algorithm == dns.RSASHA256:
		return rsaZSKBits
	}
	return 256
}

// newKey makes a key for the zone.
func newKey(zone string, algorithm uint8, flags uint16) (*key, error) {
	record := &dns.DNSKEY{
		Hdr:       dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: keyTTL},
		Flags:     flags,
		Protocol:  3,
		Algorithm: algorithm,
	}
	private, err := record.Generate(bits(algorithm, flags))
	if err != nil {
		return nil, fmt.Errorf("key for %s: %w", zone, err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key for %s: %T cannot sign", zone, private)
	}
	return &key{record: record, signer: signer, tag: record.KeyTag()}, nil
}

// makeKeys gives the zone its keys: one for all (flag SEP), or one for keys and one for data.
func (z *zone) makeKeys(algorithm uint8, split bool) error {
	flags := []uint16{flagSEP}
	if split {
		flags = append(flags, flagZone)
	}
	for _, f := range flags {
		k, err := newKey(z.name, algorithm, f)
		if err != nil {
			return err
		}
		z.keys = append(z.keys, k)
	}
	return nil
}

// publishKeys adds the DNSKEY RRset.
func (z *zone) publishKeys() error {
	for _, k := range z.keys {
		if err := z.add(k.record); err != nil {
			return err
		}
	}
	return nil
}

// ds returns the DS record for the zone's parent (RFC 4509: SHA-256).
func (z *zone) ds() *dns.DS { return z.keys[0].record.ToDS(dns.SHA256) }

// signSet returns the signature of one RRset.
func (z *zone) signSet(set []dns.RR, w window) (dns.RR, error) {
	k := z.keys[len(z.keys)-1]
	if set[0].Header().Rrtype == dns.TypeDNSKEY {
		k = z.keys[0]
	}
	sig := &dns.RRSIG{
		Hdr:        dns.RR_Header{Ttl: set[0].Header().Ttl},
		Algorithm:  k.record.Algorithm,
		KeyTag:     k.tag,
		SignerName: z.name,
		Inception:  uint32(w.inception),
		Expiration: uint32(w.expiration),
	}
	if err := sig.Sign(k.signer, set); err != nil {
		return nil, fmt.Errorf("sign %s: %w", set[0].Header().Name, err)
	}
	return sig, nil
}

// sign makes the denial chain and all signatures. The zone is finished and has its DNSKEY and DS.
func (z *zone) sign(w window) error {
	if z.nsec3 == nil && !z.synth {
		z.chainNSEC()
	}
	for _, name := range z.order {
		for _, t := range z.authoritative(name) {
			n := z.nodes[name]
			sig, err := z.signSet(n.sets[t], w)
			if err != nil {
				return err
			}
			n.sigs[t] = []dns.RR{sig}
		}
	}
	if z.nsec3 == nil {
		return nil
	}
	return z.chainNSEC3(w)
}

func (z *zone) negativeTTL() uint32 {
	soa := z.apex().sets[dns.TypeSOA][0].(*dns.SOA)
	return min(soa.Minttl, soa.Hdr.Ttl)
}

// chainNSEC adds an NSEC to every owner that has records (RFC 4035 §2.3).
func (z *zone) chainNSEC() {
	var owners []wire.Name
	for _, name := range z.order {
		if len(z.nodes[name].sets) > 0 {
			owners = append(owners, name)
		}
	}
	for i, name := range owners {
		types := append(z.bitmap(name), dns.TypeNSEC, dns.TypeRRSIG)
		slices.Sort(types)
		z.nodes[name].sets[dns.TypeNSEC] = []dns.RR{&dns.NSEC{
			Hdr: dns.RR_Header{Name: name.String(), Rrtype: dns.TypeNSEC, Class: dns.ClassINET,
				Ttl: z.negativeTTL()},
			NextDomain: owners[(i+1)%len(owners)].String(),
			TypeBitMap: types,
		}}
	}
}

// chainNSEC3 makes the NSEC3 records (RFC 5155 §7.1) and signs them.
func (z *zone) chainNSEC3(w window) error {
	for _, name := range z.order {
		if z.nsec3.optOut && z.isInsecure(name) {
			continue
		}
		types := z.bitmap(name)
		// An insecure delegation and an empty non-terminal have nothing that is signed.
		if len(z.authoritative(name)) > 0 {
			types = append(types, dns.TypeRRSIG)
			slices.Sort(types)
		}
		z.hashes = append(z.hashes, &hashed{hash: z.hash(name.String()), record: &dns.NSEC3{
			Hash: dns.SHA1, Iterations: z.nsec3.iterations,
			SaltLength: uint8(len(z.nsec3.salt) / 2), Salt: z.nsec3.salt, HashLength: 20, TypeBitMap: types,
		}})
	}
	slices.SortFunc(z.hashes, func(a, b *hashed) int { return strings.Compare(a.hash, b.hash) })
	for i, h := range z.hashes {
		h.record.Hdr = dns.RR_Header{Name: strings.ToLower(h.hash) + "." + strings.TrimPrefix(z.name, "."),
			Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: z.negativeTTL()}
		h.record.NextDomain = z.hashes[(i+1)%len(z.hashes)].hash
		if z.nsec3.optOut {
			h.record.Flags = 1
		}
		var err error
		if h.sig, err = z.signSet([]dns.RR{h.record}, w); err != nil {
			return err
		}
	}
	return nil
}

// isInsecure says whether an NSEC3 with opt-out may leave the name out: a delegation without DS, or
// an empty non-terminal above nothing but such (RFC 5155 §7.1).
func (z *zone) isInsecure(name wire.Name) bool {
	n := z.nodes[name]
	if z.isCut(name) {
		return len(n.sets[dns.TypeDS]) == 0
	}
	if len(n.sets) > 0 {
		return false
	}
	for _, below := range z.order {
		if below.IsBelow(name) && !z.isInsecure(below) {
			return false
		}
	}
	return true
}

func (z *zone) hash(name string) string {
	return dns.HashName(name, dns.SHA1, z.nsec3.iterations, z.nsec3.salt)
}

// windows of validity around now.
func soundWindow(now int64) window   { return window{now - 60*60, now + 90*day} }
func expiredWindow(now int64) window { return window{now - 60*day, now - 30*day} }
func futureWindow(now int64) window  { return window{now + 30*day, now + 60*day} }

// spoil turns one bit in the middle of the signatures of an RRset.
func (z *zone) spoil(name string, t uint16) error {
	n := z.nodes[wire.MustName(name)]
	if n == nil || len(n.sigs[t]) == 0 {
		return fmt.Errorf("no signature to spoil at %s %s", name, dns.TypeToString[t])
	}
	for _, rr := range n.sigs[t] {
		sig := rr.(*dns.RRSIG)
		c := byte('A')
		if sig.Signature[20] == c {
			c = 'B'
		}
		sig.Signature = sig.Signature[:20] + string(c) + sig.Signature[21:]
	}
	return nil
}

package replay

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Directives that make the records of DNSSEC, so that a scenario shows what it is about and not base64. Keys
// are Ed25519 and follow from the zone's name and the word behind key=, so that a scenario reads the same
// every time:
//
//	$DNSKEY ZONE [flags=257] [protocol=3] [alg=15]
//	$DS ZONE [flags=257] [digest=2] [tag=N] [alg=N] [broken]
//	$SIGN ZONE [flags=257] [type=COVERED] [labels=N] [signer=NAME] [from=DATE] [until=DATE] [ttl=N] [sigttl=N] [tag=N] [alg=N] [broken]
//	$NSEC3 ZONE NAME NEXT [iterations=N] [salt=HEX] [flags=N] TYPE…
//
// $SIGN signs the RRset of the record above it in its section; with fewer labels than the owner has, as the
// wildcard of so many. NAME and NEXT are hashed; -NAME is the hash before that of NAME and NEXT + the one
// behind it, so that "$NSEC3 ZONE -NAME +" covers NAME. alg and tag are written and not used to sign; ttl is the
// original TTL, sigttl that of the RRSIG itself.

// directive is one of these lines, taken apart.
type directive struct {
	words []string // without options
	with  map[string]string
}

// directiveOptions are the names of options, and whether they take a value.
var directiveOptions = map[string]bool{
	"key": true, "flags": true, "protocol": true, "alg": true, "digest": true, "tag": true, "type": true, "labels": true,
	"signer": true, "from": true, "until": true, "ttl": true, "sigttl": true, "iterations": true, "salt": true, "broken": false,
}

// When signatures hold that say nothing else.
const (
	signedFrom  = "19990101000000"
	signedUntil = "20350101000000"
)

func (p *parser) directive(words []string, least int) (*directive, error) {
	d := &directive{with: map[string]string{}}
	for _, w := range words[1:] {
		name, value, valued := strings.Cut(w, "=")
		if takes, known := directiveOptions[name]; known && takes == valued {
			d.with[name] = value
		} else if valued {
			return nil, p.errorf("%s: unknown option %q", words[0], w)
		} else {
			d.words = append(d.words, w)
		}
	}
	if len(d.words) < least {
		return nil, p.errorf("%s takes %d names", words[0], least)
	}
	for i := range least {
		if w := d.words[i]; w != "+" {
			d.words[i] = p.absolute(w)
		}
	}
	return d, nil
}

// number sets field to the value of an option, if it is there.
func (d *directive) number(name string, set func(uint64)) error {
	text, ok := d.with[name]
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return fmt.Errorf("%s=%s is not a number", name, text)
	}
	set(n)
	return nil
}

// signedRecord makes the record of a directive; above are the records before it in the section.
func (p *parser) signedRecord(l string, above []dns.RR) (rr dns.RR, err error) {
	words := strings.Fields(l)
	least := map[string]int{"$NSEC3": 3}[words[0]]
	d, err := p.directive(words, max(1, least))
	if err != nil {
		return nil, err
	}
	switch words[0] {
	case "$DNSKEY":
		rr, err = d.dnskey(p.ttl)
	case "$DS":
		rr, err = d.ds(p.ttl)
	case "$SIGN":
		rr, err = d.sign(above)
	case "$NSEC3":
		rr, err = d.nsec3(p.ttl)
	default:
		err = fmt.Errorf("unknown directive")
	}
	if err != nil {
		return nil, p.errorf("%s: %v", words[0], err)
	}
	p.text[p.at-1] = rr.String()
	return rr, nil
}

// private returns the zone's key by the name that key= gives it.
func (d *directive) private() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(strings.ToLower(d.words[0]) + " " + d.with["key"]))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (d *directive) dnskey(ttl uint32) (*dns.DNSKEY, error) {
	public := d.private().Public().(ed25519.PublicKey)
	k := &dns.DNSKEY{
		Hdr:   dns.RR_Header{Name: d.words[0], Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: ttl},
		Flags: dns.ZONE | dns.SEP, Protocol: 3, Algorithm: dns.ED25519, PublicKey: base64.StdEncoding.EncodeToString(public),
	}
	err := d.number("flags", func(n uint64) { k.Flags = uint16(n) })
	if err == nil {
		err = d.number("protocol", func(n uint64) { k.Protocol = uint8(n) })
	}
	if err == nil {
		err = d.number("alg", func(n uint64) { k.Algorithm = uint8(n) })
	}
	return k, err
}

// named returns the key that another record speaks of: its protocol and algorithm are right there.
func (d *directive) named() (*dns.DNSKEY, error) {
	k := &directive{words: d.words, with: map[string]string{"key": d.with["key"]}}
	if flags, ok := d.with["flags"]; ok {
		k.with["flags"] = flags
	}
	return k.dnskey(0)
}

func (d *directive) ds(ttl uint32) (*dns.DS, error) {
	k, err := d.named()
	if err != nil {
		return nil, err
	}
	k.Hdr.Ttl = ttl
	digest := uint8(dns.SHA256)
	if err := d.number("digest", func(n uint64) { digest = uint8(n) }); err != nil {
		return nil, err
	}
	ds := k.ToDS(digest)
	if ds == nil { // a digest nobody knows
		ds = k.ToDS(dns.SHA256)
		ds.DigestType = digest
	}
	if _, broken := d.with["broken"]; broken {
		ds.Digest = strings.Repeat("0", len(ds.Digest))
	}
	if err := d.number("tag", func(n uint64) { ds.KeyTag = uint16(n) }); err != nil {
		return nil, err
	}
	return ds, d.number("alg", func(n uint64) { ds.Algorithm = uint8(n) })
}

func (d *directive) sign(above []dns.RR) (*dns.RRSIG, error) {
	set := lastSet(above)
	if len(set) == 0 {
		return nil, fmt.Errorf("no record above it")
	}
	k, err := d.named()
	if err != nil {
		return nil, err
	}
	owner := set[0].Header().Name
	s := &dns.RRSIG{Hdr: dns.RR_Header{Ttl: set[0].Header().Ttl}, Algorithm: k.Algorithm, KeyTag: k.KeyTag(), SignerName: d.words[0]}
	if signer, ok := d.with["signer"]; ok {
		s.SignerName = dns.Fqdn(signer)
	}
	if err := d.number("tag", func(n uint64) { s.KeyTag = uint16(n) }); err != nil {
		return nil, err
	}
	if err := d.period(s); err != nil {
		return nil, err
	}
	err = d.number("labels", func(n uint64) {
		labels := dns.SplitDomainName(owner)
		wildcard := dns.Fqdn("*." + strings.Join(labels[len(labels)-min(int(n), len(labels)):], "."))
		for i := range set {
			set[i].Header().Name = wildcard
		}
	})
	if err == nil {
		err = d.number("ttl", func(n uint64) {
			for i := range set {
				set[i].Header().Ttl = uint32(n)
			}
		})
	}
	if err != nil {
		return nil, err
	}
	if err := s.Sign(d.private(), set); err != nil {
		return nil, err
	}
	s.Hdr.Name = owner
	return s, d.spoil(s)
}

// lastSet is a copy of the RRset that the last record but for RRSIGs is of.
func lastSet(above []dns.RR) (set []dns.RR) {
	for i := len(above) - 1; i >= 0; i-- {
		h := above[i].Header()
		if h.Rrtype == dns.TypeRRSIG {
			continue
		}
		if len(set) > 0 && (h.Rrtype != set[0].Header().Rrtype || !strings.EqualFold(h.Name, set[0].Header().Name)) {
			continue
		}
		set = append(set, dns.Copy(above[i]))
	}
	return set
}

// period sets when the signature holds.
func (d *directive) period(s *dns.RRSIG) (err error) {
	at := func(option, otherwise string) uint32 {
		text, ok := d.with[option]
		if !ok {
			text = otherwise
		}
		t, wrong := dns.StringToTime(text)
		if wrong != nil {
			err = fmt.Errorf("%s=%s is not a date of 14 digits", option, text)
		}
		return t
	}
	s.Inception, s.Expiration = at("from", signedFrom), at("until", signedUntil)
	return err
}

// spoil changes a signature after it was made.
func (d *directive) spoil(s *dns.RRSIG) error {
	if covered, ok := d.with["type"]; ok {
		if s.TypeCovered, ok = number(dns.StringToType, covered, "TYPE"); !ok {
			return fmt.Errorf("unknown type %q", covered)
		}
	}
	if _, broken := d.with["broken"]; broken {
		s.Signature = "AAAA" + s.Signature[4:]
	}
	if err := d.number("sigttl", func(n uint64) { s.Hdr.Ttl = uint32(n) }); err != nil {
		return err
	}
	return d.number("alg", func(n uint64) { s.Algorithm = uint8(n) })
}

func (d *directive) nsec3(ttl uint32) (*dns.NSEC3, error) {
	zone := d.words[0]
	n := &dns.NSEC3{
		Hdr:  dns.RR_Header{Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: ttl},
		Hash: dns.SHA1, HashLength: 20, Salt: d.with["salt"], SaltLength: uint8(len(d.with["salt"]) / 2),
	}
	err := d.number("iterations", func(v uint64) { n.Iterations = uint16(v) })
	if err == nil {
		err = d.number("flags", func(v uint64) { n.Flags = uint8(v) })
	}
	for _, w := range d.words[3:] {
		t, ok := number(dns.StringToType, w, "TYPE")
		if !ok {
			return nil, fmt.Errorf("unknown type %q", w)
		}
		n.TypeBitMap = append(n.TypeBitMap, t)
	}
	n.TypeBitMap = bitmap(n.TypeBitMap)
	name, before := strings.CutPrefix(d.words[1], "-")
	next := d.words[2]
	if next == "+" {
		next = name
	}
	first, last := hashOf(n, name), hashOf(n, next)
	if before {
		first = step(first, -1)
	}
	if d.words[2] == "+" {
		last = step(last, 1)
	}
	n.Hdr.Name = strings.ToLower(hashText.EncodeToString(first[:])) + "." + strings.TrimPrefix(zone, ".")
	n.NextDomain = hashText.EncodeToString(last[:])
	return n, err
}

// hashText is how hashes are written (RFC 5155 §3.3).
var hashText = base32.HexEncoding.WithPadding(base32.NoPadding)

func hashOf(n *dns.NSEC3, name string) (h [20]byte) {
	b, _ := hashText.DecodeString(dns.HashName(name, n.Hash, n.Iterations, n.Salt))
	copy(h[:], b)
	return h
}

// step goes to the hash before or behind.
func step(h [20]byte, by int) [20]byte {
	for i := len(h) - 1; i >= 0; i-- {
		h[i] += byte(by)
		if by > 0 && h[i] != 0 || by < 0 && h[i] != 0xFF {
			break
		}
	}
	return h
}

// anchor makes the trust anchor of "anchor: ZONE [key=WORD]" in a header.
func (p *parser) anchor(value string) (string, error) {
	d, err := p.directive(append([]string{"anchor"}, strings.Fields(value)...), 1)
	if err != nil {
		return "", err
	}
	ds, err := d.ds(defaultTTL)
	if err != nil {
		return "", p.errorf("anchor: %v", err)
	}
	return strings.ReplaceAll(ds.String(), "\t", " "), nil
}

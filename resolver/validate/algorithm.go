package validate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"math/big"

	"github.com/cloudflare/circl/sign/ed448"

	"bonsai/wire"
)

// Algorithm numbers of signatures (RFC 9904 §2, table 2).
const (
	algRSASHA1      = 5
	algRSASHA1NSEC3 = 7
	algRSASHA256    = 8
	algRSASHA512    = 10
	algECDSAP256    = 13
	algECDSAP384    = 14
	algEd25519      = 15
	algEd448        = 16
)

// Digest types of DS records (RFC 9904 §2, table 3).
const (
	digestSHA1   = 1
	digestSHA256 = 2
	digestSHA384 = 4
)

// verifier is a public key in the form that verifying needs.
type verifier interface {
	verify(data, signature []byte) bool
}

// supported says whether signatures of this algorithm count.
func (c *Config) supported(algorithm uint8) bool {
	switch algorithm {
	case algRSASHA256, algRSASHA512, algECDSAP256, algECDSAP384, algEd25519, algEd448:
		return true
	case algRSASHA1, algRSASHA1NSEC3:
		// RFC 9905 §2: operators are to treat them as insecure.
		return c.SHA1
	}
	return false
}

// supportedDigest says whether DS records of this digest type count.
func (c *Config) supportedDigest(digest uint8) bool {
	return digest == digestSHA256 || digest == digestSHA384 || digest == digestSHA1 && c.SHA1
}

// parsePublic reads the Public Key field of a DNSKEY; nil where it is malformed or unusable.
func parsePublic(algorithm uint8, field []byte) verifier {
	switch algorithm {
	case algRSASHA1, algRSASHA1NSEC3:
		return parseRSA(field, crypto.SHA1)
	case algRSASHA256:
		return parseRSA(field, crypto.SHA256)
	case algRSASHA512:
		return parseRSA(field, crypto.SHA512)
	case algECDSAP256:
		return parseECDSA(field, elliptic.P256(), crypto.SHA256)
	case algECDSAP384:
		return parseECDSA(field, elliptic.P384(), crypto.SHA384)
	case algEd25519:
		if len(field) == ed25519.PublicKeySize {
			return ed25519Key(field)
		}
	case algEd448:
		if len(field) == ed448.PublicKeySize {
			return ed448Key(field)
		}
	}
	return nil
}

// digest hashes data with one of the hashes above.
func digest(h crypto.Hash, data []byte, out *[sha512.Size]byte) []byte {
	switch h {
	case crypto.SHA1:
		sum := sha1.Sum(data)
		return out[:copy(out[:], sum[:])]
	case crypto.SHA256:
		sum := sha256.Sum256(data)
		return out[:copy(out[:], sum[:])]
	case crypto.SHA384:
		sum := sha512.Sum384(data)
		return out[:copy(out[:], sum[:])]
	}
	*out = sha512.Sum512(data)
	return out[:]
}

// Bounds of RSA keys. RFC 5702 §2 has moduli of 512 to 4096 bits; an exponent above 64 bits serves
// nobody and costs.
const (
	minModulusBits = 512
	maxModulusBits = 4096
	maxExponentLen = 8
	maxIntExponent = 1<<31 - 1 // of crypto/rsa
)

type rsaKey struct {
	public rsa.PublicKey
	hash   crypto.Hash
}

// bigRSAKey has an exponent that crypto/rsa does not take, such as 2^32+1.
type bigRSAKey struct {
	modulus, exponent *big.Int
	hash              crypto.Hash
}

// parseRSA reads exponent length, exponent and modulus (RFC 3110 §2).
func parseRSA(field []byte, hash crypto.Hash) verifier {
	if len(field) < 3 {
		return nil
	}
	n, rest := int(field[0]), field[1:]
	if n == 0 {
		n, rest = int(binary.BigEndian.Uint16(field[1:])), field[3:]
	}
	if n == 0 || n > maxExponentLen || len(rest) <= n || len(rest)-n > maxModulusBits/8 {
		return nil
	}
	// RFC 3110 §2: leading zero octets are prohibited in the exponent and modulus.
	if rest[0] == 0 || rest[n] == 0 {
		return nil
	}
	var wide [maxExponentLen]byte
	copy(wide[maxExponentLen-n:], rest[:n])
	e, modulus := binary.BigEndian.Uint64(wide[:]), new(big.Int).SetBytes(rest[n:])
	// RFC 8017 §3.1: an exponent is odd and at least 3; with 1 anybody could sign.
	if e < 3 || e%2 == 0 || modulus.BitLen() < minModulusBits || modulus.Bit(0) == 0 {
		return nil
	}
	if e > maxIntExponent {
		return &bigRSAKey{modulus, new(big.Int).SetUint64(e), hash}
	}
	return &rsaKey{rsa.PublicKey{N: modulus, E: int(e)}, hash}
}

func (k *rsaKey) verify(data, signature []byte) bool {
	var sum [sha512.Size]byte
	return rsa.VerifyPKCS1v15(&k.public, k.hash, digest(k.hash, data, &sum), signature) == nil
}

// digestInfo is the DER that precedes the digest in a signature (RFC 8017 §9.2, note 1).
var digestInfo = map[crypto.Hash]string{
	crypto.SHA1:   "\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14",
	crypto.SHA256: "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20",
	crypto.SHA512: "\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40",
}

// verify is RSASSA-PKCS1-v1_5 (RFC 8017 §8.2.2): the whole encoded message is made and compared.
func (k *bigRSAKey) verify(data, signature []byte) bool {
	var sum [sha512.Size]byte
	tail := digestInfo[k.hash] + string(digest(k.hash, data, &sum))
	size := (k.modulus.BitLen() + 7) / 8
	s := new(big.Int).SetBytes(signature)
	if len(signature) != size || size < len(tail)+11 || s.Cmp(k.modulus) >= 0 {
		return false
	}
	want := bytes.Repeat([]byte{0xFF}, size)
	want[0], want[1], want[size-len(tail)-1] = 0, 1, 0
	copy(want[size-len(tail):], tail)
	got := s.Exp(s, k.exponent, k.modulus).FillBytes(make([]byte, size))
	return bytes.Equal(got, want)
}

type ecdsaKey struct {
	public *ecdsa.PublicKey
	hash   crypto.Hash
	size   int // of a coordinate, in octets
}

// parseECDSA reads the two coordinates (RFC 6605 §4) and checks that they are on the curve.
func parseECDSA(field []byte, curve elliptic.Curve, hash crypto.Hash) verifier {
	size := curve.Params().BitSize / 8
	if len(field) != 2*size {
		return nil
	}
	const uncompressed = 4 // SEC 1 §2.3.3
	point := append(make([]byte, 0, 1+2*size), uncompressed)
	public, err := ecdsa.ParseUncompressedPublicKey(curve, append(point, field...))
	if err != nil {
		return nil
	}
	return &ecdsaKey{public, hash, size}
}

func (k *ecdsaKey) verify(data, signature []byte) bool {
	if len(signature) != 2*k.size {
		return false
	}
	var sum [sha512.Size]byte
	r := new(big.Int).SetBytes(signature[:k.size])
	s := new(big.Int).SetBytes(signature[k.size:])
	return ecdsa.Verify(k.public, digest(k.hash, data, &sum), r, s)
}

// ed25519Key is a key of RFC 8080 §3.
type ed25519Key []byte

func (k ed25519Key) verify(data, signature []byte) bool {
	return ed25519.Verify(ed25519.PublicKey(k), data, signature)
}

// ed448Key is a key of RFC 8080 §3; its context is empty.
type ed448Key []byte

func (k ed448Key) verify(data, signature []byte) bool {
	return ed448.Verify(ed448.PublicKey(k), data, signature, "")
}

// matchesDS says whether a DS record's digest is that of a key (RFC 4034 §5.1.4).
func matchesDS(ds []byte, owner wire.Name, dnskey []byte) bool {
	if len(ds) < dsFixed {
		return false
	}
	data := append(wire.AppendCanonical(nil, owner), dnskey...)
	var sum [sha512.Size]byte
	switch ds[3] {
	case digestSHA1:
		return bytes.Equal(ds[dsFixed:], digest(crypto.SHA1, data, &sum))
	case digestSHA256:
		return bytes.Equal(ds[dsFixed:], digest(crypto.SHA256, data, &sum))
	case digestSHA384:
		return bytes.Equal(ds[dsFixed:], digest(crypto.SHA384, data, &sum))
	}
	return false
}

// dsFixed is the length of what precedes the digest in a DS: key tag, algorithm, digest type.
const dsFixed = 4

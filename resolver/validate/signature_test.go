//go:debug rsa1024min=0
package validate

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// readZone reads a zone file into RRsets with their signatures.
func readZone(t *testing.T, file string) (sets []wire.RRset) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var m dns.Msg
	zp := dns.NewZoneParser(f, ".", file)
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		m.Ns = append(m.Ns, rr)
	}
	if zp.Err() != nil {
		t.Fatal(zp.Err())
	}
	return parseSets(t, &m)
}

// nobody is a Fetcher that has nothing.
type nobody struct{}

func (nobody) Fetch(context.Context, wire.Name, wire.Type) (*Fetched, error) { return nil, errLost }
func (nobody) Cut(wire.Name) wire.Name                                       { return "" }

// newJudgement is one that judges single RRsets with the keys of one zone.
func newJudgement(t testing.TB, config Config, keys *wire.RRset) *judgement {
	t.Helper()
	config.Anchors = []Anchor{{Zone: keys.Owner, Type: wire.TypeDNSKEY, RDATA: keys.RDATA[0]}}
	if config.Now == nil {
		config.Now = func() int64 { return testNow }
	}
	v, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	j := &judgement{
		v: v, trust: v.trust.Load(), ctx: context.Background(), f: nobody{}, cost: new(Cost),
		r: &wire.Response{QName: keys.Owner, QType: wire.TypeA}, now: uint32(v.config.Now()), rank: 1 << 16,
	}
	j.zones = []state{{name: keys.Owner.Canonical(), standing: zoneSecure, reason: noReason, keys: v.keysIn(keys)}}
	return j
}

// TestForeignSignatures verifies what another signer made, with every algorithm and many types.
func TestForeignSignatures(t *testing.T) {
	files, _ := filepath.Glob("testdata/ldns/*.zone")
	if len(files) != 8 {
		t.Fatal("no test data")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			sets := readZone(t, file)
			i := slices.IndexFunc(sets, func(s wire.RRset) bool { return s.Type == wire.TypeDNSKEY })
			signed := 0
			for k := range sets {
				set := sets[k]
				if len(set.Sigs) == 0 {
					continue
				}
				signed++
				// A judgement each: the key, and no signature remembered.
				j := newJudgement(t, Config{SHA1: true}, &sets[i])
				if f := j.judgeSet(&set); f.status != wire.Secure || f.expanded(&set) {
					t.Errorf("%s: %v, %s", describe(&set), f.status, f.reason.ede.Text)
				}
				flip(&set.Sigs, -1)
				if f := j.judgeSet(&set); f.status != wire.Bogus || j.cost.Failed() != 1 {
					t.Errorf("%s with a wrong signature: %v, %d failed", describe(&set), f.status, j.cost.Failed())
				}
			}
			if signed < 25 {
				t.Errorf("only %d RRsets are signed", signed)
			}
		})
	}
}

// signedSet returns an RRset signed with a key, and the key's RRset. alter changes the key record
// before its tag goes into the signature, late after all is signed.
func signedSet(t testing.TB, k testKey, text string, alter func(*dns.DNSKEY), late func(*dns.RRSIG)) (set, keys wire.RRset) {
	t.Helper()
	z := testZone{origin: k.record.Hdr.Name}
	if alter != nil {
		alter(k.record)
	}
	rrs := readRecords(t, text)
	sig := z.signature(k, rrs)
	if late != nil {
		late(sig)
	}
	sets := parseSets(t, &dns.Msg{Ns: append(rrs, sig, k.record)})
	return sets[0], sets[1]
}

func readRecords(t testing.TB, text string) (rrs []dns.RR) {
	t.Helper()
	zp := dns.NewZoneParser(strings.NewReader(text), "example.", "")
	zp.SetDefaultTTL(3600)
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		rrs = append(rrs, rr)
	}
	if zp.Err() != nil {
		t.Fatal(zp.Err())
	}
	return rrs
}

// TestWrongKeys verifies with keys that must not count.
func TestWrongKeys(t *testing.T) {
	for _, c := range []struct {
		name  string
		alter func(*dns.DNSKEY)
		want  wire.Status
	}{
		{"right", func(*dns.DNSKEY) {}, wire.Secure},
		{"no SEP", func(k *dns.DNSKEY) { k.Flags &^= dns.SEP }, wire.Secure},
		{"no zone key", func(k *dns.DNSKEY) { k.Flags &^= dns.ZONE }, wire.Bogus},
		{"revoked", func(k *dns.DNSKEY) { k.Flags |= dns.REVOKE }, wire.Bogus},
		{"protocol", func(k *dns.DNSKEY) { k.Protocol = 2 }, wire.Bogus},
		{"other key", func(k *dns.DNSKEY) { k.PublicKey = makeKey(t, "example.", 13).record.PublicKey }, wire.Bogus},
		{"off the curve", func(k *dns.DNSKEY) { k.PublicKey = "A" + k.PublicKey[1:62] + "A" + k.PublicKey[63:] }, wire.Bogus},
		{"short", func(k *dns.DNSKEY) { k.PublicKey = k.PublicKey[:40] }, wire.Bogus},
		{"empty", func(k *dns.DNSKEY) { k.PublicKey = "" }, wire.Bogus},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, keys := signedSet(t, makeKey(t, "example.", 13), "www A 192.0.2.1", c.alter, nil)
			if f := newJudgement(t, Config{}, &keys).judgeSet(&set); f.status != c.want {
				t.Errorf("got %v, want %v: %s", f.status, c.want, f.reason.ede.Text)
			}
		})
	}
}

// TestValidity compares validity periods as serial numbers (RFC 1982).
func TestValidity(t *testing.T) {
	for _, c := range []struct {
		name                       string
		inception, expiration, now uint32
		want                       int
	}{
		{"within", 100, 200, 150, 0},
		{"first second", 100, 200, 100, 0},
		{"last second", 100, 200, 200, 0},
		{"before", 100, 200, 99, -1},
		{"after", 100, 200, 201, 1},
		{"across 2106, before the wrap", 1<<32 - 100, 100, 1<<32 - 50, 0},
		{"across 2106, after the wrap", 1<<32 - 100, 100, 50, 0},
		{"after the wrap and late", 1<<32 - 100, 100, 101, 1},
		{"before the wrap and early", 1<<32 - 100, 100, 1<<32 - 101, -1},
		{"backwards", 200, 100, 150, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wire.RRSIG{Inception: c.inception, Expiration: c.expiration}
			if got := validity(&s, c.now); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestOutOfTime gives signatures that are not valid now, with the extended errors that say so.
func TestOutOfTime(t *testing.T) {
	set, keys := signedSet(t, makeKey(t, "example.", 13), "www A 192.0.2.1", nil, nil)
	for _, c := range []struct {
		now  int64
		want wire.EDECode
	}{
		{testNow - 3600, wire.NoEDE}, {testNow - 3601, wire.EDESignatureNotYet},
		{testNow + 86400, wire.NoEDE}, {testNow + 86401, wire.EDESignatureExpired},
	} {
		set.TTL = 3600
		f := newJudgement(t, Config{Now: func() int64 { return c.now }}, &keys).judgeSet(&set)
		if f.reason.ede.Code != c.want || (f.status == wire.Secure) != (c.want == wire.NoEDE) {
			t.Errorf("at %d: %v, EDE %d %s", c.now, f.status, f.reason.ede.Code, f.reason.ede.Text)
		}
		if f.status == wire.Secure && set.TTL != uint32(min(3600, testNow+86400-c.now)) {
			t.Errorf("at %d: TTL %d", c.now, set.TTL)
		}
	}
}

// TestClamp bounds TTLs by the original one (RFC 4035 §5.3.3).
func TestClamp(t *testing.T) {
	for _, c := range []struct{ shown, want uint32 }{{100, 100}, {3600, 3600}, {7200, 3600}} {
		set, keys := signedSet(t, makeKey(t, "example.", 13), "www A 192.0.2.1", nil, nil)
		set.TTL = c.shown
		if f := newJudgement(t, Config{}, &keys).judgeSet(&set); f.status != wire.Secure || set.TTL != c.want {
			t.Errorf("%d: got %v, TTL %d, want %d", c.shown, f.status, set.TTL, c.want)
		}
	}
}

// TestAdmissible tells which signatures can be of an RRset (RFC 4035 §5.3.1).
func TestAdmissible(t *testing.T) {
	for _, c := range []struct {
		owner, signer string
		t             wire.Type
		labels        uint8
		want          bool
	}{
		{"www.example.", "example.", wire.TypeA, 2, true},
		{"WWW.Example.", "eXAMPLE.", wire.TypeA, 2, true},
		{"www.example.", "www.example.", wire.TypeA, 2, true},
		{"www.example.", ".", wire.TypeA, 2, true},
		{"www.example.", "example.", wire.TypeA, 3, false},
		{"www.example.", "example.", wire.TypeA, 1, true},
		{"www.example.", "example.", wire.TypeA, 0, false}, // a wildcard of the root zone
		{"www.example.", "other.", wire.TypeA, 2, false},
		{"www.example.", "a.www.example.", wire.TypeA, 2, false},
		{"www.example.", "ample.", wire.TypeA, 2, false},
		{"*.example.", "example.", wire.TypeA, 1, true},
		{"example.", "example.", wire.TypeDS, 1, false},
		{"example.", ".", wire.TypeDS, 1, true},
		{"example.", "example.", wire.TypeDNSKEY, 1, true},
		{"example.", ".", wire.TypeDNSKEY, 1, false},
		{"example.", ".", wire.TypeSOA, 1, false},
		{"example.", "example.", wire.TypeSOA, 1, true},
		{"example.", ".", wire.TypeNSEC, 1, true},
		{"0p9.example.", "example.", wire.TypeNSEC3, 2, true},
		{"0p9.a.example.", "example.", wire.TypeNSEC3, 3, false},
		{"0p9.example.", "example.", wire.TypeNSEC3, 1, false},
	} {
		set := wire.RRset{Owner: wire.MustName(c.owner), Type: c.t}
		s := wire.RRSIG{Covered: c.t, Labels: c.labels, Signer: wire.MustName(c.signer)}
		if got := admissible(&set, &s); got != c.want {
			t.Errorf("%s %v by %s with %d labels: got %v", c.owner, c.t, c.signer, c.labels, got)
		}
		if s.Covered++; admissible(&set, &s) {
			t.Errorf("%s %v: a signature of another type is admissible", c.owner, c.t)
		}
	}
}

// rsaField makes the Public Key field of an RSA key (RFC 3110 §2).
func rsaField(exponent *big.Int, modulus []byte) []byte {
	e := exponent.Bytes()
	return append(append([]byte{byte(len(e))}, e...), modulus...)
}

// TestRSAKeys tells usable from unusable keys.
func TestRSAKeys(t *testing.T) {
	modulus := func(bits int) []byte {
		b := make([]byte, (bits+7)/8)
		rand.Read(b)
		b[0] = 1 << ((bits - 1) % 8)
		b[len(b)-1] |= 1
		return b
	}
	three := big.NewInt(3)
	even := modulus(2048)
	even[len(even)-1] &^= 1
	for _, c := range []struct {
		name  string
		field []byte
		want  bool
	}{
		{"512 bits", rsaField(three, modulus(512)), true},
		{"504 bits", rsaField(three, modulus(504)), false},
		{"4096 bits", rsaField(three, modulus(4096)), true},
		{"4097 bits", rsaField(three, modulus(4097)), false},
		{"huge", rsaField(three, modulus(60000)), false},
		{"even modulus", rsaField(three, even), false},
		{"exponent 0", rsaField(new(big.Int), modulus(1024)), false},
		{"exponent 1", rsaField(big.NewInt(1), modulus(1024)), false},
		{"exponent 2", rsaField(big.NewInt(2), modulus(1024)), false},
		{"exponent 65537", rsaField(big.NewInt(65537), modulus(1024)), true},
		{"exponent 2^32+1", rsaField(big.NewInt(1<<32+1), modulus(1024)), true},
		{"exponent of 64 bits", rsaField(new(big.Int).SetUint64(1<<63+1), modulus(1024)), true},
		{"exponent of 65 bits", rsaField(new(big.Int).Lsh(three, 63), modulus(1024)), false},
		{"long form", append([]byte{0, 0, 1, 3}, modulus(1024)...), true},
		{"leading zero", append([]byte{2, 0, 3}, modulus(1024)...), false},
		{"leading zero of the modulus", append([]byte{1, 3, 0}, modulus(1024)...), false},
		{"no modulus", []byte{1, 3}, false},
		{"exponent runs over", []byte{200, 3, 3, 3}, false},
		{"nothing", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parsePublic(algRSASHA256, c.field) != nil; got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestBigExponent verifies with an exponent that the standard library does not take, 2^32+1, and
// that such keys do not verify anything else.
func TestBigExponent(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	e := big.NewInt(1<<32 + 1)
	phi := new(big.Int).Mul(new(big.Int).Sub(key.Primes[0], big.NewInt(1)), new(big.Int).Sub(key.Primes[1], big.NewInt(1)))
	d := new(big.Int).ModInverse(e, phi)
	if d == nil {
		t.Skip("this key does not go with the exponent")
	}
	data := []byte("signed data")
	for alg, h := range map[uint8]crypto.Hash{algRSASHA1: crypto.SHA1, algRSASHA256: crypto.SHA256, algRSASHA512: crypto.SHA512} {
		// With an exponent it takes, the library makes the encoded message for us to compare with.
		sum := h.New()
		sum.Write(data)
		plain, err := rsa.SignPKCS1v15(nil, key, h, sum.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		encoded := new(big.Int).Exp(new(big.Int).SetBytes(plain), big.NewInt(int64(key.E)), key.N)
		signature := new(big.Int).Exp(encoded, d, key.N).FillBytes(make([]byte, 128))
		k := parsePublic(alg, rsaField(e, key.N.Bytes()))
		if _, ok := k.(*bigRSAKey); !ok || !k.verify(data, signature) {
			t.Errorf("algorithm %d does not verify", alg)
		}
		if k.verify([]byte("other data"), signature) || k.verify(data, signature[1:]) || k.verify(data, append([]byte{0}, signature...)) {
			t.Errorf("algorithm %d verifies what is wrong", alg)
		}
		signature[5] ^= 1
		if k.verify(data, signature) {
			t.Errorf("algorithm %d verifies a wrong signature", alg)
		}
	}
}

// TestSmallRSA verifies with a key of 512 bits, which RFC 5702 §2.1 allows.
func TestSmallRSA(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 512)
	if err != nil {
		t.Skip("GODEBUG without rsa1024min=0: ", err)
	}
	sum := sha256.Sum256([]byte("data"))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	k := parsePublic(algRSASHA256, rsaField(big.NewInt(int64(key.E)), key.N.Bytes()))
	if k == nil || !k.verify([]byte("data"), signature) || k.verify([]byte("dato"), signature) {
		t.Error("does not verify, or verifies anything")
	}
}

// TestCanonicalForm has names of every case in RDATA of many types, signed by another library.
func TestCanonicalForm(t *testing.T) {
	k := makeKey(t, "example.", 13)
	for _, text := range []string{
		"Www A 192.0.2.9\nWww A 192.0.2.10\nwww A 10.0.0.1",
		"WWW NS A.Example.\nwww NS b.EXAMPLE.",
		"www CNAME Target.Example.", "www PTR Target.Example.", "www DNAME Target.Example.",
		"www MX 10 B.example.\nwww MX 10 a.Example.\nwww MX 5 Z.example.",
		"www SOA Ns.Example. Host.Master.Example. 1 2 3 4 5",
		"www SRV 1 2 3 Target.Example.", "www RP A.Example. B.Example.", "www AFSDB 1 A.Example.",
		"www RT 1 A.Example.", "www KX 1 A.Example.", "www PX 1 A.Example. B.Example.",
		`www NAPTR 1 2 "U" "Service" "!A!B!" Target.Example.`, "www MINFO A.Example. B.Example.",
		"www MB A.Example.", "www MG A.Example.", "www MR A.Example.",
		`www HINFO "Cpu" "Os"`, `www TXT "B" "a"` + "\nwww TXT \"A\"\nwww TXT \"\"",
		"www NSEC Next.Example. A RRSIG NSEC", "www SVCB 1 Target.Example. alpn=h2", "www HTTPS 0 Target.Example.",
		"www LP 10 Target.Example.", "www TALINK A.Example. B.Example.", "www CAA 0 Issue \"Ca.Example\"",
		"www TYPE65280 \\# 3 414263", "www DS 1 8 2 00", "www DNSKEY 256 3 8 AwEAAQ==", "*.www A 192.0.2.1",
	} {
		set, keys := signedSet(t, k, text, nil, nil)
		s, ok := wire.ParseRRSIG(set.Sigs[0])
		if !ok {
			t.Fatal("no signature of ", text)
		}
		slices.Reverse(set.RDATA)
		data := appendSignedData(nil, &set, &s)
		if !newKey(string(keys.RDATA[0])).verify(data, s.Signature) {
			t.Errorf("does not verify: %q", text)
		}
	}
}

// TestMemory verifies a signature that is known to be good, and one that differs a little.
func TestMemory(t *testing.T) {
	k := makeKey(t, "example.", 13)
	set, keys := signedSet(t, k, "www A 192.0.2.1", nil, nil)
	j := newJudgement(t, Config{}, &keys)
	for range 3 {
		if f := j.judgeSet(&set); f.status != wire.Secure {
			t.Fatal(f.reason)
		}
	}
	if j.cost.Verified() != 1 {
		t.Errorf("verified %d times", j.cost.Verified())
	}
	other := set
	other.RDATA = [][]byte{{192, 0, 2, 2}}
	if f := j.judgeSet(&other); f.status != wire.Bogus {
		t.Error("a signature is taken for that of other data")
	}
	flip(&set.Sigs, -1)
	if f := j.judgeSet(&set); f.status != wire.Bogus {
		t.Error("a wrong signature is taken for the good one")
	}
}

// TestRecent keeps what is used and drops what is not.
func TestRecent(t *testing.T) {
	r := recent[int, int]{size: 10}
	for i := range 1000 {
		r.store(i, i)
		if v, ok := r.lookup(0); !ok || v != 0 {
			t.Fatalf("what is used is dropped after %d", i)
		}
		if len(r.young)+len(r.old) > 20 {
			t.Fatalf("holds %d entries", len(r.young)+len(r.old))
		}
	}
	if _, ok := r.lookup(500); ok {
		t.Error("what is not used is kept")
	}
}

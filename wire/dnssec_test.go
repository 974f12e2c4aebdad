package wire

import (
	"testing"

	"github.com/miekg/dns"
)

func packRDATA(t testing.TB, text string) []byte {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, dns.Len(rr)+MaxNameLen)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	_, owner, err := dns.UnpackDomainName(buf, 0)
	if err != nil {
		t.Fatal(err)
	}
	return buf[owner+10 : n]
}

func TestParseRRSIG(t *testing.T) {
	rdata := packRDATA(t, "a.example. 300 IN RRSIG AAAA 13 2 3600 20300102030405 20290102030405 4711 Example. AQIDBA==")
	s, ok := ParseRRSIG(rdata)
	if !ok || s.Covered != TypeAAAA || s.Algorithm != 13 || s.Labels != 2 || s.OriginalTTL != 3600 ||
		s.Expiration != 1893553445 || s.Inception != 1862017445 || s.KeyTag != 4711 ||
		s.Signer != MustName("Example.") || string(s.Signature) != "\x01\x02\x03\x04" {
		t.Errorf("got %+v, %v", s, ok)
	}
	for n := range rrsigFixed + len("\x07example\x00") {
		if _, ok := ParseRRSIG(rdata[:n]); ok {
			t.Errorf("%d octets pass for an RRSIG", n)
		}
	}
}

func TestParseNSEC(t *testing.T) {
	rdata := packRDATA(t, "a.example. 300 IN NSEC b.example. A NS TXT RRSIG NSEC CAA TYPE65280")
	n, ok := ParseNSEC(rdata)
	if !ok || n.Next != MustName("b.example.") {
		t.Fatalf("got %+v, %v", n, ok)
	}
	checkBitmap(t, n.Types, TypeA, TypeNS, TypeTXT, TypeRRSIG, TypeNSEC, TypeCAA, 65280)
}

func TestParseNSEC3(t *testing.T) {
	rdata := packRDATA(t, "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 300 IN NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr NS SOA MX RRSIG DNSKEY NSEC3PARAM")
	n, ok := ParseNSEC3(rdata)
	if !ok || n.Hash != NSEC3HashSHA1 || n.Flags != NSEC3FlagOptOut || n.Iterations != 12 ||
		string(n.Salt) != "\xaa\xbb\xcc\xdd" || len(n.Next) != 20 || n.Next[0] != 0x17 {
		t.Fatalf("got %+v, %v", n, ok)
	}
	checkBitmap(t, n.Types, TypeMX, TypeDNSKEY, TypeNS, TypeSOA, TypeNSEC3PARAM, TypeRRSIG)
	for i := range 5 + 4 + 1 + 20 {
		if _, ok := ParseNSEC3(rdata[:i]); ok {
			t.Errorf("%d octets pass for an NSEC3", i)
		}
	}
	if _, ok := ParseNSEC3(packRDATA(t, "a.example. 300 IN NSEC3 1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr")); !ok {
		t.Error("an NSEC3 without salt and types is refused")
	}
}

func checkBitmap(t *testing.T, b Bitmap, types ...Type) {
	t.Helper()
	set := make(map[Type]bool)
	for _, x := range types {
		set[x] = true
	}
	for x := range 1 << 16 {
		if got := b.Has(Type(x)); got != set[Type(x)] {
			t.Fatalf("%v: got %v", Type(x), got)
		}
	}
	if b.HasOther(types...) {
		t.Error("has other types than it has")
	}
	for i := range types {
		rest := append(append([]Type(nil), types[:i]...), types[i+1:]...)
		if !b.HasOther(rest...) {
			t.Errorf("%v is not seen among other types", types[i])
		}
	}
}

func TestBitmapValid(t *testing.T) {
	for _, c := range []struct {
		name string
		b    Bitmap
		want bool
	}{
		{"empty", nil, true},
		{"one", Bitmap("\x00\x01\x40"), true},
		{"two", Bitmap("\x00\x01\x40\x01\x01\x40"), true},
		{"short head", Bitmap("\x00"), false},
		{"short window", Bitmap("\x00\x02\x40"), false},
		{"no octets", Bitmap("\x00\x00"), false},
		{"33 octets", append(Bitmap("\x00\x21"), make([]byte, 33)...), false},
		{"window twice", Bitmap("\x00\x01\x40\x00\x01\x40"), false},
		{"descending", Bitmap("\x01\x01\x40\x00\x01\x40"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.b.Valid(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			c.b.Has(TypeA)
			c.b.HasOther(TypeA)
		})
	}
}

func FuzzDNSSECRDATA(f *testing.F) {
	f.Add(packRDATA(f, "a.example. 300 IN RRSIG AAAA 13 2 3600 20300102030405 20290102030405 4711 example. AQIDBA=="))
	f.Add(packRDATA(f, "a.example. 300 IN NSEC b.example. A NS TXT RRSIG NSEC CAA"))
	f.Add(packRDATA(f, "a.example. 300 IN NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr MX RRSIG"))
	f.Fuzz(func(t *testing.T, rdata []byte) {
		if s, ok := ParseRRSIG(rdata); ok && (!s.Signer.Valid() || rrsigFixed+len(s.Signer)+len(s.Signature) != len(rdata)) {
			t.Errorf("RRSIG: %+v", s)
		}
		if n, ok := ParseNSEC(rdata); ok && (!n.Next.Valid() || len(n.Next)+len(n.Types) != len(rdata)) {
			t.Errorf("NSEC: %+v", n)
		}
		if n, ok := ParseNSEC3(rdata); ok && 6+len(n.Salt)+len(n.Next)+len(n.Types) != len(rdata) {
			t.Errorf("NSEC3: %+v", n)
		}
		b := Bitmap(rdata)
		for _, x := range []Type{TypeA, TypeCAA, 65535} {
			if b.Has(x) && b.Valid() && !b.HasOther(TypeNULL) {
				t.Errorf("%v is there and nothing is", x)
			}
		}
	})
}

package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// twoZones is a root and one zone below it.
func twoZones(t testing.TB, options string) *world {
	return newWorld(t, "zone .\nexample. NS ns.example.", "zone example. "+options+"\nwww A 192.0.2.1\nsub NS ns.sub\nns.sub A 192.0.2.2")
}

func checkStatus(t *testing.T, f *Fetched, status wire.Status, code wire.EDECode, texts ...string) {
	t.Helper()
	if f.Status != status || f.EDE.Code != code {
		t.Errorf("got %v, EDE %d %q; want %v, EDE %d", f.Status, f.EDE.Code, f.EDE.Text, status, code)
	}
	for _, text := range texts {
		if !strings.Contains(f.EDE.Text, text) {
			t.Errorf("EDE %q does not say %q", f.EDE.Text, text)
		}
	}
}

// TestSHA1 has zones of algorithms 5 and 7 and DS records of digest 1, which count only when told.
func TestSHA1(t *testing.T) {
	for _, c := range []struct {
		options string
		code    wire.EDECode
	}{{"alg=5", wire.EDEUnsupportedDNSKEY}, {"alg=7 nsec3", wire.EDEUnsupportedDNSKEY}, {"digest=1", wire.EDEUnsupportedDS}} {
		w := twoZones(t, c.options)
		checkStatus(t, w.judged("www.example.", "A", Config{}), wire.Insecure, c.code, "example.: no DS has a supported")
		checkStatus(t, w.judged("no.example.", "A", Config{}), wire.Insecure, c.code)
		checkStatus(t, w.judged("www.example.", "A", Config{SHA1: true}), wire.Secure, wire.NoEDE)
		checkStatus(t, w.judged("no.example.", "A", Config{SHA1: true}), wire.Secure, wire.NoEDE)
	}
}

// TestDigests: beside a stronger digest, that of SHA-1 does not count (RFC 4509 §3).
func TestDigests(t *testing.T) {
	change := func(w *world, edit func(good *dns.DS) []dns.RR) {
		root := w.zones["."]
		good := w.zones["example."].keys[0].record
		rrs := edit(good.ToDS(dns.SHA256))
		root.records["example."][dns.TypeDS] = rrs
	}
	broken := func(ds *dns.DS) *dns.DS {
		out := dns.Copy(ds).(*dns.DS)
		out.Digest = "00" + out.Digest[2:]
		return out
	}
	for _, c := range []struct {
		what string
		edit func(w *world) func(good *dns.DS) []dns.RR
		want wire.Status
		code wire.EDECode
	}{
		{"right", func(*world) func(*dns.DS) []dns.RR { return func(ds *dns.DS) []dns.RR { return []dns.RR{ds} } }, wire.Secure, wire.NoEDE},
		{"wrong", func(*world) func(*dns.DS) []dns.RR { return func(ds *dns.DS) []dns.RR { return []dns.RR{broken(ds)} } }, wire.Bogus, wire.EDEDNSKEYMissing},
		{"RFC 6840 §5.11: one of two suffices", func(*world) func(*dns.DS) []dns.RR {
			return func(ds *dns.DS) []dns.RR { return []dns.RR{broken(ds), ds} }
		}, wire.Secure, wire.NoEDE},
		{"right SHA-1 beside wrong SHA-256", func(w *world) func(*dns.DS) []dns.RR {
			return func(ds *dns.DS) []dns.RR {
				return []dns.RR{broken(ds), w.zones["example."].keys[0].record.ToDS(dns.SHA1)}
			}
		}, wire.Bogus, wire.EDEDNSKEYMissing},
		{"unknown digest alone", func(*world) func(*dns.DS) []dns.RR {
			return func(ds *dns.DS) []dns.RR { ds.DigestType = 3; return []dns.RR{ds} }
		}, wire.Insecure, wire.EDEUnsupportedDS},
		{"unknown algorithm alone", func(*world) func(*dns.DS) []dns.RR {
			return func(ds *dns.DS) []dns.RR { ds.Algorithm = 12; return []dns.RR{ds} }
		}, wire.Insecure, wire.EDEUnsupportedDNSKEY},
		{"unknown algorithm beside a right one", func(*world) func(*dns.DS) []dns.RR {
			return func(ds *dns.DS) []dns.RR {
				other := dns.Copy(ds).(*dns.DS)
				other.Algorithm = 12
				return []dns.RR{other, ds}
			}
		}, wire.Secure, wire.NoEDE},
		{"unknown digest beside a wrong one", func(*world) func(*dns.DS) []dns.RR {
			return func(ds *dns.DS) []dns.RR {
				other := dns.Copy(ds).(*dns.DS)
				other.DigestType = 3
				return []dns.RR{other, broken(ds)}
			}
		}, wire.Bogus, wire.EDEDNSKEYMissing},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := twoZones(t, "")
			change(w, c.edit(w))
			checkStatus(t, w.judged("www.example.", "A", Config{SHA1: true}), c.want, c.code)
		})
	}
}

// editSigs changes every signature of a type in a message.
func editSigs(m *dns.Msg, covered uint16, edit func(*dns.RRSIG)) {
	for _, rrs := range [][]dns.RR{m.Answer, m.Ns} {
		for i, rr := range rrs {
			if s, ok := rr.(*dns.RRSIG); ok && s.TypeCovered == covered {
				rrs[i] = dns.Copy(s)
				edit(rrs[i].(*dns.RRSIG))
			}
		}
	}
}

func dropType(rrs []dns.RR, types ...uint16) (kept []dns.RR) {
	for _, rr := range rrs {
		t := rr.Header().Rrtype
		if s, ok := rr.(*dns.RRSIG); ok && slices.Contains(types, s.TypeCovered) {
			continue
		}
		if !slices.Contains(types, t) {
			kept = append(kept, rr)
		}
	}
	return kept
}

// TestExtendedErrors breaks the chain of trust in one place at a time.
func TestExtendedErrors(t *testing.T) {
	for _, c := range []struct {
		what, at, ask string
		change        func(w *world, m *dns.Msg)
		status        wire.Status
		code          wire.EDECode
		text          string
	}{
		{"unsigned answer", "www.example. A", "", func(_ *world, m *dns.Msg) { m.Answer = dropType(m.Answer, dns.TypeRRSIG) },
			wire.Bogus, wire.EDERRSIGsMissing, "example.: www.example. A has no usable RRSIG"},
		{"unsigned DNSKEY", "example. DNSKEY", "", func(_ *world, m *dns.Msg) { m.Answer = dropType(m.Answer, dns.TypeRRSIG) },
			wire.Bogus, wire.EDERRSIGsMissing, "example.: example. DNSKEY has no usable RRSIG"},
		{"no DNSKEY", "example. DNSKEY", "", func(w *world, m *dns.Msg) {
			m.Answer = nil
			other, _ := w.respond("example.", dns.TypeTXT)
			m.Ns = other.Ns
		}, wire.Bogus, wire.EDEDNSKEYMissing, "example.: there is a DS and no DNSKEY"},
		{"DNSKEY without zone key bit", "example. DNSKEY", "", func(_ *world, m *dns.Msg) {
			for i, rr := range m.Answer {
				if k, ok := rr.(*dns.DNSKEY); ok {
					k = dns.Copy(k).(*dns.DNSKEY)
					k.Flags, m.Answer[i] = 1, k
				}
			}
		}, wire.Bogus, wire.EDENoZoneKeyBit, "example.: no DNSKEY is a zone key"},
		{"DNSKEY that the DS does not name", "example. DNSKEY", "", func(_ *world, m *dns.Msg) {
			for i, rr := range m.Answer {
				if _, ok := rr.(*dns.DNSKEY); ok {
					m.Answer[i] = makeKey(t, "example.", 13).record
				}
			}
		}, wire.Bogus, wire.EDEDNSKEYMissing, "example.: no DNSKEY matches"},
		{"expired DNSKEY", "example. DNSKEY", "", func(_ *world, m *dns.Msg) {
			editSigs(m, dns.TypeDNSKEY, func(s *dns.RRSIG) { s.Expiration = testNow - 1 })
		}, wire.Bogus, wire.EDESignatureExpired, "example.: the RRSIG of example. DNSKEY has expired"},
		{"bad DNSKEY signature", "example. DNSKEY", "", func(_ *world, m *dns.Msg) {
			editSigs(m, dns.TypeDNSKEY, func(s *dns.RRSIG) { s.OrigTtl++ })
		}, wire.Bogus, wire.EDEBogus, "example.: no RRSIG of example. DNSKEY verifies"},
		{"early answer", "www.example. A", "", func(_ *world, m *dns.Msg) {
			editSigs(m, dns.TypeA, func(s *dns.RRSIG) { s.Inception = testNow + 1 })
		}, wire.Bogus, wire.EDESignatureNotYet, "www.example. A is not valid yet"},
		{"answer by another key", "www.example. A", "", func(_ *world, m *dns.Msg) {
			editSigs(m, dns.TypeA, func(s *dns.RRSIG) { s.KeyTag++ })
		}, wire.Bogus, wire.EDEDNSKEYMissing, "no DNSKEY matches the RRSIG of www.example. A"},
		{"answer by an unknown algorithm", "www.example. A", "", func(_ *world, m *dns.Msg) {
			editSigs(m, dns.TypeA, func(s *dns.RRSIG) { s.Algorithm = 12 })
		}, wire.Bogus, wire.EDEUnsupportedDNSKEY, "no RRSIG of a supported algorithm"},
		{"NXDOMAIN without proof", "no.example. A", "", func(_ *world, m *dns.Msg) { m.Ns = dropType(m.Ns, dns.TypeNSEC) },
			wire.Bogus, wire.EDENSECMissing, "example.: no.example. A: no NSEC or NSEC3"},
		{"NODATA without proof", "www.example. MX", "", func(_ *world, m *dns.Msg) { m.Ns = dropType(m.Ns, dns.TypeNSEC) },
			wire.Bogus, wire.EDENSECMissing, "www.example. MX"},
		{"NODATA, nothing at all", "www.example. MX", "", func(_ *world, m *dns.Msg) { m.Ns = nil }, wire.Bogus, wire.EDENSECMissing, ""},
		{"unsigned denial", "no.example. A", "", func(_ *world, m *dns.Msg) { m.Ns = dropType(m.Ns, dns.TypeRRSIG) },
			wire.Bogus, wire.EDERRSIGsMissing, ""},
		{"expired denial", "no.example. A", "", func(_ *world, m *dns.Msg) {
			editSigs(m, dns.TypeNSEC, func(s *dns.RRSIG) { s.Expiration = testNow - 1 })
		}, wire.Bogus, wire.EDESignatureExpired, "NSEC has expired"},
		{"bad SOA", "no.example. A", "", func(_ *world, m *dns.Msg) {
			editSigs(m, dns.TypeSOA, func(s *dns.RRSIG) { s.OrigTtl++ })
		}, wire.Bogus, wire.EDEBogus, "example. SOA"},
		{"unsigned DS", "example. DS", "www.example. A", func(_ *world, m *dns.Msg) { m.Answer = dropType(m.Answer, dns.TypeRRSIG) },
			wire.Bogus, wire.EDERRSIGsMissing, "example. DS"},
		{"DS denied without proof", "example. DS", "www.example. A", func(_ *world, m *dns.Msg) { m.Answer = nil }, wire.Bogus, wire.EDENSECMissing, "example. DS"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := twoZones(t, "")
			if c.ask == "" {
				c.ask = c.at
			}
			if strings.HasSuffix(c.at, "DNSKEY") {
				c.ask = "www.example. A"
			}
			w.change[c.at] = func(m *dns.Msg) { c.change(w, m) }
			name, qtype, _ := strings.Cut(c.ask, " ")
			checkStatus(t, w.judged(name, qtype, Config{}), c.status, c.code, c.text)
		})
	}
}

// TestTransient: keys that cannot be had make a response indeterminate, not bogus, and when they
// can be had again it is secure.
func TestTransient(t *testing.T) {
	for _, lost := range []string{"example. DNSKEY", "example. DS", ". DNSKEY"} {
		w := twoZones(t, "")
		w.lost[lost] = true
		c := newClient(w, Config{})
		for _, q := range []string{"www.example.", "no.example."} {
			f := c.get(t, q, "A")
			if f.Status != wire.Indeterminate || !errors.Is(f.Err, errLost) && lost == "example. DNSKEY" {
				t.Errorf("%s without %s: %v, %v", q, lost, f.Status, f.Err)
			}
		}
		c.kept = map[string]*Fetched{}
		delete(w.lost, lost)
		checkStatus(t, c.get(t, "www.example.", "A"), wire.Secure, wire.NoEDE)
	}
}

// TestClock: signatures of the root's keys that are all out of time tell of our own clock.
func TestClock(t *testing.T) {
	w := twoZones(t, "")
	for _, c := range []struct {
		now    int64
		want   Clock
		code   wire.EDECode
		status wire.Status
	}{
		{testNow, ClockRight, wire.NoEDE, wire.Secure},
		{testNow - 86400*365, ClockBehind, wire.EDESignatureNotYet, wire.Bogus},
		{testNow + 86400*365, ClockAhead, wire.EDESignatureExpired, wire.Bogus},
	} {
		client := newClient(w, Config{})
		client.v.config.Now = func() int64 { return c.now }
		for _, name := range []string{"www.example.", "no.example."} {
			f := client.get(t, name, "A")
			checkStatus(t, f, c.status, c.code)
			if f.Clock != c.want {
				t.Errorf("at %d, %s: clock %d, want %d", c.now, name, f.Clock, c.want)
			}
		}
	}
	// One zone below whose signatures have expired says nothing of the clock.
	w.change["example. DNSKEY"] = func(m *dns.Msg) {
		editSigs(m, dns.TypeDNSKEY, func(s *dns.RRSIG) { s.Expiration = testNow - 1 })
	}
	if f := w.judged("www.example.", "A", Config{}); f.Clock != ClockRight || f.Status != wire.Bogus {
		t.Errorf("got %v, clock %d", f.Status, f.Clock)
	}
}

// TestKeyTrap is CVE-2023-50387: a hundred keys of one tag and a hundred signatures by them.
func TestKeyTrap(t *testing.T) {
	w := twoZones(t, "")
	z := w.zones["example."]
	zsk := z.addKey(t, dns.ECDSAP256SHA256)
	for i := range 100 {
		z.add(sameTag(t, zsk.record, i))
	}
	w.change["www.example. A"] = func(m *dns.Msg) {
		rrs := dropType(m.Answer, dns.TypeRRSIG)
		m.Answer = slices.Clone(rrs)
		for i := range 100 {
			s := z.signature(zsk, rrs)
			s.Signature = strings.Repeat("A", 40) + fmt.Sprintf("%04d", i) + s.Signature[44:]
			m.Answer = append(m.Answer, s)
		}
	}
	c := newClient(w, Config{})
	c.get(t, "example.", "DNSKEY")
	start := time.Now()
	f := c.get(t, "www.example.", "A")
	checkStatus(t, f, wire.Bogus, wire.EDEBogus)
	if n := c.cost.Failed(); n != 8 {
		t.Errorf("%d verifications failed", n)
	}
	t.Logf("%d failed, %d held, %v", c.cost.Failed(), c.cost.Verified(), time.Since(start))
	// Many such RRsets in one query share the bound, and the result is none to ask others for.
	for range 4 {
		f = c.get(t, "www.example.", "A")
	}
	if n := c.cost.Failed(); n != 16 || f.Status != wire.Indeterminate || !errors.Is(f.Err, ErrCost) {
		t.Errorf("%d verifications failed, %v, %v", n, f.Status, f.Err)
	}
}

// TestDSTrap has many keys with the tag that a DS names: digests count as tries.
func TestDSTrap(t *testing.T) {
	w := twoZones(t, "")
	z := w.zones["example."]
	keys := []dns.RR{}
	for i := range 100 {
		keys = append(keys, sameTag(t, z.keys[0].record, i))
	}
	z.records["example."][dns.TypeDNSKEY] = append(keys, z.keys[0].record)
	c := newClient(w, Config{})
	if f := c.get(t, "www.example.", "A"); f.Status != wire.Bogus || c.cost.Failed() != 8 {
		t.Errorf("got %v, %d failed", f.Status, c.cost.Failed())
	}
}

// sameTag makes a key record number i with the key tag of another, not a point of the curve.
func sameTag(t *testing.T, k *dns.DNSKEY, i int) *dns.DNSKEY {
	t.Helper()
	out := dns.Copy(k).(*dns.DNSKEY)
	raw := []byte(mustBase64(t, k.PublicKey))
	// The tag is a sum of words: what is added to one is taken from another.
	for w := 0; w < len(raw); w += 2 {
		v := int(raw[w])<<8 | int(raw[w+1])
		if v > 200 && v < 65000 {
			for x := w + 2; x < len(raw); x += 2 {
				if u := int(raw[x])<<8 | int(raw[x+1]); u > 200 && u < 65000 {
					v, u = v+i+1, u-i-1
					raw[w], raw[w+1], raw[x], raw[x+1] = byte(v>>8), byte(v), byte(u>>8), byte(u)
					out.PublicKey = toBase64(raw)
					if out.KeyTag() != k.KeyTag() {
						t.Fatal("tags differ")
					}
					return out
				}
			}
		}
	}
	t.Fatal("no room in the key")
	return nil
}

// TestMalformedKeys: keys that cannot be read count as tries.
func TestMalformedKeys(t *testing.T) {
	rdata := make([]byte, 0, 200)
	keys := wire.RRset{Owner: wire.MustName("example."), Type: wire.TypeDNSKEY}
	set, _ := signedSet(t, makeKey(t, "example.", 13), "www A 192.0.2.1", nil, func(s *dns.RRSIG) {})
	s, _ := wire.ParseRRSIG(set.Sigs[0])
	for i := range 200 { // the tag is a sum: the last octets make it what it must be, but for a carry
		rdata = append(rdata[:0], 1, 0, 3, 13, byte(i), 0, 0, 0)
		for rest := s.KeyTag - keyTag(rdata); keyTag(rdata) != s.KeyTag; rest-- {
			rdata[6], rdata[7] = byte(rest>>8), byte(rest)
		}
		keys.RDATA = append(keys.RDATA, slices.Clone(rdata))
	}
	j := newJudgement(t, Config{}, &keys)
	if f := j.judgeSet(&set); f.status != wire.Bogus || j.cost.Failed() != 8 {
		t.Errorf("got %v, %d failed", f.status, j.cost.Failed())
	}
}

// TestIterations: with more than 50 a denial is insecure, and no hash is computed (RFC 9276 §3.2).
func TestIterations(t *testing.T) {
	for _, n := range []int{50, 51, 2500} {
		w := newWorld(t, "zone .\nexample. NS ns.example.", fmt.Sprintf(`zone example. nsec3 iterations=%d
www A 192.0.2.1
*.w A 192.0.2.1
bare NS ns.bare`, n), "zone bare.example. unsigned\nwww A 192.0.2.2")
		for q, secure := range map[string]wire.Status{
			"no.example. A": wire.Secure, "www.example. MX": wire.Secure, "x.w.example. A": wire.Secure, "bare.example. DS": wire.Secure,
			"www.bare.example. A": wire.Insecure,
		} {
			name, qtype, _ := strings.Cut(q, " ")
			c := newClient(w, Config{})
			f := c.get(t, name, qtype)
			if n <= 50 {
				checkStatus(t, f, secure, wire.NoEDE)
				continue
			}
			checkStatus(t, f, wire.Insecure, wire.EDEUnsupportedNSEC3, "example.: NSEC3 has too many iterations")
			if c.cost.Blocks() != 0 {
				t.Errorf("%s with %d iterations: %d blocks hashed", q, n, c.cost.Blocks())
			}
		}
	}
	// The signature still counts (RFC 5155 §10.3).
	w := newWorld(t, "zone .\nexample. NS ns.example.", "zone example. nsec3 iterations=51\nwww A 192.0.2.1")
	w.change["no.example. A"] = func(m *dns.Msg) {
		editSigs(m, dns.TypeNSEC3, func(s *dns.RRSIG) { s.OrigTtl++ })
	}
	checkStatus(t, w.judged("no.example.", "A", Config{}), wire.Bogus, wire.EDEBogus)
	if _, err := New(Config{MaxIterations: 51}); err == nil {
		t.Error("more than 50 iterations can be configured")
	}
}

// TestTrustPoints starts from anchors below the root, several, none, and negative ones.
func TestTrustPoints(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	dnskey := func(zone string) Anchor {
		a, err := anchorOf(w.zones[zone].keys[0].record)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	name := wire.MustName
	for _, c := range []struct {
		what       string
		config     Config
		ask, qtype string
		want       wire.Status
	}{
		{"root DNSKEY", Config{Anchors: []Anchor{dnskey(".")}}, "www.example.", "A", wire.Secure},
		{"other root", Config{Anchors: BuiltinAnchors()}, "www.example.", "A", wire.Bogus},
		{"other and right root", Config{Anchors: append(BuiltinAnchors(), w.anchor("."))}, "www.example.", "A", wire.Secure},
		{"island", Config{Anchors: []Anchor{w.anchor("example.")}}, "www.example.", "A", wire.Secure},
		{"island, above it", Config{Anchors: []Anchor{w.anchor("example.")}}, "nothing.", "A", wire.Insecure},
		{"island, its DS", Config{Anchors: []Anchor{w.anchor("example.")}}, "example.", "DS", wire.Insecure},
		{"island, below it", Config{Anchors: []Anchor{w.anchor("example.")}}, "www.sub.example.", "A", wire.Secure},
		{"island, insecure delegation", Config{Anchors: []Anchor{w.anchor("example.")}}, "www.bare.example.", "A", wire.Insecure},
		{"island below an insecure delegation", Config{Anchors: []Anchor{w.anchor("."), w.anchor("signed-only.")}}, "www.signed-only.", "A", wire.Secure},
		{"island below, its denial", Config{Anchors: []Anchor{w.anchor("."), w.anchor("signed-only.")}}, "no.signed-only.", "A", wire.Secure},
		{"two anchors, DS of the lower", Config{Anchors: []Anchor{w.anchor("example."), w.anchor("sub.example.")}}, "sub.example.", "DS", wire.Secure},
		{"no anchors", Config{Anchors: []Anchor{}}, "www.example.", "A", wire.Insecure},
		{"no anchors, NXDOMAIN", Config{Anchors: []Anchor{}}, "no.example.", "A", wire.Insecure},
		{"negative anchor", Config{Insecure: []wire.Name{name("Example.")}}, "www.example.", "A", wire.Insecure},
		{"negative anchor, below", Config{Insecure: []wire.Name{name("example.")}}, "www.sub.example.", "A", wire.Insecure},
		{"negative anchor, its DS", Config{Insecure: []wire.Name{name("example.")}}, "example.", "DS", wire.Secure},
		{"negative anchor, beside", Config{Insecure: []wire.Name{name("sub.example.")}}, "www.example.", "A", wire.Secure},
		{"RFC 7646 §2: an anchor below", Config{Anchors: []Anchor{w.anchor("."), w.anchor("sub.example.")}, Insecure: []wire.Name{name("example.")}}, "www.sub.example.", "A", wire.Secure},
	} {
		t.Run(c.what, func(t *testing.T) {
			if f := w.judged(c.ask, c.qtype, c.config); f.Status != c.want {
				t.Errorf("got %v, want %v: %s", f.Status, c.want, f.EDE.Text)
			}
		})
	}
}

// TestUnsupportedAnchor: a zone whose anchors are all of unknown algorithms is insecure.
func TestUnsupportedAnchor(t *testing.T) {
	w := twoZones(t, "")
	a := w.anchor(".")
	a.RDATA = slices.Clone(a.RDATA)
	a.RDATA[2] = 99
	checkStatus(t, w.judged("www.example.", "A", Config{Anchors: []Anchor{a}}), wire.Insecure, wire.EDEUnsupportedDNSKEY)
	b := w.anchor(".")
	b.RDATA = slices.Clone(b.RDATA)
	b.RDATA[3] = 99
	checkStatus(t, w.judged("www.example.", "A", Config{Anchors: []Anchor{b}}), wire.Insecure, wire.EDEUnsupportedDS)
}

// TestHiddenCut has one server for parent and child, which the resolver takes for one zone.
func TestHiddenCut(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	for _, c := range []struct {
		name, qtype, zone string
		want              wire.Status
	}{
		{"www.sub.example.", "A", "example.", wire.Secure},
		{"no.sub.example.", "A", "example.", wire.Secure},
		{"www.bare.example.", "A", "example.", wire.Insecure},
		{"no.bare.example.", "A", "example.", wire.Insecure},
		{"www.bare.example.", "A", ".", wire.Insecure},
		{"www.bare.example.", "A", "", wire.Insecure},
		{"www.sub.example.", "A", "", wire.Secure},
		{"no.plain.", "A", "", wire.Insecure},
	} {
		m, _ := w.respond(c.name, dns.StringToType[c.qtype])
		r, client := parse(t, m), newClient(w, Config{})
		zone := wire.Name("")
		if c.zone != "" {
			zone = wire.MustName(c.zone)
		}
		if v := client.v.Judge(context.Background(), r, zone, client, &client.cost); v.Status != c.want {
			t.Errorf("%s from %q: %v, %s", c.name, c.zone, v.Status, v.EDE.Text)
		}
	}
}

// TestSignedAbove: a signature by the zone above is not that of the zone that holds the RRset.
func TestSignedAbove(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	above := w.zones["example."]
	w.change["www.sub.example. A"] = func(m *dns.Msg) {
		rrs := dropType(m.Answer, dns.TypeRRSIG)
		m.Answer = append(rrs, above.signature(above.keys[0], rrs))
	}
	checkStatus(t, w.judged("www.sub.example.", "A", Config{}), wire.Bogus, wire.EDEBogus, "is signed by a zone above")
	w.change["www.bare.example. A"] = w.change["www.sub.example. A"]
	if f := w.judged("www.bare.example.", "A", Config{}); f.Status != wire.Insecure {
		t.Errorf("got %v", f.Status)
	}
}

// TestForgedCut: a cut that the resolver was made to believe in does not make its data insecure.
func TestForgedCut(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	for _, cut := range []string{"www.example.", "x.example.", "example.", "a.www.example."} {
		r := &wire.Response{QName: wire.MustName("a.b.www.example."), QType: wire.TypeA, Answer: []wire.RRset{{
			Owner: wire.MustName("a.b.www.example."), Type: wire.TypeA, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{{192, 0, 2, 66}},
		}}}
		c := newClient(w, Config{})
		if v := c.v.Judge(context.Background(), r, wire.MustName(cut), c, &c.cost); v.Status != wire.Bogus {
			t.Errorf("from %s: %v", cut, v.Status)
		}
	}
}

// TestAsked counts what is fetched for an answer: what is there already, and nothing below an
// insecure delegation.
func TestAsked(t *testing.T) {
	texts := append(signedTexts(""), "zone deep.plain. unsigned\nwww A 192.0.2.20")
	w := newWorld(t, texts...)
	for _, c := range []struct {
		name, qtype string
		want        []string
	}{
		{"www.example.", "A", []string{"www.example. A", "example. DS", ". DNSKEY", "example. DNSKEY"}},
		{"www.plain.", "A", []string{"www.plain. A", "plain. DS", ". DNSKEY"}},
		{"www.deep.plain.", "A", []string{"www.deep.plain. A", "plain. DS", ". DNSKEY"}},
		{"www.signed-only.", "A", []string{"www.signed-only. A", "signed-only. DS", ". DNSKEY"}},
	} {
		w.asked = nil
		w.judged(c.name, c.qtype, Config{})
		if !slices.Equal(w.asked, c.want) {
			t.Errorf("%s: asked %q, want %q", c.name, w.asked, c.want)
		}
	}
}

// TestVerifications counts them: a chain of eight hops through cold zones stays far below the bound.
func TestVerifications(t *testing.T) {
	texts := []string{"zone ."}
	for i := range 8 {
		texts[0] += fmt.Sprintf("\nz%d. NS ns.z%d.", i, i)
		texts = append(texts, fmt.Sprintf("zone z%d.\nwww CNAME www.z%d.\nlast A 192.0.2.1", i, i+1))
	}
	w := newWorld(t, texts...)
	c := newClient(w, Config{})
	for i := range 8 {
		checkStatus(t, c.get(t, fmt.Sprintf("www.z%d.", i), "A"), wire.Secure, wire.NoEDE)
	}
	if n := c.cost.Verified(); n < 24 || n > 41 {
		t.Errorf("%d verifications", n)
	}
}

// TestProofs says which RRsets prove a wildcard, also after others are taken out.
func TestProofs(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	w.change["a.wild.example. A"] = func(m *dns.Msg) {
		m.Ns = append([]dns.RR{
			&dns.NS{Hdr: dns.RR_Header{Name: "example.", Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: 60}, Ns: "evil."},
		}, m.Ns...)
	}
	f := w.judged("a.wild.example.", "A", Config{})
	if f.Status != wire.Secure || len(f.Proofs) != 1 || len(f.Proofs[0]) != 1 {
		t.Fatalf("%v, proofs %v", f.Status, f.Proofs)
	}
	if s := f.Authority[f.Proofs[0][0]]; s.Type != wire.TypeNSEC {
		t.Errorf("the proof is %s", describe(&s))
	}
	for i := range f.Authority {
		if f.Authority[i].Type == wire.TypeNS {
			t.Error("an unsigned NS RRset stays beside a secure answer")
		}
	}
}

// TestAdditional keeps what is signed or insecure, and asks for nothing.
func TestAdditional(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	for name, want := range map[string]int{"www.example.": 1, "www.bare.example.": 1} {
		w.change[name+" A"] = func(m *dns.Msg) {
			z := w.zones["example."]
			m.Extra = append(m.Extra, z.sign(z.records["ns.example."][dns.TypeA])...)
			m.Extra = append(m.Extra, readRecords(w.tb, "unsigned.example. A 192.0.2.7")...)
			m.Extra = append(m.Extra, readRecords(w.tb, "x.bare.example. A 192.0.2.7")...)
		}
		f := w.judged(name, "A", Config{})
		if len(f.Additional) != want {
			t.Errorf("%s keeps %d: %v", name, len(f.Additional), f.Additional)
		}
	}
}

// TestNXDomainPutRight: an NXDOMAIN of a name that is proven to exist becomes NODATA; a denial of
// the name with NOERROR does not pass.
func TestNXDomainPutRight(t *testing.T) {
	for _, options := range []string{"", "nsec3"} {
		w := newWorld(t, signedTexts(options)...)
		for _, name := range []string{"deep.er.example.", "er.example.", "www.example."} {
			w.change[name+" MX"] = func(m *dns.Msg) { m.Rcode = dns.RcodeNameError }
			f := w.judged(name, "MX", Config{})
			if f.Status != wire.Secure || f.RCODE != wire.RCODENoError || f.Denial != NoData {
				t.Errorf("%s: %v, %v", name, f.Status, f.RCODE)
			}
		}
		w.change["no.example. MX"] = func(m *dns.Msg) { m.Rcode = dns.RcodeSuccess }
		checkStatus(t, w.judged("no.example.", "MX", Config{}), wire.Bogus, wire.EDENSECMissing, "NODATA, and the name is proven not to exist")
	}
}

// TestSmallOptOutZone has one NSEC3 that covers everything but the apex.
func TestSmallOptOutZone(t *testing.T) {
	w := newWorld(t, "zone .\nexample. NS ns.example.", "zone example. optout\nbare NS ns.bare\nent.deep NS ns.bare", "zone bare.example. unsigned\nwww A 192.0.2.1")
	for q, denial := range map[string]Denial{"bare.example. DS": NoData, "deep.example. A": NoData, "no.example. A": NXDomain, "no.example. DS": NXDomain} {
		name, qtype, _ := strings.Cut(q, " ")
		f := w.judged(name, qtype, Config{})
		if f.Status != wire.Insecure || f.Denial != denial || !f.OptOut {
			t.Errorf("%s: %v, denial %d, opt-out %v, %s", q, f.Status, f.Denial, f.OptOut, f.EDE.Text)
		}
	}
	checkStatus(t, w.judged("www.bare.example.", "A", Config{}), wire.Insecure, wire.NoEDE)
}

// TestCompact has a zone that denies by NXNAME (RFC 9824).
func TestCompact(t *testing.T) {
	w := newWorld(t, "zone .\nexample. NS ns.example.", "zone example. compact\nwww A 192.0.2.1")
	f := w.judged("no.example.", "A", Config{})
	if f.Status != wire.Secure || !f.Compact || f.Denial != NXDomain || f.RCODE != wire.RCODENoError {
		t.Errorf("%v, compact %v, denial %d, %v", f.Status, f.Compact, f.Denial, f.RCODE)
	}
	w.change["no.example. A"] = func(m *dns.Msg) { m.Rcode = dns.RcodeNameError } // RFC 9824 §5.1: restored
	f = w.judged("no.example.", "A", Config{})
	if f.Status != wire.Secure || f.Compact || f.Denial != NXDomain || f.RCODE != wire.RCODENXDomain {
		t.Errorf("%v, compact %v, denial %d, %v", f.Status, f.Compact, f.Denial, f.RCODE)
	}
}

// TestDenialTTL: RFC 9077, and the least of SOA's TTL and MINIMUM.
func TestDenialTTL(t *testing.T) {
	w := twoZones(t, "")
	w.change["no.example. A"] = func(m *dns.Msg) {
		for _, rr := range m.Ns {
			rr.Header().Ttl = 900
			if rr.Header().Rrtype == dns.TypeSOA {
				rr.Header().Ttl = 300
			}
		}
	}
	f := w.judged("no.example.", "A", Config{})
	for i := range f.Authority {
		if f.Authority[i].TTL > 300 {
			t.Errorf("%s has TTL %d", describe(&f.Authority[i]), f.Authority[i].TTL)
		}
	}
}

// TestIrrelevant: RRsets that can prove nothing of the question cause no fetches, however many.
func TestIrrelevant(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	add := func(m *dns.Msg) {
		for i := range 100 {
			m.Ns = append(m.Ns, readRecords(w.tb, fmt.Sprintf("a%d.example. NSEC a%d.example. A", i, i+1))...)
			owner := fmt.Sprintf("b%d.x%d.example.", i, i)
			sets := []dns.RR{&dns.NSEC{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeNSEC, Class: 1, Ttl: 60}, NextDomain: "z.example."}}
			k := w.zones["example."].keys[0]
			s := (&testZone{origin: fmt.Sprintf("x%d.example.", i)}).signature(k, sets)
			m.Ns = append(m.Ns, append(sets, s)...)
		}
	}
	for _, name := range []string{"no.example.", "www.example."} {
		w.change[name+" MX"], w.asked = add, nil
		f := w.judged(name, "MX", Config{})
		if len(w.asked) != 4 {
			t.Errorf("%s: asked %d: %.10q", name, len(w.asked), w.asked)
		}
		if f.Status == wire.Insecure {
			t.Errorf("%s: %v, %s", name, f.Status, f.EDE.Text)
		}
		for i := range f.Authority {
			if f.Status == wire.Secure && f.Authority[i].Status != wire.Secure {
				t.Errorf("%s stays", describe(&f.Authority[i]))
			}
		}
	}
}

// TestNXDomainWithAnswer: the answer is signed, the RCODE is not.
func TestNXDomainWithAnswer(t *testing.T) {
	w := twoZones(t, "")
	w.change["www.example. A"] = func(m *dns.Msg) { m.Rcode = dns.RcodeNameError }
	f := w.judged("www.example.", "A", Config{})
	if f.Status != wire.Secure || f.RCODE != wire.RCODENoError || f.Denial != NotDenied {
		t.Errorf("%v, %v, denial %d", f.Status, f.RCODE, f.Denial)
	}
}

// TestExpandedNSEC has an NSEC that a wildcard was expanded to: it would make a closest encloser that
// is none, and so deny what another wildcard answers.
func TestExpandedNSEC(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	w.change["y.aa.wild.example. A"] = func(m *dns.Msg) {
		z := w.zones["example."]
		m.Answer, m.Ns, m.Rcode = nil, nil, dns.RcodeNameError
		z.addSOA(m)
		z.addDenial(m, z.indexOf("*.wild.example."))
		for _, rr := range z.sign([]dns.RR{z.denial(z.indexOf("*.wild.example."))}) {
			rr = dns.Copy(rr)
			rr.Header().Name = "x.aa.wild.example."
			m.Ns = append(m.Ns, rr)
		}
	}
	if f := w.judged("y.aa.wild.example.", "A", Config{}); f.Status != wire.Bogus {
		t.Errorf("%v, denial %d", f.Status, f.Denial)
	}
}

// TestSignerAboveAnchor: with a closer trust anchor, a zone above vouches for nothing, and, not being
// validated itself, makes nothing insecure.
func TestSignerAboveAnchor(t *testing.T) {
	w := newWorld(t, signedTexts("")...)
	root := w.zones["."]
	for _, anchors := range [][]Anchor{{w.anchor("example.")}, {w.anchor("."), w.anchor("example.")}} {
		m, _ := w.respond("www.example.", dns.TypeA)
		rrs := dropType(m.Answer, dns.TypeRRSIG)
		m.Answer = append(rrs, root.signature(root.keys[0], rrs))
		c, r := newClient(w, Config{Anchors: anchors}), parse(t, m)
		if v := c.v.Judge(context.Background(), r, "", c, &c.cost); v.Status != wire.Bogus {
			t.Errorf("%d anchors: %v", len(anchors), v.Status)
		}
	}
}

// TestOptOutNXDomain: an opt-out span over the next closer name does not make an NXDOMAIN of which the
// wildcard is not denied.
func TestOptOutNXDomain(t *testing.T) {
	w := newWorld(t, signedTexts("optout")...)
	z := w.zones["example."]
	w.change["no.example. A"] = func(m *dns.Msg) {
		wildcard := z.denial(z.before("*.example.")).Header().Name
		m.Ns = slices.DeleteFunc(m.Ns, func(rr dns.RR) bool { return rr.Header().Name == wildcard })
	}
	if z.before("*.example.") == z.before("no.example.") || z.before("*.example.") == z.indexOf("example.") {
		t.Fatal("the wildcard is denied by what denies the name")
	}
	checkStatus(t, w.judged("no.example.", "A", Config{}), wire.Bogus, wire.EDENSECMissing, "the wildcard is not denied")
}

package resolver

import (
	"bytes"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/cache/entry"
	"bonsai/resolver/serve"
	"bonsai/resolver/validate"
	"bonsai/wire"
)

// signedZone is an Internet of one server: the root delegates bench., whose answers were signed with
// P-256 before anybody asks.
type signedZone struct {
	anchor  validate.Anchor
	answers map[string][]byte // by question, names in lower case
}

const (
	signedNames = 512
	signedAt    = testNow - 3600
)

func newSignedZone(t testing.TB) *signedZone {
	t.Helper()
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "bench.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	z := &signedZone{answers: map[string][]byte{}}
	rr := func(text string) dns.RR {
		r, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	z.put(t, ".", dns.TypeNS, &dns.Msg{Answer: []dns.RR{rr(". 86400 NS a.root.")}, Extra: []dns.RR{rr("a.root. 86400 A 192.0.2.1")}}, true)
	z.put(t, "bench.", dns.TypeA, &dns.Msg{Ns: []dns.RR{rr("bench. 86400 NS a.root.")}, Extra: []dns.RR{rr("a.root. 86400 A 192.0.2.1")}}, false)
	z.sign(t, private, key, key)
	for i := range signedNames {
		z.sign(t, private, key, rr(fmt.Sprintf("host%08d.bench. 3600 A 192.0.2.80", i)))
	}
	buf := make([]byte, 512)
	end, err := dns.PackRR(key, buf, 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	const fixed = 10 // TYPE, CLASS, TTL, RDLENGTH
	z.anchor = validate.Anchor{Zone: wire.MustName("bench."), Type: wire.TypeDNSKEY, RDATA: buf[len("bench.")+1+fixed : end]}
	return z
}

func (z *signedZone) sign(t testing.TB, private crypto.PrivateKey, key *dns.DNSKEY, rr dns.RR) {
	t.Helper()
	sig := &dns.RRSIG{
		Hdr: dns.RR_Header{Ttl: 3600}, Algorithm: key.Algorithm, SignerName: "bench.", KeyTag: key.KeyTag(),
		Inception: signedAt, Expiration: signedAt + 30*86400,
	}
	if err := sig.Sign(private.(crypto.Signer), []dns.RR{rr}); err != nil {
		t.Fatal(err)
	}
	z.put(t, rr.Header().Name, rr.Header().Rrtype, &dns.Msg{Answer: []dns.RR{rr, sig}}, true)
}

func (z *signedZone) put(t testing.TB, name string, qtype uint16, m *dns.Msg, authoritative bool) {
	t.Helper()
	m.Question = []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}}
	m.Response, m.Authoritative, m.Compress = true, authoritative, true
	m.SetEdns0(1232, true)
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	z.answers[string(append([]byte(wire.MustName(name)), byte(qtype>>8), byte(qtype)))] = b
}

func (z *signedZone) DialUDP(context.Context, netip.AddrPort, netip.AddrPort) (net.Conn, error) {
	return &signedConn{zone: z}, nil
}

func (z *signedZone) DialTCP(context.Context, netip.AddrPort, netip.AddrPort) (net.Conn, error) {
	return nil, errors.New("no TCP here")
}

type signedConn struct {
	oneZoneConn
	zone *signedZone
}

// Write prepares the answer, in the spelling of the question.
func (c *signedConn) Write(query []byte) (int, error) {
	end, err := wire.NameEnd(query, wire.HeaderSize)
	if err != nil {
		return 0, err
	}
	var buf [wire.MaxNameLen + 3]byte
	answer := c.zone.answers[string(wire.AppendCanonical(buf[:0], query[wire.HeaderSize:end+2]))]
	c.n = copy(c.buf[:], answer)
	copy(c.buf[:], query[:2])
	copy(c.buf[wire.HeaderSize:], query[wire.HeaderSize:end])
	if c.n == 0 {
		c.n = copy(c.buf[:], query)
		binary.BigEndian.PutUint16(c.buf[2:], wire.FlagQR|uint16(wire.RCODEServFail))
	}
	return len(query), nil
}

// BenchmarkColdSigned is a cold name of a signed zone under a warm delegation and key: with and
// without validation, of the same bytes. The difference is what validation costs. So few signatures are
// remembered that each is verified, also when names come again.
func BenchmarkColdSigned(b *testing.B) {
	zone := newSignedZone(b)
	for _, validated := range []bool{false, true} {
		b.Run(fmt.Sprintf("validated=%v", validated), func(b *testing.B) {
			r := newTestResolver(b, func(c *Config) {
				c.Exchange.Transport = zone
				c.Cuts.Hints[0].Addrs = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53")}
				if validated {
					c.Validate = &validate.Config{Anchors: []validate.Anchor{zone.anchor}, Now: func() int64 { return testNow }, Signatures: signedNames / 4}
				}
			})
			c := newColdClientOf(b, r)
			c.next()
			b.ReportAllocs()
			for b.Loop() {
				if c.i == signedNames {
					b.StopTimer()
					r.cache.Flush(func(e entry.Entry) bool { return bytes.Contains(e.QName(), []byte("host")) })
					c.i = 1
					b.StartTimer()
				}
				c.next()
			}
			if validated && r.validator.Stats().Verified < uint64(b.N) {
				b.Errorf("%d signatures verified for %d names", r.validator.Stats().Verified, b.N)
			}
		})
	}
}

// TestColdSigned: the benchmark's answers are what it says, secure with validation.
func TestColdSigned(t *testing.T) {
	zone := newSignedZone(t)
	r := newTestResolver(t, func(c *Config) {
		c.Exchange.Transport = zone
		c.Cuts.Hints[0].Addrs = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53")}
		c.Validate = &validate.Config{Anchors: []validate.Anchor{zone.anchor}, Now: func() int64 { return testNow }}
	})
	m := msg("host00000007.bench.", dns.TypeA)
	m.SetEdns0(1232, true)
	if got := askHandler(t, r, r.NewWorker(), m); got == nil || !got.AuthenticatedData || len(got.Answer) != 2 {
		t.Fatalf("got %v", got)
	}
}

// BenchmarkHitStatus is a batch of hits whose entries are secure or insecure and else the same.
func BenchmarkHitStatus(b *testing.B) {
	for _, status := range []wire.Status{wire.Insecure, wire.Secure} {
		b.Run(status.String(), func(b *testing.B) {
			r := newTestResolver(b, nil)
			w := r.NewWorker()
			batch := make([]serve.Exchange, 64)
			for i := range batch {
				name := fmt.Sprintf("host-%d.example.com.", i)
				r.put(b, answerA(name, 3000, status), testNow)
				m := msg(name, dns.TypeA)
				m.SetEdns0(1232, true)
				pkt, err := m.Pack()
				if err != nil {
					b.Fatal(err)
				}
				batch[i] = serve.Exchange{Query: pkt, Client: client4, Response: make([]byte, 0, 1232)}
			}
			results := make([]serve.Result, len(batch))
			begin := time.Now()
			for b.Loop() {
				for i := range batch {
					batch[i].Response = batch[i].Response[:0]
				}
				w.Hit(batch, results)
			}
			b.ReportMetric(float64(time.Since(begin).Nanoseconds())/float64(b.N)/float64(len(batch)), "ns/query")
		})
	}
}

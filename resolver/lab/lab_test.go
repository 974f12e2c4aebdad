package lab

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// shared is one World for all tests that only read it: keys take a while.
var shared = sync.OnceValues(func() (*World, error) { return New(Config{}) })

func world(t *testing.T) *World {
	t.Helper()
	w, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// exchangeAt asks one server of the lab through its sockets.
func exchangeAt(t *testing.T, w *World, server, network string, m *dns.Msg) *dns.Msg {
	t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(server), 53)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	dial := w.DialUDP
	if network == "tcp" {
		dial = w.DialTCP
	}
	conn, err := dial(ctx, netip.AddrPort{}, at)
	if err != nil {
		t.Fatalf("dial %s: %v", at, err)
	}
	c := &dns.Client{Net: network, UDPSize: ourUDPSize}
	got, _, err := c.ExchangeWithConnContext(ctx, m, &dns.Conn{Conn: conn, UDPSize: ourUDPSize})
	if err != nil {
		t.Fatalf("%s over %s: %v", at, network, err)
	}
	return got
}

func question(name string, qtype uint16, do bool) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	m.RecursionDesired = false
	m.SetEdns0(ourUDPSize, do)
	return m
}

func TestEveryServerAnswersForItsZones(t *testing.T) {
	w := world(t)
	for i, s := range internet {
		for _, addr := range s.servers {
			if quirks[addr] == silent {
				continue
			}
			for _, network := range []string{"udp", "tcp"} {
				m := question(s.name, dns.TypeSOA, false)
				if quirks[addr] == noEDNS {
					m.Extra = nil
				}
				got := exchangeAt(t, w, addr, network, m)
				if got.Rcode != dns.RcodeSuccess || !got.Authoritative || len(got.Answer) != 1 {
					t.Errorf("%s SOA of %s over %s: %v", s.name, addr, network, got)
				}
				if w.zones[i].name != s.name {
					t.Fatalf("zone %d is %s, not %s", i, w.zones[i].name, s.name)
				}
			}
		}
	}
}

func TestEveryZoneIsReachedFromItsParent(t *testing.T) {
	w := world(t)
	for _, z := range w.zones[1:] {
		parent := w.parent(z)
		var at string
		for j, p := range w.zones {
			if p == parent {
				at = internet[j].servers[0]
			}
		}
		got := exchangeAt(t, w, at, "udp", question(z.name, dns.TypeDS, true))
		if signed := len(z.keys) > 0; signed != slices.ContainsFunc(got.Answer, func(rr dns.RR) bool {
			return rr.Header().Rrtype == dns.TypeDS
		}) {
			t.Errorf("%s: signed %t, but its parent says %v", z.name, signed, got)
		}
		// What the parent says of the name servers is what the zone says.
		own := z.apex().sets[dns.TypeNS]
		parents := parent.nodes[z.origin].sets[dns.TypeNS]
		if len(own) != len(parents) {
			t.Errorf("%s: %d name servers, %d at its parent", z.name, len(own), len(parents))
		}
		for _, ns := range own {
			if !slices.ContainsFunc(parents, func(p dns.RR) bool { return dns.IsDuplicate(ns, p) }) {
				t.Errorf("%s: %v is not at its parent", z.name, ns)
			}
		}
	}
}

func TestHintsAndAnchors(t *testing.T) {
	w := world(t)
	p := dns.NewZoneParser(strings.NewReader(w.Hints()), ".", "hints")
	count := map[uint16]int{}
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		count[rr.Header().Rrtype]++
		if a, ok := rr.(*dns.A); ok {
			addr, _ := netip.AddrFromSlice(a.A.To4())
			if _, ok := w.Addr(addr); !ok {
				t.Errorf("no server at %s", addr)
			}
		}
	}
	if p.Err() != nil || count[dns.TypeNS] != 2 || count[dns.TypeA] != 2 || count[dns.TypeAAAA] != 1 {
		t.Errorf("hints %v, %v:\n%s", count, p.Err(), w.Hints())
	}
	rr, err := dns.NewRR(w.Anchors())
	if err != nil {
		t.Fatal(err)
	}
	anchor := rr.(*dns.DS)
	keys := exchangeAt(t, w, "192.0.2.1", "udp", question(".", dns.TypeDNSKEY, true))
	if !slices.ContainsFunc(keys.Answer, func(rr dns.RR) bool {
		k, ok := rr.(*dns.DNSKEY)
		return ok && strings.EqualFold(k.ToDS(dns.SHA256).Digest, anchor.Digest)
	}) {
		t.Errorf("no key for the anchor %v in %v", anchor, keys)
	}
}

func TestQuirks(t *testing.T) {
	w := world(t)
	q := question("www.lame.lab.", dns.TypeA, true)
	if got := exchangeAt(t, w, "198.51.100.20", "udp", q); got.Rcode != dns.RcodeRefused {
		t.Errorf("lame server: %v", got)
	}
	q = question("www.no-edns.lab.", dns.TypeA, true)
	if got := exchangeAt(t, w, "198.51.100.40", "udp", q); got.Rcode != dns.RcodeFormatError || got.IsEdns0() != nil {
		t.Errorf("server without EDNS: %v", got)
	}
	q.Extra = nil
	if got := exchangeAt(t, w, "198.51.100.40", "udp", q); len(got.Answer) != 1 {
		t.Errorf("server without EDNS, asked without: %v", got)
	}
	before := w.Queries()
	conn, err := w.DialUDP(t.Context(), netip.AddrPort{}, netip.MustParseAddrPort("198.51.100.30:53"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	packed, _ := question("www.silent.lab.", dns.TypeA, true).Pack()
	if _, err := conn.Write(packed); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 512)); err == nil {
		t.Errorf("the silent server answered %d bytes", n)
	}
	if got := w.Queries() - before; got != 1 {
		t.Errorf("%d queries counted, not 1", got)
	}
}

func TestHeaderAlone(t *testing.T) {
	w := world(t)
	cases := []struct {
		name  string
		edit  func(*dns.Msg)
		rcode int
	}{
		{"outside", func(m *dns.Msg) { m.Question[0].Name = "elsewhere." }, dns.RcodeRefused},
		{"class CH", func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
		{"two questions", func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }, dns.RcodeFormatError},
		{"no question", func(m *dns.Msg) { m.Question = nil }, dns.RcodeFormatError},
		{"NOTIFY", func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }, dns.RcodeNotImplemented},
		{"EDNS 1", func(m *dns.Msg) { m.IsEdns0().SetVersion(1) }, dns.RcodeBadVers},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := question("www.rsa.lab.", dns.TypeA, false)
			c.edit(m)
			if got := exchangeAt(t, w, "198.51.100.3", "tcp", m); got.Rcode != c.rcode {
				t.Errorf("got %s, want %s", dns.RcodeToString[got.Rcode], dns.RcodeToString[c.rcode])
			}
		})
	}
}

func TestUnknownAddressIsUnreachable(t *testing.T) {
	w := world(t)
	for _, at := range []string{"192.0.2.77:53", "192.0.2.1:54", "[2001:db8::77]:53"} {
		_, err := w.DialUDP(t.Context(), netip.AddrPort{}, netip.MustParseAddrPort(at))
		if !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestTruncation(t *testing.T) {
	w := world(t)
	m := question("big.ecdsa.lab.", dns.TypeTXT, true)
	got := exchangeAt(t, w, "198.51.100.1", "udp", m)
	if !got.Truncated || len(got.Answer) != 0 || got.Len() > ourUDPSize {
		t.Errorf("over UDP: %v", got)
	}
	got = exchangeAt(t, w, "198.51.100.1", "tcp", m)
	if got.Truncated || answerText(got) != "3012-bytes" {
		t.Errorf("over TCP: %v", got)
	}
	m.Extra = nil
	m.Question[0] = dns.Question{Name: "rsa.lab.", Qtype: dns.TypeDNSKEY, Qclass: dns.ClassINET}
	got = exchangeAt(t, w, "198.51.100.3", "udp", m)
	if got.Len() > dns.MinMsgSize {
		t.Errorf("%d bytes to a client without EDNS", got.Len())
	}
}

// Several questions on one connection are answered in turn.
func TestPipelining(t *testing.T) {
	w := world(t)
	conn, err := w.DialTCP(t.Context(), netip.AddrPort{}, netip.MustParseAddrPort("198.51.100.1:53"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	c := &dns.Conn{Conn: conn}
	for id := range uint16(10) {
		m := question("www.ecdsa.lab.", dns.TypeA, true)
		m.Id = id
		if err := c.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	for id := range uint16(10) {
		m, err := c.ReadMsg()
		if err != nil || m.Id != id || len(m.Answer) != 3 {
			t.Fatalf("response %d: %v, %v", id, m, err)
		}
	}
}

func TestBenchNames(t *testing.T) {
	w := world(t)
	seen := map[string]bool{}
	for _, name := range []string{"a.bench.", "b.bench.", "x.y.z.bench."} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT} {
			got := exchangeAt(t, w, "192.0.2.31", "udp", question(name, qtype, true))
			if len(got.Answer) != 1 || seen[answerText(got)] {
				t.Errorf("%s %s: %v", name, dns.TypeToString[qtype], got)
			}
			seen[answerText(got)] = true
		}
	}
	if got := exchangeAt(t, w, "192.0.2.31", "udp", question("nx-1.bench.", dns.TypeA, true)); got.Rcode != dns.RcodeNameError {
		t.Errorf("nx-1.bench.: %v", got)
	}
	// RFC 9824 §3.1: the signed one proves NXDOMAIN by NODATA and the type NXNAME.
	got := exchangeAt(t, w, "192.0.2.32", "udp", question("nx-1.signed-bench.", dns.TypeA, true))
	if got.Rcode != dns.RcodeSuccess || !slices.ContainsFunc(got.Ns, func(rr dns.RR) bool {
		n, ok := rr.(*dns.NSEC)
		return ok && slices.Contains(n.TypeBitMap, dns.TypeNXNAME)
	}) {
		t.Errorf("nx-1.signed-bench.: %v", got)
	}
}

// Every signature that any row meets verifies, by the library's code, unless the row says it must
// not, and so do those made while answering.
func TestSignaturesVerify(t *testing.T) {
	w := world(t)
	checked := 0
	for i, s := range internet {
		z := w.zones[i]
		if len(z.keys) == 0 {
			continue
		}
		names := []string{"www." + s.name, "nothing." + s.name, s.name}
		for _, name := range names {
			for _, qtype := range []uint16{dns.TypeA, dns.TypeDNSKEY, dns.TypeSOA, dns.TypeHINFO} {
				m := answer([]*zone{z}, question(name, qtype, true), soundWindow(w.now))
				if name == "www.bogus.lab." && qtype == dns.TypeA {
					if err := verify(m.Answer, z); err == nil {
						t.Error("the bogus signature verifies")
					}
					continue
				}
				for _, section := range [][]dns.RR{m.Answer, m.Ns} {
					if err := verify(section, z); err != nil {
						t.Errorf("%s %s: %v in %v", name, dns.TypeToString[qtype], err, m)
					}
				}
				checked++
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d responses looked at", checked)
	}
}

// verify checks the signatures of a section.
func verify(section []dns.RR, z *zone) error {
	for _, rr := range section {
		sig, ok := rr.(*dns.RRSIG)
		if !ok {
			continue
		}
		var set []dns.RR
		for _, other := range section {
			if h := other.Header(); h.Rrtype == sig.TypeCovered && h.Name == sig.Hdr.Name {
				set = append(set, other)
			}
		}
		i := slices.IndexFunc(z.keys, func(k *key) bool { return k.tag == sig.KeyTag })
		if i < 0 {
			return errors.New("no key for the signature")
		}
		if err := sig.Verify(z.keys[i].record, set); err != nil {
			return err
		}
	}
	return nil
}

func TestWindows(t *testing.T) {
	w := world(t)
	now := time.Unix(w.now, 0)
	for name, valid := range map[string]bool{"www.ecdsa.lab.": true, "www.expired.lab.": false, "www.future.lab.": false} {
		z := w.zone(name[len("www."):])
		sig := z.nodes[wire.MustName(name)].sigs[dns.TypeA][0].(*dns.RRSIG)
		if got := sig.ValidityPeriod(now); got != valid {
			t.Errorf("%s: valid %t, want %t: %v", name, got, valid, sig)
		}
	}
}

func TestUnsignedWorld(t *testing.T) {
	w, err := New(Config{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.Anchors() != "" {
		t.Errorf("anchors %q", w.Anchors())
	}
	got := exchangeAt(t, w, "192.0.2.11", "udp", question("www.ecdsa.lab.", dns.TypeA, true))
	for _, rr := range append(got.Answer, got.Ns...) {
		if h := rr.Header(); h.Rrtype == dns.TypeRRSIG || h.Rrtype == dns.TypeDS || h.Rrtype == dns.TypeNSEC3 {
			t.Errorf("unsigned, yet %v", rr)
		}
	}
	if len(got.Ns) != 2 || len(got.Extra) != 4 {
		t.Errorf("referral %v", got)
	}
}

// Every row names a zone of the lab whose own server gives what the row says, so that a resolver
// that fails a row can't blame the lab.
func TestRowsAreAnsweredByTheirZones(t *testing.T) {
	w := world(t)
	for _, row := range Rows() {
		if row.Answer == "?" || strings.Contains(row.Answer, "alias") {
			continue
		}
		t.Run(row.Name+" "+row.Type, func(t *testing.T) {
			qtype, err := typeValue(row.Type)
			if err != nil {
				t.Fatal(err)
			}
			a := &answerer{zones: w.zones}
			z := a.zoneOf(wire.MustName(row.Name), qtype)
			m := answer([]*zone{z}, question(row.Name, qtype, false), soundWindow(w.now))
			want := row.Answer
			if row.Unchecked != "" {
				want = strings.TrimSuffix(row.Unchecked, "-")
			} else if got := dns.RcodeToString[m.Rcode]; got != row.RCODE {
				t.Errorf("RCODE %s, not %s", got, row.RCODE)
			}
			if got := answerText(m); got != want {
				t.Errorf("answer %q, not %q", got, want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	bogus := Row{RCODE: "SERVFAIL", EDE: 6, Unchecked: "192.0.2.1"}
	secure := Row{RCODE: "NOERROR", AD: true, Answer: "192.0.2.1"}
	cases := []struct {
		name      string
		r         Result
		validates bool
		wrong     int
	}{
		{"secure", Result{Row: secure, GotRCODE: "NOERROR", GotAD: true, Got: "192.0.2.1"}, true, 0},
		{"no AD", Result{Row: secure, GotRCODE: "NOERROR", Got: "192.0.2.1"}, true, 1},
		{"AD without validation", Result{Row: secure, GotRCODE: "NOERROR", GotAD: true, Got: "192.0.2.1"}, false, 1},
		{"other answer", Result{Row: secure, GotRCODE: "NOERROR", GotAD: true, Got: "192.0.2.2"}, true, 1},
		{"bogus caught", Result{Row: bogus, GotRCODE: "SERVFAIL", GotEDE: []int{6}}, true, 0},
		{"bogus, other reason", Result{Row: bogus, GotRCODE: "SERVFAIL", GotEDE: []int{22}}, true, 1},
		{"bogus let through", Result{Row: bogus, GotRCODE: "NOERROR", Got: "192.0.2.1"}, true, 3},
		{"bogus not looked at", Result{Row: bogus, GotRCODE: "NOERROR", Got: "192.0.2.1"}, false, 0},
		{"needless reason", Result{Row: secure, GotRCODE: "NOERROR", GotAD: true, Got: "192.0.2.1", GotEDE: []int{3}}, true, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.r.judge(c.validates)
			if len(c.r.Wrong) != c.wrong {
				t.Errorf("got %q, want %d of them", c.r.Wrong, c.wrong)
			}
		})
	}
}

package exchange

import (
	"context"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

const serverCookie = "0102030405060708090a0b0c0d0e0f10"

// sentCookie returns the COOKIE option of a query as hex, "" for none.
func sentCookie(q []byte) string {
	var m wire.Message
	if m.Parse(q) != nil {
		return "malformed"
	}
	data, _ := m.EDNS.Option(wire.OptionCookie)
	return hex.EncodeToString(data)
}

// withCookie answers with a COOKIE option made of the client's.
func withCookie(of func(client string) string, edit ...func(m *dns.Msg)) reaction {
	return func(q []byte) [][]byte {
		sent := sentCookie(q)
		if sent == "" {
			return reply(edit...)(q)
		}
		return reply(append(edit, func(m *dns.Msg) {
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: of(sent[:16])})
		})...)(q)
	}
}

func good(client string) string { return client + serverCookie }

// needsCookie says BADCOOKIE to who does not know the server's part.
func needsCookie(q []byte) [][]byte {
	if strings.HasSuffix(sentCookie(q), serverCookie) {
		return withCookie(good)(q)
	}
	return withCookie(good, rcode(dns.RcodeBadCookie))(q)
}

func TestCookies(t *testing.T) {
	tests := []struct {
		name     string
		server   *fakeServer
		udp, tcp int
		err      error
		known    bool
		rcode    wire.RCODE
	}{
		{name: "sends cookies", server: &fakeServer{udp: withCookie(good)}, udp: 1, known: true},
		{name: "knows no cookies", server: &fakeServer{udp: reply()}, udp: 1},
		{name: "knows no EDNS", server: &fakeServer{udp: reply(noOPT)}, udp: 1},
		{name: "sends ours back", server: &fakeServer{udp: withCookie(func(c string) string { return c })}, udp: 1},
		{name: "another client's", server: &fakeServer{udp: withCookie(func(string) string { return "ffffffffffffffff" + serverCookie }), tcp: withCookie(good)}, udp: 1, tcp: 1, known: true},
		{name: "too short", server: &fakeServer{udp: withCookie(func(c string) string { return c + "01020304050607" }), tcp: withCookie(good)}, udp: 1, tcp: 1, known: true},
		{name: "too long", server: &fakeServer{udp: withCookie(func(c string) string { return c + strings.Repeat("01", 33) }), tcp: reply()}, udp: 1, tcp: 1},
		{name: "shortest", server: &fakeServer{udp: withCookie(func(c string) string { return c + "0102030405060708" })}, udp: 1, known: true},
		{name: "longest", server: &fakeServer{udp: withCookie(func(c string) string { return c + strings.Repeat("01", 32) })}, udp: 1, known: true},
		{name: "wants one", server: &fakeServer{udp: needsCookie}, udp: 2, known: true},
		{name: "never content", server: &fakeServer{udp: withCookie(good, rcode(dns.RcodeBadCookie)), tcp: reply()}, udp: 2, tcp: 1},
		{name: "BADCOOKIE without one", server: &fakeServer{udp: reply(rcode(dns.RcodeBadCookie)), tcp: reply()}, udp: 1, tcp: 1},
		{name: "BADCOOKIE over TCP too", server: &fakeServer{udp: reply(rcode(dns.RcodeBadCookie))}, udp: 1, tcp: 1, rcode: wire.RCODEBadCookie},
		{name: "FORMERR to options", server: &fakeServer{udp: func(q []byte) [][]byte {
			if sentCookie(q) != "" {
				return reply(rcode(dns.RcodeFormatError))(q)
			}
			return reply()(q)
		}}, udp: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				s := n.add("192.0.2.53", tt.server)
				c := n.client(Config{Cookies: true})
				r, err := c.Do(context.Background(), ask("192.0.2.53", "www.example."))
				if !errors.Is(err, tt.err) || err == nil && r.RCODE() != tt.rcode {
					t.Fatalf("got %v, %v, want %v, %v", r, err, tt.rcode, tt.err)
				}
				if udp, tcp := s.counts(); udp != tt.udp || tcp != tt.tcp {
					t.Errorf("queries: got %d and %d, want %d and %d", udp, tcp, tt.udp, tt.tcp)
				}
				if i, _ := c.Server(addr("192.0.2.53")); i.Cookie != tt.known || i.Fails != 0 {
					t.Errorf("got %+v, want cookie known: %v", i, tt.known)
				}
			})
		})
	}
}

// TestCookieIsKept: the server's part is sent back, the client's part stays for the server and is
// another for the next, and both are drawn anew after a day.
func TestCookieIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: withCookie(good)})
		other := n.add("192.0.2.54", &fakeServer{udp: withCookie(good)})
		c := n.client(Config{Cookies: true})
		for range 3 {
			mustDo(t, c, ask("192.0.2.53", "www.example."))
		}
		mustDo(t, c, ask("192.0.2.54", "www.example."))
		first := sentCookie(s.udpSeen[0])
		if len(first) != 16 {
			t.Errorf("first query: got cookie %q, want 8 bytes", first)
		}
		for _, q := range s.udpSeen[1:] {
			if got := sentCookie(q); got != first+serverCookie {
				t.Errorf("got cookie %q, want %q", got, first+serverCookie)
			}
		}
		if sentCookie(other.udpSeen[0]) == first {
			t.Error("two servers got the same client cookie")
		}
		time.Sleep(cookieAge + time.Second)
		mustDo(t, c, ask("192.0.2.53", "www.example."))
		if got := sentCookie(s.udpSeen[3]); len(got) != 16 || got == first {
			t.Errorf("after a day: got cookie %q, want a new one", got)
		}
		// A new server part takes the place of the old one.
		s.set(func(s *fakeServer) {
			s.udp = withCookie(func(c string) string { return c + "aaaaaaaaaaaaaaaa" })
		})
		mustDo(t, c, ask("192.0.2.53", "www.example."))
		mustDo(t, c, ask("192.0.2.53", "www.example."))
		if got := sentCookie(s.udpSeen[5]); got[16:] != "aaaaaaaaaaaaaaaa" {
			t.Errorf("got cookie %q, want the server's latest", got)
		}
	})
}

// TestNoCookieNoBelief: once a server has sent cookies, a response without is not believed over
// UDP, whatever it says; over TCP it shows that the server has stopped.
func TestNoCookieNoBelief(t *testing.T) {
	forged := []struct {
		name   string
		answer reaction
	}{
		{"an answer", reply()},
		{"without OPT", reply(noOPT)},
		{"FORMERR without OPT", reply(rcode(dns.RcodeFormatError), noOPT)},
		{"NOTIMP", reply(rcode(dns.RcodeNotImplemented))},
		{"malformed", raw(func(b []byte) []byte { return b[:len(b)-3] })},
	}
	for _, tt := range forged {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				s := n.add("192.0.2.53", &fakeServer{udp: withCookie(good)})
				c := n.client(Config{Cookies: true})
				mustDo(t, c, ask("192.0.2.53", "www.example."))
				s.set(func(s *fakeServer) { s.udp, s.tcp = tt.answer, withCookie(good) })
				if r := mustDo(t, c, ask("192.0.2.53", "www.example.")); !r.TCP {
					t.Error("believed over UDP")
				}
				if i, _ := c.Server(addr("192.0.2.53")); !i.Cookie {
					t.Error("the cookie was forgotten")
				}
				s.set(func(s *fakeServer) { s.udp, s.tcp = reply(), nil })
				if r := mustDo(t, c, ask("192.0.2.53", "www.example.")); !r.TCP {
					t.Error("believed over UDP")
				}
				if i, _ := c.Server(addr("192.0.2.53")); i.Cookie {
					t.Error("TCP showed that the server sends no cookies, and it is still asked for one")
				}
				if r := mustDo(t, c, ask("192.0.2.53", "www.example.")); r.TCP {
					t.Error("still over TCP")
				}
			})
		})
	}
}

// TestCookieBelongsToAddress: with several addresses to send from, a server's cookie is only sent
// from the one it was given to (RFC 7873 §5.1).
func TestCookieBelongsToAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.53", &fakeServer{udp: withCookie(good)})
		n.add("192.0.2.54", &fakeServer{udp: reply()})
		n.add("2001:db8::53", &fakeServer{udp: reply()})
		var outgoing []netip.Addr
		for _, a := range []string{"198.51.100.1", "198.51.100.2", "198.51.100.3", "2001:db8:1::1"} {
			outgoing = append(outgoing, netip.MustParseAddr(a))
		}
		c := n.client(Config{Cookies: true, Outgoing: outgoing})
		seen := func(server string) map[netip.Addr]int {
			n.locals = nil
			for range 100 {
				mustDo(t, c, ask(server, "www.example."))
			}
			m := map[netip.Addr]int{}
			for _, a := range n.locals {
				m[a]++
			}
			return m
		}
		if got := seen("192.0.2.53"); len(got) != 1 {
			t.Errorf("with a cookie: sent from %v, want one address", got)
		}
		if got := seen("192.0.2.54"); len(got) != 3 {
			t.Errorf("without: sent from %v, want all three of the family", got)
		}
		n.reuse = true
		if got := seen("192.0.2.53"); len(got) != 1 {
			t.Errorf("with a cookie and sockets reused: sent from %v, want one address", got)
		}
		n.reuse = false
		if got := seen("2001:db8::53"); len(got) != 1 || got[outgoing[3]] != 100 {
			t.Errorf("IPv6: sent from %v", got)
		}
	})
}

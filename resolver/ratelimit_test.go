package resolver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/wire"
)

// TestRateLimit: somebody sends in the name of a client. The client itself still gets its answers, over TCP
// and with the cookie that a truncated response brought it; no other cookie is as good.
func TestRateLimit(t *testing.T) {
	now := time.Duration(0)
	r := newTestResolver(t, func(c *Config) {
		c.Policy.Allow = append(c.Policy.Allow, netip.MustParsePrefix("2001:db8::/32"))
		c.Policy.RateLimit = policy.RateLimit{QPS: 10, Burst: 10, Slip: 2}
		c.Policy.RateTable = policy.NewRateTable(func() time.Duration { return now })
	})
	r.put(t, answerA("www.example.com", 300, wire.Insecure), testNow)
	w := r.NewWorker()
	ask := func(from string, transport serve.Transport, cookie string) (*dns.Msg, serve.Result) {
		t.Helper()
		m := msg("www.example.com.", dns.TypeA)
		m.SetEdns0(1232, false)
		if cookie != "" {
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie})
		}
		return hitOver(t, w, m, netip.MustParseAddrPort(from), transport)
	}
	const client, mine = "127.0.0.5:4242", "0011223344556677"
	answered, truncated, dropped, cookie := 0, 0, 0, ""
	for range 110 {
		switch m, result := ask(client, serve.UDP, mine); {
		case result == serve.Dropped:
			dropped++
		case m.Truncated:
			truncated++
			if len(m.Answer) != 0 || m.Rcode != dns.RcodeSuccess || len(m.Question) != 1 {
				t.Fatalf("truncated: %v", m)
			}
			cookie = m.IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie
		default:
			answered++
		}
	}
	if answered != 10 || truncated != 50 || dropped != 50 {
		t.Errorf("of 110 queries %d answered, %d truncated, %d dropped; want 10, 50 and 50", answered, truncated, dropped)
	}
	good := func(m *dns.Msg, result serve.Result) bool {
		return result == serve.Answered && !m.Truncated && len(m.Answer) == 2
	}
	for _, c := range []struct {
		name, from string
		transport  serve.Transport
		cookie     string
		want       bool
	}{
		{"without a cookie", client, serve.UDP, "", false},
		{"with its own half of one", client, serve.UDP, mine, false},
		{"with a server cookie that is none of ours", client, serve.UDP, mine + "0100000000000000aabbccddeeff0011", false},
		{"with ours and another client's half", client, serve.UDP, "ffeeddccbbaa9988" + cookie[16:], false},
		{"with ours", client, serve.UDP, cookie, true},
		{"over TCP", client, serve.TCP, "", true},
		{"another client", "127.0.0.6:4242", serve.UDP, "", true},
		{"from another port", "127.0.0.5:99", serve.UDP, "", false},
	} {
		passed := 0
		for range 8 {
			if good(ask(c.from, c.transport, c.cookie)) {
				passed++
			}
		}
		if want := map[bool]int{true: 8}[c.want]; passed != want {
			t.Errorf("%s: %d of 8 answered, want %d", c.name, passed, want)
		}
	}
	// Ours is no good at another address: what it stands for is that the client is where it says.
	for range 10 {
		ask("127.0.0.7:4242", serve.UDP, "")
	}
	if good(ask("127.0.0.7:4242", serve.UDP, cookie)) {
		t.Error("a cookie given to one address is taken at another")
	}
	if now += time.Second; !good(ask(client, serve.UDP, "")) {
		t.Error("limited a second later")
	}
	// A site of IPv6 is one client, in whichever of its networks it asks.
	passed := 0
	for i := range 24 {
		from := netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, 0, 1, byte(i), 15: byte(i)}), 53)
		if good(ask(from.String(), serve.UDP, "")) {
			passed++
		}
	}
	if passed != 10 || !good(ask("[2001:db8:0:200::1]:53", serve.UDP, "")) {
		t.Errorf("%d of 24 queries from one /56 answered, want 10; and the next /56 is its own", passed)
	}
}

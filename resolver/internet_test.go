package resolver

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/cache"
	"bonsai/resolver/lab"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
)

// newLabResolver returns a Resolver whose Internet is the lab.
func newLabResolver(t *testing.T, world *lab.World) *Resolver {
	t.Helper()
	hints, err := zonecut.ParseHints(strings.NewReader(world.Hints()), "hints")
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := validate.ParseAnchors(strings.NewReader(world.Anchors()), "anchors")
	if err != nil {
		t.Fatal(err)
	}
	store, err := cache.New(cache.Config{Size: 8 << 20, StaleLimit: 86400})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Cache:    store,
		Cuts:     zonecut.Config{Hints: hints},
		Validate: &validate.Config{Anchors: anchors},
		Now:      func() uint32 { return uint32(time.Now().Unix()) },
		Policy:   policy.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
	config.Exchange.Transport = world
	config.Exchange.IPv4, config.Exchange.IPv6 = true, true
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); store.Close() })
	return r
}

// askHandler puts one query through Hit and, where that misses, Miss.
func askHandler(t testing.TB, r *Resolver, w serve.Worker, m *dns.Msg) *dns.Msg {
	t.Helper()
	if got, result := hit(t, w, m, client4); result != serve.Missed {
		return got
	}
	pkt, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	x := serve.Exchange{Query: pkt, Client: client4, Transport: serve.TCP}
	r.Miss(context.Background(), &x)
	if len(x.Response) == 0 {
		return nil
	}
	out := new(dns.Msg)
	if err := out.Unpack(x.Response); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLab resolves one of each kind of name of the lab, cold and again.
func TestLab(t *testing.T) {
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	r := newLabResolver(t, world)
	w := r.NewWorker()
	for _, row := range lab.Rows() {
		t.Run(row.Name+" "+row.Type, func(t *testing.T) {
			for range 2 {
				m := new(dns.Msg)
				qtype, ok := dns.StringToType[row.Type]
				if !ok {
					t.Skip("a type without a mnemonic")
				}
				m.SetQuestion(row.Name, qtype)
				// RFC 6840 §5.7: AD asks for AD. With DO a compact denial would be NOERROR.
				m.AuthenticatedData = true
				m.SetEdns0(1232, false)
				before := world.Queries()
				got := askHandler(t, r, w, m)
				if got == nil {
					t.Fatal("no response")
				}
				if dns.RcodeToString[got.Rcode] != row.RCODE || got.AuthenticatedData != row.AD {
					t.Errorf("RCODE %s AD %v after %d queries, want %s %v: %v", dns.RcodeToString[got.Rcode], got.AuthenticatedData,
						world.Queries()-before, row.RCODE, row.AD, got)
				}
			}
		})
	}
}

// TestWholeNames: ANY and RRSIG give what the servers have, judged, and are not kept (RFC 8482).
func TestWholeNames(t *testing.T) {
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	r := newLabResolver(t, world)
	w := r.NewWorker()
	m := msg("www.ecdsa.lab.", dns.TypeANY)
	m.SetEdns0(1232, true)
	for range 2 {
		before := world.Queries()
		got := askHandler(t, r, w, m)
		types := map[uint16]int{}
		for _, rr := range got.Answer {
			types[rr.Header().Rrtype]++
		}
		if got.Rcode != dns.RcodeSuccess || types[dns.TypeA] != 2 || types[dns.TypeAAAA] != 1 || types[dns.TypeRRSIG] < 2 || !got.AuthenticatedData {
			t.Fatalf("got %v", got)
		}
		if world.Queries() == before {
			t.Error("ANY came from the cache")
		}
	}
	got := askHandler(t, r, w, msg("www.ecdsa.lab.", dns.TypeRRSIG))
	if got.Rcode != dns.RcodeSuccess || len(got.Answer) < 2 || got.Answer[0].Header().Rrtype != dns.TypeRRSIG {
		t.Fatalf("got %v", got)
	}
}

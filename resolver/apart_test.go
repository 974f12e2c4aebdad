package resolver

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"bonsai/cache/entry"
	"bonsai/resolver/lab"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// cname is an alias as it is kept.
func cname(name, target string, ttl uint32, status wire.Status) *entry.Content {
	n := wire.MustName(name)
	return &entry.Content{Kind: entry.KindAnswer, QName: n, QType: wire.TypeCNAME, Status: status, Answer: []wire.RRset{{
		Owner: n, Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: ttl, Status: status, RDATA: [][]byte{[]byte(wire.MustName(target))},
	}}}
}

// TestCheckingDisabled: what clients that set CD have looked at is not for those that do not, not even
// at the end of a chain of which the first links are good (RFC 4035 §3.2.2).
func TestCheckingDisabled(t *testing.T) {
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	r := newLabResolver(t, world)
	w := r.NewWorker()
	r.put(t, cname("alias.ecdsa.lab.", "www.bogus.lab.", 600, wire.Secure), r.now())
	cd := func(name string) *dns.Msg {
		m := msg(name, dns.TypeA)
		m.CheckingDisabled = true
		m.SetEdns0(1232, true)
		return m
	}
	for _, name := range []string{"www.bogus.lab.", "alias.ecdsa.lab.", "alias.ecdsa.lab."} {
		got := askHandler(t, r, w, cd(name))
		if got.Rcode != dns.RcodeSuccess || len(got.Answer) == 0 || got.AuthenticatedData {
			t.Errorf("with CD %s: %v", name, got)
		}
	}
	for _, name := range []string{"www.bogus.lab.", "alias.ecdsa.lab."} {
		if got := askHandler(t, r, w, msg(name, dns.TypeA)); got.Rcode != dns.RcodeServerFailure || len(got.Answer) > 0 {
			t.Errorf("without CD %s: %v", name, got)
		}
	}
}

// TestNoDNAME: the answer to a query for DNAME that began with an alias redirects nothing (RFC 6672
// §2.3: a DNAME is for what is below its owner).
func TestNoDNAME(t *testing.T) {
	r := newTestResolver(t, nil)
	now := r.now()
	d := wire.RRset{Owner: wire.MustName("d.test."), Type: wire.TypeDNAME, Class: wire.ClassIN, TTL: 600,
		Status: wire.Insecure, RDATA: [][]byte{[]byte(wire.MustName("other.test."))}}
	r.put(t, cname("alias.test.", "d.test.", 600, wire.Insecure), now)
	dname := &entry.Content{Kind: entry.KindAnswer, QName: d.Owner, QType: wire.TypeDNAME, Status: wire.Insecure, Answer: []wire.RRset{d}}
	r.put(t, dname, now)
	r.stats.dnames.Add(1)
	tree := r.newTree()
	if _, err := tree.ask(t.Context(), question{name: wire.MustName("alias.test."), t: wire.TypeDNAME}); err != nil {
		t.Fatal(err)
	}
	if c := tree.cached(wire.MustName("www.alias.test."), wire.TypeA); c != nil {
		t.Errorf("below the alias: %v", c.Answer)
	}
	if c := tree.cached(wire.MustName("www.d.test."), wire.TypeA); c == nil || c.target() != wire.MustName("www.other.test.") {
		t.Errorf("below the DNAME: %v", c)
	}
}

// TestDeniedAboveConfigured: a zone that is forwarded exists, whatever its parents say.
func TestDeniedAboveConfigured(t *testing.T) {
	r := newTestResolver(t, func(c *Config) {
		c.Cuts.Configured = append(c.Cuts.Configured, zonecut.Configured{
			Zone: wire.MustName("corp.internal."), Forward: true,
			Servers: []zonecut.Server{{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.9:53")}}},
		})
	})
	soa := wire.RRset{Owner: wire.Root, Type: wire.TypeSOA, Class: wire.ClassIN, TTL: 600, Status: wire.Secure,
		RDATA: [][]byte{append(make([]byte, 2), make([]byte, 20)...)}}
	r.put(t, &entry.Content{Kind: entry.KindDenial, QName: wire.MustName("internal."), RCODE: wire.RCODENXDomain,
		Status: wire.Secure, Authority: []wire.RRset{soa}}, r.now())
	r.stats.denials.Add(1)
	tree := r.newTree()
	for name, denied := range map[string]bool{
		"www.internal.": true, "www.corp.internal.": false, "corp.internal.": false, "a.b.corp.internal.": false,
	} {
		if c := tree.cached(wire.MustName(name), wire.TypeA); (c != nil) != denied {
			t.Errorf("%s: %v", name, c)
		}
	}
}

// TestAliasAtApex: an alias that a zone has at its apex says nothing of its DS, which is its parent's
// (RFC 4035 §3.1.4.1).
func TestAliasAtApex(t *testing.T) {
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	r := newLabResolver(t, world)
	r.put(t, cname("ecdsa.lab.", "www.unsigned.lab.", 600, wire.Insecure), r.now())
	got := askHandler(t, r, r.NewWorker(), msg("ecdsa.lab.", dns.TypeDS))
	if got.Rcode != dns.RcodeSuccess || len(got.Answer) != 1 || got.Answer[0].Header().Rrtype != dns.TypeDS {
		t.Errorf("got %v", got)
	}
}

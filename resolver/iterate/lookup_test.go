package iterate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/wire"
)

func TestGlueless(t *testing.T) {
	const script = tree + `
@ 192.0.2.1
?? glueless.com. ANY
au glueless.com. NS ns.example.com.
?? six.com. ANY
au six.com. NS ns6.example.com.
?? aliased.com. ANY
au aliased.com. NS nsalias.example.com.
?? mixed.com. ANY
au mixed.com. NS absent.example.com.
au mixed.com. NS ns.example.com.
?? hidden.com. ANY
au hidden.com. NS ns.hidden.com.
@ 192.0.2.2
? ns.example.com. A aa
an ns.example.com. A 192.0.2.2
? ns6.example.com. A aa
au example.com. SOA a. b. 1 2 3 4 5
? ns6.example.com. AAAA aa
an ns6.example.com. AAAA 2001:db8::2
? nsalias.example.com. A aa
an nsalias.example.com. CNAME ns.example.com.
? absent.example.com. A aa NXDOMAIN
au example.com. SOA a. b. 1 2 3 4 5
? www.glueless.com. A aa
an www.glueless.com. A 192.0.2.80
? www.aliased.com. A aa
an www.aliased.com. A 192.0.2.80
? www.mixed.com. A aa
an www.mixed.com. A 192.0.2.80
@ 2001:db8::2
? www.six.com. A aa
an www.six.com. A 192.0.2.80
`
	t.Run("looked up", func(t *testing.T) {
		w := newWorld(t, script)
		w.want("www.glueless.com.", "A", "answer | www.glueless.com. A 192.0.2.80")
		if !slices.Equal(w.lookups, []string{"ns.example.com. A"}) {
			t.Errorf("looked up %v, want the A RRset alone, which was enough", w.lookups)
		}
		// Once the cut of its zone is known, so is its glue.
		w.want("www.glueless.com.", "A", "answer | www.glueless.com. A 192.0.2.80")
		w.wantAsked("192.0.2.2 www.glueless.com. A")
	})
	t.Run("IPv6 only", func(t *testing.T) {
		w := newWorld(t, script)
		w.want("www.six.com.", "A", "answer | www.six.com. A 192.0.2.80")
		w.configure(func(c *Config) { c.IPv6 = true })
		w.want("www.six.com.", "A", "answer | www.six.com. A 192.0.2.80")
		if !slices.Equal(w.lookups, []string{"ns6.example.com. AAAA"}) {
			t.Errorf("looked up %v, want no address of a family that is off", w.lookups)
		}
	})
	t.Run("the family that works first", func(t *testing.T) {
		w := newWorld(t, script)
		w.no4 = true
		w.want("www.six.com.", "A", "answer | www.six.com. A 192.0.2.80")
		if !slices.Equal(w.lookups, []string{"ns6.example.com. AAAA"}) {
			t.Errorf("looked up %v, want the AAAA RRset alone, which was enough", w.lookups)
		}
		w.want("www.glueless.com.", "A", "answer | www.glueless.com. A 192.0.2.80")
	})
	t.Run("alias", func(t *testing.T) {
		w := newWorld(t, script)
		w.want("www.aliased.com.", "A", "answer | www.aliased.com. A 192.0.2.80")
	})
	t.Run("one absent", func(t *testing.T) {
		for range 8 { // whichever is drawn first
			w := newWorld(t, script)
			w.want("www.mixed.com.", "A", "answer | www.mixed.com. A 192.0.2.80")
		}
	})
	t.Run("none", func(t *testing.T) {
		w := newWorld(t, script)
		f := w.wantFailure("www.hidden.com.", "A", wire.EDENoReachable)
		if !strings.Contains(f.Text, "hidden.com.") || !strings.Contains(f.Text, "no name server with a usable address") {
			t.Errorf("got %q", f.Text)
		}
		w.wantAsked("198.51.100.1 com. A", "192.0.2.1 hidden.com. A", "192.0.2.1 ns.hidden.com. A", "192.0.2.1 ns.hidden.com. AAAA")
	})
}

// TestMissingGlue: glue that a referral lacks is asked of the parent by name, and then kept.
func TestMissingGlue(t *testing.T) {
	const script = tree + `
@ 192.0.2.1
? ns.bare.com. A
an ns.bare.com. A 192.0.2.3
au bare.com. NS ns.bare.com.
?? bare.com. ANY
au bare.com. NS ns.bare.com.
? ns.alias.com. A aa
an ns.alias.com. CNAME ns2.alias.com.
au alias.com. NS ns.alias.com.
? ns2.alias.com. A aa
an ns2.alias.com. A 192.0.2.3
?? alias.com. ANY
au alias.com. NS ns.alias.com.
@ 192.0.2.3
? www.bare.com. A aa
an www.bare.com. A 192.0.2.80
? www.alias.com. A aa
an www.alias.com. A 192.0.2.80
`
	w := newWorld(t, script)
	w.want("www.bare.com.", "A", "answer | www.bare.com. A 192.0.2.80")
	w.want("www.bare.com.", "A", "answer | www.bare.com. A 192.0.2.80")
	w.wantAsked("192.0.2.3 www.bare.com. A")
	w.want("www.alias.com.", "A", "answer | www.alias.com. A 192.0.2.80")
}

// TestExpiredGlue: glue of a shorter TTL than its NS set is asked for again, and no lease grows.
func TestExpiredGlue(t *testing.T) {
	w := newWorld(t, strings.Replace(tree, "ad ns.example.com. A", "ad ns.example.com. 1 A", 1)+zone)
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.now += 5
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.wantAsked("192.0.2.1 ns.example.com. A", "192.0.2.2 www.example.com. AAAA")
}

// TestUselessAddresses: an address that the zone itself gives and that is no use leaves the glue.
func TestUselessAddresses(t *testing.T) {
	w := newWorld(t, tree+`
@ 192.0.2.1
?? other.com. ANY
au other.com. NS ns.example.com.
?? broken.com. ANY
au broken.com. NS ns.nowhere.com.
?? nowhere.com. ANY
au nowhere.com. NS ns.nowhere.com.
ad ns.nowhere.com. A 192.0.2.4
@ 192.0.2.2
? ns.example.com. A aa
an ns.example.com. A 192.0.2.3
? ns.example.com. AAAA aa
au example.com. SOA a. b. 1 2 3 4 5
? www.other.com. A aa
an www.other.com. A 192.0.2.80
@ 192.0.2.3
?? . ANY SERVFAIL
@ 192.0.2.4
?? nowhere.com. ANY ra
au nowhere.com. NS ns.nowhere.com.
? www.broken.com. A aa
an www.broken.com. A 192.0.2.80
`)
	w.want("www.other.com.", "A", "answer | www.other.com. A 192.0.2.80")
	w.want("www.broken.com.", "A", "answer | www.broken.com. A 192.0.2.80")
}

// TestUnusableAddresses: what may not be asked counts as no address.
func TestUnusableAddresses(t *testing.T) {
	w := newWorld(t, tree+`
@ 192.0.2.1
?? odd.com. ANY
au odd.com. NS a.odd.com.
au odd.com. NS b.odd.com.
ad a.odd.com. A 0.0.0.0
ad a.odd.com. AAAA ::
ad b.odd.com. A 127.0.0.1
ad b.odd.com. A 192.0.2.3
@ 192.0.2.3
? www.odd.com. A aa
an www.odd.com. A 192.0.2.80
`)
	w.want("www.odd.com.", "A", "answer | www.odd.com. A 192.0.2.80")
	for _, q := range w.asked {
		if strings.HasPrefix(q, "0.") || strings.HasPrefix(q, ":") || strings.HasPrefix(q, "127") {
			t.Errorf("asked %s", q)
		}
	}
}

// TestDeadFamily: with one family of addresses black-holed, the other's answer comes in time, though
// the referral has glue of the dead one only.
func TestDeadFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tree+`
@ 192.0.2.1
? ns.half.com. AAAA
au half.com. NS ns.half.com.
ad ns.half.com. A 192.0.2.3
ad ns.half.com. AAAA 2001:db8::3
?? half.com. ANY
au half.com. NS ns.half.com.
ad ns.half.com. A 192.0.2.3
@ 2001:db8::3
? www.half.com. A aa
an www.half.com. A 192.0.2.80
`)
		w.dead[netip.MustParseAddr("192.0.2.3")] = true
		start := time.Now()
		w.want("www.half.com.", "A", "answer | www.half.com. A 192.0.2.80")
		if took := time.Since(start); took > 1500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		cut := w.cuts.Deepest(wire.MustName("half.com."), w.now)
		if len(cut.Servers) != 1 || len(cut.Servers[0].Addrs) != 2 {
			t.Errorf("got %v, want the glue of both families kept", cut.Servers)
		}
	})
}

// delegate writes a delegation of zone to n name servers named by format, without glue.
func delegate(zone string, n int, format string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "?? %s ANY\n", zone)
	for i := range n {
		fmt.Fprintf(&b, "au %s NS "+format+"\n", zone, i)
	}
	return b.String()
}

// TestManyGlueless: a delegation to hundreds of servers without addresses ("NXNS") costs little.
func TestManyGlueless(t *testing.T) {
	const many = 250 // as many as an RRset may have, almost
	for _, c := range []struct{ name, script, target string }{
		{"absent in one zone", "@ 192.0.2.2\n?? . ANY aa NXDOMAIN\nau example.com. SOA a. b. 1 2 3 4 5", "n%d.example.com."},
		{"no addresses in one zone", "@ 192.0.2.2\n?? . ANY aa\nau example.com. SOA a. b. 1 2 3 4 5", "n%d.example.com."},
		{"silent zone", "@ 192.0.2.2\n?? . ANY silent", "n%d.example.com."},
		{"failing zone", "@ 192.0.2.2\n?? . ANY SERVFAIL", "n%d.example.com."},
		{"each in a zone of its own", "@ 192.0.2.1\n?? com. ANY aa NXDOMAIN\nau com. SOA a. b. 1 2 3 4 5", "ns.z%d.com."},
		{"in-domain", "", "n%d.evil.com."},
		{"at a dead address", "@ 192.0.2.2\n?? . ANY aa\nan n.example.com. A 192.0.2.66", "n%d.example.com."},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tree+"@ 192.0.2.1\n"+delegate("evil.com.", many, c.target)+c.script)
				start := time.Now()
				if res, err := w.resolve("www.evil.com.", "A"); err == nil {
					t.Fatalf("got %s", resultText(res))
				}
				if len(w.asked) > 25 {
					t.Errorf("%d queries:\n%s", len(w.asked), strings.Join(w.asked, "\n"))
				}
				if took := time.Since(start); took > 3*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestOneAddressManyNames: an address is asked once, whatever names it has.
func TestOneAddressManyNames(t *testing.T) {
	var b strings.Builder
	b.WriteString(tree + "@ 192.0.2.1\n?? evil.com. ANY\n")
	for i := range 30 {
		fmt.Fprintf(&b, "au evil.com. NS n%d.evil.com.\nad n%d.evil.com. A 192.0.2.66\n", i, i)
	}
	w := newWorld(t, b.String()+"@ 192.0.2.66\n?? . ANY SERVFAIL")
	w.configure(func(c *Config) { c.Minimisation = Off })
	w.wantFailure("www.evil.com.", "A", wire.EDENetworkError)
	if n := strings.Count(strings.Join(w.asked, "\n"), "192.0.2.66 "); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestCycle: zones whose servers lie in each other are no way to resolve either.
func TestCycle(t *testing.T) {
	for _, n := range []int{1, 3, 13} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, tree+"@ 192.0.2.1\n"+delegate("one.com.", n, "ns%d.two.net.")+delegate("two.net.", n, "ns%d.one.com."))
			f := w.wantFailure("www.one.com.", "A", wire.EDENoReachable)
			if len(w.asked) > 10 {
				t.Errorf("%d queries:\n%s", len(w.asked), strings.Join(w.asked, "\n"))
			}
			if f.Timeout {
				t.Error("nobody was silent")
			}
		})
	}
}

// TestFanOut: glueless delegations within glueless delegations end at the limits of the client query.
func TestFanOut(t *testing.T) {
	var b strings.Builder
	b.WriteString(tree + "@ 192.0.2.1\n")
	for i := range 40 {
		b.WriteString(delegate(fmt.Sprintf("z%d.com.", i), 10, fmt.Sprintf("ns%%d.z%d.com.", i+1)))
	}
	w := newWorld(t, b.String())
	start := time.Now()
	w.wantFailure("www.z0.com.", "A", wire.EDENoReachable)
	if len(w.asked) > 60 || time.Since(start) > 2*time.Second {
		t.Errorf("%d queries, %v", len(w.asked), time.Since(start))
	}
}

// TestLegitimateWorstCases: what is unusual and in order resolves within the default limits.
func TestLegitimateWorstCases(t *testing.T) {
	t.Run("four levels of glueless", func(t *testing.T) {
		script := tree + "@ 192.0.2.1\n"
		for i := range 4 {
			script += delegate(fmt.Sprintf("z%d.com.", i), 2, fmt.Sprintf("ns%%d.z%d.com.", i+1))
		}
		script += `?? z4.com. ANY
au z4.com. NS ns.z4.com.
ad ns.z4.com. A 192.0.2.3
@ 192.0.2.3
?? www.z0.com. A aa
an www.z0.com. A 192.0.2.80
`
		for i := range 4 {
			for j := range 2 {
				script += fmt.Sprintf("? ns%d.z%d.com. A aa\nan ns%d.z%d.com. A 192.0.2.3\n", j, i+1, j, i+1)
			}
		}
		newWorld(t, script).want("www.z0.com.", "A", "answer | www.z0.com. A 192.0.2.80")
	})
	t.Run("five servers of six addresses, half of them dead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			script := tree + "@ 192.0.2.1\n?? big.com. ANY\n"
			servers := ""
			for i := range 5 {
				script += fmt.Sprintf("au big.com. NS n%d.big.com.\n", i)
				for j := range 6 {
					addr := fmt.Sprintf("203.0.113.%d", 10*i+j)
					script += fmt.Sprintf("ad n%d.big.com. A %s\n", i, addr)
					servers += "@ " + addr + "\n? www.big.com. A aa\nan www.big.com. A 192.0.2.80\n"
				}
			}
			w := newWorld(t, script+servers)
			for i := range 30 { // the dead come first
				if i < 15 {
					w.dead[netip.MustParseAddr(fmt.Sprintf("203.0.113.%d", 10*(i/6)+i%6))] = true
				}
			}
			start := time.Now()
			w.want("www.big.com.", "A", "answer | www.big.com. A 192.0.2.80")
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
}

// TestLimits: each limit ends the work, and says that it was a limit.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
	}{
		{"queries", Limits{Queries: 2}},
		{"steps", Limits{Steps: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, tree+zone)
			w.configure(func(config *Config) { config.Limits = c.limits })
			if f := w.wantFailure("www.example.com.", "A", wire.EDENoReachable); !f.Budget || f.Timeout {
				t.Errorf("got %+v, want it to say that the budget was spent", f)
			}
		})
	}
	b := NewBudget(Limits{Bytes: 100, Lookups: 1, Depth: 2})
	server := netip.MustParseAddrPort("192.0.2.1:53")
	for range DefaultLimits.Connections {
		if err := b.Connect(server); err != nil {
			t.Fatal(err)
		}
	}
	if b.Connect(server) == nil || b.Connect(netip.MustParseAddrPort("192.0.2.2:53")) != nil {
		t.Error("the connections to one server are not bounded by themselves")
	}
	if b.Received(100) != nil || b.Received(1) == nil {
		t.Error("bytes are not bounded")
	}
	if b.lookup(2) == nil || b.lookup(1) != nil || b.lookup(1) == nil {
		t.Error("lookups are not bounded")
	}
}

package iterate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// tree is a root, com. and example.com., each on a server of its own.
const tree = `
@ 198.51.100.1
? . NS aa
an . NS a.root.
ad a.root. A 198.51.100.1
?? com. ANY
au com. NS a.gtld.net.
ad a.gtld.net. A 192.0.2.1
?? net. ANY
au net. NS a.gtld.net.
ad a.gtld.net. A 192.0.2.1
?? . ANY aa NXDOMAIN
au . SOA a.root. h.root. 1 2 3 4 5
@ 192.0.2.1
?? example.com. ANY
au example.com. NS ns.example.com.
ad ns.example.com. A 192.0.2.2
`

// zone is what example.com. answers for plain questions.
const zone = `
@ 192.0.2.2
? www.example.com. A aa
an www.example.com. A 192.0.2.80
au example.com. NS ns.example.com.
ad ns.example.com. A 192.0.2.2
? www.example.com. AAAA aa
au example.com. SOA ns.example.com. h.example.com. 1 2 3 4 5
? nx.example.com. A aa NXDOMAIN
au example.com. SOA ns.example.com. h.example.com. 1 2 3 4 5
? alias.example.com. A aa
an alias.example.com. CNAME www.example.com.
an www.example.com. A 203.0.113.66
? out.example.com. A aa
an out.example.com. CNAME www.example.net.
an www.example.net. A 203.0.113.66
au example.net. NS ns.evil.example.com.
`

const soa = "example.com. SOA"

func TestResolve(t *testing.T) {
	w := newWorld(t, tree+zone)
	res := w.want("www.example.com.", "A",
		"answer | www.example.com. A 192.0.2.80 | example.com. NS ns.example.com. | ns.example.com. A 192.0.2.2")
	w.wantAsked("198.51.100.1 com. A", "192.0.2.1 example.com. A", "192.0.2.2 www.example.com. A")
	if res.Zone.String() != "example.com." || !res.AA || res.Server.String() != "192.0.2.2:53" || res.Lease != w.now+3600 {
		t.Errorf("got zone %v AA %v server %v lease %d", res.Zone, res.AA, res.Server, res.Lease-w.now)
	}
	// A name one label below a known cut costs one query.
	w.want("nx.example.com.", "A", "NXDOMAIN NXDOMAIN | | "+soa)
	w.wantAsked("192.0.2.2 nx.example.com. A")
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.want("WWW.example.COM.", "A",
		"answer | www.example.com. A 192.0.2.80 | example.com. NS ns.example.com. | ns.example.com. A 192.0.2.2")
	w.want("org.", "A", "NXDOMAIN NXDOMAIN | | . SOA")
	w.wantAsked("198.51.100.1 org. A")
}

// TestAlias: what is said of the target of an alias is left for the target's own link, RFC 2181
// §5.4.1 where it lies in another zone.
func TestAlias(t *testing.T) {
	w := newWorld(t, tree+zone)
	w.want("alias.example.com.", "A", "alias to www.example.com. | alias.example.com. CNAME www.example.com.")
	w.want("out.example.com.", "A", "alias to www.example.net. | out.example.com. CNAME www.example.net.")
}

// TestDNAME: RFC 6672; the CNAME is ours, whatever the server made of it.
func TestDNAME(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 63)+".", 3) + strings.Repeat("x", 59) + "."
	w := newWorld(t, tree+`
@ 192.0.2.2
? www.d.example.com. A aa
an d.example.com. 300 DNAME example.net.
an www.d.example.com. 3600 CNAME www.evil.net.
an www.example.net. A 203.0.113.66
? plain.d.example.com. A aa
an d.example.com. 300 DNAME example.net.
? c.d.example.com. CNAME aa
an d.example.com. DNAME example.net.
? d.example.com. DNAME aa
an d.example.com. DNAME example.net.
? d.example.com. A aa
au example.com. SOA ns. h. 1 2 3 4 5
? two.d.example.com. A aa
an d.example.com. DNAME example.net.
an d.example.com. DNAME example.org.
? up.d.example.com. A aa
an com. DNAME example.net.
? a.l.example.com. A aa
an l.example.com. DNAME `+long+`
? ab.l.example.com. A aa YXDOMAIN
an l.example.com. DNAME `+long+`
`)
	w.want("www.d.example.com.", "A",
		"alias to www.example.net. | d.example.com. DNAME example.net. www.d.example.com. CNAME www.example.net.")
	res := w.want("plain.d.example.com.", "A",
		"alias to plain.example.net. | d.example.com. DNAME example.net. plain.d.example.com. CNAME plain.example.net.")
	if res.Answer[1].TTL != 300 {
		t.Errorf("got TTL %d of the CNAME, want that of the DNAME", res.Answer[1].TTL)
	}
	w.want("c.d.example.com.", "CNAME",
		"answer | d.example.com. DNAME example.net. c.d.example.com. CNAME c.example.net.")
	w.want("d.example.com.", "DNAME", "answer | d.example.com. DNAME example.net.")
	w.want("d.example.com.", "A", "NODATA | | "+soa)
	w.wantFailure("two.d.example.com.", "A", wire.EDENetworkError)
	w.wantFailure("up.d.example.com.", "A", wire.EDENetworkError)
	w.want("a.l.example.com.", "A", "alias to a."+long+" | l.example.com. DNAME "+long+" a.l.example.com. CNAME a."+long)
	w.want("ab.l.example.com.", "A", "answer YXDOMAIN | l.example.com. DNAME "+long)
}

// TestCNAMEWithOtherData: RFC 1034 §3.6.2 forbids it; the data asked for is taken where it is there,
// and of several CNAMEs (RFC 2181 §10.1) none.
func TestCNAMEWithOtherData(t *testing.T) {
	w := newWorld(t, tree+`
@ 192.0.2.2
? both.example.com. A aa
an both.example.com. CNAME www.example.com.
an both.example.com. A 192.0.2.81
? both.example.com. TXT aa
an both.example.com. CNAME www.example.com.
? both.example.com. CNAME aa
an both.example.com. CNAME www.example.com.
? two.example.com. A aa
an two.example.com. CNAME www.example.com.
an two.example.com. CNAME www2.example.com.
? nx.example.com. A aa NXDOMAIN
an nx.example.com. CNAME gone.example.com.
au example.com. SOA ns. h. 1 2 3 4 5
? contra.example.com. A aa NXDOMAIN
an contra.example.com. A 192.0.2.82
`)
	w.want("both.example.com.", "A", "answer | both.example.com. A 192.0.2.81")
	w.want("both.example.com.", "TXT", "alias to www.example.com. | both.example.com. CNAME www.example.com.")
	w.want("both.example.com.", "CNAME", "answer | both.example.com. CNAME www.example.com.")
	w.wantFailure("two.example.com.", "A", wire.EDENetworkError)
	// RFC 6604 §3: the RCODE is of the last name of the chain, which the alias is not.
	w.want("nx.example.com.", "A", "alias to gone.example.com. | nx.example.com. CNAME gone.example.com.")
	w.wantFailure("contra.example.com.", "A", wire.EDENetworkError)
}

func TestMinimisation(t *testing.T) {
	const script = tree + `
@ 192.0.2.2
? a.b.c.example.com. TXT aa
an a.b.c.example.com. TXT x
? c.example.com. A aa
au example.com. SOA ns. h. 1 2 3 4 5
? b.c.example.com. A aa
au example.com. SOA ns. h. 1 2 3 4 5
? x.ent.example.com. TXT aa
an x.ent.example.com. TXT x
? ent.example.com. A aa NXDOMAIN
au example.com. SOA ns. h. 1 2 3 4 5
? x.al.example.com. TXT aa
an x.al.example.com. TXT x
? al.example.com. A aa
an al.example.com. CNAME www.example.com.
? x.err.example.com. TXT aa
an x.err.example.com. TXT x
? err.example.com. A SERVFAIL
? x.mute.example.com. TXT aa
an x.mute.example.com. TXT x
? mute.example.com. A silent
? x.self.example.com. TXT aa
an x.self.example.com. TXT x
? self.example.com. A
au example.com. NS ns.example.com.
`
	run := func(t *testing.T, mode Minimisation, name, want string, asked ...string) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, script)
			w.configure(func(c *Config) { c.Minimisation = mode })
			w.resolve("example.com.", "A") // for the cuts
			if want == "" {
				if res, err := w.resolve(name, "TXT"); err == nil {
					t.Fatalf("got %s, want a failure", resultText(res))
				}
			} else {
				w.want(name, "TXT", want)
			}
			if asked != nil {
				w.wantAsked(asked...)
			}
		})
	}
	answer := func(name string) string { return "answer | " + name + ` TXT "x"` }
	for _, c := range []struct {
		name, label          string
		relaxed, strict, off []string // what is asked; nil of strict: a failure
		denied               bool     // strict says NXDOMAIN
	}{
		{name: "plain", label: "a.b.c", relaxed: []string{"c A", "b.c A", "a.b.c TXT"}, strict: []string{"c A", "b.c A", "a.b.c TXT"}, off: []string{"a.b.c TXT"}},
		{name: "empty non-terminal denied", label: "x.ent", relaxed: []string{"ent A", "x.ent TXT"}, strict: []string{"ent A"}, denied: true, off: []string{"x.ent TXT"}},
		{name: "alias", label: "x.al", relaxed: []string{"al A", "x.al TXT"}, strict: []string{"al A", "x.al TXT"}, off: []string{"x.al TXT"}},
		{name: "error", label: "x.err", relaxed: []string{"err A", "x.err TXT"}, off: []string{"x.err TXT"}},
		{name: "silence", label: "x.mute", relaxed: []string{"mute A", "x.mute TXT"}, off: []string{"x.mute TXT"}},
		{name: "referral to itself", label: "x.self", relaxed: []string{"self A", "x.self TXT"}, off: []string{"x.self TXT"}},
	} {
		full := func(asked []string) (out []string) {
			for _, a := range asked {
				label, qt, _ := strings.Cut(a, " ")
				out = append(out, "192.0.2.2 "+label+".example.com. "+qt)
			}
			return out
		}
		name := c.label + ".example.com."
		t.Run(c.name+"/relaxed", func(t *testing.T) { run(t, Relaxed, name, answer(name), full(c.relaxed)...) })
		t.Run(c.name+"/off", func(t *testing.T) { run(t, Off, name, answer(name), full(c.off)...) })
		t.Run(c.name+"/strict", func(t *testing.T) {
			switch {
			case c.denied:
				run(t, Strict, name, "NXDOMAIN NXDOMAIN | | "+soa, full(c.strict)...)
			case c.strict == nil:
				run(t, Strict, name, "")
			default:
				run(t, Strict, name, answer(name), full(c.strict)...)
			}
		})
	}
}

// TestMinimisationBound: RFC 9156 §2.3, MAX_MINIMISE_COUNT.
func TestMinimisationBound(t *testing.T) {
	for _, labels := range []int{1, 2, 3, 4, 5, 10, 11, 12, 34, 100, 126} {
		name := wire.MustName(strings.Repeat("a.", labels))
		m := minimiser{}
		asked, last := 0, 0
		for {
			q := m.next(name, wire.TypeTXT, wire.Root)
			asked++
			if n := q.name.Labels(); n <= last || q.t != wire.TypeA && n != labels {
				t.Fatalf("%d labels: query %d is %v %v after one of %d labels", labels, asked, q.name, q.t, last)
			} else if last = n; n == labels {
				break
			}
		}
		want := min(labels, maxMinimise+1)
		if asked > want || labels <= minimiseOneLabel && asked != labels {
			t.Errorf("%d labels: %d queries, want %d", labels, asked, want)
		}
	}
}

func TestReferral(t *testing.T) {
	// The servers of com. give addresses for names in com. and elsewhere.
	const script = `
@ 198.51.100.1
?? com. ANY
au com. NS a.gtld.net.
ad a.gtld.net. A 192.0.2.1
?? net. ANY
au net. NS a.gtld.net.
ad a.gtld.net. A 192.0.2.1
@ 192.0.2.1
?? example.com. ANY
au example.com. NS ns.sibling.com.
au example.com. NS ns.outside.net.
ad ns.sibling.com. A 192.0.2.3
ad ns.outside.net. A 203.0.113.66
?? aa.com. ANY aa
au aa.com. NS ns.aa.com.
ad ns.aa.com. A 192.0.2.3
?? ra.com. ANY ra
au ra.com. NS ns.ra.com.
ad ns.ra.com. A 192.0.2.3
?? inanswer.com. NS
an inanswer.com. NS ns.inanswer.com.
ad ns.inanswer.com. A 192.0.2.3
?? provisional.com. ANY
an www.provisional.com. A 203.0.113.66
au provisional.com. NS ns.provisional.com.
ad ns.provisional.com. A 192.0.2.3
?? soa.com. ANY
au soa.com. NS ns.soa.com.
au com. SOA a. b. 1 2 3 4 5
ad ns.soa.com. A 192.0.2.3
@ 203.0.113.66
?? . ANY aa
an www.example.com. A 203.0.113.66
@ 192.0.2.3
? www.example.com. A aa
an www.example.com. A 192.0.2.80
? www.aa.com. A aa
an www.aa.com. A 192.0.2.80
? www.ra.com. A aa
an www.ra.com. A 192.0.2.80
? www.provisional.com. A aa
an www.provisional.com. A 192.0.2.80
? inanswer.com. NS aa
an inanswer.com. NS ns.inanswer.com.
`
	w := newWorld(t, script)
	w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
	cut := w.cuts.Deepest(wire.MustName("www.example.com."), w.now)
	for _, s := range cut.Servers {
		if s.Name.String() == "ns.outside.net." && len(s.Addrs) > 0 {
			t.Errorf("kept glue from outside the zone: %v", s)
		}
	}
	w.want("www.aa.com.", "A", "answer | www.aa.com. A 192.0.2.80")
	w.want("www.ra.com.", "A", "answer | www.ra.com. A 192.0.2.80")
	w.want("www.provisional.com.", "A", "answer | www.provisional.com. A 192.0.2.80")
	w.want("inanswer.com.", "NS", "answer | inanswer.com. NS ns.inanswer.com.")
	// RFC 2308 §2.2: an SOA makes it a NODATA, NS or not.
	w.want("www.soa.com.", "A", "NODATA | | com. SOA")

	t.Run("lax glue", func(t *testing.T) {
		w := newWorld(t, script)
		w.configure(func(c *Config) { c.LaxGlue = true })
		w.resolve("www.example.com.", "A")
		cut := w.cuts.Deepest(wire.MustName("www.example.com."), w.now)
		if n := len(cut.Servers[0].Addrs) + len(cut.Servers[1].Addrs); n != 2 {
			t.Errorf("got %v, want both servers with their address", cut.Servers)
		}
	})
}

// TestForgedAuthority: RFC 2181 §5.4.1; what a response says beside its question changes no cut, and
// is not in the result.
func TestForgedAuthority(t *testing.T) {
	w := newWorld(t, tree+`
@ 192.0.2.2
? www.example.com. A aa
an www.example.com. A 192.0.2.80
an www.other.com. A 203.0.113.66
au com. NS ns.evil.example.com.
au other.com. NS ns.evil.example.com.
au mail.example.com. NS ns.evil.example.com.
au example.com. NS ns.evil.example.com.
ad ns.evil.example.com. A 203.0.113.66
ad a.gtld.net. A 203.0.113.66
ad mail.example.com. A 203.0.113.66
? mail.example.com. A aa
an mail.example.com. A 192.0.2.81
@ 203.0.113.66
?? . ANY aa
an mail.example.com. A 203.0.113.66
`)
	w.want("www.example.com.", "A",
		"answer | www.example.com. A 192.0.2.80 | example.com. NS ns.evil.example.com. | ns.evil.example.com. A 203.0.113.66")
	for name, want := range map[string]string{"mail.example.com.": "192.0.2.2:53", "other.com.": "192.0.2.1:53"} {
		cut := w.cuts.Deepest(wire.MustName(name), w.now)
		if got := cut.Servers[0].Addrs[0].String(); got != want {
			t.Errorf("%s: got cut %v at %s, want %s", name, cut.Zone, got, want)
		}
	}
	w.want("mail.example.com.", "A", "answer | mail.example.com. A 192.0.2.81")
}

// TestUpwardEscape: a zone that exists in the parent's mind only is answered from where it is.
func TestUpwardEscape(t *testing.T) {
	w := newWorld(t, `
@ 198.51.100.1
?? www.example.com. ANY
au www.example.com. NS ns.example.com.
ad ns.example.com. A 192.0.2.2
?? . ANY aa
au . SOA a. b. 1 2 3 4 5
@ 192.0.2.2
? www.example.com. A
an www.example.com. A 192.0.2.80
au example.com. NS ns.example.com.
`)
	w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
}

// TestLame: a server that does not serve the zone is passed over, and where all are, that is a
// failure and no denial.
func TestLame(t *testing.T) {
	for _, c := range []struct {
		name, entry string
		want        string // what one such server alone gives; "" a failure
	}{
		{"upward referral", "?? . ANY\nau . NS a.root.", ""},
		{"upward referral with AA", "?? . ANY aa\nau com. NS a.gtld.net.", ""},
		{"referral to itself", "?? . ANY\nau example.com. NS ns1.example.com.", ""},
		{"sideways referral", "?? . ANY\nau example.net. NS ns1.example.com.", ""},
		{"refused", "?? . ANY REFUSED", ""},
		{"notauth", "?? . ANY NOTAUTH", ""},
		{"servfail", "?? . ANY SERVFAIL", ""},
		{"notimp", "?? . ANY NOTIMP", ""},
		{"yxdomain without DNAME", "?? . ANY YXDOMAIN", ""},
		{"silent", "?? . ANY silent", ""},
		{"empty", "?? . ANY aa", "NODATA"},
		{"empty without AA", "?? . ANY", "NODATA"},
		{"own NS set alone", "?? . ANY aa\nau example.com. NS ns1.example.com.", "NODATA | | example.com. NS ns1.example.com."},
		{"recursive answer", "?? . ANY ra\nan www.example.com. A 203.0.113.66", "answer | www.example.com. A 203.0.113.66"},
		{"recursive NODATA", "?? . ANY ra\nau example.com. SOA a. b. 1 2 3 4 5", "NODATA | | " + soa},
		{"recursive NXDOMAIN", "?? . ANY ra NXDOMAIN\nau example.com. SOA a. b. 1 2 3 4 5", "NXDOMAIN NXDOMAIN | | " + soa},
		{"denial by the parent", "?? . ANY aa NXDOMAIN\nau com. SOA a. b. 1 2 3 4 5", "NXDOMAIN NXDOMAIN"},
	} {
		script := `
@ 198.51.100.1
?? example.com. ANY
au example.com. NS ns1.example.com.
au example.com. NS ns2.example.com.
ad ns1.example.com. A 192.0.2.2
ad ns2.example.com. A 192.0.2.3
?? . ANY aa NXDOMAIN
au . SOA a.root. h.root. 1 2 3 4 5
@ 192.0.2.2
` + c.entry + `
@ 192.0.2.3
`
		t.Run(c.name+"/beside a good one", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, script+"? www.example.com. A aa\nan www.example.com. A 192.0.2.80")
				w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
			})
		})
		t.Run(c.name+"/alone", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, script+c.entry)
				if c.want != "" {
					w.want("www.example.com.", "A", c.want)
					return
				}
				res, err := w.resolve("www.example.com.", "A")
				if err == nil {
					t.Fatalf("got %s, want a failure", resultText(res))
				}
				if text := err.Error(); !strings.Contains(text, "example.com.") || !strings.Contains(text, "192.0.2.2 ") {
					t.Errorf("the failure %q names neither zone nor server", text)
				}
			})
		})
	}
}

// TestLameForOneType: a server lame for one type is asked for another.
func TestLameForOneType(t *testing.T) {
	w := newWorld(t, tree+`
@ 192.0.2.2
? www.example.com. A aa
an www.example.com. A 192.0.2.80
? www.example.com. AAAA aa
au . NS a.root.
`)
	w.wantFailure("www.example.com.", "AAAA", wire.EDENoReachable)
	w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
}

func TestFailureCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tree)
		w.resolve("example.com.", "A")
		w.dead[netip.MustParseAddr("192.0.2.2")] = true
		start := time.Now()
		f := w.wantFailure("www.example.com.", "A", wire.EDENoReachable)
		if !f.Timeout || f.Zone.String() != "example.com." || f.Text != "zone example.com.: 192.0.2.2 timeout" {
			t.Errorf("got %+v", f)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		if n := strings.Count(strings.Join(w.asked, "\n"), "192.0.2.2 "); n != 3 {
			t.Errorf("a silent server was asked %d times, want 3", n)
		}
	})
	w := newWorld(t, tree+"@ 192.0.2.2\n?? . ANY SERVFAIL")
	if f := w.wantFailure("www.example.com.", "A", wire.EDENetworkError); f.Timeout {
		t.Errorf("got %+v, want no timeout", f)
	}
}

// TestFailover: with one server of two dead, the other answers within a second.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(tree, "ad ns.example.com. A 192.0.2.2",
			"ad ns.example.com. A 192.0.2.9\nad ns.example.com. A 192.0.2.2\nad ns.example.com. AAAA 2001:db8::9", 1)+zone)
		w.dead[netip.MustParseAddr("192.0.2.9")] = true
		start := time.Now()
		w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		// A lost packet is sent again.
		w.dead[netip.MustParseAddr("192.0.2.2")] = true
		w.dead[netip.MustParseAddr("2001:db8::9")] = true
		w.back[netip.MustParseAddr("192.0.2.2")] = time.Now().Add(1500 * time.Millisecond)
		w.want("nx.example.com.", "A", "NXDOMAIN NXDOMAIN | | "+soa)
	})
}

func TestNegative(t *testing.T) {
	w := newWorld(t, tree+`
@ 192.0.2.2
? nosoa.example.com. A aa NXDOMAIN
? foreign.example.com. A aa
au example.net. SOA a. b. 1 2 3 4 5
? own.example.com. A aa
au example.com. NS ns.example.com.
? nsec.example.com. A aa
au nsec.example.com. NSEC z.example.com. TXT
? type1.example.com. A aa
au example.com. SOA a. b. 1 2 3 4 5
au example.com. NS ns.example.com.
? deep.sub.example.com. A aa NXDOMAIN
au sub.example.com. SOA a. b. 1 2 3 4 5
au outside.net. NSEC z.outside.net. TXT
`)
	w.want("nosoa.example.com.", "A", "NXDOMAIN NXDOMAIN")
	w.want("foreign.example.com.", "A", "NODATA") // after nobody said better
	w.want("own.example.com.", "A", "NODATA | | example.com. NS ns.example.com.")
	w.want("nsec.example.com.", "A", "NODATA | | nsec.example.com. NSEC z.example.com. TXT")
	w.want("type1.example.com.", "A", "NODATA | | "+soa+" example.com. NS ns.example.com.")
	w.want("deep.sub.example.com.", "A", "NXDOMAIN NXDOMAIN | | sub.example.com. SOA")
}

// TestEmptyResponse: an empty response is believed only where nobody says more.
func TestEmptyResponse(t *testing.T) {
	const script = `
@ 198.51.100.1
?? example.com. ANY
au example.com. NS ns1.example.com.
au example.com. NS ns.glueless.net.
ad ns1.example.com. A 192.0.2.2
? ns.glueless.net. A aa
an ns.glueless.net. A 192.0.2.3
?? . ANY aa
au . SOA a. b. 1 2 3 4 5
@ 192.0.2.2
?? . ANY aa
@ 192.0.2.3
`
	w := newWorld(t, script+"? www.example.com. A aa\nan www.example.com. A 192.0.2.80")
	w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
	w = newWorld(t, script+"?? . ANY aa")
	w.want("www.example.com.", "A", "NODATA")
}

// TestDS: RFC 4035 §3.1.4.1; the DS RRset is the parent's.
func TestDS(t *testing.T) {
	const ds = "12345 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF"
	w := newWorld(t, tree+zone+`
@ 192.0.2.1
? direct.com. DS aa
an direct.com. DS `+ds+`
? none.com. DS aa
au com. SOA a. b. 1 2 3 4 5
au none.com. NSEC z.com. NS
?? child.com. DS aa
au child.com. SOA a. b. 1 2 3 4 5
?? old.com. ANY
au old.com. NS ns.old.com.
ad ns.old.com. A 192.0.2.2
?? ref.com. ANY
au ref.com. NS ns.ref.com.
au ref.com. DS `+ds+`
ad ns.ref.com. A 192.0.2.2
?? insecure.com. ANY
au insecure.com. NS ns.insecure.com.
au insecure.com. NSEC z.com. NS
ad ns.insecure.com. A 192.0.2.2
`)
	w.cuts.Store(&zonecut.Cut{Zone: wire.MustName("direct.com."), Parent: wire.MustName("com."),
		Servers: []zonecut.Server{{Name: wire.MustName("ns.direct.com."), Addrs: addrs("192.0.2.2")}}, Expires: w.now + 100}, w.now, 0)
	w.want("direct.com.", "DS", "answer | direct.com. DS "+ds)
	w.want("none.com.", "DS", "NODATA | | com. SOA none.com. NSEC z.com. NS")
	w.wantFailure("child.com.", "DS", wire.EDENetworkError)
	w.want("old.com.", "DS", "NODATA")
	w.want("ref.com.", "DS", "answer | ref.com. DS "+ds+" | ref.com. NS ns.ref.com. | ns.ref.com. A 192.0.2.2")
	w.want("insecure.com.", "DS", "NODATA | | insecure.com. NSEC z.com. NS")

	for zone, want := range map[string]wire.Type{"ref.com.": wire.TypeDS, "insecure.com.": wire.TypeNSEC} {
		cut := w.cuts.Deepest(wire.MustName(zone), w.now)
		if cut.Zone.String() != zone || len(cut.DS) != 1 || cut.DS[0].Type != want {
			t.Errorf("%s: got cut %v with %v, want its %v", zone, cut.Zone, cut.DS, want)
		}
	}
}

// TestParentAndChildOnOneServer: a server of both zones answers for the child without a referral.
func TestParentAndChildOnOneServer(t *testing.T) {
	w := newWorld(t, tree+`
@ 192.0.2.2
? sub.example.com. A aa
au sub.example.com. SOA a. b. 1 2 3 4 5
? www.sub.example.com. A aa
an www.sub.example.com. A 192.0.2.80
au sub.example.com. NS ns.example.com.
? sub.example.com. DNSKEY aa
an sub.example.com. DNSKEY 257 3 13 AAAA
? sub.example.com. NS aa
an sub.example.com. NS ns.example.com.
? sub.example.com. DS aa
au example.com. SOA a. b. 1 2 3 4 5
`)
	res := w.want("www.sub.example.com.", "A", "answer | www.sub.example.com. A 192.0.2.80 | sub.example.com. NS ns.example.com.")
	if res.Zone.String() != "example.com." {
		t.Errorf("got zone %v, want the cut that is known", res.Zone)
	}
	w.want("sub.example.com.", "DNSKEY", "answer | sub.example.com. DNSKEY 257 3 13 AAAA")
	w.want("sub.example.com.", "NS", "answer | sub.example.com. NS ns.example.com.")
	w.want("sub.example.com.", "DS", "NODATA | | "+soa)
	w.wantAsked("192.0.2.2 sub.example.com. DS")
}

// TestGhostDomain: the child's own NS set, however often seen, renews no delegation.
func TestGhostDomain(t *testing.T) {
	w := newWorld(t, strings.Replace(tree, "au example.com. NS ns.example.com.", "au example.com. 100 NS ns.example.com.", 1)+zone)
	begin := w.now
	for ; w.now < begin+100; w.now += 9 {
		w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
		if res, _ := w.resolve("www.example.com.", "A"); res.Lease != begin+100 {
			t.Fatalf("%d s on: got a lease %d s long, want %d", w.now-begin, res.Lease-w.now, begin+100-w.now)
		}
	}
	w.servers[netip.MustParseAddr("192.0.2.1")] = nil
	w.parse("@ 192.0.2.1\n?? . ANY aa NXDOMAIN\nau com. SOA a. b. 1 2 3 4 5")
	w.now = begin + 100
	w.want("www.example.com.", "A", "NXDOMAIN NXDOMAIN | | com. SOA")
}

// TestRenew: the parent renews a cut, and nothing else does.
func TestRenew(t *testing.T) {
	w := newWorld(t, tree+zone)
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.now += 3000
	task := Task{Source: w, Budget: w.budget, Epoch: w.cache.Epoch()}
	w.asked = nil
	if err := w.it.Renew(t.Context(), &task, wire.MustName("Example.com.")); err != nil {
		t.Fatal(err)
	}
	w.wantAsked("192.0.2.1 example.com. NS")
	if cut := w.cuts.Deepest(wire.MustName("example.com."), w.now); cut.Expires != w.now+3600 || cut.Since != w.now-3000 {
		t.Errorf("got %d s left since %d s, want 3600 and 3000", cut.Expires-w.now, w.now-cut.Since)
	}
	// A parent that denies the zone, or has it itself, grants nothing.
	for _, answer := range []string{"? example.com. NS aa NXDOMAIN\nau com. SOA a. b. 1 2 3 4 5", "? example.com. NS aa\nan example.com. NS ns.example.com."} {
		w.servers[netip.MustParseAddr("192.0.2.1")] = nil
		w.parse("@ 192.0.2.1\n" + answer)
		if err := w.it.Renew(t.Context(), &task, wire.MustName("example.com.")); err != ErrNoGrant {
			t.Errorf("got %v, want ErrNoGrant", err)
		}
	}
	if cut := w.cuts.Deepest(wire.MustName("example.com."), w.now); cut.Expires != w.now+3600 {
		t.Errorf("got %d s left, want 3600 still", cut.Expires-w.now)
	}
	w.asked = nil
	if err := w.it.Renew(t.Context(), &task, wire.Root); err != nil || !slices.Equal(w.asked, []string{"198.51.100.1 . NS"}) {
		t.Errorf("renewal of the root: %v, asked %v", err, w.asked)
	}
}

// TestMovedDelegation: where none of a cut's servers is any use, the parent is asked whether it still
// holds, though not for a grant just given.
func TestMovedDelegation(t *testing.T) {
	w := newWorld(t, tree+zone)
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.servers = map[netip.Addr][]*scripted{}
	w.parse(strings.ReplaceAll(tree+zone, "192.0.2.2", "192.0.2.7"))
	w.wantFailure("www.example.com.", "AAAA", wire.EDENoReachable)
	w.wantAsked("192.0.2.2 www.example.com. AAAA")
	w.now += staleGrant
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.wantAsked("192.0.2.2 www.example.com. AAAA", "192.0.2.1 example.com. NS", "192.0.2.7 www.example.com. AAAA")
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.wantAsked("192.0.2.7 www.example.com. AAAA")

	// Where it holds, that is all; and it is not asked again soon.
	w.servers[netip.MustParseAddr("192.0.2.7")] = nil
	w.now += staleGrant
	w.wantFailure("www.example.com.", "AAAA", wire.EDENoReachable)
	w.wantAsked("192.0.2.7 www.example.com. AAAA", "192.0.2.1 example.com. NS")
	w.wantFailure("www.example.com.", "AAAA", wire.EDENoReachable)
	w.wantAsked("192.0.2.7 www.example.com. AAAA")
}

// TestAvoid: servers to avoid are not asked, though others must be looked up for it.
func TestAvoid(t *testing.T) {
	w := newWorld(t, tree+zone+`
@ 192.0.2.2
? ns.example.com. AAAA aa
an ns.example.com. AAAA 2001:db8::2
@ 2001:db8::2
? www.example.com. A aa
an www.example.com. A 192.0.2.81
`)
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	res, err := w.resolve("www.example.com.", "A", "192.0.2.2")
	if err != nil || resultText(res) != "answer | www.example.com. A 192.0.2.81" {
		t.Errorf("got %v, %v, want the answer of the other address", res, err)
	}
	if res, err = w.resolve("www.example.com.", "A", "192.0.2.2", "2001:db8::2"); err == nil {
		t.Errorf("got %s, want a failure", resultText(res))
	}
}

func TestPriming(t *testing.T) {
	hints := []zonecut.Server{
		{Name: wire.MustName("a.root."), Addrs: addrs("198.51.100.1")},
		{Name: wire.MustName("b.root."), Addrs: addrs("198.51.100.2")},
	}
	t.Run("once", func(t *testing.T) {
		w := newWorld(t, tree+zone)
		w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
		if w.asked[0] != "198.51.100.1 . NS" {
			t.Errorf("asked %v, want the root's NS set first", w.asked)
		}
		w.want("org.", "A", "NXDOMAIN NXDOMAIN | | . SOA")
		if len(w.asked) != 1 {
			t.Errorf("asked %v, want no priming again", w.asked)
		}
		w.now += 3600
		w.want("org.", "A", "NXDOMAIN NXDOMAIN | | . SOA")
		if len(w.asked) != 2 || w.asked[0] != "198.51.100.1 . NS" {
			t.Errorf("asked %v, want priming again after its TTL", w.asked)
		}
	})
	t.Run("no glue", func(t *testing.T) {
		w := newWorld(t, "@ 198.51.100.1\n? . NS aa\nan . NS c.root.\nan . NS B.root.\n@ 198.51.100.2\n? org. A aa\nan org. A 192.0.2.9")
		w.cutsWith(zonecut.Config{Hints: hints})
		w.want("org.", "A", "answer | org. A 192.0.2.9")
	})
	t.Run("no glue and other names", func(t *testing.T) {
		w := newWorld(t, "@ 198.51.100.1\n? . NS aa\nan . NS c.root.\n? org. A aa\nan org. A 192.0.2.9")
		w.want("org.", "A", "answer | org. A 192.0.2.9")
	})
	t.Run("failing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "@ 198.51.100.1\n? . NS SERVFAIL\n? org. A aa\nan org. A 192.0.2.9")
			w.want("org.", "A", "answer | org. A 192.0.2.9")
			w.want("org.", "A", "answer | org. A 192.0.2.9")
			if len(w.asked) != 1 {
				t.Errorf("asked %v, want no priming again at once", w.asked)
			}
			time.Sleep(primeAgain)
			w.want("org.", "A", "answer | org. A 192.0.2.9")
			if len(w.asked) != 2 {
				t.Errorf("asked %v, want priming again", w.asked)
			}
		})
	})
	t.Run("lame root", func(t *testing.T) {
		w := newWorld(t, "@ 198.51.100.1\n?? . ANY SERVFAIL")
		w.wantFailure("www.example.com.", "A", wire.EDENetworkError)
	})
}

func TestConfigured(t *testing.T) {
	w := newWorld(t, tree+zone+`
@ 192.0.2.50
? a.stub. A aa
an a.stub. A 192.0.2.80
@ 192.0.2.51
? x.y.corp. A ra
an x.y.corp. CNAME z.corp.
an z.corp. A 192.0.2.81
? none.corp. A ra
? www.example.com. AAAA SERVFAIL
@ 192.0.2.52
? primed. NS aa
an primed. NS ns.primed.
ad ns.primed. A 192.0.2.53
@ 192.0.2.53
? a.primed. A aa
an a.primed. A 192.0.2.83
`)
	zone := func(name, server string) zonecut.Configured {
		return zonecut.Configured{Zone: wire.MustName(name), Servers: []zonecut.Server{{Addrs: addrs(server)}}}
	}
	stub, corp, first, primed := zone("stub.", "192.0.2.50"), zone("corp.", "192.0.2.51"), zone("example.com.", "192.0.2.51"), zone("primed.", "192.0.2.52")
	corp.Forward, corp.TCP = true, true
	first.Forward, first.First = true, true
	primed.Prime = true
	w.cutsWith(zonecut.Config{Configured: []zonecut.Configured{stub, corp, first, primed}})
	w.want("a.stub.", "A", "answer | a.stub. A 192.0.2.80")
	w.want("x.y.corp.", "A", "alias to z.corp. | x.y.corp. CNAME z.corp.")
	w.wantAsked("192.0.2.51 x.y.corp. A rd tcp")
	w.want("none.corp.", "A", "NODATA")
	w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
	w.wantAsked("192.0.2.51 www.example.com. AAAA rd", "198.51.100.1 com. A", "192.0.2.1 example.com. A", "192.0.2.2 www.example.com. AAAA")
	w.want("a.primed.", "A", "answer | a.primed. A 192.0.2.83")
	w.wantFailure("b.stub.", "A", wire.EDENoReachable)
}

func TestWildcardProof(t *testing.T) {
	const sig = " 13 2 3600 20380101000000 20200101000000 1 example.com. AAAA"
	w := newWorld(t, tree+`
@ 192.0.2.2
? w.example.com. A aa
an w.example.com. A 192.0.2.80
an w.example.com. RRSIG A`+sig+`
au a.example.com. NSEC z.example.com. TXT
au a.example.com. RRSIG NSEC`+strings.Replace(sig, "13 2", "13 3", 1)+`
? plain.example.com. A aa
an plain.example.com. A 192.0.2.80
an plain.example.com. RRSIG A`+strings.Replace(sig, "13 2", "13 3", 1)+`
au a.example.com. NSEC z.example.com. TXT
`)
	res := w.want("w.example.com.", "A", "answer | w.example.com. A 192.0.2.80 | a.example.com. NSEC z.example.com. TXT")
	if len(res.Answer[0].Sigs) != 1 || len(res.Authority[0].Sigs) != 1 {
		t.Error("signatures are missing")
	}
	w.want("plain.example.com.", "A", "answer | plain.example.com. A 192.0.2.80")
}

// TestHugeRRset: an RRset of more records than any zone needs is refused, cheaply.
func TestHugeRRset(t *testing.T) {
	var b strings.Builder
	b.WriteString("@ 198.51.100.1\n?? . ANY\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "au com. NS n%d.com.\nad n%d.com. A 192.0.2.%d\n", i, i, i%250+1)
	}
	w := newWorld(t, b.String())
	w.wantFailure("www.example.com.", "A", wire.EDENetworkError)
}

func TestStrings(t *testing.T) {
	for c := isAnswer; c <= isBroken; c++ {
		if c.String() == "" {
			t.Errorf("class %d has no name", c)
		}
	}
	for m := Relaxed; m <= Off; m++ {
		if got, err := ParseMinimisation(m.String()); err != nil || got != m {
			t.Errorf("%v: got %v, %v", m, got, err)
		}
	}
	if _, err := ParseMinimisation("lax"); err == nil {
		t.Error("lax is no mode")
	}
}

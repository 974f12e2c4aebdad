package validate

import (
	"encoding/base32"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// prove takes NSEC and NSEC3 records as secure evidence of a zone, against a question.
func prove(t testing.TB, zone, records, name, qtype string) (proof, string) {
	t.Helper()
	j := newJudgement(t, Config{}, &wire.RRset{Owner: wire.MustName(zone), RDATA: [][]byte{make([]byte, 5)}})
	why := "no evidence"
	for _, e := range gatherText(t, j, zone, records) {
		p := prover{j, &e}
		var out proof
		if out, why = p.denies(wire.MustName(name), wire.Type(dns.StringToType[qtype])); why == "" {
			return out, ""
		}
	}
	return proof{}, why
}

func gatherText(t testing.TB, j *judgement, zone, records string) []evidence {
	t.Helper()
	sets := parseSets(t, &dns.Msg{Ns: readRecords(t, strings.ReplaceAll(records, ";", "\n"))})
	for i := range sets {
		if sets[i].Type == wire.TypeNSEC {
			j.addNSEC(wire.MustName(zone), i, &sets[i])
		} else {
			j.addNSEC3(wire.MustName(zone), i, &sets[i])
		}
	}
	return j.evidence
}

// denialCase is a question to evidence; want is "" for no proof, or what is proven.
type denialCase struct{ what, records, name, qtype, want string }

func runDenials(t *testing.T, zone string, cases []denialCase) {
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			p, why := prove(t, zone, c.records, c.name, c.qtype)
			got := [...]string{"", "NODATA", "NXDOMAIN"}[p.denial]
			if p.compact {
				got += " compact"
			}
			if p.optOut {
				got += " opt-out"
			}
			if why != "" {
				got = ""
			}
			if got != c.want {
				t.Errorf("got %q, want %q (%s)", got, c.want, why)
			}
		})
	}
}

func TestNSEC(t *testing.T) {
	runDenials(t, "example.", []denialCase{
		{"NODATA", "a NSEC c.example. A RRSIG NSEC", "a.example.", "AAAA", "NODATA"},
		{"NODATA in other case", "A NSEC c.example. A RRSIG NSEC", "a.eXample.", "AAAA", "NODATA"},
		{"the type is there", "a NSEC c.example. A RRSIG NSEC", "a.example.", "A", ""},
		{"RFC 6840 §4.3: an alias is there", "a NSEC c.example. CNAME RRSIG NSEC", "a.example.", "A", ""},
		{"an alias is there, asked for", "a NSEC c.example. CNAME RRSIG NSEC", "a.example.", "CNAME", ""},
		{"an alias is there, DS asked for", "a NSEC c.example. CNAME RRSIG NSEC", "a.example.", "DS", ""},
		{"ANY of a name with types", "a NSEC c.example. A RRSIG NSEC", "a.example.", "ANY", ""},
		{"ANY of a name without", "a NSEC c.example. RRSIG NSEC", "a.example.", "ANY", "NODATA"},
		{"RFC 6840 §4.1: parent's NSEC, not the DS", "a NSEC c.example. NS RRSIG NSEC", "a.example.", "A", ""},
		{"parent's NSEC, the DS", "a NSEC c.example. NS RRSIG NSEC", "a.example.", "DS", "NODATA"},
		{"parent's NSEC, with a DS", "a NSEC c.example. NS DS RRSIG NSEC", "a.example.", "DS", ""},
		{"apex", "example. NSEC c.example. NS SOA RRSIG NSEC DNSKEY", "example.", "A", "NODATA"},
		{"RFC 6840 §4.4: the child's NSEC, the DS", "example. NSEC c.example. NS SOA RRSIG NSEC DNSKEY", "example.", "DS", ""},
		{"both sides in one NSEC, the DS", "a NSEC c.example. NS SOA RRSIG NSEC", "a.example.", "DS", ""},
		{"other name's", "b NSEC c.example. A RRSIG NSEC", "a.example.", "AAAA", ""},

		{"NXDOMAIN", "a NSEC c.example. A RRSIG NSEC;example. NSEC a.example. SOA NS RRSIG NSEC", "b.example.", "A", "NXDOMAIN"},
		{"without the wildcard's", "a NSEC c.example. A RRSIG NSEC", "b.example.", "A", ""},
		{"without the name's", "example. NSEC a.example. SOA NS RRSIG NSEC", "b.example.", "A", ""},
		{"one for both", "example. NSEC c.example. SOA NS RRSIG NSEC", "b.example.", "A", "NXDOMAIN"},
		{"last of the zone", "c NSEC example. A RRSIG NSEC;example. NSEC a.example. NS SOA RRSIG NSEC", "d.example.", "A", "NXDOMAIN"},
		{"last of the zone, before it", "c NSEC example. A RRSIG NSEC;example. NSEC a.example. NS SOA RRSIG NSEC", "b.example.", "A", ""},
		{"only name of the zone", "example. NSEC example. NS SOA RRSIG NSEC", "d.example.", "A", "NXDOMAIN"},
		{"only name of the zone, the apex", "example. NSEC example. NS SOA RRSIG NSEC", "example.", "A", "NODATA"},
		{"the owner is not covered", "a NSEC c.example. NSEC;example. NSEC a.example. SOA NS RRSIG NSEC", "a.example.", "NSEC", ""},
		{"the next name is not covered", "a NSEC c.example. A;example. NSEC a.example. SOA NS RRSIG NSEC", "c.example.", "A", ""},
		{"wildcard of a closer encloser", "a.w NSEC c.w.example. A RRSIG NSEC;w NSEC a.w.example. A RRSIG NSEC", "b.w.example.", "A", "NXDOMAIN"},
		{"wildcard of the wrong encloser", "a.w NSEC c.w.example. A RRSIG NSEC;example. NSEC a.example. NS SOA RRSIG NSEC", "b.w.example.", "A", ""},
		{"encloser by the next name", "a NSEC x.w.example. A RRSIG NSEC", "b.w.example.", "A", "NXDOMAIN"},

		{"ENT", "a NSEC x.w.example. A RRSIG NSEC", "w.example.", "A", "NODATA"},
		{"ENT, any type", "a NSEC x.w.example. A RRSIG NSEC", "w.example.", "DS", "NODATA"},
		{"deep ENT", "a NSEC x.y.z.w.example. A RRSIG NSEC", "z.w.example.", "A", "NODATA"},

		{"wildcard NODATA", "a NSEC c.example. A RRSIG NSEC;*.example. NSEC a.example. A RRSIG NSEC", "b.example.", "AAAA", "NODATA"},
		{"wildcard answers", "a NSEC c.example. A RRSIG NSEC;*.example. NSEC a.example. A RRSIG NSEC", "b.example.", "A", ""},
		{"wildcard is an alias", "a NSEC c.example. A RRSIG NSEC;*.example. NSEC a.example. CNAME RRSIG NSEC", "b.example.", "A", ""},
		{"wildcard without the name's", "*.example. NSEC a.example. A RRSIG NSEC", "b.example.", "AAAA", ""},
		{"wildcard of the wrong encloser matches", "a.w NSEC c.w.example. A RRSIG NSEC;*.example. NSEC a.example. A RRSIG NSEC", "b.w.example.", "AAAA", ""},
		{"wildcard is an ENT", "a NSEC c.example. A RRSIG NSEC;example. NSEC x.*.example. NS SOA RRSIG NSEC", "b.example.", "A", "NODATA"},
		{"the wildcard itself", "*.example. NSEC a.example. A RRSIG NSEC", "*.example.", "AAAA", "NODATA"},

		{"RFC 6840 §4.1: below a delegation", "a NSEC c.example. NS RRSIG NSEC;example. NSEC a.example. NS SOA RRSIG NSEC", "b.a.example.", "A", ""},
		{"below a delegation, DS", "a NSEC c.example. NS RRSIG NSEC;example. NSEC a.example. NS SOA RRSIG NSEC", "b.a.example.", "DS", ""},
		{"beside a delegation", "a NSEC c.example. NS RRSIG NSEC;example. NSEC a.example. NS SOA RRSIG NSEC", "b.example.", "A", "NXDOMAIN"},
		{"RFC 6672 §5.3.4.1: below a DNAME", "a NSEC c.example. DNAME RRSIG NSEC;example. NSEC a.example. NS SOA RRSIG NSEC", "b.a.example.", "A", ""},
		{"at a DNAME", "a NSEC c.example. DNAME RRSIG NSEC", "a.example.", "A", "NODATA"},
		{"below an apex DNAME", "example. NSEC example. NS SOA DNAME RRSIG NSEC", "b.example.", "A", ""},
		{"below an apex", "example. NSEC z.example. NS SOA RRSIG NSEC", "b.example.", "A", "NXDOMAIN"},

		{"next name outside the zone", "a NSEC c.other. A RRSIG NSEC;example. NSEC a.example. SOA NS RRSIG NSEC", "b.example.", "A", ""},
		{"next name before the owner", "c NSEC a.example. A RRSIG NSEC;example. NSEC a.example. SOA NS RRSIG NSEC", "d.example.", "A", ""},
		{"name outside the zone", "example. NSEC example. NS SOA RRSIG NSEC", "other.", "A", ""},
		{"above the zone", "example. NSEC example. NS SOA RRSIG NSEC", ".", "A", ""},

		{"RFC 9824: NXNAME", "b NSEC \\000.b.example. RRSIG NSEC TYPE128", "b.example.", "A", "NXDOMAIN compact"},
		{"NXNAME beside types", "b NSEC \\000.b.example. A RRSIG NSEC TYPE128", "b.example.", "TXT", ""},
		{"compact NODATA", "b NSEC \\000.b.example. A RRSIG NSEC", "b.example.", "TXT", "NODATA"},
		{"compact ENT", "b NSEC \\000.b.example. RRSIG NSEC", "b.example.", "TXT", "NODATA"},
		{"NXNAME of another name", "b NSEC \\000.b.example. RRSIG NSEC TYPE128", "c.example.", "A", ""},
	})
	runDenials(t, "a.example.", []denialCase{
		{"DS denied by the zone itself", "a NSEC b.a.example. NS RRSIG NSEC", "a.example.", "DS", ""},
		{"DS below", "a NSEC c.a.example. NS SOA RRSIG NSEC", "b.a.example.", "DS", "NXDOMAIN"},
	})
	runDenials(t, ".", []denialCase{
		{"DS of the root", ". NSEC aaa. NS SOA RRSIG NSEC DNSKEY", ".", "DS", "NODATA"},
		{"TLD", "a. NSEC c. NS RRSIG NSEC;. NSEC a. NS SOA RRSIG NSEC", "b.", "A", "NXDOMAIN"},
	})
}

// The zone of RFC 5155 appendix A, as its NSEC3 RRs.
var rfc5155 = map[string]string{
	"example": "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr NS SOA MX RRSIG DNSKEY NSEC3PARAM",
	"ns1":     "2t7b4g4vsa5smi47k61mv5bv1a22bojr NSEC3 1 1 12 aabbccdd 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG",
	"x.y.w":   "2vptu5timamqttgl4luu9kg21e0aor3s NSEC3 1 1 12 aabbccdd 35mthgpgcu1qg68fab165klnsnk3dpvl MX RRSIG",
	"a":       "35mthgpgcu1qg68fab165klnsnk3dpvl NSEC3 1 1 12 aabbccdd b4um86eghhds6nea196smvmlo4ors995 NS DS RRSIG",
	"x.w":     "b4um86eghhds6nea196smvmlo4ors995 NSEC3 1 1 12 aabbccdd gjeqe526plbf1g8mklp59enfd789njgi MX RRSIG",
	"ai":      "gjeqe526plbf1g8mklp59enfd789njgi NSEC3 1 1 12 aabbccdd ji6neoaepv8b5o6k4ev33abha8ht9fgc A HINFO AAAA RRSIG",
	"y.w":     "ji6neoaepv8b5o6k4ev33abha8ht9fgc NSEC3 1 1 12 aabbccdd k8udemvp1j2f7eg6jebps17vp3n8i58h",
	"w":       "k8udemvp1j2f7eg6jebps17vp3n8i58h NSEC3 1 1 12 aabbccdd kohar7mbb8dc2ce8a9qvl8hon4k53uhi",
	"2t7b…":   "kohar7mbb8dc2ce8a9qvl8hon4k53uhi NSEC3 1 1 12 aabbccdd q04jkcevqvmu85r014c7dkba38o0ji5r A RRSIG",
	"ns2":     "q04jkcevqvmu85r014c7dkba38o0ji5r NSEC3 1 1 12 aabbccdd r53bq7cc2uvmubfu5ocmm6pers9tk9en A RRSIG",
	"*.w":     "r53bq7cc2uvmubfu5ocmm6pers9tk9en NSEC3 1 1 12 aabbccdd t644ebqk9bibcna874givr6joj62mlhv MX RRSIG",
	"xx":      "t644ebqk9bibcna874givr6joj62mlhv NSEC3 1 1 12 aabbccdd 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A HINFO AAAA RRSIG",
}

func rfc5155Records(names ...string) string {
	var out []string
	for _, n := range names {
		out = append(out, rfc5155[n])
	}
	return strings.Join(out, ";")
}

// withoutOptOut clears the flag.
func withoutOptOut(records string) string {
	return strings.ReplaceAll(records, "NSEC3 1 1 ", "NSEC3 1 0 ")
}

func TestNSEC3(t *testing.T) {
	r := rfc5155Records
	runDenials(t, "example.", []denialCase{
		// RFC 5155 appendix B.1: encloser x.w, next closer c.x.w, wildcard *.x.w.
		{"B.1 name error", r("example", "x.w", "a"), "a.c.x.w.example.", "A", "NXDOMAIN opt-out"},
		{"B.1 without opt-out", withoutOptOut(r("example", "x.w", "a")), "a.c.x.w.example.", "A", "NXDOMAIN"},
		{"B.1 without the closest encloser", r("example", "a"), "a.c.x.w.example.", "A", ""},
		{"B.1 without the next closer name", withoutOptOut(r("x.w", "a")), "a.c.x.w.example.", "A", ""},
		{"B.1 without the wildcard", withoutOptOut(r("example", "x.w")), "a.c.x.w.example.", "A", ""},
		{"B.1 without the wildcard, opt-out", r("example", "x.w"), "a.c.x.w.example.", "A", "NODATA opt-out"},

		{"B.2 no data", r("ns1"), "ns1.example.", "MX", "NODATA"},
		{"B.2 the type is there", r("ns1"), "ns1.example.", "A", ""},
		{"B.2.1 empty non-terminal", r("y.w"), "y.w.example.", "A", "NODATA"},
		{"B.2.1 ANY", r("y.w"), "y.w.example.", "ANY", "NODATA"},
		{"B.3 opt-out delegation", r("example", "x.y.w", "a"), "c.example.", "DS", "NODATA opt-out"},
		{"B.3 without opt-out", withoutOptOut(r("example", "x.y.w", "a")), "c.example.", "DS", ""},
		{"B.3 without the encloser", r("a"), "c.example.", "DS", ""},
		{"B.3 without the cover", r("example"), "c.example.", "DS", ""},

		{"B.5 wildcard no data", withoutOptOut(r("w", "2t7b…", "ns2", "*.w")), "a.z.w.example.", "AAAA", "NODATA"},
		{"B.5 the type is there", withoutOptOut(r("w", "2t7b…", "ns2", "*.w")), "a.z.w.example.", "MX", ""},
		{"B.5 without the encloser", withoutOptOut(r("2t7b…", "ns2", "*.w")), "a.z.w.example.", "AAAA", ""},
		{"B.5 without the cover", withoutOptOut(r("w", "2t7b…", "*.w")), "a.z.w.example.", "AAAA", ""},
		{"B.5 without the wildcard", withoutOptOut(r("w", "2t7b…", "ns2")), "a.z.w.example.", "AAAA", ""},

		{"B.6 DS at the child's side", r("example"), "example.", "DS", ""},
		{"parent's side of a delegation", r("a"), "a.example.", "A", ""},
		{"parent's side of a delegation, with DS", r("a"), "a.example.", "DS", ""},
		{"below a delegation", withoutOptOut(r("a", "example", "x.w")), "b.a.example.", "A", ""},
		{"other parameters are not mixed in", withoutOptOut(r("example", "a")) + ";" + strings.ReplaceAll(r("x.w"), "aabbccdd", "-"), "a.c.x.w.example.", "A", ""},
		{"beside those of another chain", strings.ReplaceAll(r("a"), "aabbccdd", "-") + ";" + r("ns1"), "ns1.example.", "MX", "NODATA"},
		{"unknown hash", strings.ReplaceAll(r("ns1"), "NSEC3 1 ", "NSEC3 2 "), "ns1.example.", "MX", ""},
		{"unknown flag", strings.ReplaceAll(r("ns1"), "NSEC3 1 1 ", "NSEC3 1 3 "), "ns1.example.", "MX", ""},
		{"NXNAME", strings.ReplaceAll(r("ns1"), " A RRSIG", " NXNAME"), "ns1.example.", "MX", "NXDOMAIN compact"},
	})
}

// TestNSEC3Edges builds chains around a hash: what equals an end of a span is not covered.
func TestNSEC3Edges(t *testing.T) {
	h := nsec3Hash{10}
	for _, c := range []struct {
		what        string
		owner, next nsec3Hash
		want        bool
	}{
		{"between", nsec3Hash{9}, nsec3Hash{11}, true},
		{"is the owner", nsec3Hash{10}, nsec3Hash{11}, false},
		{"is the next", nsec3Hash{9}, nsec3Hash{10}, false},
		{"before", nsec3Hash{11}, nsec3Hash{12}, false},
		{"after", nsec3Hash{8}, nsec3Hash{9}, false},
		{"last, after it", nsec3Hash{9}, nsec3Hash{2}, true},
		{"last, before the first", nsec3Hash{12}, nsec3Hash{11}, true},
		{"last, in between", nsec3Hash{12}, nsec3Hash{9}, false},
		{"last, is the owner", nsec3Hash{10}, nsec3Hash{9}, false},
		{"last, is the next", nsec3Hash{12}, nsec3Hash{10}, false},
		{"only one", nsec3Hash{9}, nsec3Hash{9}, true},
		{"only one, itself", nsec3Hash{10}, nsec3Hash{10}, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			x := nsec3{owner: c.owner, next: c.next}
			if got := x.covers(h); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestClosestEncloserDelegation: RFC 5155 §8.3, the match must not be a delegation or DNAME.
func TestClosestEncloserDelegation(t *testing.T) {
	z := newWorld(t, "zone example. nsec3\nwww A 192.0.2.1\nsub NS ns\ndn DNAME other.\nzz A 192.0.2.1").zones["example."]
	for _, name := range []string{"a.sub.example.", "a.b.sub.example.", "a.dn.example."} {
		var m dns.Msg
		for i := range z.names {
			m.Ns = append(m.Ns, z.denial(i))
		}
		var text []string
		for _, rr := range m.Ns {
			text = append(text, rr.String())
		}
		if p, why := prove(t, "example.", strings.Join(text, ";"), name, "A"); why == "" {
			t.Errorf("%s is denied: %+v", name, p)
		}
		if _, why := prove(t, "example.", strings.Join(text, ";"), "a.www.example.", "A"); why != "" {
			t.Error(why)
		}
	}
}

// TestHashName has the hashes of RFC 5155 appendix A.
func TestHashName(t *testing.T) {
	for name, want := range map[string]string{
		"example.": "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom", "a.example.": "35mthgpgcu1qg68fab165klnsnk3dpvl",
		"AI.example.": "gjeqe526plbf1g8mklp59enfd789njgi", "ns1.example.": "2t7b4g4vsa5smi47k61mv5bv1a22bojr",
		"*.w.example.": "r53bq7cc2uvmubfu5ocmm6pers9tk9en", "x.y.w.Example.": "2vptu5timamqttgl4luu9kg21e0aor3s",
	} {
		h := HashName(nil, wire.MustName(name), []byte{0xaa, 0xbb, 0xcc, 0xdd}, 12)
		got := strings.ToLower(base32.HexEncoding.EncodeToString(h))
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		owner, ok := ownerHash(wire.MustName(strings.ToUpper(want) + ".example."))
		if !ok || string(owner[:]) != string(h) {
			t.Errorf("%s reads as %x", want, owner)
		}
	}
	for _, bad := range []string{"0p9mhaveqvm6t7vbl5lop2u3t2rp3to.example.", "0p9mhaveqvm6t7vbl5lop2u3t2rp3toz.example.", "example.", "."} {
		if _, ok := ownerHash(wire.MustName(bad)); ok {
			t.Error(bad, " passes for a hash")
		}
	}
}

func TestHashBlocks(t *testing.T) {
	for _, c := range []struct {
		name       int
		salt       int
		iterations uint16
		want       int
	}{{10, 0, 0, 1}, {55, 0, 0, 1}, {56, 0, 0, 2}, {255, 0, 50, 55}, {10, 35, 1, 2}, {10, 36, 1, 3}, {255, 255, 50, 9 + 50*5}} {
		name, salt := wire.Name(make([]byte, c.name)), make([]byte, c.salt)
		if got := hashBlocks(name, salt, c.iterations); got != c.want {
			t.Errorf("%d octets, salt of %d, %d iterations: got %d blocks, want %d", c.name, c.salt, c.iterations, got, c.want)
		}
	}
}

// TestHashingBounded: a name of 128 labels costs no more than 32 of its hashes at 50 iterations,
// while one of an IPv6 reverse zone gets its answer.
func TestHashingBounded(t *testing.T) {
	records := "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 50 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3ton NS"
	for _, c := range []struct {
		what, zone, name string
		spent            bool
	}{
		{"128 labels", "example.", strings.Repeat("a.", 123) + "example.", true},
		{"IPv6 reverse name", "arpa.", strings.Repeat("f.", 32) + "ip6.arpa.", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			zone := wire.MustName(c.zone)
			j := newJudgement(t, Config{}, &wire.RRset{Owner: zone, RDATA: [][]byte{make([]byte, 5)}})
			p := prover{j, &gatherText(t, j, c.zone, strings.ReplaceAll(records, " NSEC3", "."+c.zone+" NSEC3"))[0]}
			if _, why := p.denies(wire.MustName(c.name), wire.TypeA); why == "" {
				t.Error("is denied")
			}
			if j.hashesSpent != c.spent || j.cost.Blocks() > 32*55 || j.cost.Blocks() < 1500 {
				t.Errorf("spent %v, %d blocks", j.hashesSpent, j.cost.Blocks())
			}
		})
	}
}

func TestAllowsWildcard(t *testing.T) {
	for _, c := range []struct {
		what, records, owner string
		labels               int
		want                 bool
	}{
		{"NSEC", "a NSEC c.example. A", "b.example.", 1, true},
		{"NSEC, deeper", "a NSEC c.example. A", "x.y.b.example.", 1, true},
		{"the next closer name is an ENT", "a NSEC x.b.example. A", "b.example.", 1, false},
		{"a closer name may be there", "a NSEC b.b.example. A", "a.b.example.", 1, false},
		{"the owner is there", "b NSEC c.example. A", "b.example.", 1, false},
		{"a delegation above", "b NSEC c.example. NS", "x.b.example.", 1, false},
		{"a delegation above the next closer name", "b NSEC c.example. NS", "x.b.example.", 2, false},
		{"NSEC3", rfc5155["ns2"], "a.z.w.example.", 2, true},
		{"NSEC3 of another span", rfc5155["w"], "a.z.w.example.", 2, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			j := newJudgement(t, Config{}, &wire.RRset{Owner: wire.MustName("example."), RDATA: [][]byte{make([]byte, 5)}})
			p := prover{j, &gatherText(t, j, "example.", c.records)[0]}
			if _, why := p.allowsWildcard(wire.MustName(c.owner), c.labels); (why == "") != c.want {
				t.Errorf("got %q", why)
			}
		})
	}
}

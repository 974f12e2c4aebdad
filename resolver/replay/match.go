package replay

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Difference is one word of MATCH that did not hold.
type Difference struct{ What, Want, Got string }

// comparison is a message beside the entry it should equal.
type comparison struct {
	*Entry
	m       *dns.Msg
	tcp     bool
	dialect Dialect
	rules   rules
}

// rules soften a comparison.
type rules struct {
	looseNS    bool // the zone's NS RRset in the authority section is optional, and all of it in SERVFAIL
	looseExtra bool // the additional section is optional
	ede        bool // extended errors are compared where MATCH says so
	ttlSlack   uint32
}

// check compares one word of MATCH; equal texts are a match.
type check struct {
	word    string
	compare func(*comparison) (want, got string)
}

// checks are in the order in which differences are told.
var checks = []check{
	{"opcode", func(c *comparison) (string, string) {
		return dns.OpcodeToString[c.Message.Opcode], dns.OpcodeToString[c.m.Opcode]
	}},
	{"qname", func(c *comparison) (string, string) {
		return c.question(func(q dns.Question) string { return dns.CanonicalName(q.Name) })
	}},
	{"qtype", func(c *comparison) (string, string) {
		return c.question(func(q dns.Question) string { return dns.Type(q.Qtype).String() })
	}},
	{"qcase", func(c *comparison) (string, string) {
		return c.question(func(q dns.Question) string { return q.Name })
	}},
	{"subdomain", (*comparison).subdomain},
	{"rcode", func(c *comparison) (string, string) { return rcodeText(c.RCODE), rcodeText(fullRCODE(c.m)) }},
	{"flags", func(c *comparison) (string, string) { return flagText(&c.Message), flagText(c.m) }},
	{"answer", func(c *comparison) (string, string) { return c.records(c.Message.Answer, c.m.Answer) }},
	{"authority", (*comparison).authority},
	{"additional", (*comparison).additional},
	{"answertypes", func(c *comparison) (string, string) {
		return types(c.Message.Answer, false), types(c.m.Answer, false)
	}},
	{"answerrrsigs", func(c *comparison) (string, string) {
		return types(c.Message.Answer, true), types(c.m.Answer, true)
	}},
	{"edns", func(c *comparison) (string, string) {
		o := c.m.IsEdns0()
		return "EDNS version 0, 4096", ifOPT(o, func() string {
			return fmt.Sprintf("EDNS version %d, %d", o.Version(), o.UDPSize())
		})
	}},
	{"noedns", func(c *comparison) (string, string) {
		return "no EDNS", ifOPT(c.m.IsEdns0(), func() string { return "EDNS" })
	}},
	{"DO", func(c *comparison) (string, string) {
		o := c.m.IsEdns0()
		return "DO", ifOPT(o, func() string { return map[bool]string{true: "DO", false: "no DO"}[o.Do()] })
	}},
	{"UDP", func(c *comparison) (string, string) { return "UDP", transport(c.tcp) }},
	{"TCP", func(c *comparison) (string, string) { return "TCP", transport(c.tcp) }},
	{"ednsdata", func(c *comparison) (string, string) {
		return hex.EncodeToString(c.Options), hex.EncodeToString(optionData(c.m))
	}},
	{"client_cookie", func(c *comparison) (string, string) { return cookie(c.m, 8) }},
	{"server_cookie", func(c *comparison) (string, string) { return cookie(c.m, 24) }},
}

// differences compares a message with the entry. None: it matches.
func (e *Entry) differences(m *dns.Msg, tcp bool, d Dialect, r rules) []Difference {
	c := &comparison{e, m, tcp, d, r}
	var list []Difference
	for i := range checks {
		if !e.has(checks[i].word) {
			continue
		}
		if want, got := checks[i].compare(c); want != got {
			list = append(list, Difference{checks[i].word, want, got})
		}
	}
	if e.Serial >= 0 {
		if want, got := fmt.Sprint(e.Serial), serial(m); want != got {
			list = append(list, Difference{"serial", want, got})
		}
	}
	if r.ede {
		list = append(list, c.extendedErrors()...)
	}
	return list
}

// matches says whether an upstream query is one the entry answers.
func (e *Entry) matches(q *dns.Msg, tcp bool, d Dialect) bool {
	return len(e.differences(q, tcp, d, rules{})) == 0
}

// question compares a part of the questions. In Testbound an entry without one matches any.
func (c *comparison) question(part func(dns.Question) string) (want, got string) {
	if len(c.Message.Question) == 0 && c.dialect == Testbound {
		return "", ""
	}
	want, got = "no question", "no question"
	if len(c.Message.Question) > 0 {
		want = part(c.Message.Question[0])
	}
	if len(c.m.Question) > 0 {
		got = part(c.m.Question[0])
	}
	return want, got
}

func (c *comparison) subdomain() (want, got string) {
	if len(c.Message.Question) == 0 {
		return "", ""
	}
	want, got = dns.CanonicalName(c.Message.Question[0].Name), "."
	if len(c.m.Question) > 0 {
		got = dns.CanonicalName(c.m.Question[0].Name)
	}
	if dns.IsSubDomain(want, got) {
		return "", ""
	}
	return want, got
}

func (c *comparison) authority() (want, got string) {
	w, g := c.Message.Ns, c.m.Ns
	if c.rules.looseNS {
		if c.RCODE == dns.RcodeServerFailure && len(w) == 0 {
			return "", ""
		}
		w, g = withoutNS(w), withoutNS(g)
	}
	return c.records(w, g)
}

func (c *comparison) additional() (want, got string) {
	if c.rules.looseExtra {
		return "", ""
	}
	return c.records(c.Message.Extra, c.m.Extra)
}

// records compares two sections as sets, and gives both as text where they differ.
func (c *comparison) records(want, got []dns.RR) (string, string) {
	want, got = withoutOPT(want), withoutOPT(got)
	same := func(a, b dns.RR) bool {
		x, y := a.Header().Ttl, b.Header().Ttl
		return sameRecord(a, b) && (!c.Match["ttl"] || max(x, y)-min(x, y) <= c.rules.ttlSlack)
	}
	if len(want) == len(got) && covers(want, got, same) && covers(got, want, same) {
		return "", ""
	}
	w, g := section(want, c.Match["ttl"]), section(got, c.Match["ttl"])
	if w == g {
		g += " (another count or form)"
	}
	return w, g
}

// covers says whether each of list has its equal among set.
func covers(set, list []dns.RR, same func(a, b dns.RR) bool) bool {
	for _, r := range list {
		if !slices.ContainsFunc(set, func(x dns.RR) bool { return same(x, r) }) {
			return false
		}
	}
	return true
}

// extendedErrors compares the EDE codes that MATCH names. "none" is no extended error at all.
func (c *comparison) extendedErrors() (list []Difference) {
	var have []string
	if o := c.m.IsEdns0(); o != nil {
		for _, x := range o.Option {
			if e, ok := x.(*dns.EDNS0_EDE); ok {
				have = append(have, fmt.Sprint(e.InfoCode))
			}
		}
	}
	for _, want := range c.EDE {
		ok := slices.Contains(have, want)
		switch want {
		case "any":
			ok = len(have) > 0
		case "none":
			ok = len(have) == 0
		}
		if !ok {
			list = append(list, Difference{"ede", want, strings.Join(have, " ")})
		}
	}
	return list
}

// section gives records as sorted lines, with their TTLs only where those count.
func section(list []dns.RR, ttl bool) string {
	var text []string
	for _, r := range list {
		line := r.String()
		if f := strings.SplitN(line, "\t", 3); !ttl && len(f) == 3 {
			line = f[0] + "\t" + f[2]
		}
		text = append(text, line)
	}
	slices.Sort(text)
	return strings.Join(text, "\n")
}

func withoutOPT(list []dns.RR) []dns.RR {
	return slices.DeleteFunc(slices.Clone(list), func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeOPT })
}

// withoutNS leaves out NS RRsets and their signatures.
func withoutNS(list []dns.RR) []dns.RR {
	return slices.DeleteFunc(slices.Clone(list), func(r dns.RR) bool {
		sig, ok := r.(*dns.RRSIG)
		return r.Header().Rrtype == dns.TypeNS || ok && sig.TypeCovered == dns.TypeNS
	})
}

// types lists the types in a section, with those that signatures cover where sigs says so.
func types(list []dns.RR, sigs bool) string {
	var names []string
	for _, r := range list {
		if s, ok := r.(*dns.RRSIG); !ok {
			names = append(names, dns.Type(r.Header().Rrtype).String())
		} else if sigs {
			names = append(names, "RRSIG("+dns.Type(s.TypeCovered).String()+")")
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

func flagText(m *dns.Msg) string {
	var list []string
	for _, f := range []struct {
		set  bool
		name string
	}{
		{m.Response, "QR"}, {m.Authoritative, "AA"}, {m.Truncated, "TC"}, {m.RecursionDesired, "RD"},
		{m.RecursionAvailable, "RA"}, {m.AuthenticatedData, "AD"}, {m.CheckingDisabled, "CD"},
	} {
		if f.set {
			list = append(list, f.name)
		}
	}
	return strings.Join(list, " ")
}

// fullRCODE joins the RCODE of the header with the bits in the OPT record.
func fullRCODE(m *dns.Msg) int {
	if o := m.IsEdns0(); o != nil {
		return m.Rcode&0xF | o.ExtendedRcode()&0xFF0
	}
	return m.Rcode
}

func rcodeText(n int) string {
	if s, ok := dns.RcodeToString[n]; ok {
		return s
	}
	return fmt.Sprint(n)
}

func transport(tcp bool) string {
	if tcp {
		return "TCP"
	}
	return "UDP"
}

func ifOPT(o *dns.OPT, text func() string) string {
	if o == nil {
		return "no EDNS"
	}
	return text()
}

// optionData returns the RDATA of the OPT record.
func optionData(m *dns.Msg) []byte {
	if o := m.IsEdns0(); o != nil {
		return rdata(o)
	}
	return nil
}

// cookie compares the length of the COOKIE option, in octets.
func cookie(m *dns.Msg, length int) (want, got string) {
	want, got = fmt.Sprintf("a cookie of %d octets", length), "no cookie"
	if o := m.IsEdns0(); o != nil {
		for _, x := range o.Option {
			if c, ok := x.(*dns.EDNS0_COOKIE); ok {
				got = fmt.Sprintf("a cookie of %d octets", len(c.Cookie)/2)
			}
		}
	}
	return want, got
}

func serial(m *dns.Msg) string {
	for _, r := range m.Ns {
		if s, ok := r.(*dns.SOA); ok {
			return fmt.Sprint(s.Serial)
		}
	}
	return "no SOA"
}

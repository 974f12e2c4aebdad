package lab

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"
)

// Row is one kind of thing that the lab offers, and what a resolver makes of it.
type Row struct {
	Shows  string // in a few words
	Name   string
	Type   string
	RCODE  string
	AD     bool   // of a validating resolver
	EDE    int    // extended error that a validating resolver gives; anyEDE leaves it open
	Answer string // as answerText writes it
	// Unchecked is what a resolver that does not validate answers, with NOERROR, where one that does
	// says something else; "-" for no record.
	Unchecked string
	TTL0      bool // may not be cached
}

const anyEDE = -1

// Rows returns what the lab offers, one row of each kind.
func Rows() []Row { return slices.Clone(rows) }

var rows = []Row{
	{Shows: "signed root, RSA/SHA-256, NSEC", Name: ".", Type: "NS", RCODE: "NOERROR", AD: true,
		Answer: "a.root-servers.lab. b.root-servers.lab."},
	{Shows: "no such TLD", Name: "nothing.here.", Type: "A", RCODE: "NXDOMAIN", AD: true},
	{Shows: "ECDSA P-256, NSEC", Name: "www.ecdsa.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.80 203.0.113.81"},
	{Shows: "another type of the same name", Name: "www.ecdsa.lab.", Type: "AAAA", RCODE: "NOERROR", AD: true,
		Answer: "2001:db8:80::1"},
	{Shows: "NODATA", Name: "www.ecdsa.lab.", Type: "MX", RCODE: "NOERROR", AD: true},
	{Shows: "NXDOMAIN by NSEC", Name: "nothing.ecdsa.lab.", Type: "A", RCODE: "NXDOMAIN", AD: true},
	{Shows: "wildcard", Name: "any.thing.wild.ecdsa.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.99"},
	{Shows: "wildcard without the type", Name: "some.wild.ecdsa.lab.", Type: "AAAA", RCODE: "NOERROR", AD: true},
	{Shows: "empty non-terminal", Name: "empty.ecdsa.lab.", Type: "A", RCODE: "NOERROR", AD: true},
	{Shows: "TXT that needs TCP", Name: "big.ecdsa.lab.", Type: "TXT", RCODE: "NOERROR", AD: true,
		Answer: "3012-bytes"},
	{Shows: "HTTPS", Name: "web.ecdsa.lab.", Type: "HTTPS", RCODE: "NOERROR", AD: true,
		Answer: `1_._alpn="h2,h3"_ipv4hint="203.0.113.80"`},
	{Shows: "SRV", Name: "_sip._udp.ecdsa.lab.", Type: "SRV", RCODE: "NOERROR", AD: true,
		Answer: "0_5_5060_www.ecdsa.lab."},
	{Shows: "type without a name (RFC 3597)", Name: "unknown.ecdsa.lab.", Type: "TYPE65400", RCODE: "NOERROR",
		AD: true, Answer: `\#_4_deadbeef`},
	{Shows: "DS, held by the parent", Name: "sub.ecdsa.lab.", Type: "DS", RCODE: "NOERROR", AD: true,
		Answer: "1-record"},
	{Shows: "child on its parent's servers, Ed25519", Name: "www.sub.ecdsa.lab.", Type: "A", RCODE: "NOERROR",
		AD: true, Answer: "203.0.113.82"},
	{Shows: "RSA/SHA-256, NSEC3", Name: "www.rsa.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.83"},
	{Shows: "NXDOMAIN by NSEC3", Name: "no.such.name.rsa.lab.", Type: "A", RCODE: "NXDOMAIN", AD: true},
	{Shows: "NODATA by NSEC3", Name: "www.rsa.lab.", Type: "TXT", RCODE: "NOERROR", AD: true},
	{Shows: "empty non-terminal, NSEC3", Name: "empty.rsa.lab.", Type: "A", RCODE: "NOERROR", AD: true},
	{Shows: "wildcard, NSEC3", Name: "any.wild.rsa.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.98"},
	{Shows: "wildcard without the type, NSEC3", Name: "some.wild.rsa.lab.", Type: "AAAA", RCODE: "NOERROR", AD: true},
	{Shows: "Ed25519, NSEC", Name: "www.ed25519.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.84"},
	{Shows: "aliases through signed zones", Name: "start.ed25519.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.84 after-2-aliases"},
	{Shows: "aliases through an unsigned zone", Name: "mixed.ed25519.lab.", Type: "A", RCODE: "NOERROR",
		Answer: "203.0.113.80 203.0.113.81 after-2-aliases"},
	{Shows: "alias to a name that is not there", Name: "dangling.ed25519.lab.", Type: "A", RCODE: "NXDOMAIN",
		AD: true, Answer: "after-1-alias"},
	{Shows: "DNAME into another zone", Name: "www.old.ed25519.lab.", Type: "AAAA", RCODE: "NOERROR", AD: true,
		Answer: "2001:db8:80::1 after-1-alias"},
	{Shows: "aliases in a circle", Name: "loop1.ed25519.lab.", Type: "A", RCODE: "SERVFAIL", EDE: anyEDE,
		Answer: "?"},
	{Shows: "unsigned zone", Name: "www.unsigned.lab.", Type: "A", RCODE: "NOERROR", Answer: "203.0.113.85"},
	{Shows: "TTL 0", Name: "brief.unsigned.lab.", Type: "A", RCODE: "NOERROR", Answer: "203.0.113.86", TTL0: true},
	{Shows: "NXDOMAIN, unsigned", Name: "nothing.unsigned.lab.", Type: "A", RCODE: "NXDOMAIN"},
	{Shows: "zone reached over IPv6 alone", Name: "www.six.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.6"},
	{Shows: "delegation without glue", Name: "www.glueless.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.89"},
	{Shows: "… whose server has none either", Name: "www.deep.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.90"},
	{Shows: "unsigned, behind opt-out", Name: "www.plain.optout.", Type: "A", RCODE: "NOERROR",
		Answer: "203.0.113.87"},
	{Shows: "signed, behind opt-out", Name: "www.signed.optout.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.88"},
	// RFC 5155 §9.2: no AD where the next closer name lies in an opt-out span.
	{Shows: "NXDOMAIN in an opt-out span", Name: "nothing.optout.", Type: "A", RCODE: "NXDOMAIN"},
	{Shows: "one server lame", Name: "www.lame.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.96"},
	{Shows: "one server silent", Name: "www.silent.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.97"},
	{Shows: "server that knows no EDNS", Name: "www.no-edns.lab.", Type: "A", RCODE: "NOERROR",
		Answer: "203.0.113.70"},
	{Shows: "all servers lame", Name: "www.all-lame.lab.", Type: "A", RCODE: "SERVFAIL",
		EDE: int(dns.ExtendedErrorCodeNoReachableAuthority), Answer: "?"},
	{Shows: "bogus signature", Name: "www.bogus.lab.", Type: "A", RCODE: "SERVFAIL",
		EDE: int(dns.ExtendedErrorCodeDNSBogus), Unchecked: "203.0.113.91"},
	{Shows: "sound beside the bogus", Name: "good.bogus.lab.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "203.0.113.92"},
	{Shows: "DS of another key", Name: "www.wrong-ds.lab.", Type: "A", RCODE: "SERVFAIL",
		EDE: int(dns.ExtendedErrorCodeDNSKEYMissing), Unchecked: "203.0.113.93"},
	{Shows: "signatures expired", Name: "www.expired.lab.", Type: "A", RCODE: "SERVFAIL",
		EDE: int(dns.ExtendedErrorCodeSignatureExpired), Unchecked: "203.0.113.94"},
	{Shows: "signatures not yet valid", Name: "www.future.lab.", Type: "A", RCODE: "SERVFAIL",
		EDE: int(dns.ExtendedErrorCodeSignatureNotYetValid), Unchecked: "203.0.113.95"},
	{Shows: "any name, unsigned", Name: "whatever.you.ask.bench.", Type: "A", RCODE: "NOERROR",
		Answer: "198.18.203.120"},
	{Shows: "any name, signed", Name: "whatever.you.ask.signed-bench.", Type: "A", RCODE: "NOERROR", AD: true,
		Answer: "198.18.16.235"},
	{Shows: "NXDOMAIN by compact denial (RFC 9824)", Name: "nx-1.signed-bench.", Type: "A", RCODE: "NXDOMAIN",
		AD: true, Unchecked: "-"},
}

// Result is what a resolver made of a row.
type Result struct {
	Row
	Err      error
	GotRCODE string
	GotAD    bool
	GotEDE   []int
	Got      string
	Upstream [2]uint64        // messages that the servers received, cold and cached
	Time     [2]time.Duration // until the answer, cold and cached
	Wrong    []string         // empty where all is as it should be
}

// askTimeout is how long a stub resolver waits here: more than the resolver takes for its own.
const askTimeout = 15 * time.Second

// Try asks the resolver for a row twice. The resolver is one that asks w.
func (w *World) Try(ctx context.Context, resolver netip.AddrPort, row Row, validates bool) Result {
	r := Result{Row: row}
	for i := range r.Time {
		before, start := w.Queries(), time.Now()
		m, err := ask(ctx, resolver, row.Name, row.Type)
		r.Time[i] = time.Since(start)
		if err != nil {
			r.Err = err
			break
		}
		r.take(m)
		r.Upstream[i] = w.settle() - before
		r.judge(validates)
	}
	switch {
	case r.Err != nil:
		r.Wrong = append(r.Wrong, r.Err.Error())
	case r.TTL0 && r.Upstream[1] == 0:
		r.Wrong = append(r.Wrong, "TTL 0 was cached")
	case !r.TTL0 && r.Upstream[1] != 0:
		r.Wrong = append(r.Wrong, fmt.Sprintf("cached answer took %d upstream queries", r.Upstream[1]))
	}
	slices.Sort(r.Wrong)
	r.Wrong = slices.Compact(r.Wrong)
	return r
}

// settle waits until a resolver has stopped to ask, as it may go on after the answer, and returns
// the count.
func (w *World) settle() uint64 {
	const quiet, most = 20 * time.Millisecond, 25
	n := w.Queries()
	for range most {
		time.Sleep(quiet)
		now := w.Queries()
		if now == n {
			break
		}
		n = now
	}
	return n
}

// ask is a stub resolver that understands AD (RFC 6840 §5.7) and goes to TCP for what is truncated.
func ask(ctx context.Context, resolver netip.AddrPort, name, t string) (*dns.Msg, error) {
	qtype, err := typeValue(t)
	if err != nil {
		return nil, err
	}
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	m.AuthenticatedData = true
	m.SetEdns0(ourUDPSize, false)
	for _, network := range []string{"udp", "tcp"} {
		c := &dns.Client{Net: network, Timeout: askTimeout, UDPSize: ourUDPSize}
		got, _, err := c.ExchangeContext(ctx, m, resolver.String())
		if err != nil {
			return nil, err
		}
		if !got.Truncated {
			return got, nil
		}
	}
	return nil, fmt.Errorf("%s %s: truncated over TCP", name, t)
}

func typeValue(t string) (uint16, error) {
	if v, ok := dns.StringToType[t]; ok {
		return v, nil
	}
	var v uint16
	if _, err := fmt.Sscanf(t, "TYPE%d", &v); err != nil {
		return 0, fmt.Errorf("no record type %q", t)
	}
	return v, nil
}

func (r *Result) take(m *dns.Msg) {
	r.GotRCODE, r.GotAD = dns.RcodeToString[m.Rcode], m.AuthenticatedData
	r.Got, r.GotEDE = answerText(m), nil
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				r.GotEDE = append(r.GotEDE, int(e.InfoCode))
			}
		}
	}
}

// answerText writes the RDATA that answers in one line, sorted, as words without blanks.
func answerText(m *dns.Msg) string {
	var words []string
	aliases := 0
	for _, rr := range m.Answer {
		switch t := rr.Header().Rrtype; {
		case t == m.Question[0].Qtype:
			words = append(words, strings.ReplaceAll(rdataText(rr), " ", "_"))
		case t == dns.TypeCNAME:
			aliases++
		}
	}
	slices.Sort(words)
	text := strings.Join(words, " ")
	if len(text) > 100 {
		text = fmt.Sprintf("%d-bytes", rdataBytes(m))
	} else if m.Question[0].Qtype == dns.TypeDS && len(words) > 0 {
		text = plural(len(words), "record")
	}
	if aliases > 0 {
		text = strings.TrimSpace(text + " after-" + plural(aliases, "alias"))
	}
	return text
}

// rdataText returns what follows owner, TTL, class and type.
func rdataText(rr dns.RR) string {
	fields := strings.SplitN(rr.String(), "\t", 5)
	return fields[len(fields)-1]
}

func rdataBytes(m *dns.Msg) (n int) {
	for _, rr := range m.Answer {
		if rr.Header().Rrtype == m.Question[0].Qtype {
			n += dns.Len(rr) - dns.Len(&dns.NULL{Hdr: dns.RR_Header{Name: rr.Header().Name}})
		}
	}
	return n
}

func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1-" + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return fmt.Sprintf("%d-%ss", n, noun)
}

// judge compares what was got with what the row says.
func (r *Result) judge(validates bool) {
	rcode, answer, ad, ede := r.RCODE, r.Answer, r.AD, r.EDE
	if !validates {
		ad = false
		if r.Unchecked != "" {
			rcode, answer, ede = "NOERROR", strings.TrimSuffix(r.Unchecked, "-"), 0
		}
	}
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
		}
	}
	complain(r.GotRCODE != rcode, "RCODE %s, not %s", r.GotRCODE, rcode)
	complain(r.GotAD != ad, "AD %t, not %t", r.GotAD, ad)
	complain(answer != "?" && r.Got != answer, "answer %q, not %q", r.Got, answer)
	complain(ede > 0 && !slices.Contains(r.GotEDE, ede), "extended errors %v, not %d", r.GotEDE, ede)
	complain(ede == 0 && len(r.GotEDE) > 0, "extended errors %v", r.GotEDE)
}

// Table asks the resolver for every row, writes the table, and says whether all is as it should be.
func (w *World) Table(ctx context.Context, out io.Writer, resolver netip.AddrPort, validates bool) (ok bool) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tNAME\tTYPE\tRCODE\tAD\tANSWER\tUPSTREAM\tCOLD\tCACHED\tSHOWS")
	ok = true
	var wrong []string
	for _, row := range rows {
		if ctx.Err() != nil {
			ok = false
			break
		}
		r := w.Try(ctx, resolver, row, validates)
		mark := "ok"
		if len(r.Wrong) > 0 {
			mark, ok = "NO", false
			wrong = append(wrong, fmt.Sprintf("%s %s (%s): %s", r.Name, r.Type, r.Shows, strings.Join(r.Wrong, "; ")))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", mark, r.Name, r.Type, rcodeText(&r), yesNo(r.GotAD),
			shorten(r.Got), r.Upstream[0], round(r.Time[0]), round(r.Time[1]), shows(&r, validates))
	}
	t.Flush()
	for _, line := range wrong {
		fmt.Fprintln(out, "wrong:", line)
	}
	return ok
}

// shows says what the row is for, and so where it needs validation.
func shows(r *Result, validates bool) string {
	if (r.AD || r.Unchecked != "") && !validates {
		return r.Shows + " (not validated)"
	}
	return r.Shows
}

func rcodeText(r *Result) string {
	if len(r.GotEDE) == 0 {
		return r.GotRCODE
	}
	return fmt.Sprintf("%s %d", r.GotRCODE, r.GotEDE[0])
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func shorten(s string) string {
	const width = 44
	s = strings.ReplaceAll(s, "_", " ")
	if s == "" {
		return "-"
	}
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

func round(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// Describe writes what the lab offers and a line to paste.
func (w *World) Describe(out io.Writer, resolver netip.AddrPort) {
	fmt.Fprintf(out, "A small Internet of %d zones on %d servers runs in this process; nothing leaves the machine.\n",
		len(w.zones), len(w.servers))
	for i, z := range w.zones {
		fmt.Fprintf(out, "  %-16s %-17s %s\n", z.name, signing(&internet[i], w.signed), strings.Join(internet[i].servers, " "))
	}
	at := "@" + resolver.Addr().String()
	if resolver.Port() != 53 {
		at += fmt.Sprintf(" -p %d", resolver.Port())
	}
	fmt.Fprintf(out, "Ask it:\n  dig %s www.ecdsa.lab A +dnssec\n", at)
}

func signing(s *zoneSpec, signed bool) string {
	if s.algorithm == 0 || !signed {
		return "unsigned"
	}
	text := map[uint8]string{dns.RSASHA256: "RSA", dns.ECDSAP256SHA256: "P-256", dns.ED25519: "Ed25519"}[s.algorithm]
	switch {
	case s.synth:
		return text + " compact"
	case s.nsec3 == nil:
		return text + " NSEC"
	case s.nsec3.optOut:
		return text + " opt-out"
	}
	return text + " NSEC3"
}

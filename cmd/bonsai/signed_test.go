package main

import (
	"flag"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

var (
	signedReference = flag.String("signed.reference", "", "ADDR:PORT of the validating resolver to compare with")
	signedBonsai    = flag.String("signed.bonsai", "", "ADDR:PORT of bonsai, validating")
	signedQueries   = flag.String("signed.queries", "", "file of names and types")
	signedDelv      = flag.String("signed.delv", "", "file of trust anchors for delv")
)

// Two validating resolvers on the same signed zones find the same. testdata/signed/run.sh sets that up.
func TestSignedSameAsReference(t *testing.T) {
	if *signedReference == "" {
		t.Skip("needs two running resolvers; testdata/signed/run.sh starts them")
	}
	questions := readQuestions(t, *signedQueries)
	awaitAnswer(t, *signedReference)
	awaitAnswer(t, *signedBonsai)
	counts := map[string]int{}
	for i, q := range questions {
		want := askSigned(t, *signedReference, q.Question)
		for _, round := range []string{"cold", "cached"} {
			got := askSigned(t, *signedBonsai, q.Question)
			if problem := signedDifference(got, want); problem != "" {
				t.Errorf("%s %s, %s: %s\nbonsai: %v\nreference: %v", q.Name, dns.TypeToString[q.Qtype], round, problem, got, want)
				counts["differ"]++
			}
		}
		counts[dns.RcodeToString[want.Rcode]]++
		if want.AuthenticatedData {
			counts["AD"]++
		}
		if i%20 == 0 && *signedDelv != "" {
			compareDelv(t, q.Question, want)
			counts["delv"]++
		}
	}
	t.Logf("%d questions, each cold and cached: %v", len(questions), counts)
	if counts["AD"] < len(questions)/4 || counts["SERVFAIL"] < len(questions)/20 || counts["NXDOMAIN"] < len(questions)/20 {
		t.Error("the questions are too much alike")
	}
}

// askSigned asks with DO.
func askSigned(t *testing.T, at string, q dns.Question) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.Id, m.RecursionDesired, m.Question = dns.Id(), true, []dns.Question{q}
	m.SetEdns0(4096, true)
	c := &dns.Client{Timeout: 15 * time.Second, UDPSize: 4096}
	got, _, err := c.Exchange(m, at)
	if err == nil && got.Truncated {
		c.Net = "tcp"
		got, _, err = c.Exchange(m, at)
	}
	if err != nil {
		t.Fatalf("%s %s at %s: %v", q.Name, dns.TypeToString[q.Qtype], at, err)
	}
	return got
}

// signedDifference looks at RCODE, AD, the answer, and what denies: which records, not their TTLs.
func signedDifference(got, want *dns.Msg) string {
	switch {
	case got.Rcode != want.Rcode:
		return "RCODE"
	case got.AuthenticatedData != want.AuthenticatedData:
		return "AD"
	case !slices.Equal(contentsOf(got.Answer), contentsOf(want.Answer)):
		return "answer"
	case len(want.Answer) == 0 && !slices.Equal(contentsOf(soas(got.Ns)), contentsOf(soas(want.Ns))):
		return "SOA"
	}
	return ""
}

// contentsOf is the records of a section in lower case without TTLs, in order.
func contentsOf(section []dns.RR) (lines []string) {
	for _, rr := range section {
		rr = dns.Copy(rr)
		rr.Header().Ttl = 0
		lines = append(lines, strings.ToLower(rr.String()))
	}
	slices.Sort(lines)
	return lines
}

// compareDelv has delv validate what bonsai gives it with CD, and compares its judgement.
func compareDelv(t *testing.T, q dns.Question, want *dns.Msg) {
	t.Helper()
	host, port, _ := strings.Cut(*signedBonsai, ":")
	out, err := exec.Command("delv", "@"+host, "-p", port, "-a", *signedDelv, "+root=.", q.Name, dns.TypeToString[q.Qtype]).CombinedOutput()
	text := string(out)
	secure := strings.Contains(text, "; fully validated") || strings.Contains(text, "negative response, fully validated")
	switch {
	case want.Rcode == dns.RcodeServerFailure && (secure || strings.Contains(text, "; unsigned answer")):
		t.Errorf("%s %s: delv takes what does not validate (%v)\n%s", q.Name, dns.TypeToString[q.Qtype], err, text)
	case want.Rcode != dns.RcodeServerFailure && want.AuthenticatedData && !secure:
		t.Errorf("%s %s: delv does not validate what is secure (%v)\n%s", q.Name, dns.TypeToString[q.Qtype], err, text)
	case want.Rcode != dns.RcodeServerFailure && !want.AuthenticatedData && secure && len(want.Answer) > 0 && !strings.Contains(text, "; unsigned answer"):
		t.Errorf("%s %s: delv finds secure what is not (%v)\n%s", q.Name, dns.TypeToString[q.Qtype], err, text)
	}
}

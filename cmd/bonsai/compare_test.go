package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

var (
	compareReference = flag.String("compare.reference", "", "ADDR:PORT of the resolver to compare with")
	compareBonsai    = flag.String("compare.bonsai", "", "ADDR:PORT of bonsai")
	compareQueries   = flag.String("compare.queries", "", "file of names and types")
)

// ttlSlack is how many seconds may lie between the answers of two resolvers, and shortSlack how many, if it is less,
// per second of the longer TTL.
var (
	ttlSlack   int64 = 3
	shortSlack       = 1.0
)

// question is one to compare.
type question struct {
	dns.Question
	cd    bool     // asked with CD set
	words []string // how it is asked, as testdata/compare/queries says
}

func readQuestions(t *testing.T, file string) (list []question) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 2 || strings.HasPrefix(fields[0], ";") {
			continue
		}
		qtype, ok := dns.StringToType[fields[1]]
		if !ok {
			if _, err := fmt.Sscanf(fields[1], "TYPE%d", &qtype); err != nil {
				t.Fatalf("%q is no type", fields[1])
			}
		}
		list = append(list, question{
			Question: dns.Question{Name: fields[0], Qtype: qtype, Qclass: dns.ClassINET},
			cd:       slices.Contains(fields[2:], "CD"),
			words:    fields[2:],
		})
	}
	return list
}

func awaitAnswer(t *testing.T, at string) {
	t.Helper()
	for range 100 {
		m := new(dns.Msg)
		m.SetQuestion(".", dns.TypeNS)
		c := &dns.Client{Timeout: 2 * time.Second}
		if got, _, err := c.Exchange(m, at); err == nil && got.Rcode == dns.RcodeSuccess {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no answer from %s", at)
}

// difference looks at RCODE, the answer section, and the SOA of a negative answer.
func difference(got, want *dns.Msg) string {
	switch {
	case got.Rcode != want.Rcode:
		return "RCODE"
	case got.RecursionAvailable != want.RecursionAvailable || got.AuthenticatedData != want.AuthenticatedData ||
		got.Authoritative != want.Authoritative:
		return "flags"
	case !sameSets(got.Answer, want.Answer):
		return "answer"
	case !sameSets(soas(got.Ns), soas(want.Ns)):
		return "SOA"
	}
	return ""
}

func soas(section []dns.RR) (list []dns.RR) {
	for _, rr := range section {
		if rr.Header().Rrtype == dns.TypeSOA {
			list = append(list, rr)
		}
	}
	return list
}

// sameSets compares records without order, and TTLs with some slack.
func sameSets(a, b []dns.RR) bool {
	if len(a) != len(b) {
		return false
	}
	key := func(rr dns.RR) string {
		rr = dns.Copy(rr)
		rr.Header().Ttl = 0
		rr.Header().Name = strings.ToLower(rr.Header().Name)
		return rr.String()
	}
	order := func(x, y dns.RR) int { return strings.Compare(key(x), key(y)) }
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	for i := range a {
		x, y := int64(a[i].Header().Ttl), int64(b[i].Header().Ttl)
		slack := min(ttlSlack, 3+int64(shortSlack*float64(max(x, y))))
		if key(a[i]) != key(b[i]) || x-y > slack || y-x > slack {
			return false
		}
	}
	return true
}

func TestDifference(t *testing.T) {
	message := func(rcode int, records ...string) *dns.Msg {
		m := &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: rcode, RecursionAvailable: true}}
		for _, s := range records {
			rr, err := dns.NewRR(s)
			if err != nil {
				t.Fatal(err)
			}
			if rr.Header().Rrtype == dns.TypeSOA {
				m.Ns = append(m.Ns, rr)
			} else {
				m.Answer = append(m.Answer, rr)
			}
		}
		return m
	}
	const soa = "a. 300 SOA ns.a. h.a. 1 2 3 4 5"
	for _, c := range []struct {
		got, want *dns.Msg
		problem   string
	}{
		{message(0, "a. 60 A 192.0.2.1", "a. 60 A 192.0.2.2"), message(0, "A. 58 A 192.0.2.2", "a. 60 A 192.0.2.1"), ""},
		{message(0, "a. 60 A 192.0.2.1"), message(0, "a. 50 A 192.0.2.1"), "answer"},
		{message(0, "a. 60 A 192.0.2.1"), message(0, "a. 60 A 192.0.2.2"), "answer"},
		{message(0, "a. 60 A 192.0.2.1"), message(0), "answer"},
		{message(3, soa), message(0, soa), "RCODE"},
		{message(3), message(3, soa), "SOA"},
		{message(3, soa), message(3, soa), ""},
	} {
		if got := difference(c.got, c.want); got != c.problem {
			t.Errorf("got %q, want %q for %v and %v", got, c.problem, c.got, c.want)
		}
	}
}

package resolver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"bonsai/resolver/lab"
)

// TestHistory: what was asked before changes no answer. A resolver that has seen all questions so far
// answers each, from its cache, what is proven or its servers, as one answers that has seen none.
func TestHistory(t *testing.T) {
	const questions = 500
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	r := newLabResolver(t, world)
	config := r.config
	config.DenialSize = 1 << 20
	r.denials = newDenials(&config)
	w := r.NewWorker()
	q := newQuestions()
	for range questions {
		m := q.next()
		got := told(askHandler(t, r, w, m))
		t.Run("fresh", func(t *testing.T) { // its resolver ends with it
			f := newLabResolver(t, world)
			t.Cleanup(f.exchange.Close)
			if want := told(askHandler(t, f, f.NewWorker(), m)); got != want {
				t.Errorf("%v\nwith a history: %s\nwithout: %s", m, got, want)
			}
		})
	}
}

// questions draws questions about names that the lab has, and below them. The draw is always the same.
type questions struct {
	rnd   *rand.Rand
	names []string
}

func newQuestions() *questions {
	q := &questions{rnd: rand.New(rand.NewPCG(8020, 8198))}
	for _, row := range lab.Rows() {
		// These take seconds, or depend on which server is drawn, or show a circle once.
		slow := slices.ContainsFunc([]string{"silent", "lame", "six", "expired", "future", "loop", "big"}, func(s string) bool {
			return strings.Contains(row.Name, s)
		})
		if !slow {
			q.names = append(q.names, row.Name, dns.Fqdn(strings.SplitN(row.Name, ".", 2)[1]))
		}
	}
	return q
}

func (q *questions) next() *dns.Msg {
	labels := [...]string{"www", "a", "z", "*", "m", "ns", "old", "wild", "empty", "sub", "unsigned", "zzz", "plain"}
	types := [...]uint16{dns.TypeA, dns.TypeAAAA, dns.TypeDS, dns.TypeNS, dns.TypeSOA, dns.TypeCNAME, dns.TypeDNAME, dns.TypeTXT,
		dns.TypeMX, dns.TypeNSEC, dns.TypeDNSKEY, dns.TypeHTTPS}
	name := q.names[q.rnd.IntN(len(q.names))]
	for range q.rnd.IntN(3) {
		name = labels[q.rnd.IntN(len(labels))] + "." + strings.TrimPrefix(name, ".")
	}
	m := msg(name, types[q.rnd.IntN(len(types))])
	m.SetEdns0(1232, q.rnd.IntN(2) == 0)
	m.AuthenticatedData = true
	m.CheckingDisabled = q.rnd.IntN(4) == 0
	return m
}

// told is what a response says, but for TTLs, order and proofs.
func told(m *dns.Msg) string {
	if m == nil {
		return "nothing"
	}
	var lines []string
	for _, rr := range m.Answer {
		if rr.Header().Rrtype != dns.TypeRRSIG {
			rr = dns.Copy(rr)
			rr.Header().Ttl = 0
			lines = append(lines, strings.ToLower(rr.String()))
		}
	}
	slices.Sort(lines)
	for _, rr := range m.Ns {
		if rr.Header().Rrtype == dns.TypeSOA {
			lines = append(lines, "SOA of "+rr.Header().Name)
		}
	}
	return fmt.Sprintf("%s AD %v %s", dns.RcodeToString[m.Rcode], m.AuthenticatedData, strings.Join(lines, "; "))
}

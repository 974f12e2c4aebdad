package main

import (
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

var (
	comparePeers = flag.String("compare.peers", "", "names of the resolvers to compare with, separated by commas")
	comparePorts = flag.String("compare.ports", "", "NAME=PORT of each; the one that validates is a port further")
)

// The daemon answers as other resolvers on the same Internet do, or it is explained why not; and no explanation is
// left that is not needed. testdata/compare/run.sh sets that up.
func TestSameAsPeers(t *testing.T) {
	if *comparePeers == "" {
		t.Skip("needs running resolvers; testdata/compare/run.sh starts them")
	}
	questions := readQuestions(t, *compareQueries)
	if len(questions) < 300 {
		t.Fatalf("only %d questions", len(questions))
	}
	serveOdd(t)
	// What is asked may be in one cache for as long as the test runs, and not in the other.
	ttlSlack, shortSlack = 60, 0.2
	peers := strings.Split(*comparePeers, ",")
	found := &findings{differs: readDifferences(t, *compareDiffers), rcodes: map[string]int{}}
	worlds := []*compared{{at: portsOf(t, 0), found: found}, {at: portsOf(t, 1), found: found, validates: true}}
	for _, c := range worlds {
		c.peers = peers
		for _, peer := range append([]string{"bonsai"}, peers...) {
			awaitAnswer(t, c.at[peer])
		}
	}
	var both sync.WaitGroup
	for _, c := range worlds {
		both.Go(func() { c.run(t, questions) })
	}
	both.Wait()
	found.report(t)
	found.needless(t, peers)
	if n := found.answers; found.secure < n/10 || found.rcodes["SERVFAIL"] < n/50 || found.rcodes["NXDOMAIN"] < n/20 {
		t.Error("the questions are too much alike")
	}
	t.Logf("%d questions, beside %s; %v", len(questions), strings.Join(peers, ", "), found.rcodes)
}

// portsOf are the addresses of the resolvers.
func portsOf(t *testing.T, further int) map[string]string {
	t.Helper()
	at := map[string]string{}
	for _, pair := range strings.Split(*comparePorts, ",") {
		name, digits, _ := strings.Cut(pair, "=")
		port, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatalf("%q is not NAME=PORT", pair)
		}
		at[name] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port+further))
	}
	return at
}

// compared is the daemon and its peers, all of which validate or none.
type compared struct {
	at        map[string]string // addresses by name
	peers     []string
	validates bool
	found     *findings
}

// run asks everything in order, so that all caches hold the same; what is slow is asked beside that.
func (c *compared) run(t *testing.T, questions []question) {
	var slow sync.WaitGroup
	defer slow.Wait()
	for _, q := range questions {
		switch {
		case slices.Contains(q.words, "VALIDATE") && !c.validates:
		case slices.Contains(q.words, "SLOW"):
			slow.Go(func() { c.ask(t, q) })
		default:
			c.ask(t, q)
		}
	}
}

func (c *compared) ask(t *testing.T, q question) {
	shapes := []func(*dns.Msg){c.shape(q.words)}
	if len(q.words) == 0 && c.validates {
		shapes = []func(*dns.Msg){withDO, withAD}
	}
	for _, shape := range shapes {
		answers := c.all(t, q.Question, shape)
		got := answers["bonsai"]
		if got == nil {
			t.Errorf("%s %s %v, validation %t: no answer", q.Name, dns.Type(q.Qtype), q.words, c.validates)
			continue
		}
		c.found.count(got)
		for _, peer := range c.peers {
			want := answers[peer]
			for _, part := range differences(got, want) {
				c.found.beside(t, peer, c.validates, q, part, got, want)
			}
		}
	}
}

// shape is how the words say that a question is asked.
func (c *compared) shape(words []string) func(*dns.Msg) {
	return func(m *dns.Msg) {
		has := func(word string) bool { return slices.Contains(words, word) }
		if !has("NOEDNS") {
			m.SetEdns0(1232, has("DO") || has("CD"))
		}
		m.CheckingDisabled, m.AuthenticatedData = has("CD"), has("AD")
		m.RecursionDesired = !has("RD0") && !has("CACHE")
	}
}

// all asks everybody at once.
func (c *compared) all(t *testing.T, q dns.Question, shape func(*dns.Msg)) map[string]*dns.Msg {
	var lock sync.Mutex
	var wait sync.WaitGroup
	answers := map[string]*dns.Msg{}
	for _, name := range append([]string{"bonsai"}, c.peers...) {
		wait.Go(func() {
			got, err := askOnce(c.at[name], q, shape)
			if err != nil {
				got = nil
			}
			lock.Lock()
			defer lock.Unlock()
			answers[name] = got
		})
	}
	wait.Wait()
	return answers
}

// differences are the parts in which two responses are not the same: RCODE alone, for all else follows from it,
// or any of the others. A message is nil where there was no answer.
func differences(got, want *dns.Msg) (parts []string) {
	if got == nil || want == nil {
		if got == want {
			return nil
		}
		return []string{"silence"}
	}
	if got.Rcode != want.Rcode {
		return []string{"RCODE"}
	}
	add := func(part string, differs bool) {
		if differs {
			parts = append(parts, part)
		}
	}
	add("AA", got.Authoritative != want.Authoritative)
	add("AD", got.AuthenticatedData != want.AuthenticatedData)
	add("CD", got.CheckingDisabled != want.CheckingDisabled)
	add("RA", got.RecursionAvailable != want.RecursionAvailable)
	add("TC", got.Truncated != want.Truncated)
	bareGot, bareWant := withoutTTLs(got), withoutTTLs(want)
	sameAnswer := sameSets(bareGot.Answer, bareWant.Answer)
	sameSOA := sameSets(soas(bareGot.Ns), soas(bareWant.Ns))
	add("answer", !sameAnswer)
	add("SOA", !sameSOA)
	add("NS", hasNS(got.Ns) != hasNS(want.Ns))
	add("TTL", sameAnswer && !sameSets(got.Answer, want.Answer))
	add("negative-TTL", sameSOA && !sameSets(soas(got.Ns), soas(want.Ns)))
	ours, theirs := edes(got), edes(want)
	add("EDE", len(ours) > 0 && len(theirs) > 0 && !slices.ContainsFunc(ours, func(code uint16) bool { return slices.Contains(theirs, code) }))
	return parts
}

func hasNS(section []dns.RR) bool {
	return slices.ContainsFunc(section, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeNS })
}

// edes are the codes of a response's extended errors.
func edes(m *dns.Msg) (codes []uint16) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if ede, ok := o.(*dns.EDNS0_EDE); ok {
				codes = append(codes, ede.InfoCode)
			}
		}
	}
	return codes
}

// count counts an answer of the daemon's.
func (f *findings) count(got *dns.Msg) {
	f.Lock()
	defer f.Unlock()
	f.answers++
	f.rcodes[dns.RcodeToString[got.Rcode]]++
	if got.AuthenticatedData {
		f.secure++
	}
}

// beside looks for what explains a difference between the daemon and a peer.
func (f *findings) beside(t *testing.T, peer string, validates bool, q question, part string, got, want *dns.Msg) {
	f.Lock()
	defer f.Unlock()
	if f.explains(peer, q.Question, part) {
		return
	}
	f.open++
	t.Errorf("%s %s %s %v, validation %t: %s\n  bonsai: %s\n  %s: %s", peer, q.Name, dns.Type(q.Qtype), q.words, validates, part,
		brief(got), peer, brief(want))
}

// needless are the explanations that explain nothing, of the peers that are here.
func (f *findings) needless(t *testing.T, peers []string) {
	for _, e := range f.differs {
		if e.met == 0 && slices.Contains(peers, e.peer) {
			t.Errorf("nothing differs as explained by %s %s %s %s", e.peer, e.pattern, e.qtype, e.part)
		}
	}
}

func TestDifferences(t *testing.T) {
	message := func(edit func(*dns.Msg)) *dns.Msg {
		m := &dns.Msg{MsgHdr: dns.MsgHdr{RecursionAvailable: true}}
		m.Answer = []dns.RR{oddRecord("a. 300 A 192.0.2.1")}
		m.Ns = []dns.RR{oddRecord("a. 300 SOA ns.a. h.a. 1 2 3 4 5")}
		m.SetEdns0(1232, false)
		edit(m)
		return m
	}
	ede := func(code uint16) func(*dns.Msg) {
		return func(m *dns.Msg) {
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_EDE{InfoCode: code})
		}
	}
	same := func(*dns.Msg) {}
	for _, c := range []struct {
		got, want func(*dns.Msg)
		parts     string
	}{
		{same, same, "[]"},
		{func(m *dns.Msg) { m.Rcode, m.Authoritative = 3, true }, same, "[RCODE]"},
		{func(m *dns.Msg) { m.Authoritative = true; m.Truncated = true }, same, "[AA TC]"},
		{func(m *dns.Msg) { m.AuthenticatedData = true }, func(m *dns.Msg) { m.CheckingDisabled = true }, "[AD CD]"},
		{func(m *dns.Msg) { m.Answer = nil }, same, "[answer]"},
		{func(m *dns.Msg) { m.Answer[0].Header().Ttl = 200 }, same, "[TTL]"},
		{func(m *dns.Msg) { m.Ns = nil }, same, "[SOA]"},
		{func(m *dns.Msg) { m.Ns[0].Header().Ttl = 5 }, same, "[negative-TTL]"},
		{func(m *dns.Msg) { m.Ns = append(m.Ns, oddRecord("a. NS b.")) }, same, "[NS]"},
		{ede(6), ede(9), "[EDE]"},
		{ede(6), same, "[]"},
	} {
		if got := fmt.Sprint(differences(message(c.got), message(c.want))); got != c.parts {
			t.Errorf("got %s, want %s", got, c.parts)
		}
	}
}

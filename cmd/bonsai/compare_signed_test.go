package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

var (
	compareDiffers = flag.String("compare.differs", "", "file of the differences that are explained")
	compareAnchor  = flag.String("compare.anchor", "", "file with the DS records of the root")
	compareSample  = flag.Int("compare.delv", 0, "how many names delv judges")
)

// Two validating resolvers on the same signed Internet agree in RCODE, AD, answer and SOA, whatever DO, AD
// and CD are in the query. testdata/compare/signed sets that up.
func TestSignedSameAsReference(t *testing.T) {
	if *compareAnchor == "" {
		t.Skip("needs two running resolvers; testdata/compare/signed starts them")
	}
	questions := readQuestions(t, *compareQueries)
	differs := readDifferences(t, *compareDiffers)
	awaitAnswer(t, *compareReference)
	awaitAnswer(t, *compareBonsai)
	// Much of what is asked is in the caches by then, for some time or other.
	ttlSlack = 200
	found := &findings{differs: differs, rcodes: map[string]int{}}
	inParallel(questions, func(q question) {
		shapes := []func(*dns.Msg){withDO, withAD} // the second is answered from the cache
		if q.cd {
			shapes = []func(*dns.Msg){withCD}
		}
		for _, shape := range shapes {
			want, got := askShaped(t, *compareReference, q.Question, shape), askShaped(t, *compareBonsai, q.Question, shape)
			if want == nil || got == nil {
				continue
			}
			if q.cd && got.AuthenticatedData {
				// With CD, AD is only for what is secure without it (RFC 6840 §5.8); unbound sets none.
				plain := askShaped(t, *compareReference, q.Question, withDO)
				want.AuthenticatedData = plain != nil && plain.AuthenticatedData
			}
			part := difference(got, want)
			if part == "answer" || part == "SOA" {
				if difference(withoutTTLs(got), withoutTTLs(want)) == "" {
					part = "TTL"
				}
			}
			if part == "TTL" && q.cd {
				part = "" // RFC 4035 §4.7: what does not validate is kept briefly; unbound shows its TTL
			}
			found.add(t, q.Question, part, got, want)
		}
	})
	step := max(1, len(questions)/max(1, *compareSample))
	var sample []question
	for i := 0; i < len(questions) && *compareSample > 0; i += step {
		if !questions[i].cd && questions[i].Qtype != dns.TypeNSEC {
			sample = append(sample, questions[i])
		}
	}
	inParallel(sample, func(q question) { found.judge(t, q.Question) })
	found.report(t)
	t.Logf("%d questions, %d of them judged by delv; %v", len(questions), len(sample), found.rcodes)
	if n := found.answers; found.secure < n/4 || found.rcodes["SERVFAIL"] < n/50 || found.rcodes["NXDOMAIN"] < n/20 {
		t.Error("the questions are too much alike")
	}
}

func withDO(m *dns.Msg) { m.SetEdns0(1232, true) }
func withCD(m *dns.Msg) { m.SetEdns0(1232, true); m.CheckingDisabled = true }
func withAD(m *dns.Msg) { m.SetEdns0(1232, false); m.AuthenticatedData = true }

// withoutTTLs is a message with every TTL 0.
func withoutTTLs(m *dns.Msg) *dns.Msg {
	m = m.Copy()
	for _, rr := range append(slices.Clone(m.Answer), m.Ns...) {
		rr.Header().Ttl = 0
	}
	return m
}

// inParallel asks a few questions at once, in whatever order.
func inParallel(questions []question, each func(question)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, q := range questions {
		slots <- struct{}{}
		wait.Go(func() {
			each(q)
			<-slots
		})
	}
	wait.Wait()
}

// reasoned is a kind of difference that is as it should be.
type reasoned struct {
	peer, pattern, qtype, part string
	met                        int
}

// readDifferences reads lines of a pattern of names, a type or *, and a part.
func readDifferences(t *testing.T, file string) (list []*reasoned) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), ";")
		switch fields := strings.Fields(line); len(fields) {
		case 0:
		case 3:
			list = append(list, &reasoned{pattern: fields[0], qtype: fields[1], part: fields[2]})
		case 4:
			list = append(list, &reasoned{peer: fields[0], pattern: fields[1], qtype: fields[2], part: fields[3]})
		default:
			t.Fatalf("%s: %q is neither NAME TYPE PART nor PEER NAME TYPE PART", file, line)
		}
	}
	return list
}

// findings gathers differences, and which of them are explained.
type findings struct {
	sync.Mutex
	differs   []*reasoned
	answers   int
	open      int
	secure    int
	rcodes    map[string]int
	delvAgree int
}

// add counts one pair of answers; an empty part is no difference.
func (f *findings) add(t *testing.T, q dns.Question, part string, got, want *dns.Msg) {
	f.Lock()
	defer f.Unlock()
	f.answers++
	f.rcodes[dns.RcodeToString[got.Rcode]]++
	if got.AuthenticatedData {
		f.secure++
	}
	if part == "" || f.explains("", q, part) {
		return
	}
	f.open++
	t.Errorf("%s %s: %s\n  bonsai: %s\n  other:  %s", q.Name, dns.Type(q.Qtype), part, brief(got), brief(want))
}

// brief is what of a response is compared, and its EDE, in a line.
func brief(m *dns.Msg) string {
	if m == nil {
		return "no answer"
	}
	line := fmt.Sprintf("%s aa=%t ra=%t ad=%t cd=%t", dns.RcodeToString[m.Rcode], m.Authoritative, m.RecursionAvailable,
		m.AuthenticatedData, m.CheckingDisabled)
	for _, rr := range append(slices.Clone(m.Answer), soas(m.Ns)...) {
		line += " | " + strings.ReplaceAll(rr.String(), "\t", " ")
	}
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if ede, ok := o.(*dns.EDNS0_EDE); ok {
				line += " | " + ede.String()
			}
		}
	}
	return line
}

func (f *findings) explains(peer string, q dns.Question, part string) bool {
	for _, e := range f.differs {
		matched, _ := path.Match(e.pattern, strings.ToLower(q.Name))
		if matched && e.peer == peer && (e.qtype == "*" || e.qtype == dns.Type(q.Qtype).String()) && e.part == part {
			e.met++
			return true
		}
	}
	return false
}

func (f *findings) report(t *testing.T) {
	for _, e := range f.differs {
		t.Logf("%5d differ as explained: %s %s %s %s", e.met, e.peer, e.pattern, e.qtype, e.part)
	}
	t.Logf("%d pairs of answers, %d of them with AD, delv agrees on %d, %d differences unexplained", f.answers, f.secure, f.delvAgree, f.open)
}

// judge has delv validate by itself what the daemon gives it, and compares with what the daemon says: AD where
// delv validated all of it, no AD where a part is unsigned, SERVFAIL where delv fails.
func (f *findings) judge(t *testing.T, q dns.Question) {
	host, port, _ := strings.Cut(*compareBonsai, ":")
	said, _ := exec.Command("delv", "@"+host, "-p", port, "-a", *compareAnchor+".delv", "+root=.", "+nomtrace",
		q.Name, dns.Type(q.Qtype).String()).CombinedOutput()
	daemon := askShaped(t, *compareBonsai, q, withAD)
	if daemon == nil {
		return
	}
	delv := delvVerdict(string(said))
	ours := "insecure"
	switch {
	case daemon.Rcode == dns.RcodeServerFailure:
		ours = "bogus"
	case daemon.AuthenticatedData:
		ours = "secure"
	}
	f.Lock()
	defer f.Unlock()
	if delv == ours {
		f.delvAgree++
	} else if !f.explains("", q, "delv") {
		f.open++
		t.Errorf("%s %s: delv\nbonsai is %s: %v\ndelv is %s: %s", q.Name, dns.Type(q.Qtype), ours, daemon, delv, said)
	}
}

// delvVerdict is the weakest of what delv says of the parts of an answer.
func delvVerdict(said string) string {
	switch {
	case strings.Contains(said, "resolution failed") && !strings.Contains(said, "ncache"):
		return "bogus"
	case strings.Contains(said, "; unsigned answer"), strings.Contains(said, "unsigned answer"):
		return "insecure"
	case strings.Contains(said, "fully validated"):
		return "secure"
	}
	return fmt.Sprintf("unknown: %.60q", said)
}

// askShaped asks; nil, and an error of the test, if there is no answer.
func askShaped(t *testing.T, at string, q dns.Question, shape func(*dns.Msg)) *dns.Msg {
	got, err := askOnce(at, q, shape)
	if err != nil {
		t.Errorf("%s %s at %s: %v", q.Name, dns.Type(q.Qtype), at, err)
	}
	return got
}

// askOnce asks over UDP and, where the answer is truncated, over TCP. TC is as it was over UDP.
func askOnce(at string, q dns.Question, shape func(*dns.Msg)) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.Id, m.RecursionDesired, m.Question = dns.Id(), true, []dns.Question{q}
	shape(m)
	c := &dns.Client{Timeout: 20 * time.Second, UDPSize: 1232}
	got, _, err := c.Exchange(m, at)
	if err != nil || !got.Truncated {
		return got, err
	}
	c.Net = "tcp"
	if got, _, err = c.Exchange(m, at); err == nil {
		got.Truncated = true
	}
	return got, err
}

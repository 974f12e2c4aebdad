package replay

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// Query is a client's.
type Query struct {
	Message []byte
	Client  netip.AddrPort
	Server  netip.Addr // the address it was sent to
	TCP     bool
}

// Answerer is the resolver under test, from query bytes to response bytes.
type Answerer interface {
	// Answer returns the response, nil where the query is dropped. It is called from one goroutine
	// a query. The context ends with the scenario.
	Answer(context.Context, *Query) []byte
	// Close ends every goroutine of the resolver.
	Close()
}

// Start makes an Answerer whose servers are those of the network and whose clock, in Unix seconds,
// is now.
type Start func(set *Settings, network *Internet, now func() uint32) (Answerer, error)

// Options say how to play a scenario.
type Options struct {
	Start Start
	Lacks []string // see Settings.Needs: scenarios that need one of these are skipped
	// Bubble says that Play is called inside a testing/synctest bubble: waiting takes no time, and
	// TIME_PASSES moves timers as well as the clock.
	Bubble bool
	// Loose leaves out of the comparison what is a matter of taste: the zone's NS RRset in the
	// authority section, that section in SERVFAIL, and in Testbound scenarios the additional one.
	Loose bool
	EDE   bool // compare extended errors where MATCH says so
	Infer bool // answer upstream queries that the scenario leaves out, see inferred
	// Whole makes an upstream query that the scenario has no answer for a failure.
	Whole bool
}

// Result of a scenario.
type Result struct {
	Skipped   string // why it was not played
	Failure   *Failure
	Upstream  []Upstream
	Undefined int // upstream queries the scenario has no answer for
}

const (
	// patience is how long a client waits for a response: what the resolver promises to answer in,
	// and a little.
	patience = 10*time.Second + 500*time.Millisecond
	// longPatience is for scenarios that let the resolver run into timeouts.
	longPatience = 40 * time.Second
	// maxSleep bounds how much of a TIME_PASSES timers see; the clock sees all.
	maxSleep = 3 * time.Hour
	// ttlSlack is by how many seconds TTLs may differ.
	ttlSlack = 3
)

// player plays one scenario.
type player struct {
	*Internet
	options  *Options
	answerer Answerer
	ctx      context.Context
	patience time.Duration
	rules    rules
	clients  sync.WaitGroup

	clock   int64         // Unix seconds at the start
	mu      sync.Mutex    // of what follows
	moved   time.Duration // by which the clock is ahead of the time that passed
	answers []*answer
	flying  int     // client queries without an answer
	last    *answer // Deckard: what CHECK_ANSWER looks at
	id      uint16
}

// answer is what a client got.
type answer struct {
	message *dns.Msg // nil: see problem
	problem string
	tcp     bool
	took    time.Duration
	used    bool
}

// Play runs a scenario. An error means that it could not begin: its header is broken, or the
// resolver did not start.
func Play(s *Scenario, o *Options) (*Result, error) {
	set, err := s.Settings()
	if err != nil {
		return nil, err
	}
	if why := s.skip(set, o.Lacks); why != "" {
		return &Result{Skipped: why}, nil
	}
	p := &player{Internet: NewInternet(s, set, o.Infer), options: o, clock: set.Clock, patience: patience}
	if p.clock == 0 {
		p.clock = time.Now().Unix()
	}
	p.rules = rules{looseNS: o.Loose, looseExtra: o.Loose && s.Dialect == Testbound, ede: o.EDE, ttlSlack: ttlSlack}
	if slices.ContainsFunc(s.Steps, func(st *Step) bool { return st.Type == "TIMEOUT" }) {
		p.patience = longPatience
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.ctx = ctx
	if p.answerer, err = o.Start(set, p.Internet, p.now); err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	r := &Result{Failure: p.run()}
	cancel()
	p.clients.Wait() // in a bubble no time passes any more once Play has returned
	p.answerer.Close()
	p.Internet.mu.Lock()
	defer p.Internet.mu.Unlock()
	r.Upstream, r.Undefined = p.upstream, p.undef
	if r.Failure != nil {
		r.Failure.File, r.Failure.Upstream = s.File, r.Upstream
	}
	return r, nil
}

// skip says why a scenario is not played, "" where it is.
func (s *Scenario) skip(set *Settings, lacks []string) string {
	if s.internal != "" {
		return "needs the inside of another program: " + s.internal
	}
	known := []string{
		"stub-zone", "forward-zone", "local-data", "private-address", "ttl-limits", "access-control", "dns64",
	}
	for _, n := range set.Needs() {
		if !slices.Contains(known, n) || slices.Contains(lacks, n) {
			return "needs " + n
		}
	}
	return ""
}

// now is the resolver's clock.
func (p *player) now() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint32(p.clock + int64((time.Since(p.start)+p.moved)/time.Second))
}

// run plays the steps, and looks at what must have happened by their end.
func (p *player) run() *Failure {
	steps := p.scenario.Steps
	for i, s := range steps {
		next := steps[min(i+1, len(steps)-1)]
		if f := p.play(s, next); f != nil {
			f.Step = s
			return f
		}
	}
	p.Internet.mu.Lock()
	defer p.Internet.mu.Unlock()
	for _, r := range p.scenario.Ranges {
		for _, e := range r.Entries {
			if e.Mandatory && p.fired[e] == 0 {
				return &Failure{Why: fmt.Sprintf("the entry of line %d is mandatory and was never asked for", e.Line)}
			}
		}
	}
	if p.options.Whole && p.undef > 0 {
		return &Failure{Why: fmt.Sprintf("%d upstream queries that the scenario has no answer for", p.undef)}
	}
	return nil
}

// play plays one step; next is the one behind it.
func (p *player) play(s, next *Step) *Failure {
	switch s.Type {
	case "QUERY":
		return p.query(s, next)
	case "CHECK_ANSWER":
		p.setStep(s)
		return p.checkAnswer(s)
	case "CHECK_UPSTREAM":
		p.settle()
		return p.checkUpstream(s)
	case "TIME_PASSES":
		p.setStep(s)
		p.settle()
		p.pass(s.Elapse)
	case "TRAFFIC":
		p.setStep(s)
		p.wait(p.patience, func() bool { return p.flying == 0 })
		p.settle()
	}
	if p.scenario.Dialect == Deckard {
		return nil // upstream queries are answered by the time they come
	}
	switch s.Type {
	case "REPLY":
		return p.replyStep(s, next)
	case "CHECK_OUT_QUERY":
		return p.checkOutQuery(s, next)
	case "TIMEOUT":
		return p.timeout(s)
	}
	return nil
}

// settle waits until the resolver has done what it can and waits for servers that do not answer.
func (p *player) settle() {
	if !p.options.Bubble {
		time.Sleep(30 * time.Millisecond)
		return
	}
	for {
		synctest.Wait()
		p.Internet.mu.Lock()
		moving := p.moving
		p.Internet.mu.Unlock()
		if moving == 0 {
			return
		}
		time.Sleep(latency)
	}
}

// pass moves the clock. Timers follow where no query is under way that they could end.
func (p *player) pass(d time.Duration) {
	p.mu.Lock()
	sleep := min(d, maxSleep)
	if !p.options.Bubble || p.flying > 0 {
		sleep = 0
	}
	p.moved += d - sleep
	p.mu.Unlock()
	time.Sleep(sleep)
}

// wait waits for an event that makes the condition true, which is looked at under both locks.
func (p *player) wait(limit time.Duration, condition func() bool) bool {
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		p.mu.Lock()
		p.Internet.mu.Lock()
		ok := condition()
		p.Internet.mu.Unlock()
		p.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-p.event:
		case <-end.C:
			return false
		}
	}
}

// query sends a client query. In Deckard the step lasts until the answer, in Testbound the resolver
// works on it while the next step is in force.
func (p *player) query(s, next *Step) *Failure {
	p.setStep(s)
	if p.scenario.Dialect == Testbound {
		p.setStep(next)
	}
	message, err := p.clientMessage(s.Entry)
	if err != nil {
		return &Failure{Why: fmt.Sprintf("the query cannot be packed: %v", err)}
	}
	q := &Query{Message: message, Client: netip.AddrPortFrom(s.Addr, clientPort), TCP: s.Entry.Match["TCP"]}
	q.Server = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if !s.Addr.IsValid() {
		q.Client = netip.AddrPortFrom(q.Server, clientPort)
	}
	// Deckard's messages in hex are sent to see that nothing breaks; no answer is awaited.
	blind := s.Entry.Raw != nil && p.scenario.Dialect == Deckard
	p.mu.Lock()
	p.flying++
	p.mu.Unlock()
	p.clients.Go(func() { p.exchange(q, blind) })
	if p.scenario.Dialect == Deckard && !blind {
		p.wait(p.patience+time.Second, func() bool { return p.flying == 0 })
	} else {
		p.settle()
	}
	return nil
}

const clientPort = 40053

// clientMessage packs the query of an entry. Deckard's clients use EDNS unless MATCH says noedns.
func (p *player) clientMessage(e *Entry) ([]byte, error) {
	if e.Raw != nil {
		return e.Raw, nil
	}
	m := e.template()
	p.mu.Lock()
	p.id += 257
	m.Id = p.id
	p.mu.Unlock()
	if p.scenario.Dialect == Deckard && !e.Match["noedns"] || e.DO || e.HasOptions {
		setOPT(m, e.DO, e.RCODE, e.Options)
	}
	return pack(m)
}

// exchange has a query answered and files what came.
func (p *player) exchange(q *Query, blind bool) {
	begin := time.Now()
	response := make(chan []byte, 1)
	p.clients.Go(func() { response <- p.answerer.Answer(p.ctx, q) })
	a := &answer{tcp: q.TCP}
	select {
	case b := <-response:
		a.read(b, q.Message)
	case <-time.After(p.patience):
		a.problem = fmt.Sprintf("no answer within %s", p.patience)
	case <-p.ctx.Done():
		a.problem = "the scenario has ended"
	}
	a.took = time.Since(begin)
	p.mu.Lock()
	p.flying--
	if !blind {
		p.last = a
		p.answers = append(p.answers, a)
	}
	p.mu.Unlock()
	p.notify()
}

// read parses a response.
func (a *answer) read(response, query []byte) {
	if len(response) == 0 {
		a.problem = "the query was dropped"
		return
	}
	m := new(dns.Msg)
	if err := m.Unpack(response); err != nil {
		a.problem = fmt.Sprintf("the answer does not parse: %v: %x", err, response)
		return
	}
	if len(query) >= 2 && m.Id != uint16(query[0])<<8|uint16(query[1]) {
		a.problem = "the answer has another ID than the query"
		return
	}
	a.message = m
}

// checkAnswer compares the answer; in Testbound any of those that no step has checked yet.
func (p *player) checkAnswer(s *Step) *Failure {
	f := &Failure{Why: "no answer to check"}
	if p.scenario.Dialect == Deckard {
		p.mu.Lock()
		a := p.last
		p.mu.Unlock()
		if a == nil {
			return f
		}
		return p.judge(s, a)
	}
	p.wait(p.patience+time.Second, func() bool {
		for _, a := range p.answers {
			if a.used {
				continue
			}
			if f = p.judge(s, a); f == nil {
				a.used = true
				return true
			}
		}
		return p.flying == 0
	})
	return f
}

// judge compares an answer with the step's entry.
func (p *player) judge(s *Step, a *answer) *Failure {
	if a.message == nil {
		return &Failure{Why: a.problem, Want: s.Entry}
	}
	d := s.Entry.differences(a.message, a.tcp, p.scenario.Dialect, p.rules)
	switch {
	case len(d) > 0:
		return &Failure{Why: "the answer differs", Differences: d, Want: s.Entry, Got: a.message}
	case s.Within > 0 && a.took > s.Within:
		return &Failure{Why: fmt.Sprintf("the answer took %s, more than %s", a.took, s.Within)}
	}
	return nil
}

// checkUpstream counts the upstream queries since the last such step.
func (p *player) checkUpstream(s *Step) *Failure {
	p.Internet.mu.Lock()
	defer p.Internet.mu.Unlock()
	count := 0
	for _, u := range p.upstream[p.counted:] {
		if (!s.Addr.IsValid() || s.Addr == u.To) &&
			(s.Entry == nil || u.Query != nil && s.Entry.matches(u.Query, u.TCP, p.scenario.Dialect)) {
			count++
		}
	}
	p.counted = len(p.upstream)
	switch {
	case count < s.AtLeast:
		return &Failure{Why: fmt.Sprintf("%d such upstream queries, fewer than %d", count, s.AtLeast)}
	case s.AtMost >= 0 && count > s.AtMost:
		return &Failure{Why: fmt.Sprintf("%d such upstream queries, more than %d", count, s.AtMost)}
	}
	return nil
}

// replyStep answers the latest upstream query that waits and matches.
func (p *player) replyStep(s, next *Step) *Failure {
	p.setStep(s)
	if !p.wait(p.patience, func() bool {
		for i, h := range slices.Backward(p.held) {
			if p.picks(s, h) {
				p.held = slices.Delete(p.held, i, i+1)
				p.step = next
				p.answer(s.Entry, h, fmt.Sprintf("STEP %d ", s.ID))
				return true
			}
		}
		return false
	}) {
		return &Failure{Why: "no upstream query waits that this answers", Want: s.Entry}
	}
	p.settle()
	return nil
}

// checkOutQuery waits for an upstream query that matches.
func (p *player) checkOutQuery(s, next *Step) *Failure {
	p.setStep(s)
	if !p.wait(p.patience, func() bool {
		for i, h := range p.held {
			if !p.used[s] && p.picks(s, h) {
				if s.Entry.Adjust["copy_id"] {
					p.held = slices.Delete(p.held, i, i+1)
					p.step = next
				}
				p.take(s, h)
				break
			}
		}
		return p.used[s]
	}) {
		return &Failure{Why: "no such upstream query was sent", Want: s.Entry}
	}
	p.setStep(next)
	p.settle()
	return nil
}

// timeout lets the upstream query that waits longest go without an answer.
func (p *player) timeout(s *Step) *Failure {
	p.setStep(s)
	if !p.wait(p.patience, func() bool {
		if len(p.held) == 0 {
			return false
		}
		p.upstream[p.held[0].number].Note = fmt.Sprintf("STEP %d lets it time out", s.ID)
		p.held = p.held[1:]
		return true
	}) {
		return &Failure{Why: "no upstream query waits that could time out"}
	}
	return nil
}

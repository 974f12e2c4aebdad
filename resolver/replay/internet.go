package replay

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Internet is every server of a scenario. Its DialUDP and DialTCP are a transport for package
// exchange; all methods may be called at once.
type Internet struct {
	scenario *Scenario
	settings *Settings
	addrs    map[netip.Addr]bool
	start    time.Time
	hold     bool // queries without an answer wait for a step
	infer    bool

	mu       sync.Mutex
	step     *Step
	used     map[*Step]bool
	fired    map[*Entry]int
	held     []*held
	upstream []Upstream
	counted  int // upstream queries before the last CHECK_UPSTREAM
	undef    int
	moving   int           // messages on their way to the resolver for no longer than latency
	event    chan struct{} // one is in it when something happened since it was last read
}

// Upstream is one query that a server got.
type Upstream struct {
	At    time.Duration // since the scenario began
	Step  int           // in force then
	To    netip.Addr
	TCP   bool
	Query *dns.Msg // nil where it could not be parsed
	Note  string   // what became of it
}

func (u Upstream) String() string {
	q := "unparsable"
	if u.Query != nil {
		q = queryText(u.Query)
	}
	return fmt.Sprintf("%8.3fs step %-4d %s/%s  %s  -> %s", u.At.Seconds(), u.Step, u.To, strings.ToLower(transport(u.TCP)), q, u.Note)
}

// held is an upstream query that waits for a step to answer it.
type held struct {
	query  *dns.Msg
	to     netip.Addr
	tcp    bool
	send   sender
	number int // in upstream
}

// sender takes a server's message to the resolver; last closes a TCP connection behind it.
type sender func(message []byte, last bool)

// NewInternet returns the servers of a scenario for use without Play. The step in force is the first
// until SetStep says otherwise; infer is that of Options.
func NewInternet(s *Scenario, set *Settings, infer bool) *Internet {
	n := &Internet{
		scenario: s, settings: set, addrs: map[netip.Addr]bool{}, start: time.Now(), infer: infer,
		used: map[*Step]bool{}, fired: map[*Entry]int{}, event: make(chan struct{}, 1),
	}
	for _, a := range s.addresses() {
		n.addrs[a] = true
	}
	if s.Dialect == Testbound {
		n.hold = slices.ContainsFunc(s.Steps, func(st *Step) bool { return scriptsUpstream[st.Type] })
	}
	return n
}

// scriptsUpstream are the types of steps that answer upstream queries, or pick one.
var scriptsUpstream = map[string]bool{"REPLY": true, "TIMEOUT": true, "CHECK_OUT_QUERY": true}

// addresses lists the addresses where a server is, sorted. Any other is unreachable.
func (s *Scenario) addresses() []netip.Addr {
	set := map[netip.Addr]bool{}
	named := false // servers are known by the records that name them
	for _, st := range s.Steps {
		named = named || scriptsUpstream[st.Type] && s.Dialect == Testbound
		if st.Addr.IsValid() && st.Type != "QUERY" && st.Type != "CHECK_UPSTREAM" {
			set[st.Addr] = true
		}
		if st.Type == "REPLY" || st.Type == "CHECK_OUT_QUERY" {
			st.Entry.addresses(set)
		}
	}
	for _, r := range s.Ranges {
		named = named || len(r.Addrs) == 0 && s.Dialect == Testbound
		for _, a := range r.Addrs {
			set[a] = true
		}
	}
	if named {
		for _, r := range s.Ranges {
			for _, e := range r.Entries {
				e.addresses(set)
			}
		}
		for _, o := range s.Options {
			v, _, _ := strings.Cut(unquote(o.Value), "@")
			if a, err := netip.ParseAddr(v); err == nil && strings.HasSuffix(o.Key, "-addr") {
				set[a] = true
			}
		}
	}
	var list []netip.Addr
	for a := range set {
		if !a.IsMulticast() && !a.IsUnspecified() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// addresses adds those in the entry's records.
func (e *Entry) addresses(set map[netip.Addr]bool) {
	for _, section := range [][]dns.RR{e.Message.Answer, e.Message.Ns, e.Message.Extra} {
		for _, r := range section {
			var a netip.Addr
			switch x := r.(type) {
			case *dns.A:
				a, _ = netip.AddrFromSlice(x.A.To4())
			case *dns.AAAA:
				a, _ = netip.AddrFromSlice(x.AAAA.To16())
			}
			if a.IsValid() {
				set[a] = true
			}
		}
	}
}

// notify tells the player that something happened.
func (n *Internet) notify() {
	select {
	case n.event <- struct{}{}:
	default:
	}
}

func (n *Internet) setStep(s *Step) {
	n.mu.Lock()
	n.step = s
	n.mu.Unlock()
}

// SetStep puts a step in force, by its number: the ranges that hold it answer from now on.
func (n *Internet) SetStep(number int) { n.setStep(&Step{ID: number, Type: "NOTHING"}) }

// Upstream returns the queries that servers got so far.
func (n *Internet) Upstream() []Upstream {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.upstream)
}

// receive is a query's arrival at a server. What it is answered goes to send, now or later.
func (n *Internet) receive(packet []byte, to netip.Addr, tcp bool, send sender) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.notify()
	number := len(n.upstream)
	n.upstream = append(n.upstream, Upstream{At: time.Since(n.start), To: to, TCP: tcp})
	u := &n.upstream[number]
	if n.step != nil {
		u.Step = n.step.ID
	}
	q := new(dns.Msg)
	if err := q.Unpack(packet); err != nil {
		u.Note = fmt.Sprintf("%v: %s", err, hex.EncodeToString(packet))
		return
	}
	u.Query = q
	h := &held{q, to, tcp, send, number}
	if n.hold && n.step != nil && n.step.Type == "CHECK_OUT_QUERY" && !n.used[n.step] && n.picks(n.step, h) {
		n.take(n.step, h)
		return
	}
	if e := n.find(q, to, tcp); e != nil {
		n.answer(e, h, "")
		return
	}
	if n.infer {
		if m := n.inferred(q, to, tcp); m != nil {
			n.sendMessage(m, h, "INFERRED")
			return
		}
	}
	if n.hold {
		u.Note = "held"
		n.held = append(n.held, h)
		return
	}
	n.undef++
	m := new(dns.Msg).SetRcode(q, dns.RcodeServerFailure)
	mirrorOPT(m, q, dns.RcodeServerFailure, nil)
	n.sendMessage(m, h, "UNDEFINED")
}

// picks says whether a CHECK_OUT_QUERY or REPLY step is about the query.
func (n *Internet) picks(s *Step, h *held) bool {
	return (!s.Addr.IsValid() || s.Addr == h.to) && s.Entry.matches(h.query, h.tcp, n.scenario.Dialect)
}

// take gives a query to the CHECK_OUT_QUERY step that picked it. With copy_id the step answers it,
// else a later step does.
func (n *Internet) take(s *Step, h *held) {
	n.used[s] = true
	if s.Entry.Adjust["copy_id"] {
		n.answer(s.Entry, h, fmt.Sprintf("STEP %d ", s.ID))
		return
	}
	n.upstream[h.number].Note = "checked, held"
	if !slices.Contains(n.held, h) {
		n.held = append(n.held, h)
	}
}

// find returns the entry that answers a query: the first that matches of the ranges in force.
func (n *Internet) find(q *dns.Msg, to netip.Addr, tcp bool) *Entry {
	for e := range n.entries(to) {
		if e.matches(q, tcp, n.scenario.Dialect) {
			return e
		}
	}
	if n.scenario.Dialect == Testbound {
		return nil
	}
	for _, s := range n.scenario.Steps {
		if s.Type == "REPLY" && s.ID >= n.now() && !n.used[s] && n.picks(s, &held{query: q, to: to, tcp: tcp}) {
			n.used[s] = true
			return s.Entry
		}
	}
	return nil
}

// now is the number of the step in force.
func (n *Internet) now() int {
	if n.step == nil {
		return 0
	}
	return n.step.ID
}

// entries yields those of the ranges in force at an address.
func (n *Internet) entries(to netip.Addr) func(yield func(*Entry) bool) {
	return func(yield func(*Entry) bool) {
		for _, r := range n.scenario.Ranges {
			if !r.holds(n.now()) || len(r.Addrs) > 0 && !slices.Contains(r.Addrs, to) {
				continue
			}
			for _, e := range r.Entries {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// refusesTCP says whether a server accepts no TCP connections now.
func (n *Internet) refusesTCP(to netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.scenario.Ranges, func(r *Range) bool {
		return r.RefuseTCP && r.holds(n.now()) && slices.Contains(r.Addrs, to)
	})
}

// answer sends an entry, and the packets that follow it, in reply to a query.
func (n *Internet) answer(e *Entry, h *held, note string) {
	n.fired[e]++
	n.upstream[h.number].Note = fmt.Sprintf("%sline %d: ", note, e.Line)
	note = n.upstream[h.number].Note
	if e.Adjust["do_not_answer"] {
		n.upstream[h.number].Note += "silence"
		return
	}
	delay := time.Duration(0)
	for i, part := range append([]*Entry{e}, e.More...) {
		b, text := n.pack(part, h.query)
		if i == 0 {
			n.upstream[h.number].Note = note + text
		}
		if delay += part.Delay; delay > 0 {
			n.upstream[h.number].Note += fmt.Sprintf(", after %s", delay)
		}
		n.deliver(b, h, delay, part.Adjust["close"])
	}
}

// latency is how long a server's message travels at least: none arrives the moment it was asked for.
const latency = time.Millisecond

// deliver sends a message, if there is one.
func (n *Internet) deliver(b []byte, h *held, delay time.Duration, last bool) {
	if b == nil {
		return
	}
	soon := 0
	if delay == 0 {
		soon = 1
	}
	n.moving += soon
	time.AfterFunc(max(latency, delay), func() {
		h.send(b, last)
		n.mu.Lock()
		n.moving -= soon
		n.mu.Unlock()
	})
}

func (n *Internet) sendMessage(m *dns.Msg, h *held, note string) {
	b, err := pack(m)
	if err != nil {
		n.upstream[h.number].Note = fmt.Sprintf("%s: %v", note, err)
		return
	}
	n.upstream[h.number].Note = note + " " + messageText(m)
	n.deliver(b, h, 0, false)
}

// pack makes the message of an entry for a query, and tells it in a few words.
func (n *Internet) pack(e *Entry, q *dns.Msg) ([]byte, string) {
	mendID := n.scenario.Dialect == Testbound || e.Adjust["copy_id"]
	if e.Raw != nil {
		b := slices.Clone(e.Raw)
		if (mendID || e.Adjust["raw_id"]) && len(b) >= 2 {
			binary.BigEndian.PutUint16(b, q.Id)
		}
		return b, fmt.Sprintf("%d octets as they are", len(b))
	}
	m := e.template()
	m.Id = q.Id + 1
	if mendID {
		m.Id = q.Id
		if len(m.Question) > 0 && len(q.Question) > 0 &&
			(n.scenario.Dialect == Deckard || strings.EqualFold(m.Question[0].Name, q.Question[0].Name)) {
			m.Question[0].Name = q.Question[0].Name
		}
	}
	if e.Adjust["copy_query"] {
		m.Question = slices.Clone(q.Question)
	}
	if !e.Adjust["no_edns"] {
		mirrorOPT(m, q, e.RCODE, e.optionsFor(q))
	}
	b, err := pack(m)
	if err != nil {
		return nil, fmt.Sprintf("cannot be packed: %v", err)
	}
	return b, messageText(m)
}

// mirrorOPT adds an OPT record where the query has one.
func mirrorOPT(m, q *dns.Msg, rcode int, options []byte) {
	if o := q.IsEdns0(); o != nil {
		setOPT(m, o.Do(), rcode, options)
	}
}

// optionsFor returns the EDNS options of a reply. RFC 7871 §7.2.1: a client subnet comes back with
// the scope filled in.
func (e *Entry) optionsFor(q *dns.Msg) []byte {
	if !e.Adjust["copy_ednsdata_assume_clientsubnet"] {
		return e.Options
	}
	b := optionData(q)
	if len(b) >= 8 {
		b[7] = b[6]
		if e.Adjust["increment_ecs_scope"] {
			b[7]++
		}
	}
	return b
}

// queryText tells a query in one line.
func queryText(m *dns.Msg) string {
	text := "no question"
	if len(m.Question) > 0 {
		q := m.Question[0]
		text = q.Name + " " + dns.Type(q.Qtype).String()
		if q.Qclass != dns.ClassINET {
			text += " " + dns.Class(q.Qclass).String()
		}
	}
	if m.RecursionDesired {
		text += " +rd"
	}
	if m.CheckingDisabled {
		text += " +cd"
	}
	if o := m.IsEdns0(); o != nil {
		text += fmt.Sprintf(" +edns=%d", o.UDPSize())
		if o.Do() {
			text += " +do"
		}
	}
	return text
}

// messageText tells a response in one line.
func messageText(m *dns.Msg) string {
	text := rcodeText(m.Rcode)
	if m.Authoritative {
		text += " AA"
	}
	if m.Truncated {
		text += " TC"
	}
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		if list := withoutOPT(section); len(list) > 0 {
			text += fmt.Sprintf(" %s[%s]", [...]string{"an", "ns", "ad"}[i], types(list, false))
		}
	}
	return text
}

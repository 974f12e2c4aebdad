package iterate

import (
	"net/netip"
	"sync"
	"time"

	"bonsai/resolver/exchange"
	"bonsai/wire"
)

// maxEvents bounds a trace.
const maxEvents = 512

// Event is one thing that a resolution did: a server asked, or a decision.
type Event struct {
	At     time.Duration // since the trace began
	Depth  int
	Zone   wire.Name
	Name   wire.Name
	Type   wire.Type
	Server netip.AddrPort // zero where no server was asked
	RTT    time.Duration
	TCP    bool // or TLS
	TLS    bool
	RCODE  wire.RCODE
	What   string // what it was, in words: "referral to example.com.", "timeout"
}

// Trace keeps the events of a client query's tree, up to a bound. The nil Trace keeps nothing.
type Trace struct {
	mu     sync.Mutex
	begin  time.Time
	events []Event
	lost   int
}

// NewTrace returns an empty trace that begins now.
func NewTrace() *Trace { return &Trace{begin: time.Now()} }

// Restart makes a trace empty, to begin now. It keeps the memory.
func (t *Trace) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.events)
	t.begin, t.events, t.lost = time.Now(), t.events[:0], 0
}

// Add keeps an event.
func (t *Trace) Add(e Event) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) >= maxEvents {
		t.lost++
		return
	}
	e.At = time.Since(t.begin)
	t.events = append(t.events, e)
}

// Events returns what was kept, and how many events were not.
func (t *Trace) Events() (events []Event, lost int) { return t.AppendEvents(nil, maxEvents) }

// Len returns how many events were kept.
func (t *Trace) Len() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.events)
}

// AppendEvents appends what was kept, at most so many events, and says how many more there were.
func (t *Trace) AppendEvents(to []Event, most int) (events []Event, lost int) {
	if t == nil {
		return to, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.events), most)
	return append(to, t.events[:n]...), t.lost + len(t.events) - n
}

// exchanged keeps an exchange of packets.
func (t *Trace) exchanged(depth int, zone wire.Name, x *exchange.Event) {
	e := Event{
		Depth: depth, Zone: zone, Name: x.Name, Type: x.Type, Server: x.Server, RTT: x.RTT, TCP: x.TCP, TLS: x.TLS,
		RCODE: x.RCODE, What: "response",
	}
	if x.Err != nil {
		e.What = x.Err.Error()
	}
	t.Add(e)
}

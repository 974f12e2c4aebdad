// Package policy holds the answers and refusals that need no resolution. Each rule is one file; the
// order in which they are asked is data, in order.go.
//
// A rule sees one query and says Pass or decides. It may not wait. A decision that answers carries
// a packed entry, so that a local answer is written by the same code as a cached one.
package policy

import (
	"net/netip"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// Action is what a rule decided.
type Action uint8

// Actions.
const (
	Pass     Action = iota // the next rule, and behind the last one resolution
	Drop                   // no response
	Fail                   // RCODE, with an extended error where there is one
	Answer                 // Entry
	Text                   // one TXT record of class CH at QNAME, its string in Outcome.Text
	Truncate               // an empty response with TC: come back over TCP
	Changed                // of an AnswerRule: the content was changed
	Cached                 // from the cache alone: nothing is resolved for this query
)

// Actions are the names of the actions, for counters.
var Actions = [...]string{
	Pass: "pass", Drop: "drop", Fail: "fail", Answer: "answer", Text: "answer_text", Truncate: "truncate",
	Changed: "change", Cached: "cached_only",
}

// String returns the action's name.
func (a Action) String() string { return Actions[a] }

// Request is what rules look at. It borrows the query.
type Request struct {
	Query  *wire.Query
	Client netip.Addr // unmapped
	Now    uint32     // Unix seconds

	// Verified says that the client's address is no forgery: it came over TCP or has a good cookie.
	Verified bool
}

// Outcome is a rule's decision. The zero value passes.
type Outcome struct {
	Action Action
	RCODE  wire.RCODE
	EDE    wire.EDECode // wire.NoEDE for none; looked at with Fail and Answer
	Text   string       // of the extended error, or the string that answers
	Entry  entry.Entry
	Rule   string // which rule decided, for counters and explanations
}

// Rule looks at a request. Rules are asked by many workers at once.
type Rule interface {
	Judge(r *Request) Outcome
	Describe() Description
}

// Config chooses and feeds the rules.
type Config struct {
	Allow          []netip.Prefix // who may query; others are refused
	Refuse         []netip.Prefix // refused though allowed
	AllowSnoop     []netip.Prefix // who may read the cache with RD=0
	Version        string         // what version.bind and version.server say; "" refuses them
	ServerID       string         // what id.server and hostname.bind say; "" refuses them
	SpecialUse     bool           // answer for special-use names and private reverse zones
	AS112          bool           // answer as a node of AS112 does, with ServerID for its name
	Zones          []wire.Name    // configured zones: what they say goes before AS112 and SpecialUse
	LocalData      LocalData      // answered for these names; kept, not changed after NewOrder
	PrivateAddress []netip.Prefix // taken out of answers
	PrivateDomain  []wire.Name    // but not of these names and those below them
	AllowLists     []*NameSet     // not blocked, whatever BlockLists say
	BlockLists     []List
	RateLimit      RateLimit
	RateTable      *RateTable // of RateLimit; kept over reloads by the caller
}

// fail is an Outcome that refuses with an extended error.
func fail(rule string, rcode wire.RCODE, ede wire.EDECode, text string) Outcome {
	return Outcome{Action: Fail, RCODE: rcode, EDE: ede, Text: text, Rule: rule}
}

// Judge asks the rules in order and returns the first decision.
func (p Order) Judge(r *Request) Outcome {
	for _, rule := range p {
		if o := rule.Judge(r); o.Action != Pass {
			return o
		}
	}
	return Outcome{EDE: wire.NoEDE}
}

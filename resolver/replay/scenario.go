// Package replay plays scenarios: a scripted Internet for tests and benchmarks. Never in the daemon.
//
// A scenario is a text file (.rpl) in the grammar of Unbound's test program or in Deckard's, which
// descends from it: a header of settings, RANGE blocks with what each server says while a range of
// steps lasts, and STEPs that ask as a client, check answers and move the clock.
//
//	header           settings, until CONFIG_END; an unbound.conf fragment or "key: value" lines
//	SCENARIO_BEGIN title
//	RANGE_BEGIN first last
//	  ADDRESS a      one or more: the servers that answer from this range; none: every server
//	  ENTRY_BEGIN    MATCH what of a query must equal the entry, ADJUST, REPLY header, SECTIONs
//	  ENTRY_END
//	RANGE_END
//	STEP n type      with an ENTRY where the type has one
//	SCENARIO_END
//
// Parse reads a scenario, Settings puts its header in words no resolver owns, and Play runs it: it
// hands query bytes to an Answerer and is the network below it (Internet implements the transport
// of package exchange). Inside a testing/synctest bubble all of that takes no time.
package replay

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// Dialect says whose grammar and rules a scenario follows.
type Dialect uint8

const (
	// Deckard scenarios have a flat header. A step is over when its query is answered, message IDs
	// count, clients use EDNS.
	Deckard Dialect = iota
	// Testbound scenarios have an unbound.conf fragment as header. While a query is resolved, the
	// step behind it is in force, several queries may be under way, and message IDs are mended.
	Testbound
)

// String returns the dialect as a word, as lists of scenarios spell it.
func (d Dialect) String() string { return [...]string{"deckard", "unbound"}[d] }

// Scenario is one file, parsed. Playing it does not change it.
type Scenario struct {
	File    string // as given to Parse
	Title   string
	Dialect Dialect
	Options []Option
	Ranges  []*Range
	Steps   []*Step

	plain    []string // lines, see Plain
	internal string   // why it cannot be played from outside the program it was written for
}

// Option is one setting of the header.
type Option struct {
	Clause string // "server", "stub-zone", …; empty in a flat header
	Number int    // counts clauses, so that two of a name can be told apart
	Key    string
	Value  string
	Line   int
}

// Range is what servers say while a range of steps lasts.
type Range struct {
	Line        int
	First, Last int
	Addrs       []netip.Addr // empty: any server
	RefuseTCP   bool         // connections are refused while the range lasts
	Entries     []*Entry
}

func (r *Range) holds(step int) bool { return r.First <= step && step <= r.Last }

// Entry is a message with what to compare of it and how to send it.
type Entry struct {
	Line      int
	Match     map[string]bool
	EDE       []string // MATCH ede=CODE; "any", or "none"
	Serial    int64    // MATCH serial=N, else -1
	Adjust    map[string]bool
	Delay     time.Duration // ADJUST sleep=SECONDS
	Mandatory bool          // must have been asked for when the scenario ends

	Message    dns.Msg
	RCODE      int // with the bits of EDNS
	DO         bool
	Raw        []byte // the whole message where the scenario has it in hex
	Options    []byte // RDATA of the OPT
	HasOptions bool
	More       []*Entry // EXTRA_PACKET: sent behind this one
}

// Step is one moment of the scenario.
type Step struct {
	Line    int
	ID      int
	Type    string
	Addr    netip.Addr    // ADDRESS: the client's, or the server's
	Elapse  time.Duration // TIME_PASSES
	Within  time.Duration // CHECK_ANSWER within=SECONDS; 0: no bound
	AtLeast int           // CHECK_UPSTREAM at_least=N
	AtMost  int           // CHECK_UPSTREAM at_most=N, else -1
	Entry   *Entry
}

func (s *Step) String() string { return fmt.Sprintf("STEP %d %s", s.ID, s.Type) }

// stepTypes are the types of steps, and whether an entry goes with them.
var stepTypes = map[string]bool{
	"NOTHING": false, "QUERY": true, "CHECK_ANSWER": true, "CHECK_OUT_QUERY": true, "REPLY": true,
	"TIMEOUT": false, "TIME_PASSES": false, "TRAFFIC": false, "CHECK_UPSTREAM": false,
}

// internalSteps look inside the program that the scenario was written for.
var internalSteps = map[string]bool{
	"ASSIGN": true, "CHECK_AUTOTRUST": true, "CHECK_TEMPFILE": true, "INFRA_RTT": true,
	"FLUSH_MESSAGE": true, "EXPIRE_MESSAGE": true, "ERROR": true,
}

// matchWords are the words of MATCH that take no value.
var matchWords = map[string]bool{
	"opcode": true, "qtype": true, "qname": true, "qcase": true, "subdomain": true, "question": true,
	"flags": true, "rcode": true, "answer": true, "authority": true, "additional": true,
	"all": true, "all_noedns": true, "ttl": true, "DO": true, "noedns": true, "edns": true,
	"UDP": true, "TCP": true, "ednsdata": true, "client_cookie": true, "server_cookie": true,
	"answertypes": true, "answerrrsigs": true, "nsid": true,
}

// adjustWords are the words of ADJUST that take no value. Two are ours: close ends a TCP connection
// behind the reply, no_edns leaves out the OPT record that a query with one is answered with.
var adjustWords = map[string]bool{
	"copy_id": true, "copy_query": true, "do_not_answer": true, "raw_id": true, "close": true, "no_edns": true,
	"copy_ednsdata_assume_clientsubnet": true, "increment_ecs_scope": true,
}

// rcodes are the RCODEs as scenarios spell them.
var rcodes = map[string]int{
	"NOERROR": 0, "FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4, "NOTIMPL": 4,
	"REFUSED": 5, "YXDOMAIN": 6, "YXRRSET": 7, "NXRRSET": 8, "NOTAUTH": 9, "NOTZONE": 10,
	"BADVERS": 16, "BADCOOKIE": 23,
}

var opcodes = map[string]int{"QUERY": 0, "IQUERY": 1, "STATUS": 2, "NOTIFY": 4, "UPDATE": 5}

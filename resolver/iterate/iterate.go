// Package iterate resolves one link of a question, from the deepest live zone cut down to an
// authoritative answer (RFC 1034 §5.3.3), in small named steps. It follows referrals; it never
// follows an alias, judges no signature and keeps no answer: all that is the resolver's, which it
// asks for name server addresses through Source.
//
//	resolution.go  the state of a link, and its steps in order
//	minimise.go    how much of the name is asked (RFC 9156)
//	scrub.go       what is left of a response when all is dropped that its server may not say
//	classify.go    what that amounts to: answer, alias, denial, referral, or lame in one of many ways
//	referral.go    a referral becomes a cut; a cut that is no use is asked for again
//	finish.go      a response becomes a result
//	servers.go     the servers of a cut and what became of asking them
//	addresses.go   servers without addresses: other cuts, the resolver, the parent
//	prime.go       hints become the zone's servers (RFC 9609)
//	zones.go       zones that answer nothing
//	failure.go     why there is no result
//	budget.go      what all of a client query may cost
//	trace.go       what was done, for those who ask
package iterate

import (
	"context"
	"net/netip"

	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// Source looks up the addresses of name servers for a resolution, through the resolver: it joins
// what is in flight, reads the cache, follows a few aliases, and spends the Budget of the client
// query it belongs to. A lookup that would wait for itself fails at once. It is called on the goroutine
// that runs Resolve, one call at a time.
type Source interface {
	// Lookup returns the response to (name, t), its answer section ending with the RRset of type t
	// if there is one. It may wait.
	Lookup(ctx context.Context, name wire.Name, t wire.Type) (*wire.Response, error)
}

// Task is one resolution: what it belongs to, and how deep below the client's question it is.
type Task struct {
	Source Source
	Budget *Budget // shared by the client query's whole tree
	Trace  *Trace  // shared too; nil: none kept
	Epoch  uint64  // of the cache, from the start of the resolution: cuts are stored with it
	Depth  int     // 0 for a client's question, one more for each address lookup on the way
}

// Kind says what a Result is.
type Kind uint8

// Kinds of results.
const (
	Answer   Kind = iota // an RRset of QTYPE at QNAME; with RCODE YXDOMAIN, the DNAME that makes too long a name
	Alias                // a CNAME, or a DNAME with the CNAME it makes, at QNAME; Target says where it leads
	NoData               // RFC 2308 §2.2
	NXDomain             // RFC 2308 §2.1
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"answer", "alias", "NODATA", "NXDOMAIN"}[k]
}

// Result is what the authoritative servers say to one link: of QNAME alone. What they add about the
// target of an alias is left out, its SOA, denial and data, and is to be asked for: it may lie in
// another zone, and what a response says beside its question is where false data is put.
//
// Answer holds the RRset at QNAME, or the alias there; a DNAME comes before the CNAME it makes.
// Authority holds SOA, NSEC and NSEC3 of a denial, those NSEC and NSEC3 that an expanded wildcard
// needs, and the zone's NS set. Additional holds what the zone may say to go with the answer.
// Nothing has been judged. RRsets may borrow the packet they came in.
type Result struct {
	wire.Response
	Kind   Kind
	Target wire.Name // of an Alias
	Zone   wire.Name // whose servers answered, canonical; servers of two zones may speak for a lower one
	Cut    *zonecut.Cut
	Lease  uint32 // Unix seconds: nothing of this is kept longer than the zone's own grant
	Server netip.AddrPort
}

// Failure is why a resolution failed, for EDE, log and failure cache.
type Failure struct {
	Code    wire.EDECode
	Text    string // names the zone and what was tried; ASCII, at most 200 bytes
	Timeout bool   // nothing but silence was heard: worth trying again soon (RFC 9520 §3.2)
	Budget  bool   // the client query's budget ended it: tells nothing of the name (not cached)
	Err     error  // the last error underneath, or nil
	Zone    wire.Name
	Server  netip.AddrPort // asked last, if any
}

// Error says what Text does.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

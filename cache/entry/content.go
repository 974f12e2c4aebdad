package entry

import "bonsai/wire"

// Kind says what an entry is and who may read it. Kinds are part of the cache's key, so that data
// of different rank never mix (RFC 2181 §5.4.1).
type Kind uint8

// The kinds of entries.
const (
	KindAnswer      Kind = iota // what a query of this name and type gets, with its proofs
	KindDenial                  // an NXDOMAIN of a name, stored once under QTYPE 0 (RFC 2308 §5)
	KindUnvalidated             // bogus or unjudgeable data, for clients that set CD
	KindFailure                 // why a resolution failed (RFC 9520)
	KindCut                     // a delegation as its parent gave it: NS, glue, DS or its absence
	KindAddress                 // addresses of a name server learned as glue
	kinds
)

// String returns the kind as a word.
func (k Kind) String() string {
	if k >= kinds {
		return "unknown"
	}
	return [...]string{"answer", "denial", "unvalidated", "failure", "cut", "address"}[k]
}

// Limits of the extended errors that an entry holds.
const (
	MaxEDE     = 2
	MaxEDEText = 200 // bytes
)

// Content is what an entry says, as the miss path sees it.
type Content struct {
	Kind  Kind
	Realm uint16
	QName wire.Name
	QType wire.Type
	RCODE wire.RCODE
	AA    bool

	// Status is that of the response, the weakest of its RRsets'; RRset.Status may differ from it.
	Status wire.Status

	// EDE has at most MaxEDE extended errors; more, and text beyond MaxEDEText bytes, are cut off.
	EDE []wire.EDE

	// Lifetime is how many seconds from now the entry lives; 0 stands for the least TTL of its
	// RRsets.
	Lifetime uint32

	// The sections. RRset.TTL is in seconds from now.
	Answer, Authority, Additional []wire.RRset

	// Used says that the entry is one that resolution leans on (cuts of the root and of TLDs, DS,
	// DNSKEY), so that the store need not wait for its use to be seen.
	Used bool
}

// Options says how a response is written.
type Options struct {
	DO       bool   // with RRSIG, NSEC and NSEC3 (RFC 4035 §3.2.1)
	Rotate   uint16 // any number: the records of an RRset start at a place drawn from it
	Stale    bool   // the entry has expired: every TTL shown is the lesser of StaleTTL and the RRset's
	StaleTTL uint32 // seconds (RFC 8767 §5: 30 recommended)
}

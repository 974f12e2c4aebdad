// Package validate is DNSSEC: signatures, denial, chain of trust (RFC 4033 to 4035, 5155, 6840). It
// has no sockets: what it lacks it asks of a Fetcher, which the resolver is.
//
// Judge takes one response and says what it is worth. It works from the signatures up: the signer
// of an RRset names a zone, whose DS and DNSKEY RRsets are fetched, judged in the same way, up to
// a trust anchor. Only for what has no signature that counts it walks down from the anchor, label
// by label, to see whether an insecure delegation lies above. All of that is in this order:
//
//	judge.go      a response: which RRsets count, and the weakest status of them
//	rrset.go      one RRset: signed, unsigned, by whom
//	prove.go      what a denial or an expanded wildcard must prove, and what follows from it
//	chain.go      the keys of a zone, insecure delegations, the walk
//	signature.go  the signatures of an RRset: which, in which order, how many
//	algorithm.go  the algorithms of signatures and digests; key.go the keys, parsed once
//	denial.go     what NSEC (nsec.go) and NSEC3 (nsec3.go) RRsets prove together
//	trust.go      where validation starts and where it is off; anchor.go reads trust anchors
//	keeper.go     anchors that follow their zone (RFC 5011); sentinel.go tells clients which they are
//	cost.go       how much work one client query may cause
package validate

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"bonsai/wire"
)

// Fetcher finds DS and DNSKEY RRsets through the resolver.
type Fetcher interface {
	// Fetch returns the judged response to name and t, which is DS or DNSKEY, from the cache or by
	// resolution. An alias at name is not followed. The error says that there is no response at
	// all; a bogus one is no error. It may wait, and calls Judge again with the same Cost.
	//
	// It ends: Judge of a DS fetches only of names with fewer labels, Judge of a DNSKEY only the DS
	// of that name or of names with fewer labels.
	Fetch(ctx context.Context, name wire.Name, t wire.Type) (*Fetched, error)

	// Cut returns the deepest zone cut that is known above name, other than name itself; "" if none
	// is. It does not wait. It need not be right, for what follows from it is proven; but with it an
	// insecure delegation is found from the top down without asking for the DS of zones below it.
	Cut(name wire.Name) wire.Name
}

// Fetched is a response with what Judge said of it. Its RRsets have their status set, also when it
// comes from the cache.
type Fetched struct {
	wire.Response
	Verdict
}

// Verdict is what a response is worth.
type Verdict struct {
	// Status is the weakest of the RRsets that count, and of the proofs they need. Indeterminate
	// says that keys could not be had or that the Cost is spent: no other server's response helps.
	Status wire.Status
	EDE    wire.EDE  // why it is not secure; Code is wire.NoEDE where nothing is to say
	Zone   wire.Name // the zone that EDE is about; "" for none
	Err    error     // of Fetch, or ErrCost; where Status is Indeterminate

	// Denial is what was judged of the last target of the response, if no RRset answers there.
	// NotDenied after a chain of aliases: nothing is known of that target, it is to be asked for.
	Denial Denial
	// Compact says that the name does not exist by a compact denial (RFC 9824 §3.1: NXNAME), which
	// comes with NOERROR.
	Compact bool
	// OptOut says that the denial rests on an opt-out span (RFC 5155 §9.2), hence is insecure.
	OptOut bool
	// Proofs holds, for every RRset of the answer section, the indices of the RRsets of the
	// authority section that prove that its wildcard was to be expanded; nil where it was not.
	Proofs [][]int
	// Clock is other than ClockRight where all signatures of the root's keys are out of their time
	// in the same direction: the verdict says nothing of the data and must not be cached.
	Clock Clock
}

// Denial says what a response denies.
type Denial uint8

// NoData: the name has no RRset of QTYPE. NXDomain: it does not exist.
const (
	NotDenied Denial = iota
	NoData
	NXDomain
)

// Clock is what signatures of the root tell about our clock.
type Clock int8

// ClockBehind: all signatures are not yet valid. ClockAhead: all have expired.
const (
	ClockBehind Clock = -1
	ClockRight  Clock = 0
	ClockAhead  Clock = 1
)

// Config configures a Validator. Zero limits stand for the defaults.
type Config struct {
	Anchors  []Anchor    // trust anchors; none: nothing is validated, all is insecure
	Insecure []wire.Name // zones that are not validated: negative trust anchors (RFC 7646)
	// SHA1 lets algorithms 5 and 7 and digest type 1 count. Without it zones that have nothing else
	// are insecure (RFC 9905 §2).
	SHA1 bool
	// Now gives the Unix second that validity periods are held against, without leeway. Default:
	// the system's clock.
	Now func() int64

	MaxFailed      int // failed verifications in one tree of client query; default 16
	MaxFailedRRset int // of these for one RRset; default 8
	MaxVerified    int // good verifications in one tree; default 128
	MaxBlocks      int // SHA-1 blocks hashed for NSEC3 in one tree; default 1760
	MaxIterations  int // of NSEC3, more is insecure (RFC 9276 §3.2); default 50, also the most
	Keys           int // parsed public keys kept; default 2048
	Signatures     int // good signatures remembered; default 4096
}

// Validator judges responses. It may be used by any number of goroutines.
type Validator struct {
	config     Config
	trust      atomic.Pointer[trust]
	keys       keyCache
	signatures signatureCache
	stats      counters
}

// maxIterations is what RFC 9276 §3.2 lets validators compute at most in the long run; more is not
// to be had by configuration.
const maxIterations = 50

// New returns a Validator.
func New(config Config) (*Validator, error) {
	if config.Now == nil {
		config.Now = func() int64 { return time.Now().Unix() }
	}
	orDefault := func(limit *int, value int) {
		if *limit == 0 {
			*limit = value
		}
	}
	orDefault(&config.MaxFailed, 16)
	orDefault(&config.MaxFailedRRset, 8)
	orDefault(&config.MaxVerified, 128)
	// What 32 hashes of a name of 255 octets cost at 50 iterations; the names of IPv6 reverse zones
	// need nearly as much where nothing of 32 labels exists.
	orDefault(&config.MaxBlocks, 32*(5+maxIterations))
	orDefault(&config.MaxIterations, maxIterations)
	orDefault(&config.Keys, 2048)
	orDefault(&config.Signatures, 4096)
	if config.MaxIterations > maxIterations {
		return nil, fmt.Errorf("validate: at most %d iterations of NSEC3 are computed, not %d", maxIterations, config.MaxIterations)
	}
	v := &Validator{config: config}
	v.keys.size, v.signatures.size = config.Keys/2, config.Signatures/2
	v.SetTrust(config.Anchors, config.Insecure)
	return v, nil
}

// SetTrust replaces the trust anchors and the zones that are not validated. What was judged before
// stands.
func (v *Validator) SetTrust(anchors []Anchor, insecure []wire.Name) {
	v.trust.Store(newTrust(anchors, insecure))
}

// Judge sets the status of every RRset of r and returns the status of the whole. zone is the cut
// whose servers gave r, as far as known ("" if not); for a DS it is the parent's. Judge clamps the
// TTLs of r to what signatures allow (RFC 4035 §5.3.3), puts right an NXDOMAIN of a name that is
// proven to exist, and takes out of r what nobody asked for and cannot be shown to be true: RRsets
// of the additional section, NS RRsets beside an answer.
//
// r may be a chain of aliases; each link is judged for itself, and where the last target lies in a
// zone whose SOA is in the authority section, or the RCODE is NXDOMAIN, so is the denial at that
// target: see Verdict.Denial. Every RRset's Status is set so that the weakest of those that belong
// to a link is the link's, opt-out included. The RRsets' bytes are borrowed and not changed.
func (v *Validator) Judge(ctx context.Context, r *wire.Response, zone wire.Name, f Fetcher, cost *Cost) Verdict {
	j := judgement{
		v: v, trust: v.trust.Load(), ctx: ctx, f: f, cost: cost, r: r, zone: zone.Canonical(),
		now: uint32(v.config.Now()), rank: rank(r.QName, r.QType),
	}
	verdict := j.run()
	v.stats.verdicts[verdict.Status].Add(1)
	return verdict
}

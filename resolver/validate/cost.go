package validate

import (
	"errors"
	"sync/atomic"

	"bonsai/wire"
)

// ErrCost says that a client query's share of work is spent (CVE-2023-50387, CVE-2023-50868).
var ErrCost = errors.New("validate: too much work for one query")

// Cost counts the work of one client query and of all that is resolved for it. The zero value is
// ready; all judgements of the tree share one, from any goroutine.
type Cost struct {
	failed   atomic.Int32 // verifications that failed, malformed keys included
	verified atomic.Int32 // verifications that held
	blocks   atomic.Int32 // SHA-1 blocks of NSEC3 hashes
}

// Failed returns how many verifications failed.
func (c *Cost) Failed() int { return int(c.failed.Load()) }

// Verified returns how many signatures were verified.
func (c *Cost) Verified() int { return int(c.verified.Load()) }

// Blocks returns how many SHA-1 blocks were hashed for NSEC3.
func (c *Cost) Blocks() int { return int(c.blocks.Load()) }

// counters are what Stats reads.
type counters struct {
	verdicts         [wire.Indeterminate + 1]atomic.Uint64
	verified, failed atomic.Uint64
	blocks           atomic.Uint64
}

// Stats counts since the start.
type Stats struct {
	Secure, Insecure, Bogus, Indeterminate uint64 // verdicts of Judge
	Verified, Failed                       uint64 // verifications of signatures
	Remembered                             uint64 // signatures known to be good from before
	Blocks                                 uint64 // SHA-1 blocks hashed for NSEC3
}

// Stats returns the counters.
func (v *Validator) Stats() Stats {
	s := &v.stats
	return Stats{
		Secure:        s.verdicts[wire.Secure].Load(),
		Insecure:      s.verdicts[wire.Insecure].Load(),
		Bogus:         s.verdicts[wire.Bogus].Load(),
		Indeterminate: s.verdicts[wire.Indeterminate].Load(),
		Verified:      s.verified.Load(),
		Failed:        s.failed.Load(),
		Remembered:    v.signatures.hits.Load(),
		Blocks:        s.blocks.Load(),
	}
}

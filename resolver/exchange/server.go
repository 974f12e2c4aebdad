package exchange

import (
	"net/netip"
	"time"
)

// What decides how long a server is waited for, and when it is asked again.
const (
	// unknownRTO is the first timeout of a server never heard of. RFC 6298 §2.1 says 1 s for TCP's
	// sake; here a client waits while a dead server is found out, and most answer within 300 ms.
	unknownRTO = 376 * time.Millisecond
	// minRTO leaves a busy server room to be late (RFC 6298 §2.4 says 1 s; see unknownRTO).
	minRTO = 150 * time.Millisecond
	// minRecursiveRTO is minRTO of a server that is asked to recurse: how long it was in answering
	// from memory says nothing of how long it needs to ask others.
	minRecursiveRTO = 1200 * time.Millisecond
	// maxRTO bounds the wait for one response whatever was measured.
	maxRTO = 3 * time.Second

	// deadAfter timeouts in a row make a server dead: it is passed over while others are alive.
	deadAfter = 3
	// longLookEvery so many timeouts a dead server is waited for longer.
	longLookEvery = 8
	maxFails      = 250
	// minHold and maxHold bound how long a dead server is left alone after each further timeout,
	// doubling. The bound is short, for all that a zone whose servers came back has lost by it is
	// this time: maxRest, from one packet to the next.
	minHold = 2 * time.Second
	maxHold = 3624 * time.Millisecond
	// maxHoldAmong is that of a server among others: the one that came back may have to wait for looks at
	// those that did not.
	maxHoldAmong = 2300 * time.Millisecond
	maxRest      = 4 * time.Second
)

// How many queries may wait for one server. A server that never answered has not earned more: a
// flood of queries for a silent zone must leave room to other zones.
const (
	maxOutstanding        = 4096
	maxOutstandingUnknown = 256
	maxOutstandingDoubted = 64 // it answered once, and then left two in a row unanswered
	maxOutstandingSilent  = 1  // it never answered, and left one unanswered
	maxQueued             = 256
	maxQueuedSilent       = 32
	maxQueuedDead         = 16
)

// Mismatches (RFC 5452 §9.1) that make a server TCP-first.
const (
	mismatchLimit = 3
	mismatchSpan  = 60 * time.Second
	tcpFirstFor   = 60 * time.Second
)

// aloneFor is how long a server that closed a TCP connection behind its first answer, with more to
// answer, gets one query a connection.
const aloneFor = 10 * time.Minute

// Lameness.
const (
	lameFor   = 45 * time.Second
	lameLimit = 16 // zones for which one server is remembered to be lame
)

// server is what we know of one address. Its fields are guarded by its shard's lock. Times are of
// Client.now; 0 is long ago.
type server struct {
	addr  netip.AddrPort
	shard *shard

	srtt, rttvar time.Duration // RFC 6298 §2; srtt is 0 until something was measured

	heard      bool          // it has answered
	among      bool          // it was asked where there were others to ask
	fails      uint8         // timeouts in a row
	prober     *exchange     // whose query is on its way to the dead server, nil for none
	passed     uint8         // times that Choose took another since triedAt
	phase      uint8         // of the long looks, for the servers of a zone often fail together
	failedAt   time.Duration // when the last timeout was counted
	lostSentAt time.Duration // and when that query was sent
	holdUntil  time.Duration // when a dead server may be asked again
	triedAt    time.Duration // when a query was last sent
	used       time.Duration // when last asked, for eviction

	outstanding int           // queries on their way
	queued      int           // Asks that wait for changed
	changed     chan struct{} // closed when a response or a timeout was counted; nil where none waits

	mismatched  [mismatchLimit]time.Duration // the last ones, in a ring
	mismatches  uint8
	tcpUntil    time.Duration // TCP first
	tcpFailedAt time.Duration
	aloneUntil  time.Duration // one query a TCP connection

	idle       []*socket // that may carry another query, the last used at the end
	idleListed bool      // with Client.idle

	cookie *cookie
	lame   []lameness
}

type lameness struct {
	zone  uint64 // hash of its canonical name
	until time.Duration
}

// rto is how long to wait for a response: the retransmission timeout of RFC 6298 §2.3, doubled for
// each timeout in a row (§5.5), but no more than once for what this question has waited for so far
// (retry, the rounds of its servers that were in vain): a resolution has other servers to ask. A dead server is mostly given the first timeout
// again, so that finding the one of many that came back takes no longer than it must; now and then
// it gets a long one, for it may be slow and not dead.
func (s *server) rto(recursive bool, retry int) time.Duration {
	t := unknownRTO
	if s.srtt > 0 {
		t = max(minRTO, s.srtt+4*s.rttvar)
	}
	if recursive {
		t = max(t, minRecursiveRTO)
	}
	switch {
	case s.fails == 0:
	case s.fails < deadAfter:
		// RFC 6298 §5.7: what was measured before a timeout says little of the time behind it.
		t = max(t, unknownRTO) << min(int(s.fails), retry+1)
	case (s.fails+s.phase)%longLookEvery == longLookEvery-1:
		t = max(t, unknownRTO) << 2
	default:
		t = max(t, unknownRTO)
	}
	return min(maxRTO, t)
}

func (s *server) isDead() bool { return s.fails >= deadAfter }

// measured takes one round-trip time (RFC 6298 §2.2 and §2.3). Each query has an ID and a port of
// its own, so that a response is never taken for that of an earlier try (Karn's algorithm).
func (s *server) measured(rtt time.Duration) {
	rtt = max(rtt, time.Microsecond)
	if s.srtt == 0 || s.isDead() {
		s.srtt, s.rttvar = rtt, rtt/2
		return
	}
	s.rttvar += ((s.srtt - rtt).Abs() - s.rttvar) / 4
	s.srtt += (rtt - s.srtt) / 8
}

// answered counts a believed response: whatever was lost before, the server is there.
func (s *server) answered() {
	s.heard, s.fails, s.prober, s.holdUntil = true, 0, nil, 0
	s.wake()
}

// timedOut counts a query sent at sentAt as lost. Queries that were on their way side by side were
// lost to one cause and count as one.
func (s *server) timedOut(sentAt, now time.Duration) {
	if sentAt < s.failedAt {
		return
	}
	if s.fails++; s.fails >= maxFails {
		s.fails -= longLookEvery // and the long looks go on
	}
	s.failedAt, s.lostSentAt = now, sentAt
	if s.isDead() {
		longest := maxHold
		if s.among {
			longest = maxHoldAmong
		}
		s.holdUntil = min(now+min(longest, minHold<<min(s.fails-deadAfter, 8)), max(now, sentAt+maxRest))
	}
	s.prober = nil
	s.wake()
}

func (s *server) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// mismatch counts a packet that was not believed. It says nothing of the server, which may not have
// sent it: only the transport changes, once there were a few.
func (s *server) mismatch(now time.Duration) {
	s.mismatched[s.mismatches%mismatchLimit] = now
	s.mismatches = s.mismatches%mismatchLimit + 1
	for _, at := range s.mismatched {
		if at == 0 || now-at > mismatchSpan {
			return
		}
	}
	s.tcpUntil = now + tcpFirstFor
}

// outstandingLimit returns how many queries may be on their way at once, and how many Asks may wait
// for a place among them.
func (s *server) outstandingLimit() (sent, queued int) {
	switch {
	case s.isDead():
		return 1, maxQueuedDead
	case !s.heard && s.fails > 0:
		return maxOutstandingSilent, maxQueuedSilent
	case s.fails == deadAfter-1:
		return maxOutstandingDoubted, maxQueuedDead
	case !s.heard:
		return maxOutstandingUnknown, maxQueued
	}
	return maxOutstanding, maxQueued
}

// markLame records that the server does not serve a zone, in place of the oldest where there are
// too many.
func (s *server) markLame(zone uint64, until time.Duration) {
	oldest := 0
	for i := range s.lame {
		if s.lame[i].zone == zone {
			s.lame[i].until = until
			return
		}
		if s.lame[i].until < s.lame[oldest].until {
			oldest = i
		}
	}
	if len(s.lame) < lameLimit {
		s.lame = append(s.lame, lameness{zone, until})
		return
	}
	s.lame[oldest] = lameness{zone, until}
}

// lameUntil returns when the server may serve the zone again, 0 where nothing is known.
func (s *server) lameUntil(zone uint64) time.Duration {
	for i := range s.lame {
		if s.lame[i].zone == zone {
			return s.lame[i].until
		}
	}
	return 0
}

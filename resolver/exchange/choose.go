package exchange

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"bonsai/wire"
)

// maxCandidates bounds the work of one choice; of more candidates a run from a random place on is
// looked at.
const maxCandidates = 64

// rttBand is how much slower than the fastest a server may be and still share its load. Sharing
// also leaves a forger to guess which server is asked (RFC 5452 §4.4).
const rttBand = 10 * time.Millisecond

// When another than the fastest is tried, so that what we know of the others is no older than a
// minute of traffic.
const (
	staleAfter   = 15 * time.Second // may be tried
	overdueAfter = 40 * time.Second // must be
	overduePass  = 4                // once it was passed over so often, for traffic may be thin
)

// class orders candidates before any round-trip time does.
type class uint8

const (
	alive    class = iota
	doubtful       // its family gives no answers, or it is TCP-first and TCP failed
	dead           // may be asked
	held           // dead and to be left alone for now
	lame
	noRoute
)

// candidate is one address as Choose sees it.
type candidate struct {
	addr    netip.AddrPort
	class   class
	known   bool          // it was asked before
	cost    time.Duration // expected time, or when it may be asked again; less is better
	stale   time.Duration // since it was last tried
	passed  uint8
	suspect bool // its family
}

// Choose picks the server of the zone to ask next among candidates, passing over those in tried and
// those that may not be asked; ok is false where none is left. It prefers the fastest, tries those
// not heard of or not asked for a while, and comes to dead and lame ones last.
func (c *Client) Choose(zone wire.Name, candidates, tried []netip.AddrPort) (server netip.AddrPort, ok bool) {
	now := c.now()
	var room [maxCandidates]candidate
	all := c.survey(room[:0], zone, candidates, tried, now)
	if len(all) == 0 {
		return netip.AddrPort{}, false
	}
	pick := best(all)
	if len(tried) == 0 {
		if i := c.explore(all, pick, now); i >= 0 {
			pick = i
		}
		c.pass(all, pick)
	}
	return all[pick].addr, true
}

// survey looks up each candidate.
func (c *Client) survey(all []candidate, zone wire.Name, candidates, tried []netip.AddrPort, now time.Duration) []candidate {
	hash := c.servers.zoneHash(zone)
	start := 0
	if len(candidates) > maxCandidates {
		start = rand.IntN(len(candidates))
	}
	for i := range candidates {
		if len(all) == maxCandidates {
			break
		}
		a := candidates[(start+i)%len(candidates)]
		if slices.Contains(tried, a) || !c.Usable(a.Addr()) {
			continue
		}
		all = append(all, c.assess(a, hash, now))
	}
	return all
}

// assess ranks one address.
func (c *Client) assess(a netip.AddrPort, zone uint64, now time.Duration) candidate {
	f := c.family(a.Addr())
	fails := f.fails.Load()
	// What is not known is expected to be as slow as the first timeout, and slower in a family that
	// has left something unanswered.
	d := candidate{addr: a, cost: unknownRTO << min(fails, suspectAfter), suspect: fails >= suspectAfter}
	if d.suspect {
		d.class = doubtful
	}
	sh := c.servers.shard(a)
	sh.mu.Lock()
	if s := sh.servers[a]; s != nil {
		s.assess(&d, zone, now)
	}
	sh.mu.Unlock()
	if f.isDown(now) {
		d.class = noRoute
	}
	return d
}

func (s *server) assess(d *candidate, zone uint64, now time.Duration) {
	d.known = s.triedAt != 0
	d.passed, d.stale = s.passed, now-s.triedAt
	switch {
	case s.fails > 0:
		d.cost = max(d.cost, s.rto(false, 0))
	case s.srtt > 0:
		d.cost = s.srtt
	}
	switch until := s.lameUntil(zone); {
	case until > now:
		d.class, d.cost = lame, until
	case s.isDead() && s.holdUntil > now:
		d.class, d.cost = held, s.holdUntil
	case s.isDead():
		d.class, d.cost = dead, s.triedAt
	case s.tcpUntil > now && now-s.tcpFailedAt < tcpFirstFor:
		d.class = max(d.class, doubtful)
	}
}

// best returns one of those in the best class that are as fast as any, or nearly, each with the
// same odds. Of dead ones it is the one that may be asked first.
func best(all []candidate) int {
	least := all[0]
	for _, d := range all[1:] {
		if d.class < least.class || d.class == least.class && d.cost < least.cost {
			least = d
		}
	}
	limit := least.cost
	if least.class <= doubtful {
		limit += max(rttBand, limit/8)
	}
	pick, n := 0, 0
	for i, d := range all {
		if d.class == least.class && d.cost <= limit {
			if n++; rand.IntN(n) == 0 {
				pick = i
			}
		}
	}
	return pick
}

// explore returns a candidate to try for what may be learned, or -1 for none.
func (c *Client) explore(all []candidate, pick int, now time.Duration) int {
	if all[pick].class != alive || !all[pick].known {
		return -1 // nothing to lose by it: best has chosen among what is left
	}
	seen := [2]bool{} // whether an address of the family was tried, IPv4 first
	for _, d := range all {
		seen[familyIndex(d.addr.Addr())] = seen[familyIndex(d.addr.Addr())] || d.known
	}
	at, n := -1, 0
	for i, d := range all {
		if i == pick || d.class > dead || !due(&d, seen) {
			continue
		}
		if n++; rand.IntN(n) == 0 {
			at = i
		}
	}
	// A family that gives no answers is tried once for all of its addresses.
	if at >= 0 && all[at].suspect && !c.family(all[at].addr.Addr()).mayProbe(now) {
		return -1
	}
	return at
}

// due says whether a candidate should be tried although another is faster.
func due(d *candidate, seen [2]bool) bool {
	switch {
	case !d.known && !seen[familyIndex(d.addr.Addr())]:
		return rand.IntN(2) == 0 // both families are tried early
	case !d.known:
		return rand.IntN(8) == 0
	case d.stale >= overdueAfter && d.passed >= overduePass:
		return true
	}
	return d.stale >= staleAfter && rand.IntN(16) == 0
}

func familyIndex(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// pass notes with those not chosen, where they are known, that they were passed over.
func (c *Client) pass(all []candidate, pick int) {
	for i := range all {
		if i == pick || !all[i].known || all[i].stale < staleAfter {
			continue
		}
		sh := c.servers.shard(all[i].addr)
		sh.mu.Lock()
		if s := sh.servers[all[i].addr]; s != nil && s.passed < 255 {
			s.passed++
		}
		sh.mu.Unlock()
	}
}

// MarkLame records that the server does not serve the zone. Choose passes it over for that zone
// for a while.
func (c *Client) MarkLame(server netip.AddrPort, zone wire.Name) {
	now := c.now()
	s := c.servers.obtain(server, now)
	s.markLame(c.servers.zoneHash(zone), now+lameFor)
	s.shard.mu.Unlock()
}

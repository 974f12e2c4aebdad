package zonecut

import (
	"bytes"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// The cuts of TLDs and of busy zones are read by every resolution below them. Some are kept unpacked,
// outside the cache's budget: about 1 KiB each, one for every 64 KiB of it within bounds. What counts is
// still the entry in the cache: a memo is used only while its entry is there unchanged.
const (
	memoShards = 16
	memoShare  = 64 << 10 // bytes of the cache for each cut kept
	memoLeast  = 512      // cuts
	memoMost   = 8192
	memoOdds   = 4 // one in so many cuts below TLDs is kept, so that a flood pushes out few others
)

type memos struct {
	seed   maphash.Seed
	limit  int // cuts a shard
	shards [memoShards]struct {
		sync.RWMutex
		cuts map[wire.Name]*memo
	}
}

// memo is an unpacked cut. Its TTLs are as of from; nothing in it expires before until.
type memo struct {
	entry       entry.Entry
	cut         *Cut
	from, until uint32
	last        atomic.Pointer[aged] // the cut as it was last given out, if it has DS
}

// aged is a cut as of a second.
type aged struct {
	cut Cut
	at  uint32
}

// init makes room for what befits a cache of so many bytes.
func (m *memos) init(capacity uint64) {
	m.seed = maphash.MakeSeed()
	m.limit = int(min(max(capacity/memoShare, memoLeast), memoMost) / memoShards)
	for i := range m.shards {
		m.shards[i].cuts = make(map[wire.Name]*memo)
	}
}

// get returns the cut that e unpacks to at now, nil if it is not known.
func (m *memos) get(zone wire.Name, e entry.Entry, now uint32) *Cut {
	s := &m.shards[maphash.String(m.seed, string(zone))%memoShards]
	s.RLock()
	k := s.cuts[zone]
	s.RUnlock()
	if k == nil || now < k.from || now >= k.until || !bytes.Equal(k.entry, e) {
		return nil
	}
	if now == k.from || len(k.cut.DS) == 0 {
		return k.cut
	}
	if last := k.last.Load(); last != nil && last.at == now {
		return &last.cut
	}
	return k.agedTo(now)
}

// agedTo makes the cut with the DS TTLs of now, and keeps it for who asks in the same second.
func (k *memo) agedTo(now uint32) *Cut {
	a := &aged{at: now, cut: *k.cut}
	a.cut.DS = make([]wire.RRset, len(k.cut.DS))
	for i, set := range k.cut.DS {
		set.TTL -= now - k.from
		a.cut.DS[i] = set
	}
	k.last.Store(a)
	return &a.cut
}

// put keeps the cut that e unpacked to at now.
func (m *memos) put(e entry.Entry, cut *Cut, now uint32) {
	zone := cut.Zone
	if zone.Labels() > 1 && rand.IntN(memoOdds) != 0 {
		return
	}
	k := &memo{entry: append(entry.Entry(nil), e...), cut: cut, from: now, until: cut.Expires}
	for i := range cut.Servers {
		if end := cut.Servers[i].Expires; end != 0 {
			k.until = min(k.until, end)
		}
	}
	for i := range cut.DS {
		k.until = min(k.until, now+cut.DS[i].TTL)
	}
	s := &m.shards[maphash.String(m.seed, string(zone))%memoShards]
	s.Lock()
	defer s.Unlock()
	if s.cuts[zone] == nil && len(s.cuts) >= m.limit {
		for old := range s.cuts {
			delete(s.cuts, old)
			break
		}
	}
	s.cuts[zone] = k
}

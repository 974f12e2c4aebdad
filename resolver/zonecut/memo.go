package zonecut

import (
	"bytes"
	"hash/maphash"
	"math/rand/v2"
	"sync"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// The cuts of TLDs are read by every resolution below them, and are the largest there are. A few
// hundred unpacked cuts are kept, outside the cache's budget. What counts is still the entry in the
// cache: a memo is used only while its entry is there unchanged.
const (
	memoShards = 16
	memoLimit  = 32 // cuts a shard
	memoOdds   = 4  // one in so many cuts below TLDs is kept, so that a flood pushes out few others
)

type memos struct {
	seed   maphash.Seed
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
}

func (m *memos) init() {
	m.seed = maphash.MakeSeed()
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
	cut := *k.cut
	cut.DS = make([]wire.RRset, len(k.cut.DS))
	for i, set := range k.cut.DS {
		set.TTL -= now - k.from
		cut.DS[i] = set
	}
	return &cut
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
	if s.cuts[zone] == nil && len(s.cuts) >= memoLimit {
		for old := range s.cuts {
			delete(s.cuts, old)
			break
		}
	}
	s.cuts[zone] = k
}

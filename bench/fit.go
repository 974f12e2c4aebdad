package bench

import (
	"fmt"

	"bonsai/cache"
	"bonsai/wire"
)

// Feed inserts the responses from the from-th to before the to-th.
func (m *Mix) Feed(l Layout, from, to int, now uint32) {
	var msg wire.Message
	buf := make([]byte, 0, 4096)
	for i := from; i < to; i++ {
		buf = m.Response(buf[:0], i)
		if err := msg.Parse(buf); err != nil {
			panic(fmt.Sprintf("bench: response %d of %+v: %v", i, *m, err))
		}
		l.Insert(&msg, now)
	}
}

// ArenaStats returns what the cache under l counts; ok is false where l is no arena.
func ArenaStats(l Layout) (st cache.Stats, ok bool) {
	a, ok := l.(*arena)
	if ok {
		st = a.cache.Stats()
	}
	return st, ok
}

const (
	// ampleEntry is how many bytes of budget an entry has at least where none is to leave.
	ampleEntry = 1000
	// fitSlack is what shards of different fill need above the mean.
	fitSlack = 0.01
)

// FittingBudget returns a budget in bytes in which the arena just keeps the first n responses: one
// percent more than they take where there is room.
func FittingBudget(m *Mix, n int, now uint32) (int64, error) {
	l, err := newArena(n, int64(n)*ampleEntry+cache.MinSize)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	m.Feed(l, 0, n, now)
	st, _ := ArenaStats(l)
	return max(cache.MinSize, int64(float64(st.Used)*(1+fitSlack))+cache.MinSize/16), nil
}

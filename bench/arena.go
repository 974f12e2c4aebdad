package bench

import (
	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// arena is the daemon's cache: packed entries outside the Go heap.
type arena struct {
	cache *cache.Cache
	pack  []byte
	buf   []byte
	opts  entry.Options
	b     wire.Builder
}

func newArena(_ int, bytes int64) (Layout, error) {
	c, err := cache.New(cache.Config{Size: bytes})
	if err != nil {
		return nil, err
	}
	return &arena{cache: c, buf: c.NewBuf(), opts: entry.Options{DO: true}}, nil
}

// Insert packs as the miss path does, and stores.
func (a *arena) Insert(m *wire.Message, now uint32) {
	var buf [wire.MaxNameLen + 1]byte
	qname := wire.Name(wire.AppendCanonical(buf[:0], m.QNameBytes()))
	c := entry.Content{Kind: entry.KindAnswer, QName: qname, QType: m.QType, RCODE: m.RCODE(), Status: wire.Insecure}
	var err error
	for s, to := range [...]*[]wire.RRset{&c.Answer, &c.Authority, &c.Additional} {
		if *to, err = m.RRsets(wire.Section(s)); err != nil {
			return
		}
	}
	if a.pack, err = entry.Pack(a.pack[:0], &c, now); err != nil {
		return
	}
	k := cache.MakeKey(entry.KindAnswer, 0, qname, m.QType)
	a.cache.Store(&k, a.pack, now, a.cache.Epoch())
}

func (a *arena) Lookup(dst []byte, q *wire.Query, now uint32) ([]byte, bool) {
	return lookupArena(a.cache, &a.b, a.buf, &a.opts, dst, q, now)
}

func lookupArena(c *cache.Cache, b *wire.Builder, buf []byte, o *entry.Options, dst []byte, q *wire.Query, now uint32) ([]byte, bool) {
	k := cache.MakeKey(entry.KindAnswer, 0, q.Name(), q.QType)
	e, ok := c.Lookup(&k, now, buf)
	if !ok {
		return dst, false
	}
	b.Begin(dst, q, limit, 0)
	e.AppendTo(b, now, o)
	return b.Finish(q, wire.FlagRA, e.RCODE(), 1232, nil), true
}

// Thread returns a view of the same cache for another goroutine.
func (a *arena) Thread() Layout {
	return &arena{cache: a.cache, buf: a.cache.NewBuf(), opts: a.opts}
}

func (a *arena) Len() int { return int(a.cache.Stats().Entries) }

func (a *arena) Close() { a.cache.Close() }

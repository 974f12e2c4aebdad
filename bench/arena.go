package bench

import (
	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// arena is the daemon's cache: packed entries outside the Go heap. An arena is a view of it for one
// goroutine.
type arena struct {
	cache *cache.Cache
	name  [wire.MaxNameLen + 1]byte
	in    entry.Content
	pack  []byte
	buf   []byte
	sets  []wire.RRset
	rdata [][]byte
	opts  entry.Options
	b     wire.Builder
}

// packRoom is as much scratch as makes Pack not look how large an entry will be.
const packRoom = 8192

func view(c *cache.Cache) *arena {
	return &arena{cache: c, buf: c.NewBuf(), pack: make([]byte, 0, packRoom), opts: entry.Options{DO: true}}
}

func newArena(_ int, bytes int64) (Layout, error) {
	c, err := cache.New(cache.Config{Size: bytes})
	if err != nil {
		return nil, err
	}
	return view(c), nil
}

// Insert packs as the miss path does, and stores.
func (a *arena) Insert(m *wire.Message, now uint32) {
	qname := wire.BorrowName(wire.AppendCanonical(a.name[:0], m.QNameBytes()))
	a.in = entry.Content{Kind: entry.KindAnswer, QName: qname, QType: m.QType, RCODE: m.RCODE(), Status: wire.Insecure}
	a.group(m, &a.in)
	a.judge(wire.Insecure)
	var err error
	if a.pack, err = entry.Pack(a.pack[:0], &a.in, now); err != nil {
		return
	}
	k := cache.MakeKey(entry.KindAnswer, 0, qname, m.QType)
	a.cache.Store(&k, a.pack, now, a.cache.Epoch())
}

// judge gives the RRsets of the last group a status, as validation does.
func (a *arena) judge(status wire.Status) {
	for i := range a.sets {
		a.sets[i].Status = status
	}
}

// group gives c the records of m as RRsets, in memory that is used again. Records of an RRset follow
// one another in our mixes, and a signature follows what it covers.
func (a *arena) group(m *wire.Message, c *entry.Content) {
	a.sets, a.rdata = a.sets[:0], a.rdata[:0]
	if n := len(m.Records); cap(a.rdata) < n {
		a.sets, a.rdata = make([]wire.RRset, 0, n), make([][]byte, 0, n)
	}
	var ends [wire.Additional + 1]int
	for i := range m.Records {
		r := &m.Records[i]
		owner, rdata := m.Owner(r), m.RDATA(r)
		a.rdata = append(a.rdata, rdata)
		from := len(a.rdata) - 1
		var last *wire.RRset
		if n := len(a.sets); n > 0 && ends[r.Section] == n && a.sets[n-1].Owner == owner {
			last = &a.sets[n-1]
		}
		switch {
		case last != nil && r.Type == last.Type && last.Sigs == nil:
			last.RDATA = a.rdata[from-len(last.RDATA) : from+1 : from+1]
			last.TTL = min(last.TTL, r.TTL)
		case last != nil && r.Type == wire.TypeRRSIG && wire.CoveredType(rdata) == last.Type:
			last.Sigs = a.rdata[from-len(last.Sigs) : from+1 : from+1]
			last.TTL = min(last.TTL, r.TTL)
		default:
			a.sets = append(a.sets, wire.RRset{Owner: owner, Type: r.Type, Class: r.Class, TTL: r.TTL, RDATA: a.rdata[from : from+1 : from+1]})
		}
		for s := r.Section; s <= wire.Additional; s++ {
			ends[s] = len(a.sets)
		}
	}
	c.Answer = a.sets[:ends[wire.Answer]]
	c.Authority = a.sets[ends[wire.Answer]:ends[wire.Authority]]
	c.Additional = a.sets[ends[wire.Authority]:]
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

// Thread returns a layout that another goroutine may use beside l: itself or a view of it.
func Thread(l Layout) Layout {
	if a, ok := l.(*arena); ok {
		return view(a.cache)
	}
	return l
}

func (a *arena) Len() int { return int(a.cache.Stats().Entries) }

func (a *arena) Close() { a.cache.Close() }

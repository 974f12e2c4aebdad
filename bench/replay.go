package bench

import (
	"fmt"

	"bonsai/cache"
	"bonsai/cache/entry"
	"bonsai/wire"
)

// Replay is the daemon's cache asked for names of a mix, with lifetimes that the caller chooses. It is
// for one goroutine.
type Replay struct {
	a   *arena
	mix *Mix
	m   wire.Message
	in  []byte
}

// NewReplay returns an empty cache of a budget in bytes. Close it.
func NewReplay(mix *Mix, bytes int64) (*Replay, error) {
	c, err := cache.New(cache.Config{Size: bytes})
	if err != nil {
		return nil, err
	}
	return &Replay{a: view(c), mix: mix}, nil
}

// Ask looks up the i-th name, and stores its response for ttl seconds where it is not there or
// expired.
func (r *Replay) Ask(i int, now, ttl uint32) (hit bool) {
	qname, t := r.mix.Question(r.a.name[:0], i)
	k := cache.MakeKey(entry.KindAnswer, 0, qname, t)
	if e, ok := r.a.cache.Lookup(&k, now, r.a.buf); ok && e.Expires() > now {
		return true
	}
	e := r.pack(i, now, ttl)
	r.a.cache.Store(&k, e, now, r.a.cache.Epoch())
	return false
}

// pack makes the entry of the i-th response with all TTLs the same.
func (r *Replay) pack(i int, now, ttl uint32) entry.Entry {
	r.in = r.mix.Response(r.in[:0], i)
	if err := r.m.Parse(r.in); err != nil {
		panic(fmt.Sprintf("bench: response %d: %v", i, err))
	}
	qname := wire.BorrowName(r.m.QNameBytes())
	c := &r.a.in
	*c = entry.Content{Kind: entry.KindAnswer, QName: qname, QType: r.m.QType, RCODE: r.m.RCODE(), Status: wire.Insecure}
	r.a.group(&r.m, c)
	r.a.judge(wire.Insecure)
	for i := range r.a.sets {
		r.a.sets[i].TTL = ttl
	}
	var err error
	if r.a.pack, err = entry.Pack(r.a.pack[:0], c, now); err != nil {
		panic(fmt.Sprintf("bench: response %d: %v", i, err))
	}
	return r.a.pack
}

// EntrySize returns the length in bytes of the i-th entry.
func (r *Replay) EntrySize(i int) int { return len(r.pack(i, 1, 60)) }

// Stats returns what the cache counts.
func (r *Replay) Stats() cache.Stats { return r.a.cache.Stats() }

// Close gives the memory back.
func (r *Replay) Close() { r.a.cache.Close() }

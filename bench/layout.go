package bench

import (
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"bonsai/wire"
)

// Layout keeps responses in its own way. All are used alike: a response as it came from the network
// goes in, a response to a client comes out, byte for byte the same from each.
type Layout interface {
	// Insert keeps a response. It does not keep msg.
	Insert(msg *wire.Message, now uint32)
	// Lookup appends the response to q behind dst, TTLs less age; ok is false where there is none.
	Lookup(dst []byte, q *wire.Query, now uint32) (out []byte, ok bool)
	// Len returns how many responses are kept.
	Len() int
	Close()
}

// Kind is one of the layouts compared.
type Kind struct {
	Name string
	What string
	// New makes an empty layout for at most entries responses, or for bytes where it counts these.
	New func(entries int, bytes int64) (Layout, error)
	// Semantic says that responses are compared after parsing: the layout compresses names its own
	// way.
	Semantic bool
}

// Kinds are the layouts, each with one idea more than the one before.
var Kinds = []Kind{
	{Name: "growable", What: "three growable slices of records, an owner in each, RDATA in a union", New: tableOf(newGrowable)},
	{Name: "exact", What: "the same with slices of exact size", New: tableOf(newExact)},
	{Name: "merged", What: "one slice of records, u16 section offsets, bit flags", New: tableOf(newMerged)},
	{Name: "elided", What: "and no owner where it is the QNAME", New: tableOf(newElided)},
	{Name: "boxed", What: "and large RDATA behind a pointer, A and AAAA inline", New: tableOf(newBoxed)},
	{Name: "packed", What: "and all RDATA in one length-prefixed slice", New: tableOf(newPacked)},
	{Name: "arena", What: "what the daemon uses", New: newArena},
	{Name: "rr-map", What: "[]dns.RR in a map, as many Go programs do", New: tableOf(newRRs), Semantic: true},
	{Name: "message-map", What: "the whole packed message as one slice in a map", New: tableOf(newPackedMessage)},
}

// KindNamed returns the layout of a name.
func KindNamed(name string) (Kind, error) {
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("bench: no layout %q", name)
}

// item is one kept response of a layout that lives on the Go heap.
type item interface {
	// appendTo writes the records into w.
	appendTo(w *writer, now uint32)
}

// tableShards is as many as the daemon's cache has.
const tableShards = 64

// table is a sharded map from question to item, with the oldest going first where it is full: what a
// cache of Go values comes to, locks and hashing included.
type table struct {
	build  func(m *wire.Message, now uint32) item
	shards [tableShards]tableShard
}

type tableShard struct {
	mu    sync.RWMutex
	items map[string]item
	ring  []string // keys in order of insertion
	next  int
	_     [64]byte
}

func tableOf[T item](build func(m *wire.Message, now uint32) T) func(int, int64) (Layout, error) {
	return func(entries int, _ int64) (Layout, error) {
		t := &table{build: func(m *wire.Message, now uint32) item { return build(m, now) }}
		for i := range t.shards {
			t.shards[i].items = make(map[string]item)
			t.shards[i].ring = make([]string, 0)
			t.shards[i].next = -(entries + tableShards - 1) / tableShards
		}
		return t, nil
	}
}

// key is the question: QNAME in canonical case, then the type.
func key(dst []byte, qname []byte, t wire.Type) []byte {
	return append(wire.AppendCanonical(dst, qname), byte(t>>8), byte(t))
}

func (t *table) shard(key []byte) *tableShard {
	return &t.shards[xxhash.Sum64(key)%tableShards]
}

func (t *table) Insert(m *wire.Message, now uint32) {
	it := t.build(m, now)
	var buf [wire.MaxNameLen + 3]byte
	k := key(buf[:0], m.QNameBytes(), m.QType)
	s := t.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.items[string(k)]; ok {
		s.items[string(k)] = it
		return
	}
	own := string(k)
	if s.next < 0 { // not full yet
		s.next++
		s.ring = append(s.ring, own)
	} else {
		delete(s.items, s.ring[s.next])
		s.ring[s.next] = own
		if s.next++; s.next == len(s.ring) {
			s.next = 0
		}
	}
	s.items[own] = it
}

func (t *table) Lookup(dst []byte, q *wire.Query, now uint32) ([]byte, bool) {
	var buf [wire.MaxNameLen + 3]byte
	k := key(buf[:0], q.Name(), q.QType)
	s := t.shard(k)
	s.mu.RLock()
	it, ok := s.items[string(k)]
	s.mu.RUnlock()
	if !ok {
		return dst, false
	}
	w := writers.Get().(*writer)
	w.begin(dst, q)
	it.appendTo(w, now)
	dst = w.finish(q)
	writers.Put(w)
	return dst, true
}

func (t *table) Len() (n int) {
	for i := range t.shards {
		t.shards[i].mu.RLock()
		n += len(t.shards[i].items)
		t.shards[i].mu.RUnlock()
	}
	return n
}

func (t *table) Close() {}

// writer writes responses for the layouts on the heap, with names compressed as the arena's entries
// have them: against the question, and an owner to where it was written before.
type writer struct {
	wire.Builder
	rcode  wire.RCODE
	qname  []byte
	signed bool     // a signature was written
	names  []nameAt // written so far, for the owners behind
	text   []byte   // their bytes
}

// nameAt is a name that lies in the message.
type nameAt struct{ from, to, at int }

// maxNames is how many are remembered.
const maxNames = 16

var writers = sync.Pool{New: func() any { return new(writer) }}

// limit is room for any response over TCP.
const limit = 0xFFFF

func (w *writer) begin(dst []byte, q *wire.Query) {
	w.Begin(dst, q, limit, 0)
	w.rcode, w.qname, w.signed, w.names, w.text = 0, q.Name(), false, w.names[:0], w.text[:0]
}

func (w *writer) finish(q *wire.Query) []byte {
	return w.Finish(q, wire.FlagRA, w.rcode, 1232, nil)
}

var questionOwner = []byte{0xC0, wire.HeaderSize}

// record writes one record; owner nil is the QNAME, rdata has its names whole.
func (w *writer) record(s wire.Section, owner []byte, t wire.Type, ttl uint32, rdata []byte) {
	mark := w.Mark()
	if owner == nil || wire.EqualFold(owner, w.qname) {
		w.Buf = append(w.Buf, questionOwner...)
	} else if at := w.find(owner); at > 0 {
		w.Buf = append(w.Buf, 0xC0|byte(at>>8), byte(at))
	} else {
		w.Buf = w.appendName(w.Buf, owner)
		if w.Buf[mark] < 0xC0 {
			w.remember(owner, mark)
		}
	}
	w.Buf = append(w.Buf, byte(t>>8), byte(t), 0, byte(wire.ClassIN), byte(ttl>>24), byte(ttl>>16), byte(ttl>>8), byte(ttl), 0, 0)
	body := len(w.Buf)
	if wire.HasCompressibleNames(t) {
		w.appendCompressed(t, rdata)
	} else {
		w.Buf = append(w.Buf, rdata...)
	}
	n := len(w.Buf) - body
	w.Buf[body-2], w.Buf[body-1] = byte(n>>8), byte(n)
	switch t {
	case wire.TypeCNAME:
		w.remember(rdata, body)
	case wire.TypeNS:
		// An entry's records lie elsewhere for a client that does not want signatures: what is behind
		// these is not pointed to.
		if !w.signed {
			w.remember(rdata, body)
		}
	case wire.TypeRRSIG:
		w.signed = true
	}
	w.Commit(mark, s, 1)
}

// remember keeps where in Buf a name was written, for owners behind it.
func (w *writer) remember(name []byte, at int) {
	if len(w.names) < maxNames {
		w.text = append(w.text, name...)
		w.names = append(w.names, nameAt{len(w.text) - len(name), len(w.text), at - w.Start()})
	}
}

// find returns where in the message a name lies as the RDATA of an alias or a delegation, 0 if nowhere.
func (w *writer) find(name []byte) int {
	for i := range w.names {
		if n := &w.names[i]; wire.EqualFold(name, w.text[n.from:n.to]) {
			return n.at
		}
	}
	return 0
}

// appendCompressed appends an RDATA whose names may be compressed (RFC 3597 §4).
func (w *writer) appendCompressed(t wire.Type, rdata []byte) {
	done := 0
	wire.NameFields(t, rdata, func(off, end int, compressible bool) {
		w.Buf = append(w.Buf, rdata[done:off]...)
		if compressible {
			w.Buf = w.appendName(w.Buf, rdata[off:end])
		} else {
			w.Buf = append(w.Buf, rdata[off:end]...)
		}
		done = end
	})
	w.Buf = append(w.Buf, rdata[done:]...)
}

// appendName appends a name compressed against the QNAME: the longest suffix that both have.
func (w *writer) appendName(dst, name []byte) []byte {
	for off := 0; off < len(name) && name[off] != 0; off += 1 + int(name[off]) {
		rest := len(name) - off
		if rest > len(w.qname) {
			continue
		}
		at := len(w.qname) - rest
		if wire.EqualFold(name[off:], w.qname[at:]) && isLabelStart(w.qname, at) {
			at += wire.HeaderSize
			return append(append(dst, name[:off]...), 0xC0|byte(at>>8), byte(at))
		}
	}
	return append(dst, name...)
}

func isLabelStart(name []byte, at int) bool {
	i := 0
	for i < at {
		i += 1 + int(name[i])
	}
	return i == at
}

// age returns how old an item is: time never runs back.
func age(now, stored uint32) uint32 {
	if now < stored {
		return 0
	}
	return now - stored
}

// left returns what is left of a TTL.
func left(ttl, age uint32) uint32 { return ttl - min(ttl, age) }

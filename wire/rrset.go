package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/bits"
)

// Status is the security status of data (RFC 4035 §4.3). Unchecked data has not been judged.
type Status uint8

// Statuses, from weakest claim to strongest failure.
const (
	Unchecked Status = iota
	Insecure
	Secure
	Bogus
	Indeterminate
)

// String returns the status as a word.
func (s Status) String() string {
	if s > Indeterminate {
		return "unknown"
	}
	return [...]string{"unchecked", "insecure", "secure", "bogus", "indeterminate"}[s]
}

// RRset is the records of one owner and type, with the signatures that cover them. It is immutable
// once made; its owner and RDATA may borrow the packet they came in, which is never written again.
type RRset struct {
	Owner  Name
	Type   Type
	Class  Class
	Status Status
	TTL    uint32   // seconds; RFC 2181 §5.2: the least of its records'
	RDATA  [][]byte // names uncompressed, no two the same
	Sigs   [][]byte // RDATA of the RRSIGs that cover Type, served with DO only (RFC 4035 §3.1.1)
}

// Is says whether the RRset has this owner and type.
func (s *RRset) Is(owner Name, t Type) bool { return s.Type == t && s.Owner.Equal(owner) }

// Response is one response as RRsets.
type Response struct {
	QName      Name
	QType      Type
	RCODE      RCODE
	AA         bool
	Answer     []RRset
	Authority  []RRset
	Additional []RRset
}

// MaxRRsetRecords bounds the records of an RRset that are taken: more is refused as hostile.
const MaxRRsetRecords = 256

// ErrRRsetSize says that an RRset has more than MaxRRsetRecords records.
var ErrRRsetSize = errors.New("wire: RRset of more than 256 records")

// CoveredType returns the type that an RRSIG's RDATA covers.
func CoveredType(rrsig []byte) Type {
	if len(rrsig) < 2 {
		return TypeNone
	}
	return Type(binary.BigEndian.Uint16(rrsig))
}

// RRsets groups the records of one section, in order of first appearance, with the RRSIGs of that
// section attached; a signature of what is not there becomes an RRset of type RRSIG. Records of a
// class that is not the question's and duplicates are left out.
func (m *Message) RRsets(s Section) ([]RRset, error) {
	first, last := m.sectionBounds(s)
	if first == last {
		return nil, nil
	}
	var few scratch
	g := newGrouper(&few, len(m.Records))
	g.group(m, first, last)
	var memory Grouping
	return g.make(m, first, last, &memory)
}

// Response fills r with the message's question, RCODE and RRsets, as RRsets gives them. It takes
// three allocations at most, unless records are many.
func (m *Message) Response(r *Response) error {
	var g Grouping
	return g.Response(m, r)
}

// A Grouping is memory that is used again from response to response. The zero value is ready.
type Grouping struct {
	sets  []RRset
	lists [][]byte
	names Expander
}

// Response is Message.Response without an allocation, unless records are many. What it gives is gone
// with the next call.
func (g *Grouping) Response(m *Message, r *Response) error {
	*r = Response{QName: m.QName(), QType: m.QType, RCODE: m.RCODE(), AA: m.Has(FlagAA)}
	if len(m.Records) == 0 {
		return nil
	}
	var few scratch
	find := newGrouper(&few, len(m.Records))
	var ends [3]int
	for s := Answer; s <= Additional; s++ {
		first, last := m.sectionBounds(s)
		find.group(m, first, last)
		ends[s] = find.n
	}
	sets, err := find.make(m, 0, len(m.Records), g)
	if err != nil {
		return err
	}
	r.Answer = sets[:ends[0]:ends[0]]
	r.Authority = sets[ends[0]:ends[1]:ends[1]]
	r.Additional = sets[ends[1]:ends[2]:ends[2]]
	return nil
}

// group is the records that make an RRset: which is the first, how many of data and of RRSIGs.
type group struct {
	typ        Type
	first      uint16
	data, sigs uint16
}

// A grouper first finds for each record the RRset it belongs to: the one before, then a scan, then
// past a few an index, so that a message of thousands of owners costs linear work. Only then, all
// counted, are the RRsets made.
type grouper struct {
	groups []group   // room for one a record
	n      int       // how many there are
	begin  int       // the first of the section at hand
	place  []uint16  // the group of each record; noGroup for none
	last   int       // the group of the record before
	index  hashIndex // of the section's groups, once there are more than scanLimit
}

// fewRecords is what a usual message has at most: up to that no scratch memory is allocated.
const fewRecords = 24

// scratch is what a grouper works in. It lies on the caller's stack.
type scratch struct {
	groups [fewRecords]group
	places [fewRecords]uint16
}

func newGrouper(s *scratch, records int) grouper {
	if records <= fewRecords {
		return grouper{groups: s.groups[:], place: s.places[:records]}
	}
	return grouper{groups: make([]group, records), place: make([]uint16, records)}
}

const (
	scanLimit = 16
	noGroup   = 0xFFFF
)

// group finds the groups of the records of one section: of data first, then the RRSIGs.
func (g *grouper) group(m *Message, first, last int) {
	g.begin, g.last, g.index = g.n, g.n, hashIndex{}
	for i := first; i < last; i++ {
		r := &m.Records[i]
		g.place[i] = noGroup
		if r.Type != TypeRRSIG && m.takes(r) {
			g.data(m, i)
		}
	}
	signed := g.n
	for i := first; i < last; i++ {
		r := &m.Records[i]
		if r.Type != TypeRRSIG || !m.takes(r) {
			continue
		}
		at := g.find(m, r, CoveredType(m.Bytes[r.rdata:]))
		if at < 0 || at >= signed {
			g.data(m, i)
			continue
		}
		g.groups[at].sigs++
		g.place[i], g.last = uint16(at), at
	}
}

// data puts a record to the group of its own type.
func (g *grouper) data(m *Message, record int) {
	r := &m.Records[record]
	at := g.find(m, r, r.Type)
	if at < 0 {
		at = g.n
		g.n++
		g.groups[at] = group{typ: r.Type, first: uint16(record)}
		if g.index.slots != nil {
			g.index.add(m.hash(r, r.Type), at)
		}
	}
	g.groups[at].data++
	g.place[record], g.last = uint16(at), at
}

// takes says whether a record is of the question's class.
func (m *Message) takes(r *Record) bool { return m.QDCount == 0 || r.Class == m.QClass }

// find returns the section's group of a record's owner and this type, below 0 where there is none.
func (g *grouper) find(m *Message, r *Record, t Type) int {
	if g.last < g.n && g.has(m, g.last, r, t) {
		return g.last
	}
	if g.n-g.begin <= scanLimit {
		for i := g.begin; i < g.n; i++ {
			if g.has(m, i, r, t) {
				return i
			}
		}
		return -1
	}
	if g.index.slots == nil {
		g.index.init(len(m.Records))
		for i := g.begin; i < g.n; i++ {
			g.index.add(m.hash(&m.Records[g.groups[i].first], g.groups[i].typ), i)
		}
	}
	for slot := g.index.first(m.hash(r, t)); ; slot = g.index.next(slot) {
		if i := g.index.at(slot); i < 0 || g.has(m, i, r, t) {
			return i
		}
	}
}

// has says whether a group is of a record's owner and this type.
func (g *grouper) has(m *Message, i int, r *Record, t Type) bool {
	return g.groups[i].typ == t && sameName(m.Bytes, int(r.owner), int(m.Records[g.groups[i].first].owner))
}

// hash is that of a record's owner and a type.
func (m *Message) hash(r *Record, t Type) uint64 {
	var buf [2 + MaxNameLen + 1]byte
	key := binary.BigEndian.AppendUint16(buf[:0], uint16(t))
	key = m.AppendOwner(key, r)
	return maphash.Bytes(indexSeed, AppendCanonical(key[:0], key))
}

// A hashIndex finds numbers by hashes: open addressing, at most half full. Its seed is secret, so
// that nobody can make names that collide.
type hashIndex struct{ slots []uint16 }

var indexSeed = maphash.MakeSeed()

// init makes room for so many numbers.
func (x *hashIndex) init(n int) { x.slots = make([]uint16, 1<<bits.Len(uint(2*n))) }

func (x *hashIndex) first(hash uint64) int { return int(hash) & (len(x.slots) - 1) }
func (x *hashIndex) next(slot int) int     { return (slot + 1) & (len(x.slots) - 1) }

// at returns the number in a slot, below 0 where it is free.
func (x *hashIndex) at(slot int) int { return int(x.slots[slot]) - 1 }

func (x *hashIndex) add(hash uint64, number int) {
	slot := x.first(hash)
	for x.slots[slot] != 0 {
		slot = x.next(slot)
	}
	x.slots[slot] = uint16(number + 1)
}

// make makes the RRsets of all groups, in memory. first and last bound the records that were grouped.
func (g *grouper) make(m *Message, first, last int, memory *Grouping) ([]RRset, error) {
	if cap(memory.sets) < g.n {
		memory.sets = make([]RRset, g.n)
	}
	if cap(memory.lists) < last-first {
		memory.lists = make([][]byte, last-first)
	}
	memory.names.buf = memory.names.buf[:0]
	sets, lists, x := memory.sets[:g.n], memory.lists[:last-first], &memory.names
	at, large := 0, false
	for i := range sets {
		f, r := &g.groups[i], &m.Records[g.groups[i].first]
		sets[i] = RRset{Owner: x.name(m.Bytes, int(r.owner)), Type: f.typ, Class: r.Class, TTL: r.TTL}
		sigs, end := at+int(f.data), at+int(f.data)+int(f.sigs)
		sets[i].RDATA = lists[at:at:sigs]
		if f.sigs > 0 {
			sets[i].Sigs = lists[sigs:sigs:end]
		}
		at, large = end, large || max(f.data, f.sigs) > scanLimit
	}
	u := uniquer{}
	if large {
		u.init(last - first)
	}
	for i := first; i < last; i++ {
		place := g.place[i]
		if place == noGroup {
			continue
		}
		r, set := &m.Records[i], &sets[place]
		// RFC 4034 §3: the TTL of an RRSIG must be that of the RRset it covers; the lesser is safe.
		set.TTL = min(set.TTL, r.TTL)
		list, tag := &set.RDATA, 2*int(place)
		if r.Type == TypeRRSIG && set.Type != TypeRRSIG {
			list, tag = &set.Sigs, tag+1
		}
		if err := u.append(list, tag, x.record(m, r)); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// A uniquer appends RDATA to lists unless it is there (RFC 2181 §5: duplicates are one record). Of a
// list that grows long it keeps an index.
type uniquer struct {
	index hashIndex
	added []tagged // what index numbers
}

// tagged is an RDATA in the list of a number.
type tagged struct {
	tag   int
	rdata []byte
}

func (u *uniquer) init(n int) {
	u.index.init(n)
	u.added = make([]tagged, 0, n)
}

func (u *uniquer) append(list *[][]byte, tag int, rdata []byte) error {
	if cap(*list) <= scanLimit {
		for _, have := range *list {
			if bytes.Equal(have, rdata) {
				return nil
			}
		}
	} else if !u.isNew(tag, rdata) {
		return nil
	}
	if len(*list) >= MaxRRsetRecords {
		return ErrRRsetSize
	}
	*list = append(*list, rdata)
	return nil
}

func (u *uniquer) isNew(tag int, rdata []byte) bool {
	hash := maphash.Bytes(indexSeed, rdata) + uint64(tag)*0x9E3779B97F4A7C15
	for slot := u.index.first(hash); ; slot = u.index.next(slot) {
		i := u.index.at(slot)
		if i < 0 {
			u.index.add(hash, len(u.added))
			u.added = append(u.added, tagged{tag, rdata})
			return true
		}
		if have := &u.added[i]; have.tag == tag && bytes.Equal(have.rdata, rdata) {
			return false
		}
	}
}

// An Expander reads names and RDATA out of messages: it borrows the message where they lie in it in
// one piece, and holds what had to be expanded in few allocations. What it gave stays where it is.
// The zero value is ready.
type Expander struct{ buf []byte }

// expanderSize is the least capacity of an Expander that holds something, in bytes.
const expanderSize = 128

// Name returns the name at off; ok is false where it is malformed.
func (x *Expander) Name(pkt []byte, off int) (n Name, ok bool) {
	if _, _, ok = walkName(pkt, off); !ok {
		return "", false
	}
	return x.name(pkt, off), true
}

// name is Name for what has been checked.
func (x *Expander) name(pkt []byte, off int) Name {
	if b := wholeName(pkt, off); b != nil {
		return BorrowName(b)
	}
	x.reserve()
	at := len(x.buf)
	x.buf, _, _ = AppendName(x.buf, pkt, off)
	return BorrowName(x.buf[at:len(x.buf):len(x.buf)])
}

// RDATA returns the RDATA of pkt[off:end] with names uncompressed; ok is false where they are
// malformed or the known fields do not fit.
func (x *Expander) RDATA(pkt []byte, t Type, off, end int) (rdata []byte, ok bool) {
	if off < 0 || off > end || end > len(pkt) {
		return nil, false
	}
	compressed, err := checkRDATA(pkt, t, off, end)
	if err != nil {
		return nil, false
	}
	return x.rdata(pkt, t, off, end, compressed), true
}

func (x *Expander) rdata(pkt []byte, t Type, off, end int, compressed bool) []byte {
	if !compressed {
		return pkt[off:end:end]
	}
	x.reserve()
	at := len(x.buf)
	x.buf = appendRDATA(x.buf, pkt, t, off, end)
	return x.buf[at:len(x.buf):len(x.buf)]
}

func (x *Expander) record(m *Message, r *Record) []byte {
	return x.rdata(m.Bytes, r.Type, int(r.rdata), int(r.rdata)+int(r.rdataLen), r.compressed)
}

func (x *Expander) reserve() {
	if cap(x.buf) == 0 {
		x.buf = make([]byte, 0, expanderSize)
	}
}

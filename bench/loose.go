package bench

import (
	"time"

	"bonsai/wire"
)

// union is an RDATA in a space as large as its largest member, NAPTR (two numbers and four strings):
// every A record takes it too. Variable parts lie behind its slices.
type union struct {
	t     wire.Type
	fixed [16]byte  // A, AAAA, and the numbers of SOA, MX, SRV, NAPTR
	more  [8]byte   // the rest of the SOA's numbers
	parts [4][]byte // names and strings
	whole []byte    // any other type
}

func newUnion(t wire.Type, rdata []byte) (u union) {
	u.t = t
	switch t {
	case wire.TypeA, wire.TypeAAAA:
		copy(u.fixed[:], rdata)
	case wire.TypeCNAME, wire.TypeNS, wire.TypePTR:
		u.parts[0] = clone(rdata)
	case wire.TypeSOA:
		i := 0
		wire.NameFields(t, rdata, func(off, end int, _ bool) { u.parts[i] = clone(rdata[off:end]); i++ })
		numbers := rdata[len(rdata)-20:]
		copy(u.fixed[:], numbers)
		copy(u.more[:], numbers[16:])
	default:
		u.whole = clone(rdata)
	}
	return u
}

// appendTo appends the RDATA, names whole.
func (u *union) appendTo(dst []byte) []byte {
	switch u.t {
	case wire.TypeA:
		return append(dst, u.fixed[:4]...)
	case wire.TypeAAAA:
		return append(dst, u.fixed[:16]...)
	case wire.TypeCNAME, wire.TypeNS, wire.TypePTR:
		return append(dst, u.parts[0]...)
	case wire.TypeSOA:
		dst = append(append(dst, u.parts[0]...), u.parts[1]...)
		return append(append(dst, u.fixed[:]...), u.more[:4]...)
	}
	return append(dst, u.whole...)
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// looseRecord is a record as a program writes it down first.
type looseRecord struct {
	owner []byte
	t     wire.Type
	class wire.Class
	ttl   time.Duration
	rdata union
}

func newLooseRecord(m *wire.Message, r *wire.Record) looseRecord {
	return looseRecord{
		owner: m.AppendOwner(nil, r), t: r.Type, class: r.Class,
		ttl: time.Duration(r.TTL) * time.Second, rdata: newUnion(r.Type, m.RDATA(r)),
	}
}

func (r *looseRecord) appendTo(w *writer, s wire.Section, age uint32) {
	var buf [512]byte
	w.record(s, r.owner, r.t, left(uint32(r.ttl/time.Second), age), r.rdata.appendTo(buf[:0]))
}

// growable is the layout that the idea started from: three slices that grow as records come, loose
// booleans, wide times.
type growable struct {
	answer, authority, additional          []looseRecord
	rcode                                  wire.RCODE
	isAuthoritative, isTruncated, isSecure bool
	isNegative, wasValidated, isStale      bool
	stored, expires                        time.Time
}

func newGrowable(m *wire.Message, now uint32) *growable {
	g := &growable{rcode: m.RCODE(), stored: time.Unix(int64(now), 0), isAuthoritative: m.Has(wire.FlagAA)}
	least := ^uint32(0)
	for i := range m.Records {
		r := &m.Records[i]
		least = min(least, r.TTL)
		switch r.Section {
		case wire.Answer:
			g.answer = append(g.answer, newLooseRecord(m, r))
		case wire.Authority:
			g.authority = append(g.authority, newLooseRecord(m, r))
		default:
			g.additional = append(g.additional, newLooseRecord(m, r))
		}
	}
	g.expires = g.stored.Add(time.Duration(least) * time.Second)
	return g
}

func (g *growable) appendTo(w *writer, now uint32) {
	w.rcode = g.rcode
	a := age(now, uint32(g.stored.Unix()))
	for s, records := range [...][]looseRecord{g.answer, g.authority, g.additional} {
		for i := range records {
			records[i].appendTo(w, wire.Section(s), a)
		}
	}
}

// exact is growable with slices of exact size.
type exact growable

func newExact(m *wire.Message, now uint32) *exact {
	g := exact(*newGrowable(m, now))
	for _, s := range [...]*[]looseRecord{&g.answer, &g.authority, &g.additional} {
		if len(*s) > 0 {
			*s = append(make([]looseRecord, 0, len(*s)), *s...)
		}
	}
	return &g
}

func (e *exact) appendTo(w *writer, now uint32) { (*growable)(e).appendTo(w, now) }

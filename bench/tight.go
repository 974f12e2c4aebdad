package bench

import (
	"encoding/binary"

	"bonsai/wire"
)

// head is what merged and later layouts keep of a response: offsets into one list of records, flags
// in bits, seconds in 32 bits.
type head struct {
	authority, additional uint16 // where these sections begin
	flags                 uint16 // RCODE, AA
	stored, expires       uint32
}

func newHead(m *wire.Message, now uint32) head {
	h := head{flags: m.Flags & (wire.FlagAA | 0xF), stored: now}
	least := ^uint32(0)
	for i := range m.Records {
		r := &m.Records[i]
		least = min(least, r.TTL)
		if r.Section < wire.Authority {
			h.authority++
		}
		if r.Section < wire.Additional {
			h.additional++
		}
	}
	h.expires = now + least
	return h
}

func (h *head) section(i int) wire.Section {
	switch {
	case i < int(h.authority):
		return wire.Answer
	case i < int(h.additional):
		return wire.Authority
	}
	return wire.Additional
}

// merged keeps one list of records.
type merged struct {
	head
	records []mergedRecord
}

type mergedRecord struct {
	owner []byte
	t     wire.Type
	ttl   uint32
	rdata union
}

func newMerged(m *wire.Message, now uint32) *merged {
	out := &merged{head: newHead(m, now), records: make([]mergedRecord, len(m.Records))}
	for i := range m.Records {
		r := &m.Records[i]
		out.records[i] = mergedRecord{owner: m.AppendOwner(nil, r), t: r.Type, ttl: r.TTL, rdata: newUnion(r.Type, m.RDATA(r))}
	}
	return out
}

func (e *merged) appendTo(w *writer, now uint32) {
	w.rcode = wire.RCODE(e.flags & 0xF)
	a := age(now, e.stored)
	var buf [512]byte
	for i := range e.records {
		r := &e.records[i]
		w.record(e.section(i), r.owner, r.t, left(r.ttl, a), r.rdata.appendTo(buf[:0]))
	}
}

// elided is merged without owners that are the QNAME: the key has it.
type elided merged

func newElided(m *wire.Message, now uint32) *elided {
	out := &elided{head: newHead(m, now), records: make([]mergedRecord, len(m.Records))}
	for i := range m.Records {
		r := &m.Records[i]
		out.records[i] = mergedRecord{owner: ownerUnlessQName(m, r), t: r.Type, ttl: r.TTL, rdata: newUnion(r.Type, m.RDATA(r))}
	}
	return out
}

func ownerUnlessQName(m *wire.Message, r *wire.Record) []byte {
	var buf [wire.MaxNameLen + 1]byte
	owner := m.AppendOwner(buf[:0], r)
	if wire.EqualFold(owner, m.QNameBytes()) {
		return nil
	}
	return clone(owner)
}

func (e *elided) appendTo(w *writer, now uint32) { (*merged)(e).appendTo(w, now) }

// boxed is elided with the large variants of RDATA behind a pointer.
type boxed struct {
	head
	records []boxedRecord
}

type boxedRecord struct {
	owner  *[]byte
	rdata  *union // nil for A and AAAA
	ttl    uint32
	t      wire.Type
	inline [16]byte
}

func newBoxed(m *wire.Message, now uint32) *boxed {
	out := &boxed{head: newHead(m, now), records: make([]boxedRecord, len(m.Records))}
	for i := range m.Records {
		r, to := &m.Records[i], &out.records[i]
		to.t, to.ttl = r.Type, r.TTL
		if owner := ownerUnlessQName(m, r); owner != nil {
			to.owner = &owner
		}
		rdata := m.RDATA(r)
		if wire.FixedRDATALen(r.Type) > 0 {
			copy(to.inline[:], rdata)
		} else {
			u := newUnion(r.Type, rdata)
			to.rdata = &u
		}
	}
	return out
}

func (e *boxed) appendTo(w *writer, now uint32) {
	w.rcode = wire.RCODE(e.flags & 0xF)
	a := age(now, e.stored)
	var buf [512]byte
	for i := range e.records {
		r := &e.records[i]
		var owner []byte
		if r.owner != nil {
			owner = *r.owner
		}
		rdata := r.inline[:wire.FixedRDATALen(r.t)]
		if r.rdata != nil {
			rdata = r.rdata.appendTo(buf[:0])
		}
		w.record(e.section(i), owner, r.t, left(r.ttl, a), rdata)
	}
}

// packed is boxed with all RDATA in one slice, each with its length before it, and names handled by
// the writer as all layouts' are.
type packed struct {
	head
	records []packedRecord
	rdata   []byte
}

type packedRecord struct {
	owner *[]byte
	ttl   uint32
	t     wire.Type
}

func newPacked(m *wire.Message, now uint32) *packed {
	out := &packed{head: newHead(m, now), records: make([]packedRecord, len(m.Records))}
	size := 0
	for i := range m.Records {
		size += 2 + len(m.RDATA(&m.Records[i]))
	}
	out.rdata = make([]byte, 0, size)
	for i := range m.Records {
		r, to := &m.Records[i], &out.records[i]
		to.t, to.ttl = r.Type, r.TTL
		if owner := ownerUnlessQName(m, r); owner != nil {
			to.owner = &owner
		}
		rdata := m.RDATA(r)
		out.rdata = append(binary.BigEndian.AppendUint16(out.rdata, uint16(len(rdata))), rdata...)
	}
	return out
}

func (e *packed) appendTo(w *writer, now uint32) {
	w.rcode = wire.RCODE(e.flags & 0xF)
	a := age(now, e.stored)
	rest := e.rdata
	for i := range e.records {
		r := &e.records[i]
		var owner []byte
		if r.owner != nil {
			owner = *r.owner
		}
		n := 2 + int(binary.BigEndian.Uint16(rest))
		w.record(e.section(i), owner, r.t, left(r.ttl, a), rest[2:n])
		rest = rest[n:]
	}
}

package bench

import (
	"encoding/binary"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// rrs keeps a response as the records of a DNS library.
type rrs struct {
	answer, authority, additional []dns.RR
	rcode                         int
	stored                        uint32
}

func newRRs(m *wire.Message, now uint32) *rrs {
	var msg dns.Msg
	if msg.Unpack(m.Bytes) != nil {
		return &rrs{}
	}
	return &rrs{answer: msg.Answer, authority: msg.Ns, additional: msg.Extra, rcode: msg.Rcode, stored: now}
}

// appendTo is not used: the library writes the whole message itself.
func (e *rrs) appendTo(w *writer, now uint32) {
	a := age(now, e.stored)
	msg := dns.Msg{Compress: true}
	if msg.Unpack(questionOnly(w)) != nil {
		return
	}
	msg.Response, msg.RecursionAvailable, msg.Rcode = true, true, e.rcode
	msg.Answer, msg.Ns, msg.Extra = aged(e.answer, a), aged(e.authority, a), aged(e.additional, a)
	out, err := msg.PackBuffer(w.Buf[w.Start():cap(w.Buf)])
	if err != nil {
		return
	}
	w.rcode = wire.RCODE(e.rcode)
	w.replace(out)
}

// aged copies records, for their TTLs are to change while others read them.
func aged(records []dns.RR, age uint32) []dns.RR {
	if len(records) == 0 {
		return nil
	}
	out := make([]dns.RR, len(records))
	for i, r := range records {
		out[i] = dns.Copy(r)
		out[i].Header().Ttl = left(r.Header().Ttl, age)
	}
	return out
}

// questionOnly returns what w has so far as a query.
func questionOnly(w *writer) []byte {
	b := w.Buf[w.Start():]
	b[5] = 1
	return b
}

// replace takes a whole message as what w has written.
func (w *writer) replace(message []byte) {
	w.Buf = append(w.Buf[:w.Start()], message...)
	for s := wire.Answer; s <= wire.Additional; s++ {
		w.Commit(w.Mark(), s, int(binary.BigEndian.Uint16(message[6+2*int(s):])))
	}
}

// packedMessage keeps the response as it is to be sent, and patches ID, flags and TTLs.
type packedMessage struct {
	message []byte
	stored  uint32
}

func newPackedMessage(m *wire.Message, now uint32) *packedMessage {
	var q wire.Query
	query := append([]byte(nil), m.Bytes[:wire.HeaderSize+len(m.QNameBytes())+4]...)
	binary.BigEndian.PutUint16(query[2:], wire.FlagRD)
	copy(query[4:], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if q.Parse(query) != wire.QueryOK {
		return &packedMessage{}
	}
	var w writer
	w.begin(nil, &q)
	newPacked(m, now).appendTo(&w, now)
	out := w.finish(&q)
	return &packedMessage{message: append(make([]byte, 0, len(out)), out...), stored: now}
}

func (e *packedMessage) appendTo(w *writer, now uint32) {
	w.rcode = wire.RCODE(e.message[3] & 0xF)
	from := w.Start()
	question := len(w.Buf) - from
	// The question stays as the client wrote it.
	w.Buf = append(w.Buf, e.message[question:]...)
	b := w.Buf[from:]
	a := age(now, e.stored)
	off := question
	for s := wire.Answer; s <= wire.Additional; s++ {
		n := int(binary.BigEndian.Uint16(e.message[6+2*int(s):]))
		for range n {
			off = skipName(b, off)
			ttl := b[off+4 : off+8]
			binary.BigEndian.PutUint32(ttl, left(binary.BigEndian.Uint32(ttl), a))
			off += 10 + int(binary.BigEndian.Uint16(b[off+8:]))
		}
		w.Commit(w.Mark(), s, n)
	}
}

func skipName(b []byte, off int) int {
	for b[off] != 0 {
		if b[off] >= 0xC0 {
			return off + 2
		}
		off += 1 + int(b[off])
	}
	return off + 1
}

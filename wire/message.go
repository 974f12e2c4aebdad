package wire

import "encoding/binary"

// Message is a parsed message: a view that borrows the packet. The zero value is ready for Parse,
// and a Message used again reuses its memory.
type Message struct {
	Bytes []byte
	ID    uint16
	Flags uint16

	QDCount uint16
	// QType and QClass are those of the first question, whose QNAME lies uncompressed at offset
	// HeaderSize and ends at qnameEnd; all zero where there is none.
	QType    Type
	QClass   Class
	qnameEnd int

	Records []Record // without the OPT pseudo-record, in order of sections
	EDNS    EDNS     // zero where there is no OPT
}

// Record is one record of a Message, as offsets into its Bytes.
type Record struct {
	Section    Section
	compressed bool // a name in the RDATA holds a pointer
	Type       Type
	Class      Class
	TTL        uint32 // seconds; RFC 2181 §8: a value with the top bit set reads as 0
	owner      uint16
	rdata      uint16
	rdataLen   uint16
}

// firstRecords is how many records to make room for before any has been read: what the header counts,
// where that is little. More is taken as it comes.
func (m *Message) firstRecords() int {
	count := 0
	for i := 6; i < HeaderSize; i += 2 {
		count += int(binary.BigEndian.Uint16(m.Bytes[i:]))
	}
	return min(count, fewRecords)
}

// Parse reads a whole message. Every name and every known RDATA in it has been walked when it
// returns nil, so that the accessors can't fail. Octets behind the last record are ignored, for
// some servers pad.
func (m *Message) Parse(pkt []byte) error {
	*m = Message{Bytes: pkt, Records: m.Records[:0]}
	if len(pkt) < HeaderSize || len(pkt) > 0xFFFF {
		return ErrFormat
	}
	m.ID = binary.BigEndian.Uint16(pkt)
	m.Flags = binary.BigEndian.Uint16(pkt[2:])
	m.QDCount = binary.BigEndian.Uint16(pkt[4:])
	off := HeaderSize
	var err error
	for i := range int(m.QDCount) {
		if off, err = m.parseQuestion(off, i == 0); err != nil {
			return err
		}
	}
	if m.Records == nil {
		m.Records = make([]Record, 0, m.firstRecords())
	}
	for s := Answer; s <= Additional; s++ {
		for range int(binary.BigEndian.Uint16(pkt[6+2*int(s):])) {
			if off, err = m.parseRecord(off, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Message) parseQuestion(off int, first bool) (int, error) {
	n, end, ok := walkName(m.Bytes, off)
	if !ok || end+4 > len(m.Bytes) {
		return 0, ErrFormat
	}
	if first {
		// Nothing lies before the first QNAME that it could point to.
		if n != end-off {
			return 0, ErrFormat
		}
		m.QType = Type(binary.BigEndian.Uint16(m.Bytes[end:]))
		m.QClass = Class(binary.BigEndian.Uint16(m.Bytes[end+2:]))
		m.qnameEnd = end
	}
	return end + 4, nil
}

func (m *Message) parseRecord(off int, s Section) (int, error) {
	n, end, ok := walkName(m.Bytes, off)
	if !ok || end+10 > len(m.Bytes) {
		return 0, ErrFormat
	}
	h := m.Bytes[end : end+10]
	r := Record{
		Section:  s,
		Type:     Type(binary.BigEndian.Uint16(h)),
		Class:    Class(binary.BigEndian.Uint16(h[2:])),
		TTL:      binary.BigEndian.Uint32(h[4:]),
		owner:    uint16(off),
		rdata:    uint16(end + 10),
		rdataLen: binary.BigEndian.Uint16(h[8:]),
	}
	next := end + 10 + int(r.rdataLen)
	if next > len(m.Bytes) {
		return 0, ErrFormat
	}
	if r.Type == TypeOPT {
		return next, m.parseOPT(&r, s, n == 1)
	}
	var err error
	if r.compressed, err = checkRDATA(m.Bytes, r.Type, end+10, next); err != nil {
		return 0, ErrFormat
	}
	// RFC 2181 §8: a TTL with the most significant bit set is treated as zero.
	if r.TTL>>31 != 0 {
		r.TTL = 0
	}
	m.Records = append(m.Records, r)
	return next, nil
}

// parseOPT takes the OPT pseudo-record. RFC 6891 §6.1.1: one at most, in the additional section,
// owned by the root.
func (m *Message) parseOPT(r *Record, s Section, rootOwner bool) error {
	if s != Additional || !rootOwner || m.EDNS.Present {
		return ErrFormat
	}
	return m.EDNS.parse(uint16(r.Class), r.TTL, m.Bytes[r.rdata:int(r.rdata)+int(r.rdataLen)])
}

// RCODE joins the header's four bits with the eight of EDNS.
func (m *Message) RCODE() RCODE { return RCODE(m.Flags&0xF) | RCODE(m.EDNS.ExtendedRCODE)<<4 }

// Has says whether a header flag is set.
func (m *Message) Has(flag uint16) bool { return m.Flags&flag != 0 }

// QNameBytes returns the QNAME as it lies in the packet, nil where there is no question.
func (m *Message) QNameBytes() []byte {
	if m.qnameEnd == 0 {
		return nil
	}
	return m.Bytes[HeaderSize:m.qnameEnd]
}

// QName returns the QNAME, borrowed from the packet; "" where there is no question.
func (m *Message) QName() Name { return BorrowName(m.QNameBytes()) }

// Section returns the records of one section.
func (m *Message) Section(s Section) []Record {
	first, last := m.sectionBounds(s)
	return m.Records[first:last]
}

func (m *Message) sectionBounds(s Section) (first, last int) {
	for first < len(m.Records) && m.Records[first].Section < s {
		first++
	}
	last = first
	for last < len(m.Records) && m.Records[last].Section == s {
		last++
	}
	return first, last
}

// Owner returns a record's owner. It borrows the packet where the name lies there in one piece.
func (m *Message) Owner(r *Record) Name {
	var x Expander
	return x.name(m.Bytes, int(r.owner))
}

// AppendOwner appends a record's owner, uncompressed.
func (m *Message) AppendOwner(dst []byte, r *Record) []byte {
	dst, _, _ = AppendName(dst, m.Bytes, int(r.owner))
	return dst
}

// RDATA returns a record's RDATA with names uncompressed. It borrows the packet where nothing had
// to be expanded.
func (m *Message) RDATA(r *Record) []byte {
	var x Expander
	return x.record(m, r)
}

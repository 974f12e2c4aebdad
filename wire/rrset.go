package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
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
	return [...]string{"unchecked", "insecure", "secure", "bogus", "indeterminate"}[s]
}

// RRset is the records of one owner and type, with the signatures that cover them. It is immutable
// once made; its RDATA may borrow the packet it came in, which is never written again.
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
	records := m.Section(s)
	if len(records) == 0 {
		return nil, nil
	}
	g := grouper{m: m, sets: make([]RRset, 0, min(len(records), 8))}
	for i := range records {
		if r := &records[i]; r.Type != TypeRRSIG {
			if err := g.add(r, r.Type); err != nil {
				return nil, err
			}
		}
	}
	data := len(g.sets)
	for i := range records {
		if r := &records[i]; r.Type == TypeRRSIG {
			if err := g.sign(r, data); err != nil {
				return nil, err
			}
		}
	}
	return g.sets, nil
}

// grouper finds the RRset of a record: the last one used, then a scan, then past a few an index,
// so that a message of thousands of owners costs linear work.
type grouper struct {
	m     *Message
	sets  []RRset
	last  int
	index map[string]int
	key   []byte
}

const scanLimit = 16

func (g *grouper) add(r *Record, t Type) error {
	if g.m.QDCount > 0 && r.Class != g.m.QClass {
		return nil
	}
	var buf [MaxNameLen + 1]byte
	owner := g.m.AppendOwner(buf[:0], r)
	i := g.find(owner, t)
	if i < 0 {
		i = len(g.sets)
		g.sets = append(g.sets, RRset{Owner: g.name(owner), Type: t, Class: r.Class, TTL: r.TTL})
		if g.index != nil {
			g.index[string(g.indexKey(owner, t))] = i
		}
	}
	g.last = i
	set := &g.sets[i]
	set.TTL = min(set.TTL, r.TTL)
	return appendUnique(&set.RDATA, g.m.RDATA(r))
}

func (g *grouper) sign(r *Record, data int) error {
	if g.m.QDCount > 0 && r.Class != g.m.QClass {
		return nil
	}
	var buf [MaxNameLen + 1]byte
	owner := g.m.AppendOwner(buf[:0], r)
	rdata := g.m.RDATA(r)
	i := g.find(owner, CoveredType(rdata))
	if i < 0 || i >= data {
		return g.add(r, TypeRRSIG)
	}
	g.last = i
	set := &g.sets[i]
	// RFC 4034 §3: the TTL of an RRSIG must be that of the RRset it covers; the lesser is safe.
	set.TTL = min(set.TTL, r.TTL)
	return appendUnique(&set.Sigs, rdata)
}

// name makes the owner's Name, shared with the question or an earlier owner where it is the same.
func (g *grouper) name(owner []byte) Name {
	if n := len(g.sets); n > 0 && string(g.sets[n-1].Owner) == string(owner) {
		return g.sets[n-1].Owner
	}
	return Name(owner)
}

func (g *grouper) find(owner []byte, t Type) int {
	if g.last < len(g.sets) && g.sets[g.last].Type == t && EqualFold(g.sets[g.last].Owner, owner) {
		return g.last
	}
	if len(g.sets) <= scanLimit {
		for i := range g.sets {
			if g.sets[i].Type == t && EqualFold(g.sets[i].Owner, owner) {
				return i
			}
		}
		return -1
	}
	if g.index == nil {
		g.index = make(map[string]int, 2*scanLimit)
		for i := range g.sets {
			g.index[string(g.indexKey([]byte(g.sets[i].Owner), g.sets[i].Type))] = i
		}
	}
	if i, ok := g.index[string(g.indexKey(owner, t))]; ok {
		return i
	}
	return -1
}

func (g *grouper) indexKey(owner []byte, t Type) []byte {
	g.key = binary.BigEndian.AppendUint16(g.key[:0], uint16(t))
	g.key = AppendCanonical(g.key, owner)
	return g.key
}

// appendUnique adds rdata unless it is there (RFC 2181 §5: duplicates are one record).
func appendUnique(list *[][]byte, rdata []byte) error {
	for _, have := range *list {
		if bytes.Equal(have, rdata) {
			return nil
		}
	}
	if len(*list) >= MaxRRsetRecords {
		return ErrRRsetSize
	}
	*list = append(*list, rdata)
	return nil
}

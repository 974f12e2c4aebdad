package denial

import (
	"encoding/binary"
	"sync/atomic"

	"bonsai/cache/offheap"
)

// ref is the offset of a record in the ring; no record lies at 0.
type ref uint32

// kind says what a record is.
type kind uint8

const (
	goneKind kind = iota
	nsecKind
	nsec3Kind
	wildcardKind
	kinds // how many lists a zone has, the first unused

	soaKind kind = 255
)

// Layout of a record's head, and its bounds.
const (
	unit      = 4 // records begin and end at multiples of it
	headSize  = 14
	maxRecord = 4096
	grain     = 64 // bytes of the ring that share a bit of use; at most a few records do
)

// ring is the memory of records. What is read from it is copied before the Store's lock is given up.
type ring struct {
	bytes      []byte
	head, tail int // the next record is written at head, the oldest lies at tail
	full       int // bytes from tail to head
	use        []atomic.Uint32
}

// init makes a ring of about so many bytes, which release gives back.
func (r *ring) init(size int) (release func()) {
	r.bytes, release = offheap.Reserve(size / grain * grain)
	r.use = make([]atomic.Uint32, size/grain/32+1)
	r.head, r.tail = unit, unit // so that 0 is no record
	return release
}

func (r *ring) used() int { return r.full }

func (r *ring) length(at ref) int { return int(binary.LittleEndian.Uint16(r.bytes[at:])) * unit }
func (r *ring) kind(at ref) kind  { return kind(r.bytes[at+2]) }
func (r *ring) zone(at ref) uint32 {
	return binary.LittleEndian.Uint32(r.bytes[at+4:])
}
func (r *ring) expires(at ref) uint32   { return binary.LittleEndian.Uint32(r.bytes[at+8:]) }
func (r *ring) setKind(at ref, k kind)  { r.bytes[at+2] = byte(k) }
func (r *ring) key(at ref) []byte       { return r.bytes[at+headSize:][:r.keyLength(at)] }
func (r *ring) keyLength(at ref) uint16 { return binary.LittleEndian.Uint16(r.bytes[at+12:]) }

// payload returns what follows the key, with the padding at the end.
func (r *ring) payload(at ref) []byte {
	return r.bytes[int(at)+headSize+int(r.keyLength(at)) : int(at)+r.length(at)]
}

// touch notes that a record was used. It may be called by readers.
func (r *ring) touch(at ref) {
	bit := uint32(at) / grain
	if w := &r.use[bit/32]; w.Load()&(1<<(bit%32)) == 0 {
		w.Or(1 << (bit % 32))
	}
}

// touched says whether a record was used, and forgets it.
func (r *ring) touched(at ref) bool {
	bit := uint32(at) / grain
	return r.use[bit/32].And(^uint32(1<<(bit%32)))&(1<<(bit%32)) != 0
}

// recordLength is the length of a record with such a key and payload.
func recordLength(key, payload int) int { return (headSize + key + payload + unit - 1) / unit * unit }

// room says whether a record of n bytes can be written: in one piece before the end of the ring, or
// behind the gap that is left there, at its beginning.
func (r *ring) room(n int) bool {
	need := n
	if left := len(r.bytes) - r.head; left < n {
		need += left
	}
	return r.full+need <= len(r.bytes)-unit
}

// write appends a record where there is room for it.
func (r *ring) write(k kind, zone, expires uint32, key, payload []byte) ref {
	n := recordLength(len(key), len(payload))
	if left := len(r.bytes) - r.head; left < n {
		r.skip(left)
	}
	b := r.bytes[r.head : r.head+n]
	binary.LittleEndian.PutUint16(b, uint16(n/unit))
	b[2], b[3] = byte(k), 0
	binary.LittleEndian.PutUint32(b[4:], zone)
	binary.LittleEndian.PutUint32(b[8:], expires)
	binary.LittleEndian.PutUint16(b[12:], uint16(len(key)))
	copy(b[headSize:], key)
	clear(b[headSize+len(key)+copy(b[headSize+len(key):], payload):])
	at := ref(r.head)
	r.touched(at)
	r.head, r.full = r.head+n, r.full+n
	return at
}

// skip fills the end of the ring, in pieces that a length can tell, and goes on at its beginning.
func (r *ring) skip(left int) {
	r.full += left
	for left > 0 {
		n := min(left, maxRecord)
		binary.LittleEndian.PutUint16(r.bytes[r.head:], uint16(n/unit))
		r.bytes[r.head+2] = byte(goneKind)
		r.head, left = r.head+n, left-n
	}
	r.head = unit
}

// drop gives up the oldest record.
func (r *ring) drop() {
	n := r.length(ref(r.tail))
	r.tail, r.full = r.tail+n, r.full-n
	if r.tail == len(r.bytes) {
		r.tail = unit
	}
}

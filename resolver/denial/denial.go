// Package denial holds proven denials in canonical order and answers from them what they deny
// (RFC 8198): names between two neighbours in a zone, types that a name has not, and what a wildcard
// there stands for. It is fed by what validation found secure, and judges no signature itself.
//
// Records lie in one ring of bytes, oldest first, each as
//
//	2  length      of the record, in units of 4 bytes
//	1  kind        gone, NSEC, NSEC3, wildcard RRset, SOA
//	1  unused
//	4  zone        its number
//	4  expires     Unix second
//	2  key length
//	…  key         orders the records of a zone, see key.go
//	…  payload     RDATA and signatures, see record.go
//
// and are found by zone and key through lists of their offsets (list.go). When the ring is full, the
// oldest record goes, or, where it was used since it was written, is written again as the newest.
//
// Invariants: records from tail to head fill the ring without gaps; every record that is not gone is
// in exactly one list of its zone, or is its SOA; a zone without records is forgotten.
package denial

import (
	"runtime"
	"sync"
	"sync/atomic"

	"bonsai/wire"
)

// Config configures a Store.
type Config struct {
	Size int64 // bytes, for all: records, their order, zones; at least MinSize
	// Hash appends the NSEC3 hash of a name (RFC 5155 §5), of algorithm 1. Without it only NSEC is used.
	Hash func(dst []byte, name wire.Name, salt []byte, iterations uint16) []byte
}

// MinSize is the least size of a Store, in bytes. maxSize keeps offsets in 32 bits.
const (
	MinSize = 64 << 10
	maxSize = 2 << 30
)

// Store holds denials. It may be used by any number of goroutines.
type Store struct {
	config   Config
	maxZones int

	mu    sync.RWMutex
	ring  ring
	zones map[wire.Name]*zone // by canonical name
	byID  map[uint32]*zone
	next  uint32 // number of the next zone
	epoch uint64 // what was begun before is not added

	stats counters
}

// zone is what is held of one zone.
type zone struct {
	name wire.Name
	id   uint32
	soa  ref // 0: none
	list [kinds]list

	salt       []byte // of its NSEC3s
	iterations uint16
}

// Bytes that a zone takes besides its records, about; and the share of Size that zones may take.
const (
	zoneOverhead = 512
	zoneShare    = 4
)

// New returns an empty Store.
func New(config Config) *Store {
	config.Size = min(max(config.Size, MinSize), maxSize)
	s := &Store{
		config:   config,
		maxZones: int(config.Size / zoneShare / zoneOverhead),
		zones:    make(map[wire.Name]*zone),
		byID:     make(map[uint32]*zone),
	}
	// The rest is for records, each with up to 8 bytes of order beside 100 or more of its own.
	release := s.ring.init(int(config.Size * 11 / 16))
	runtime.AddCleanup(s, func(release func()) { release() }, release)
	return s
}

// Flush forgets name and all below it, and what denies them. What was begun in an epoch before this
// one is not added any more.
func (s *Store) Flush(name wire.Name, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = max(s.epoch, epoch)
	name = name.Canonical()
	for _, z := range s.byID {
		switch {
		case z.name.IsSubdomainOf(name):
			s.forget(z)
		case name.IsSubdomainOf(z.name):
			s.forgetAround(z, name)
		}
	}
	if invariants {
		s.mustHold()
	}
}

// forget removes all of a zone.
func (s *Store) forget(z *zone) {
	for k := range z.list {
		for z.list[k].len() > 0 {
			s.remove(z, z.list[k].at(0))
		}
	}
	if z.soa != 0 {
		s.remove(z, z.soa)
	}
}

// forgetAround removes what a zone knows of a name and of what is below it: all of its NSEC3s, for
// they hide what they are about.
func (s *Store) forgetAround(z *zone, name wire.Name) {
	var buf [maxKey]byte
	key := appendKey(buf[:0], name, z.name)
	for _, k := range []kind{nsecKind, wildcardKind} {
		l := &z.list[k]
		i, found := l.search(&s.ring, key)
		if !found && i > 0 && k == nsecKind {
			i--
		}
		for i < l.len() && (k == nsecKind && string(s.ring.key(l.at(i))) <= string(key) || hasPrefix(s.ring.key(l.at(i)), key)) {
			s.remove(z, l.at(i))
			if s.byID[z.id] == nil {
				return
			}
		}
	}
	for z.list[nsec3Kind].len() > 0 {
		s.remove(z, z.list[nsec3Kind].at(0))
	}
}

// remove takes a record out of its zone, and forgets the zone if it was its last.
func (s *Store) remove(z *zone, r ref) {
	switch k := s.ring.kind(r); {
	case k == soaKind:
		z.soa = 0
	default:
		z.list[k].remove(&s.ring, r)
	}
	s.ring.setKind(r, goneKind)
	s.stats.records.Add(-1)
	if z.soa == 0 && z.list[nsecKind].len()+z.list[nsec3Kind].len()+z.list[wildcardKind].len() == 0 {
		delete(s.zones, z.name)
		delete(s.byID, z.id)
		s.stats.zones.Add(-1)
	}
}

// counters are what Stats reads.
type counters struct {
	lookups, names, types, wildcards atomic.Uint64
	added, evicted                   atomic.Uint64
	records, zones                   atomic.Int64
}

// Stats counts since the start, and tells what is held.
type Stats struct {
	Lookups                    uint64
	Names, Types, Wildcards    uint64 // lookups answered by NXDOMAIN, NODATA, a wildcard's RRset
	Added, Evicted             uint64 // records
	Records, Zones, Used, Size int64  // Used and Size in bytes
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	used := int64(s.ring.used())
	s.mu.RUnlock()
	c := &s.stats
	return Stats{
		Lookups: c.lookups.Load(), Names: c.names.Load(), Types: c.types.Load(), Wildcards: c.wildcards.Load(),
		Added: c.added.Load(), Evicted: c.evicted.Load(),
		Records: c.records.Load(), Zones: c.zones.Load(),
		Used: used + c.zones.Load()*zoneOverhead, Size: s.config.Size,
	}
}

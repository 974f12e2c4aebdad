package iterate

import (
	"sync"
	"sync/atomic"
	"time"

	"bonsai/wire"
)

// A zone whose every server refuses or fails is asked less and less (RFC 9520 §3.2): after failedLimit
// names in a row it is left alone for zoneHold, and then one resolution at a time finds out, of half of the
// servers, whether it still is so. Some servers fail for some types only, so that each type is counted
// apart; a zone that fails for addresses is taken to fail for all. Silence has no such hold, for the exchange
// asks silent servers at its own pace, and who waits for that learns of their return.
const (
	failedLimit  = 3
	zoneHold     = 4 * time.Second
	zoneMemory   = time.Minute // without a failure that is forgotten
	maxZones     = 2048
	maxZoneTypes = 4
)

// zones remembers the zones that do not answer at all. One answer to any question ends it.
type zones struct {
	count atomic.Int64 // of zones in states, so that those who answer take no lock while there are none
	mu    sync.Mutex
	state map[wire.Name]*zoneState
}

type zoneState struct {
	silent bool // in the last resolution, all were silent
	failed time.Time
	types  []zoneType // that failed, the last at the end
}

// zoneType is what is known of the failures for one type.
type zoneType struct {
	t     wire.Type
	last  wire.Name   // that failed
	names uint8       // in a row that failed, each other than the one before
	kind  troubleKind // of the last failure
	until time.Time   // the zone is left alone
}

// outlook is what a resolution may expect of a zone.
type outlook struct {
	held   bool        // it is to be left alone
	kind   troubleKind // for this
	probe  bool        // this resolution finds out whether it still fails
	silent bool        // it was silent the last time
}

func (z *zones) init() { z.state = make(map[wire.Name]*zoneState) }

// look returns what is to be expected of a zone for questions of a type. Who is told to probe is the only
// one for a while.
func (z *zones) look(zone wire.Name, t wire.Type) (o outlook) {
	if z.count.Load() == 0 {
		return o
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	s := z.state[zone]
	if s == nil {
		return o
	}
	now := time.Now()
	if now.Sub(s.failed) > zoneMemory {
		z.forget(zone)
		return o
	}
	o.silent = s.silent
	for i := range s.types {
		switch f := &s.types[i]; {
		case f.t != t && f.t != wire.TypeA, f.names < failedLimit:
		case now.Before(f.until):
			o.held, o.kind = true, f.kind
		default:
			o.probe = true
		}
	}
	if o.probe = o.probe && !o.held; o.probe {
		for i := range s.types {
			s.types[i].until = now.Add(zoneHold)
		}
	}
	return o
}

// failed counts a resolution in which all servers of the zone gave trouble of a kind.
func (z *zones) failed(zone wire.Name, q question, kind troubleKind) {
	z.mu.Lock()
	defer z.mu.Unlock()
	s := z.state[zone]
	if s == nil {
		if len(z.state) >= maxZones {
			for old := range z.state {
				z.forget(old)
				break
			}
		}
		s = &zoneState{}
		z.state[zone] = s
		z.count.Add(1)
	}
	s.failed, s.silent = time.Now(), kind == troubleTimeout
	if s.silent {
		s.types = nil
		return
	}
	f := s.ofType(q.t)
	f.kind = kind
	if f.last != q.name {
		f.last = q.name
		f.names = min(f.names+1, failedLimit)
	}
	if f.names >= failedLimit {
		f.until = s.failed.Add(zoneHold)
	}
}

// ofType returns the record of a type, a new one in place of the oldest where there are too many.
func (s *zoneState) ofType(t wire.Type) *zoneType {
	for i := range s.types {
		if s.types[i].t == t {
			return &s.types[i]
		}
	}
	if len(s.types) == maxZoneTypes {
		s.types = append(s.types[:0], s.types[1:]...)
	}
	s.types = append(s.types, zoneType{t: t})
	return &s.types[len(s.types)-1]
}

// answered forgets the failures of a zone.
func (z *zones) answered(zone wire.Name) {
	if z.count.Load() == 0 {
		return
	}
	z.mu.Lock()
	z.forget(zone)
	z.mu.Unlock()
}

func (z *zones) forget(zone wire.Name) {
	if _, ok := z.state[zone]; ok {
		delete(z.state, zone)
		z.count.Add(-1)
	}
}

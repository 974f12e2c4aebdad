package iterate

import (
	"sync"
	"sync/atomic"
	"time"

	"bonsai/wire"
)

// A zone whose every server refuses is asked less and less: after refusedLimit resolutions in a row
// it is left alone for a second, then two, then maxZoneHold each time. Silence has no such hold, for
// the exchange asks silent servers at its own pace, and who waits for that learns of their return.
const (
	refusedLimit = 3
	minZoneHold  = time.Second
	maxZoneHold  = 4 * time.Second
	zoneMemory   = time.Minute // without a failure that is forgotten
	maxZones     = 2048
)

// zones remembers the zones that do not answer at all. One answer to any question ends it.
type zones struct {
	count atomic.Int64 // of zones in states, so that those who answer take no lock while there are none
	mu    sync.Mutex
	state map[wire.Name]*zoneState
}

type zoneState struct {
	refused uint8 // resolutions in a row in which all servers refused
	silent  bool  // in the last resolution, all were silent
	failed  time.Time
	until   time.Time
}

func (z *zones) init() { z.state = make(map[wire.Name]*zoneState) }

// look says whether the zone is to be left alone, and whether it was silent the last time.
func (z *zones) look(zone wire.Name) (held, silent bool) {
	if z.count.Load() == 0 {
		return false, false
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	s := z.state[zone]
	if s == nil {
		return false, false
	}
	now := time.Now()
	if now.Sub(s.failed) > zoneMemory {
		z.forget(zone)
		return false, false
	}
	return now.Before(s.until), s.silent
}

// failed counts a resolution in which all servers of the zone refused or, with silent, said nothing.
func (z *zones) failed(zone wire.Name, silent bool) {
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
	now := time.Now()
	s.failed, s.silent = now, silent
	if silent {
		s.refused = 0
		return
	}
	if s.refused++; s.refused >= refusedLimit {
		hold := min(maxZoneHold, minZoneHold<<(s.refused-refusedLimit))
		s.until = now.Add(hold)
		s.refused = min(s.refused, 16)
	}
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

package iterate

import (
	"sync"
	"time"

	"bonsai/wire"
)

// vain remembers for which addresses of name servers the parent zone was asked and had none to add,
// so that a zone in trouble does not cost its parent a query with each name asked for.
type vain struct {
	mu    sync.Mutex
	until map[vainKey]time.Time
}

type vainKey struct {
	server wire.Name
	family int
}

// vainFor is for how long the parent is not asked again, and maxVain how much is remembered.
const (
	vainFor = 30 * time.Second
	maxVain = 1024
)

func (v *vain) add(server wire.Name, family int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.until == nil || len(v.until) >= maxVain {
		v.until = make(map[vainKey]time.Time)
	}
	v.until[vainKey{server, family}] = time.Now().Add(vainFor)
}

func (v *vain) recent(server wire.Name, family int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Now().Before(v.until[vainKey{server, family}])
}

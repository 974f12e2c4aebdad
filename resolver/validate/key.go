package validate

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"bonsai/wire"
)

// key is a DNSKEY record, read once.
type key struct {
	rdata     string
	tag       uint16
	algorithm uint8
	// signs says that the key may verify RRsets of its zone.
	signs bool

	once   sync.Once
	public verifier // nil: malformed or of an algorithm unknown to us
}

// Fields of a DNSKEY (RFC 4034 §2.1, RFC 5011 §7).
const (
	dnskeyFixed    = 4
	dnskeyProtocol = 3
	flagZoneKey    = 1 << 8
	flagRevoke     = 1 << 7
)

func newKey(rdata string) *key {
	k := &key{rdata: rdata}
	if len(rdata) <= dnskeyFixed {
		return k
	}
	flags := binary.BigEndian.Uint16([]byte(rdata[:2]))
	k.tag, k.algorithm = keyTag(rdata), rdata[3]
	// RFC 4034 §2.1.1 and §2.1.2: only a zone key of protocol 3 verifies RRSIGs. RFC 5011 §2.1: a
	// revoked key serves for its own revocation alone.
	k.signs = flags&flagZoneKey != 0 && flags&flagRevoke == 0 && rdata[2] == dnskeyProtocol
	return k
}

// keyTag is that of all algorithms but 1 (RFC 4034 appendix B).
func keyTag[T ~string | ~[]byte](rdata T) uint16 {
	var sum uint32
	for i := 0; i < len(rdata); i++ {
		if i%2 == 0 {
			sum += uint32(rdata[i]) << 8
		} else {
			sum += uint32(rdata[i])
		}
	}
	return uint16(sum + sum>>16)
}

// verify says whether the key made the signature over data.
func (k *key) verify(data, signature []byte) bool {
	k.once.Do(func() { k.public = parsePublic(k.algorithm, []byte(k.rdata[dnskeyFixed:])) })
	return k.public != nil && k.public.verify(data, signature)
}

// maxKeySize is more than any key that is usable has, in octets: see the bounds of RSA keys.
const maxKeySize = 1024

// keyCache keeps the keys last used, for parsing one costs a good part of verifying with it.
type keyCache struct{ recent[string, *key] }

func (c *keyCache) get(rdata []byte) *key {
	if len(rdata) > maxKeySize {
		return newKey(string(rdata))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.lookup(string(wire.BorrowName(rdata))); ok { // borrowed: no copy to look it up
		return k
	}
	k := newKey(string(rdata))
	c.store(k.rdata, k)
	return k
}

// recent is a map of about so many of the entries last used: of two generations, the older is
// dropped when the younger is full.
type recent[K comparable, V any] struct {
	mu         sync.Mutex
	size       int // of one generation
	young, old map[K]V
	hits       atomic.Uint64
}

// lookup finds an entry and keeps it. The caller holds mu.
func (r *recent[K, V]) lookup(k K) (V, bool) {
	v, ok := r.young[k]
	if !ok {
		if v, ok = r.old[k]; ok {
			r.store(k, v)
		}
	}
	if ok {
		r.hits.Add(1)
	}
	return v, ok
}

// store adds an entry. The caller holds mu.
func (r *recent[K, V]) store(k K, v V) {
	if len(r.young) >= r.size || r.young == nil {
		r.young, r.old = make(map[K]V), r.young
	}
	r.young[k] = v
}

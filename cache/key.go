package cache

import (
	"math/rand/v2"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// Key is what an entry is found by: kind, QNAME, QTYPE and realm, with the hash of the name. It
// compares with ==. It borrows the name it was made of: to outlive that buffer, Own it.
type Key struct {
	hash  uint64 // of the name alone: the shard is chosen by it
	name  wire.Name
	qtype wire.Type
	realm uint16
	kind  entry.Kind
}

// seed makes the places of names unknown to whoever chooses them. It does not keep chosen names
// from sharing a place, for XXH64 has collisions under every seed: the bounded bucket does.
var seed = rand.Uint64()

// MakeKey returns the key of a canonical (lower case) wire-format QNAME, which it borrows.
func MakeKey[N ~string | ~[]byte](kind entry.Kind, realm uint16, qname N, t wire.Type) Key {
	// Both kinds of N begin with the pointer to their bytes.
	name := wire.Name(unsafe.String(*(**byte)(unsafe.Pointer(&qname)), len(qname)))
	return Key{hash: hashName(name), name: name, qtype: t, realm: realm, kind: kind}
}

// keyOf returns the key of an entry, which it borrows.
func keyOf(e entry.Entry) Key { return MakeKey(e.Kind(), e.Realm(), e.QName(), e.QType()) }

// With returns the key of the same name and realm for another kind and QTYPE; it costs no hashing.
func (k Key) With(kind entry.Kind, t wire.Type) Key {
	k.kind, k.qtype = kind, t
	return k
}

// Own returns the key with a name of its own.
func (k Key) Own() Key {
	k.name = wire.Name([]byte(k.name))
	return k
}

// Kind, Realm, QName and QType return the key's parts. QName borrows as the key does.
func (k *Key) Kind() entry.Kind { return k.kind }
func (k *Key) Realm() uint16    { return k.realm }
func (k *Key) QName() wire.Name { return k.name }
func (k *Key) QType() wire.Type { return k.qtype }

func hashName(name wire.Name) uint64 {
	var buf [8 + wire.MaxNameLen + 1]byte
	for i := range 8 {
		buf[i] = byte(seed >> (8 * i))
	}
	n := copy(buf[8:], name)
	return xxhash.Sum64(buf[:8+n])
}

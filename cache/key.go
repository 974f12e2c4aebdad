package cache

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// Key is what an entry is found by: kind, QNAME, QTYPE and realm, with their hash. It compares with
// == and holds no bytes of its own: it borrows the name it was made of, and to outlive that it must
// be Owned.
type Key struct {
	nameHash uint64 // of the name alone: the shard is chosen by it, so that a name is in one shard
	hash     uint64 // of all
	name     wire.Name
	qtype    wire.Type
	realm    uint16
	kind     entry.Kind
}

// seed makes it unknown which names share a bucket with a given one. It does not keep chosen names
// from sharing one with each other, for XXH64 has collisions under every seed; that costs little
// because a bucket is bounded.
var seed = rand.Uint64()

// MakeKey returns the key of a canonical (lower case) wire-format QNAME, which it borrows.
func MakeKey[N ~string | ~[]byte](kind entry.Kind, realm uint16, qname N, t wire.Type) Key {
	// A string and a slice both begin with the pointer to their bytes.
	name := unsafe.String(*(**byte)(unsafe.Pointer(&qname)), len(qname))
	k := Key{nameHash: hashName(name), name: wire.Name(name), realm: realm}
	return k.With(kind, t)
}

// With returns the key of the same name and realm for a kind and QTYPE; the name is not hashed again.
func (k Key) With(kind entry.Kind, t wire.Type) Key {
	k.kind, k.qtype = kind, t
	k.hash = mix(k.nameHash, uint64(t)|uint64(k.realm)<<16|uint64(kind)<<32)
	return k
}

// Own returns the key with a name of its own.
func (k Key) Own() Key {
	k.name = wire.Name([]byte(k.name))
	return k
}

// Kind returns what kind of entry the key finds.
func (k *Key) Kind() entry.Kind { return k.kind }

// Realm returns the realm.
func (k *Key) Realm() uint16 { return k.realm }

// QName returns the canonical QNAME, borrowed as the key borrows it.
func (k *Key) QName() wire.Name { return k.name }

// QType returns the QTYPE.
func (k *Key) QType() wire.Type { return k.qtype }

// finds says whether e is the entry of the key.
func (k *Key) finds(e entry.Entry) bool {
	return e.Matches(k.kind, k.realm, unsafe.Slice(unsafe.StringData(string(k.name)), len(k.name)), k.qtype)
}

// keyOf returns the key of an entry, which it borrows.
func keyOf(e entry.Entry) Key { return MakeKey(e.Kind(), e.Realm(), e.QName(), e.QType()) }

// hashName hashes the name and mixes the seed in.
func hashName(name string) uint64 { return mix(xxhash.Sum64String(name), seed) }

// mix hashes the hash of a name and the rest of a key: a multiplication whose halves are folded,
// which for a given rest is nearly one to one.
func mix(nameHash, rest uint64) uint64 {
	hi, lo := bits.Mul64(nameHash^rest*0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
	return hi ^ lo
}

// sum is the checksum of an entry's bytes.
func sum(e []byte) uint32 { return uint32(xxhash.Sum64(e)) }

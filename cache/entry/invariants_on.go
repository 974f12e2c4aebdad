//go:build invariants

package entry

import (
	"fmt"

	"bonsai/wire"
)

const invariants = true

// assertPacked panics where an entry does not hold what it was made of.
func assertPacked(c *Content, e Entry, now uint32) {
	if err := e.Check(); err != nil {
		panic(fmt.Sprintf("entry: %x of %+v: %v", []byte(e), c, err))
	}
	if !e.Matches(c.Kind, c.Realm, []byte(c.QName.Canonical()), c.QType) {
		panic(fmt.Sprintf("entry: %x does not match its own question", []byte(e)))
	}
}

// assertQuestion panics where an entry is written into a response to another question, or behind
// other records, where its compression pointers do not hold.
func assertQuestion(e Entry, b *wire.Builder) {
	n, at := b.QNameLen(), b.Start()+wire.HeaderSize
	if len(b.Buf) != at+n+4 || !wire.EqualFold(b.Buf[at:at+n], e.QName()) {
		panic(fmt.Sprintf("entry: %x written behind %x", []byte(e), b.Buf[b.Start():]))
	}
}

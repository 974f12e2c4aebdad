package exchange

import (
	"crypto/rand"
	"encoding/binary"
)

// entropy is a buffered CSPRNG: random bytes of the system, taken many at a time and wiped as they
// are used.
type entropy struct {
	buf  [256]byte
	left int
}

func (e *entropy) take(n int) []byte {
	if e.left < n {
		// Never fails: crypto/rand ends the process before it returns bytes that are not random.
		_, _ = rand.Read(e.buf[:])
		e.left = len(e.buf)
	}
	e.left -= n
	return e.buf[e.left : e.left+n]
}

func (e *entropy) uint16() uint16 {
	b := e.take(2)
	v := binary.NativeEndian.Uint16(b)
	clear(b)
	return v
}

// scramble flips the case of each letter of a wire-format name with even odds (the 0x20 bit).
func (e *entropy) scramble(name []byte) {
	bits := e.take((len(name) + 7) / 8)
	for i, c := range name {
		// Label lengths are below 'A', and so are never taken for letters.
		if c|0x20-'a' < 26 {
			name[i] = c ^ bits[i/8]>>(i%8)&1<<5
		}
	}
	clear(bits)
}

// firstPort is the least port to send from: those below are reserved for the system's services.
const firstPort = 1024

// portSet is the ports that may be sent from.
type portSet struct {
	excluded [1 << 16 / 64]uint64
	any      bool // some port is left
}

func (p *portSet) exclude(ranges []PortRange) {
	for _, r := range ranges {
		for port := int(r.First); port <= int(r.Last); port++ {
			p.excluded[port/64] |= 1 << (port % 64)
		}
	}
	for port := firstPort; port < 1<<16; port++ {
		p.any = p.any || p.allows(uint16(port))
	}
}

func (p *portSet) allows(port uint16) bool {
	return port >= firstPort && p.excluded[port/64]>>(port%64)&1 == 0
}

// draw returns an allowed port, each with the same odds; 0, the system's choice, where all are
// excluded.
func (p *portSet) draw(e *entropy) uint16 {
	for p.any {
		if port := e.uint16(); p.allows(port) {
			return port
		}
	}
	return 0
}

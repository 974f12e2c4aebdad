package denial

import (
	"bytes"

	"bonsai/wire"
)

// The key of a name in a zone orders as RFC 4034 §6.1 orders names, when compared byte by byte: the
// labels below the zone from the top down, in lower case, each ended by 0, in which the bytes 0 and 1
// are written as 1 1 and 1 2. The key of the apex is empty. A name's key begins with those of its
// ancestors, so that the closest encloser of two is what they have in common up to an end of label.

// maxKey bounds a key: every byte of a name may take two.
const maxKey = 2 * wire.MaxNameLen

// appendKey appends the key of name, which is at or below zone.
func appendKey(dst []byte, name, zone wire.Name) []byte {
	var starts [wire.MaxNameLen / 2]uint8
	n := 0
	for i := 0; i < len(name)-len(zone); i += 1 + int(name[i]) {
		starts[n] = uint8(i)
		n++
	}
	for n--; n >= 0; n-- {
		label := name[starts[n]:]
		for _, c := range []byte(label[1 : 1+int(label[0])]) {
			dst = appendKeyByte(dst, c)
		}
		dst = append(dst, 0)
	}
	return dst
}

func appendKeyByte(dst []byte, c byte) []byte {
	switch {
	case c <= 1:
		return append(dst, 1, c+1)
	case c >= 'A' && c <= 'Z':
		return append(dst, c+'a'-'A')
	}
	return append(dst, c)
}

// nameOf is the name that has this key in a zone, in lower case.
func nameOf(key []byte, zone wire.Name) wire.Name {
	var buf [wire.MaxNameLen]byte
	at := len(buf) - len(zone)
	copy(buf[at:], zone)
	var label [wire.MaxLabelLen]byte
	for n := 0; len(key) > 0; {
		c := key[0]
		if key = key[1:]; c == 0 { // the label is whole, and goes before those above it
			at -= n + 1
			buf[at] = byte(n)
			copy(buf[at+1:], label[:n])
			n = 0
			continue
		}
		if c == 1 {
			c, key = key[0]-1, key[1:]
		}
		label[n] = c
		n++
	}
	return wire.Name(buf[at:])
}

// common returns how much of two keys is the same, up to an end of label.
func common(a, b []byte) int {
	n := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == 0 {
			n = i + 1
		}
	}
	return n
}

// hasPrefix says whether a key is of a name at or below that of prefix.
func hasPrefix(key, prefix []byte) bool { return bytes.HasPrefix(key, prefix) }

// isBelow says whether a key is of a name below that of ancestor.
func isBelow(key, ancestor []byte) bool { return len(key) > len(ancestor) && hasPrefix(key, ancestor) }

// wildcardLabel is what the key of a wildcard has more than that of its closest encloser.
const wildcardLabel = "*\x00"

// Package wire is the message format of RFC 1035: names, records, sections and EDNS, as bytes.
//
// Parsing turns bytes into views that borrow the packet and never copies it; appending writes to
// the end of a buffer. Nothing here knows sockets or time, nothing allocates by a count that a
// message claims, and no input panics.
package wire

import (
	"encoding/binary"
	"errors"
	"strings"
	"unsafe"
)

// Name is an uncompressed wire-format domain name, root label included, e.g. "\x03www\x00".
// It keeps the spelling it came with; compare with Equal (RFC 4343) or compare Canonical forms.
// The empty string is no name.
type Name string

// Limits of RFC 1035 §2.3.4.
const (
	MaxNameLen  = 255
	MaxLabelLen = 63
)

// Root is the root name.
const Root Name = "\x00"

// Errors of parsing. They are sentinels, for broken input is ordinary.
var (
	ErrName   = errors.New("wire: malformed domain name")
	ErrFormat = errors.New("wire: malformed message")
)

// maxPointers bounds the compression pointers followed in one name. RFC 1035 sets none; a name has
// at most 127 labels, so that more pointers than that serve nobody.
const maxPointers = 127

// lower folds one octet (RFC 4343 §3: ASCII letters only).
func lower(c byte) byte {
	if c-'A' < 26 {
		return c + 32
	}
	return c
}

// ParseName reads presentation format (RFC 1035 §5.1): labels between dots, \DDD and \X escapes,
// with or without the final dot.
func ParseName(text string) (Name, error) {
	buf, err := AppendParsed(make([]byte, 0, len(text)+2), text)
	return Name(buf), err
}

// AppendParsed appends what ParseName would return to dst. Where text is no name it returns nothing.
func AppendParsed[T ~string | ~[]byte](dst []byte, text T) ([]byte, error) {
	begin, start := len(dst), len(dst)
	buf := append(dst, 0)
	if len(text) == 1 && text[0] == '.' {
		return buf, nil
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '.':
			n := len(buf) - start - 1
			if n == 0 || n > MaxLabelLen {
				return nil, ErrName
			}
			buf[start] = byte(n)
			start = len(buf)
			buf = append(buf, 0)
			continue
		case c == '\\':
			b, used := parseEscape(text[i+1:])
			if used == 0 {
				return nil, ErrName
			}
			c, i = b, i+used
		}
		buf = append(buf, c)
	}
	if n := len(buf) - start - 1; n > MaxLabelLen {
		return nil, ErrName
	} else if n > 0 {
		buf[start] = byte(n)
		buf = append(buf, 0)
	}
	if n := len(buf) - begin; n > MaxNameLen || n < 2 {
		return nil, ErrName
	}
	return buf, nil
}

// parseEscape reads what follows a backslash and says how many characters that was, 0 for none.
func parseEscape[T ~string | ~[]byte](s T) (c byte, used int) {
	if len(s) >= 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2]) {
		n := int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
		if n > 255 {
			return 0, 0
		}
		return byte(n), 3
	}
	if len(s) == 0 || isDigit(s[0]) {
		return 0, 0
	}
	return s[0], 1
}

func isDigit(c byte) bool { return c-'0' < 10 }

// MustName is ParseName for names written in the source; it panics where those are wrong.
func MustName(text string) Name {
	n, err := ParseName(text)
	if err != nil {
		panic("wire: bad name " + text)
	}
	return n
}

// String returns presentation format with the final dot.
func (n Name) String() string {
	if n == "" {
		return "<none>"
	}
	if n == Root {
		return "."
	}
	var b strings.Builder
	for i := 0; i < len(n) && n[i] != 0; {
		l := int(n[i])
		for _, c := range []byte(n[i+1 : i+1+l]) {
			appendEscaped(&b, c)
		}
		b.WriteByte('.')
		i += 1 + l
	}
	return b.String()
}

func appendEscaped(b *strings.Builder, c byte) {
	switch {
	case c == '.' || c == '\\' || c == '"' || c == ';' || c == '(' || c == ')' || c == '@' || c == '$':
		b.WriteByte('\\')
		b.WriteByte(c)
	case c < '!' || c > '~':
		b.WriteByte('\\')
		b.WriteByte('0' + c/100)
		b.WriteByte('0' + c/10%10)
		b.WriteByte('0' + c%10)
	default:
		b.WriteByte(c)
	}
}

// Valid says whether n is a whole well-formed uncompressed name.
func (n Name) Valid() bool {
	i := 0
	for i < len(n) {
		l := int(n[i])
		if l == 0 {
			return i == len(n)-1 && len(n) <= MaxNameLen
		}
		if l > MaxLabelLen {
			return false
		}
		i += 1 + l
	}
	return false
}

// NameLen returns the length of the uncompressed name that b begins with, 0 where it begins with none.
func NameLen(b []byte) int {
	for i := 0; i < len(b) && i < MaxNameLen; {
		l := int(b[i])
		if l == 0 {
			return i + 1
		}
		if l > MaxLabelLen {
			return 0
		}
		i += 1 + l
	}
	return 0
}

// Canonical returns n in lower case (RFC 4034 §6.2), n itself where it already is.
func (n Name) Canonical() Name {
	for i := 0; i < len(n); i++ {
		if n[i]-'A' < 26 {
			return Name(AppendCanonical(make([]byte, 0, len(n)), n))
		}
	}
	return n
}

// AppendCanonical appends the lower case form of name, which may be a Name or wire bytes of one.
// Label lengths are below 'A' and so unharmed.
func AppendCanonical[T ~string | ~[]byte](dst []byte, name T) []byte {
	start := len(dst)
	dst = append(dst, name...)
	fold(dst[start:])
	return dst
}

// fold is lower for each octet of b, eight at a time. The last eight may be folded in part before, which
// changes nothing.
func fold(b []byte) {
	if len(b) < 8 {
		for i, c := range b {
			b[i] = lower(c)
		}
		return
	}
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], fold8(binary.LittleEndian.Uint64(b[i:])))
	}
	last := b[len(b)-8:]
	binary.LittleEndian.PutUint64(last, fold8(binary.LittleEndian.Uint64(last)))
}

// Equal compares without ASCII case (RFC 4343).
func (n Name) Equal(o Name) bool { return EqualFold(n, o) }

// EqualFold compares two wire-format names, as Name or bytes, without ASCII case.
func EqualFold[A, B ~string | ~[]byte](a A, b B) bool {
	if len(a) != len(b) {
		return false
	}
	if string(a) == string(b) {
		return true // as most names that are compared
	}
	for i := 0; i < len(a); i++ {
		if a[i] != b[i] && lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// Labels counts the labels without the root's.
func (n Name) Labels() int {
	count := 0
	for i := 0; i < len(n) && n[i] != 0; i += 1 + int(n[i]) {
		count++
	}
	return count
}

// Label returns the first label without its length octet; "" for the root.
func (n Name) Label() string {
	if len(n) == 0 || n[0] == 0 {
		return ""
	}
	return string(n[1 : 1+int(n[0])])
}

// Parent returns n without its first label; the root is its own parent.
func (n Name) Parent() Name {
	if len(n) <= 1 {
		return Root
	}
	return n[1+int(n[0]):]
}

// Suffix returns the ancestor of n (or n) that has so many labels.
func (n Name) Suffix(labels int) Name {
	for drop := n.Labels() - labels; drop > 0; drop-- {
		n = n.Parent()
	}
	return n
}

// IsSubdomainOf says whether n is at or below zone.
func (n Name) IsSubdomainOf(zone Name) bool {
	for len(n) > len(zone) && n != Root {
		n = n.Parent()
	}
	return n.Equal(zone)
}

// IsBelow says whether n is below zone and not the same.
func (n Name) IsBelow(zone Name) bool { return len(n) > len(zone) && n.IsSubdomainOf(zone) }

// IsWildcard says whether the first label is the asterisk (RFC 4592 §2.1.1).
func (n Name) IsWildcard() bool { return len(n) > 1 && n[0] == 1 && n[1] == '*' }

// CommonAncestor returns the deepest name that both are at or below.
func CommonAncestor(a, b Name) Name {
	la, lb := a.Labels(), b.Labels()
	m := min(la, lb)
	a, b = a.Suffix(m), b.Suffix(m)
	for !a.Equal(b) {
		a, b = a.Parent(), b.Parent()
	}
	return a
}

// Compare orders names canonically (RFC 4034 §6.1): -1, 0 or 1.
func Compare(a, b Name) int {
	var oa, ob [128]uint8
	na, nb := labelOffsets(a, &oa), labelOffsets(b, &ob)
	for na > 0 && nb > 0 {
		na, nb = na-1, nb-1
		if c := compareLabels(a[oa[na]:], b[ob[nb]:]); c != 0 {
			return c
		}
	}
	switch {
	case na > 0:
		return 1
	case nb > 0:
		return -1
	}
	return 0
}

func labelOffsets(n Name, offsets *[128]uint8) int {
	count := 0
	for i := 0; i < len(n) && n[i] != 0 && count < len(offsets); i += 1 + int(n[i]) {
		offsets[count] = uint8(i)
		count++
	}
	return count
}

func compareLabels(a, b Name) int {
	la, lb := int(a[0]), int(b[0])
	for i := 1; i <= min(la, lb); i++ {
		ca, cb := lower(a[i]), lower(b[i])
		if ca != cb {
			if ca < cb {
				return -1
			}
			return 1
		}
	}
	return max(-1, min(1, la-lb))
}

// Prepend returns label + n; ok is false where that is too long or label is.
func (n Name) Prepend(label string) (Name, bool) {
	if len(label) == 0 || len(label) > MaxLabelLen || len(n)+len(label)+1 > MaxNameLen {
		return "", false
	}
	return Name(string(rune(len(label)))+label) + n, true
}

// ReplaceSuffix returns n with its suffix from replaced by to; ok is false where n is not at or below
// from or the result is too long (RFC 6672 §2.2: YXDOMAIN).
func (n Name) ReplaceSuffix(from, to Name) (Name, bool) {
	if !n.IsSubdomainOf(from) {
		return "", false
	}
	head := n[:len(n)-len(from)]
	if len(head)+len(to) > MaxNameLen {
		return "", false
	}
	return head + to, true
}

// NameEnd returns the offset behind the possibly compressed name at off, having checked only what
// lies there; a pointer's target is checked by whoever follows it.
func NameEnd(pkt []byte, off int) (int, error) {
	for off < len(pkt) {
		c := int(pkt[off])
		switch {
		case c == 0:
			return off + 1, nil
		case c <= MaxLabelLen:
			off += 1 + c
		case c >= 0xC0 && off+2 <= len(pkt):
			return off + 2, nil
		default:
			return 0, ErrName
		}
	}
	return 0, ErrName
}

// walkName checks the possibly compressed name at off and returns how long it is uncompressed and
// the offset behind it in pkt. Pointers must lead to before the name they are in (RFC 1035 §4.1.4:
// a prior occurrence), so that the walk ends.
func walkName(pkt []byte, off int) (n, end int, ok bool) {
	limit, pointers := off, 0
	for off < len(pkt) {
		c := int(pkt[off])
		switch {
		case c == 0:
			if end == 0 {
				end = off + 1
			}
			return n + 1, end, true
		case c <= MaxLabelLen:
			off += 1 + c
			if n += 1 + c; n >= MaxNameLen {
				return 0, 0, false
			}
		case c >= 0xC0 && off+2 <= len(pkt):
			target := c&0x3F<<8 | int(pkt[off+1])
			if pointers++; target >= limit || pointers > maxPointers {
				return 0, 0, false
			}
			if end == 0 {
				end = off + 2
			}
			off, limit = target, target
		default:
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// AppendName appends the possibly compressed name at off, uncompressed, and returns the offset
// behind it in pkt. What it believes of pointers walkName says.
func AppendName(dst, pkt []byte, off int) (out []byte, end int, err error) {
	_, end, ok := walkName(pkt, off)
	if !ok {
		return dst, 0, ErrName
	}
	for {
		c := int(pkt[off])
		switch {
		case c == 0:
			return append(dst, 0), end, nil
		case c <= MaxLabelLen:
			dst = append(dst, pkt[off:off+1+c]...)
			off += 1 + c
		default:
			off = c&0x3F<<8 | int(pkt[off+1])
		}
	}
}

// wholeName returns the checked name at off where its octets lie in the packet in one piece, nil where
// a pointer comes behind a label.
func wholeName(pkt []byte, off int) []byte {
	for pkt[off] >= 0xC0 {
		off = int(pkt[off]&0x3F)<<8 | int(pkt[off+1])
	}
	for end := off; ; {
		switch c := int(pkt[end]); {
		case c == 0:
			return pkt[off : end+1 : end+1]
		case c > MaxLabelLen:
			return nil
		default:
			end += 1 + c
		}
	}
}

// sameName compares two checked names without ASCII case.
func sameName(pkt []byte, a, b int) bool {
	for {
		a, b = followPointers(pkt, a), followPointers(pkt, b)
		if a == b {
			return true
		}
		n := int(pkt[a])
		if n != int(pkt[b]) {
			return false
		}
		if n == 0 {
			return true
		}
		if !EqualFold(pkt[a+1:a+1+n], pkt[b+1:b+1+n]) {
			return false
		}
		a, b = a+1+n, b+1+n
	}
}

func followPointers(pkt []byte, off int) int {
	for pkt[off] >= 0xC0 {
		off = int(pkt[off]&0x3F)<<8 | int(pkt[off+1])
	}
	return off
}

// ReadName is AppendName into a new Name.
func ReadName(pkt []byte, off int) (n Name, end int, err error) {
	var buf [MaxNameLen + 1]byte
	b, end, err := AppendName(buf[:0], pkt, off)
	if err != nil {
		return "", 0, err
	}
	if len(b) == 1 {
		return Root, end, nil
	}
	return Name(b), end, nil
}

// BorrowName views wire bytes as a Name without copying. The caller keeps b unchanged for as long
// as the Name lives.
func BorrowName(b []byte) Name { return Name(unsafe.String(unsafe.SliceData(b), len(b))) }

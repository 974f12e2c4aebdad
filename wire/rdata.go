package wire

import "encoding/binary"

// A field of an RDATA: how many octets, or one of the shapes below.
type field int8

const (
	compressible field = -1 // a name that RFC 1035 lets a sender compress
	plainName    field = -2 // a name that is sent whole, though some senders compress it
	charString   field = -3
	rest         field = -4 // whatever is left, opaque
)

// rdataLayouts says where names lie. What is not listed is opaque (RFC 3597 §3). RFC 3597 §4: the
// types of RFC 1035 may be compressed by a sender; a receiver also expands those of RFC 1183,
// 2163, 2230, 2782, 2915 and 6672, whose early senders compressed.
var rdataLayouts = map[Type][]field{
	TypeA:      {4},
	TypeAAAA:   {16},
	TypeNS:     {compressible},
	TypeMD:     {compressible},
	TypeMF:     {compressible},
	TypeCNAME:  {compressible},
	TypeSOA:    {compressible, compressible, 20},
	TypeMB:     {compressible},
	TypeMG:     {compressible},
	TypeMR:     {compressible},
	TypePTR:    {compressible},
	TypeMINFO:  {compressible, compressible},
	TypeMX:     {2, compressible},
	TypeRP:     {plainName, plainName},
	TypeAFSDB:  {2, plainName},
	TypeRT:     {2, plainName},
	TypeSIG:    {18, plainName, rest},
	TypePX:     {2, plainName, plainName},
	TypeNXT:    {plainName, rest},
	TypeSRV:    {6, plainName},
	TypeNAPTR:  {4, charString, charString, charString, plainName},
	TypeKX:     {2, plainName},
	TypeDNAME:  {plainName},
	TypeRRSIG:  {18, plainName, rest},
	TypeNSEC:   {plainName, rest},
	TypeDS:     {4, rest},
	TypeDNSKEY: {4, rest},
	TypeSVCB:   {2, plainName, rest},
	TypeHTTPS:  {2, plainName, rest},
}

// commonLayouts is rdataLayouts for the low types, for one indexed load on the hot paths.
var commonLayouts = func() (a [128][]field) {
	for t, l := range rdataLayouts {
		a[t] = l
	}
	return a
}()

func layoutOf(t Type) []field {
	if int(t) < len(commonLayouts) {
		return commonLayouts[t]
	}
	return nil
}

// HasCompressibleNames says whether a sender may compress names in the RDATA of this type
// (RFC 3597 §4).
func HasCompressibleNames(t Type) bool {
	for _, f := range layoutOf(t) {
		if f == compressible {
			return true
		}
	}
	return false
}

// FixedRDATALen returns the RDATA length of types that have just one: 4 for A, 16 for AAAA, else 0.
func FixedRDATALen(t Type) int {
	switch t {
	case TypeA:
		return 4
	case TypeAAAA:
		return 16
	}
	return 0
}

// checkRDATA walks the RDATA of pkt[off:end] and says whether its known fields fit it exactly.
// compressed tells whether some name in it holds a pointer.
func checkRDATA(pkt []byte, t Type, off, end int) (compressed bool, err error) {
	for _, f := range layoutOf(t) {
		switch f {
		case compressible, plainName:
			n, e, ok := walkName(pkt[:end], off)
			if !ok {
				return false, ErrName
			}
			compressed = compressed || n != e-off
			off = e
		case charString:
			if off >= end {
				return false, ErrFormat
			}
			off += 1 + int(pkt[off])
		case rest:
			off = end
		default:
			off += int(f)
		}
		if off > end {
			return false, ErrFormat
		}
	}
	if layoutOf(t) != nil && off != end {
		return false, ErrFormat
	}
	return compressed, nil
}

// ValidRDATA says whether the known fields of an RDATA of type t fit it exactly and its names are
// whole and uncompressed.
func ValidRDATA(t Type, rdata []byte) bool {
	off, layout := 0, layoutOf(t)
	for _, f := range layout {
		switch f {
		case compressible, plainName:
			n := NameLen(rdata[off:])
			if n == 0 {
				return false
			}
			off += n
		case charString:
			if off >= len(rdata) {
				return false
			}
			off += 1 + int(rdata[off])
		case rest:
			off = len(rdata)
		default:
			off += int(f)
		}
		if off > len(rdata) {
			return false
		}
	}
	return (layout == nil || off == len(rdata)) && len(rdata) <= 0xFFFF
}

// appendRDATA appends the checked RDATA of pkt[off:end] with its names uncompressed.
func appendRDATA(dst, pkt []byte, t Type, off, end int) []byte {
	for _, f := range layoutOf(t) {
		n := int(f)
		switch f {
		case compressible, plainName:
			dst, off, _ = AppendName(dst, pkt[:end], off)
			continue
		case charString:
			n = 1 + int(pkt[off])
		case rest:
			n = end - off
		}
		dst = append(dst, pkt[off:off+n]...)
		off += n
	}
	return append(dst, pkt[off:end]...)
}

// NameFields calls f with the offset and end of every name in an uncompressed RDATA of type t, and
// whether a sender may compress it. It stops and returns false where the RDATA does not fit.
func NameFields(t Type, rdata []byte, f func(off, end int, compressible bool)) bool {
	off := 0
	for _, l := range layoutOf(t) {
		switch l {
		case compressible, plainName:
			end, err := NameEnd(rdata, off)
			if err != nil {
				return false
			}
			f(off, end, l == compressible)
			off = end
		case charString:
			if off >= len(rdata) {
				return false
			}
			off += 1 + int(rdata[off])
		case rest:
			off = len(rdata)
		default:
			off += int(l)
		}
		if off > len(rdata) {
			return false
		}
	}
	return true
}

// SOAMinimum returns the MINIMUM field of an SOA's RDATA, in seconds (RFC 2308 §4).
func SOAMinimum(rdata []byte) uint32 {
	if len(rdata) < 22 {
		return 0
	}
	return binary.BigEndian.Uint32(rdata[len(rdata)-4:])
}

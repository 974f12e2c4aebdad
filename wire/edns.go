package wire

import "encoding/binary"

// EDNS is what an OPT pseudo-record says (RFC 6891). Options borrows the packet.
type EDNS struct {
	Present       bool
	Version       uint8
	ExtendedRCODE uint8 // the upper eight bits
	UDPSize       uint16
	DO            bool // RFC 3225
	CO            bool // RFC 9824 §5.1: compact answers OK
	Options       []byte
}

// OptionCode numbers an EDNS option.
type OptionCode uint16

// EDNS options that bonsai knows.
const (
	OptionNSID      OptionCode = 3  // RFC 5001
	OptionECS       OptionCode = 8  // RFC 7871
	OptionCookie    OptionCode = 10 // RFC 7873
	OptionKeepalive OptionCode = 11 // RFC 7828
	OptionPadding   OptionCode = 12 // RFC 7830
	OptionEDE       OptionCode = 15 // RFC 8914
)

// Flag bits in the TTL field of an OPT.
const (
	ednsDO = 1 << 15
	ednsCO = 1 << 14
)

// parse reads the fields of an OPT; it fails where an option is cut short.
func (e *EDNS) parse(class uint16, ttl uint32, options []byte) error {
	*e = EDNS{
		Present:       true,
		ExtendedRCODE: uint8(ttl >> 24),
		Version:       uint8(ttl >> 16),
		UDPSize:       class,
		DO:            ttl&ednsDO != 0,
		CO:            ttl&ednsCO != 0,
		Options:       options,
	}
	// RFC 6891 §6.1.3: what the data of another version means we don't know.
	if e.Version != 0 {
		e.Options = nil
		return nil
	}
	for o := options; len(o) > 0; {
		if len(o) < 4 || len(o) < 4+int(binary.BigEndian.Uint16(o[2:])) {
			return ErrFormat
		}
		o = o[4+int(binary.BigEndian.Uint16(o[2:])):]
	}
	return nil
}

// Option returns the data of the first option with this code.
func (e *EDNS) Option(code OptionCode) (data []byte, ok bool) {
	for o := e.Options; len(o) >= 4; {
		n := 4 + int(binary.BigEndian.Uint16(o[2:]))
		if n > len(o) {
			break
		}
		if OptionCode(binary.BigEndian.Uint16(o)) == code {
			return o[4:n], true
		}
		o = o[n:]
	}
	return nil, false
}

// AppendOption appends one option.
func AppendOption(dst []byte, code OptionCode, data []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(code))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(data)))
	return append(dst, data...)
}

// EDECode is the INFO-CODE of an extended error (RFC 8914 §4).
type EDECode uint16

// Extended errors. NoEDE, an unassigned value, stands for none.
const (
	EDEOther             EDECode = 0
	EDEUnsupportedDNSKEY EDECode = 1
	EDEUnsupportedDS     EDECode = 2
	EDEStaleAnswer       EDECode = 3
	EDEForgedAnswer      EDECode = 4
	EDEIndeterminate     EDECode = 5
	EDEBogus             EDECode = 6
	EDESignatureExpired  EDECode = 7
	EDESignatureNotYet   EDECode = 8
	EDEDNSKEYMissing     EDECode = 9
	EDERRSIGsMissing     EDECode = 10
	EDENoZoneKeyBit      EDECode = 11
	EDENSECMissing       EDECode = 12
	EDECachedError       EDECode = 13
	EDENotReady          EDECode = 14
	EDEBlocked           EDECode = 15
	EDECensored          EDECode = 16
	EDEFiltered          EDECode = 17
	EDEProhibited        EDECode = 18
	EDEStaleNXDomain     EDECode = 19
	EDENotAuthoritative  EDECode = 20
	EDENotSupported      EDECode = 21
	EDENoReachable       EDECode = 22
	EDENetworkError      EDECode = 23
	EDEInvalidData       EDECode = 24
	EDESignatureOther    EDECode = 25
	EDETooEarly          EDECode = 26
	EDEUnsupportedNSEC3  EDECode = 27
	EDEUnableToConform   EDECode = 28
	EDESynthesized       EDECode = 29
	EDEInvalidQueryType  EDECode = 30
	NoEDE                EDECode = 0xFFFF
)

// EDE is an extended error with its free text.
type EDE struct {
	Code EDECode
	Text string // UTF-8, short
}

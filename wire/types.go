package wire

import (
	"strconv"
	"strings"
)

// Type is a record type (RFC 6895 §3.1).
type Type uint16

// The types that some rule of bonsai knows by name.
const (
	TypeNone       Type = 0
	TypeA          Type = 1
	TypeNS         Type = 2
	TypeMD         Type = 3
	TypeMF         Type = 4
	TypeCNAME      Type = 5
	TypeSOA        Type = 6
	TypeMB         Type = 7
	TypeMG         Type = 8
	TypeMR         Type = 9
	TypeNULL       Type = 10
	TypeWKS        Type = 11
	TypePTR        Type = 12
	TypeHINFO      Type = 13
	TypeMINFO      Type = 14
	TypeMX         Type = 15
	TypeTXT        Type = 16
	TypeRP         Type = 17
	TypeAFSDB      Type = 18
	TypeRT         Type = 21
	TypeSIG        Type = 24
	TypeKEY        Type = 25
	TypePX         Type = 26
	TypeAAAA       Type = 28
	TypeNXT        Type = 30
	TypeSRV        Type = 33
	TypeNAPTR      Type = 35
	TypeKX         Type = 36
	TypeCERT       Type = 37
	TypeDNAME      Type = 39
	TypeOPT        Type = 41
	TypeDS         Type = 43
	TypeSSHFP      Type = 44
	TypeRRSIG      Type = 46
	TypeNSEC       Type = 47
	TypeDNSKEY     Type = 48
	TypeNSEC3      Type = 50
	TypeNSEC3PARAM Type = 51
	TypeTLSA       Type = 52
	TypeCDS        Type = 59
	TypeCDNSKEY    Type = 60
	TypeSVCB       Type = 64
	TypeHTTPS      Type = 65
	TypeSPF        Type = 99
	TypeLP         Type = 107
	TypeNXNAME     Type = 128
	TypeTKEY       Type = 249
	TypeTSIG       Type = 250
	TypeIXFR       Type = 251
	TypeAXFR       Type = 252
	TypeMAILB      Type = 253
	TypeMAILA      Type = 254
	TypeANY        Type = 255
	TypeCAA        Type = 257
)

var typeNames = map[Type]string{
	TypeA: "A", TypeNS: "NS", TypeMD: "MD", TypeMF: "MF", TypeCNAME: "CNAME", TypeSOA: "SOA",
	TypeMB: "MB", TypeMG: "MG", TypeMR: "MR", TypeNULL: "NULL", TypeWKS: "WKS", TypePTR: "PTR",
	TypeHINFO: "HINFO", TypeMINFO: "MINFO", TypeMX: "MX", TypeTXT: "TXT", TypeRP: "RP",
	TypeAFSDB: "AFSDB", TypeRT: "RT", TypeSIG: "SIG", TypeKEY: "KEY", TypePX: "PX",
	TypeAAAA: "AAAA", TypeNXT: "NXT", TypeSRV: "SRV", TypeNAPTR: "NAPTR", TypeKX: "KX",
	TypeCERT: "CERT", TypeDNAME: "DNAME", TypeOPT: "OPT", TypeDS: "DS", TypeSSHFP: "SSHFP",
	TypeRRSIG: "RRSIG", TypeNSEC: "NSEC", TypeDNSKEY: "DNSKEY", TypeNSEC3: "NSEC3",
	TypeNSEC3PARAM: "NSEC3PARAM", TypeTLSA: "TLSA", TypeCDS: "CDS", TypeCDNSKEY: "CDNSKEY",
	TypeSVCB: "SVCB", TypeHTTPS: "HTTPS", TypeSPF: "SPF", TypeLP: "LP", TypeNXNAME: "NXNAME",
	TypeTKEY: "TKEY", TypeTSIG: "TSIG", TypeIXFR: "IXFR", TypeAXFR: "AXFR", TypeMAILB: "MAILB",
	TypeMAILA: "MAILA", TypeANY: "ANY", TypeCAA: "CAA",
}

var typeValues = func() map[string]Type {
	m := make(map[string]Type, len(typeNames))
	for t, s := range typeNames {
		m[s] = t
	}
	return m
}()

// String returns the mnemonic, or TYPEn for a type without one (RFC 3597 §5).
func (t Type) String() string {
	if s, ok := typeNames[t]; ok {
		return s
	}
	return "TYPE" + strconv.Itoa(int(t))
}

// ParseType reads a mnemonic or TYPEn, in either case; ok is false for anything else.
func ParseType(text string) (t Type, ok bool) {
	text = strings.ToUpper(text)
	if t, ok = typeValues[text]; ok {
		return t, true
	}
	if digits, found := strings.CutPrefix(text, "TYPE"); found {
		n, err := strconv.ParseUint(digits, 10, 16)
		return Type(n), err == nil
	}
	return 0, false
}

// IsMeta says whether the type is one of queries and transports only, of which no RRset can exist
// in a zone (RFC 6895 §3.1): OPT, and 128 to 255.
func (t Type) IsMeta() bool { return t == TypeOPT || t >= 128 && t <= 255 }

// Class is a record class.
type Class uint16

// Classes of RFC 1035 §3.2.4 and RFC 2136.
const (
	ClassIN   Class = 1
	ClassCH   Class = 3
	ClassHS   Class = 4
	ClassNONE Class = 254
	ClassANY  Class = 255
)

// Opcode is the kind of a query (RFC 6895 §2.2).
type Opcode uint8

// OpcodeQuery is the one opcode a resolver answers.
const OpcodeQuery Opcode = 0

// RCODE is a response code, extended to 12 bits by EDNS (RFC 6891 §6.1.3).
type RCODE uint16

// Response codes.
const (
	RCODENoError   RCODE = 0
	RCODEFormErr   RCODE = 1
	RCODEServFail  RCODE = 2
	RCODENXDomain  RCODE = 3
	RCODENotImp    RCODE = 4
	RCODERefused   RCODE = 5
	RCODEYXDomain  RCODE = 6
	RCODENotAuth   RCODE = 9
	RCODENotZone   RCODE = 10
	RCODEBadVers   RCODE = 16
	RCODEBadCookie RCODE = 23
)

var rcodeNames = map[RCODE]string{
	RCODENoError: "NOERROR", RCODEFormErr: "FORMERR", RCODEServFail: "SERVFAIL",
	RCODENXDomain: "NXDOMAIN", RCODENotImp: "NOTIMP", RCODERefused: "REFUSED",
	RCODEYXDomain: "YXDOMAIN", RCODENotAuth: "NOTAUTH", RCODENotZone: "NOTZONE",
	RCODEBadVers: "BADVERS", RCODEBadCookie: "BADCOOKIE",
}

// String returns the mnemonic, or RCODEn.
func (r RCODE) String() string {
	if s, ok := rcodeNames[r]; ok {
		return s
	}
	return "RCODE" + strconv.Itoa(int(r))
}

// Section is the place of a record in a message.
type Section uint8

// The sections that hold records.
const (
	Answer Section = iota
	Authority
	Additional
)

// String returns the section's name as RFC 1035 §4.1 spells it.
func (s Section) String() string {
	if s > Additional {
		return "unknown"
	}
	return [...]string{"answer", "authority", "additional"}[s]
}

// Header flag bits (RFC 1035 §4.1.1, RFC 4035 §3.2), of the second 16-bit word.
const (
	FlagQR uint16 = 1 << 15
	FlagAA uint16 = 1 << 10
	FlagTC uint16 = 1 << 9
	FlagRD uint16 = 1 << 8
	FlagRA uint16 = 1 << 7
	FlagAD uint16 = 1 << 5
	FlagCD uint16 = 1 << 4
)

// HeaderSize is the length of the fixed header in bytes.
const HeaderSize = 12

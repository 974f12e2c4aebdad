package replay

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

var errNoRecord = errors.New("not a record")

// record reads a record in presentation format. Scenarios hold records that are broken on purpose,
// and some that other readers take as they are: an RDATA in RFC 3597 form that its type could not
// have, no RDATA at all, a type bitmap out of order, base64 with other characters in it, an SOA
// with surplus numbers.
func (p *parser) record(l string) (dns.RR, error) {
	rr, err := p.zoneLine(l)
	if err == nil {
		mend(rr)
		return rr, nil
	}
	w := strings.Fields(l)
	if i := slices.Index(w, `\#`); i > 0 && i+1 < len(w) {
		return p.generic(w[:i], strings.Join(w[i+2:], ""), err)
	}
	if i := slices.Index(w, "SOA"); i > 0 && len(w) > i+8 {
		return p.zoneLine(strings.Join(w[:i+8], " "))
	}
	if len(w) >= 2 && len(w) <= 4 {
		return p.generic(w, "", err)
	}
	return nil, err
}

func (p *parser) zoneLine(l string) (dns.RR, error) {
	z := dns.NewZoneParser(strings.NewReader(l+"\n"), p.origin, "")
	z.SetDefaultTTL(p.ttl)
	rr, ok := z.Next()
	if z.Err() != nil {
		return nil, z.Err()
	}
	if !ok {
		return nil, errNoRecord
	}
	return rr, nil
}

// generic makes a record of OWNER [TTL] [CLASS] TYPE and an RDATA in hexadecimal, whatever the type.
func (p *parser) generic(head []string, rdata string, cause error) (dns.RR, error) {
	h := dns.RR_Header{Name: p.absolute(head[0]), Class: dns.ClassINET, Ttl: p.ttl}
	var ok bool
	if h.Rrtype, ok = number(dns.StringToType, head[len(head)-1], "TYPE"); !ok || len(head) < 2 {
		return nil, cause
	}
	for _, w := range head[1 : len(head)-1] {
		if ttl, err := strconv.ParseUint(w, 10, 32); err == nil {
			h.Ttl = uint32(ttl)
		} else if h.Class, ok = number(dns.StringToClass, w, "CLASS"); !ok {
			return nil, cause
		}
	}
	return &dns.RFC3597{Hdr: h, Rdata: rdata}, nil
}

// mend makes a record packable.
func mend(rr dns.RR) {
	switch x := rr.(type) {
	case *dns.NSEC:
		x.TypeBitMap = bitmap(x.TypeBitMap)
	case *dns.NSEC3:
		x.TypeBitMap = bitmap(x.TypeBitMap)
	case *dns.CSYNC:
		x.TypeBitMap = bitmap(x.TypeBitMap)
	case *dns.RRSIG:
		x.Signature = cleanBase64(x.Signature)
	case *dns.DNSKEY:
		x.PublicKey = cleanBase64(x.PublicKey)
	}
}

func bitmap(types []uint16) []uint16 {
	slices.Sort(types)
	return slices.Compact(types)
}

// cleanBase64 keeps what is base64 of a text, as much of it as makes whole octets.
func cleanBase64(s string) string {
	if _, err := base64.StdEncoding.DecodeString(s); err == nil {
		return s
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(alphabet, r) {
			return r
		}
		return -1
	}, s)
	if len(s)%4 == 1 {
		s = s[:len(s)-1]
	}
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil { // bits left over behind the last octet
		b, _ = base64.RawStdEncoding.Strict().DecodeString(s[:len(s)/4*4])
	}
	return base64.StdEncoding.EncodeToString(b)
}

// sameRecord says whether two records differ at most in TTL and letter case of names.
func sameRecord(a, b dns.RR) bool {
	x, y := a.Header(), b.Header()
	if x.Rrtype != y.Rrtype || x.Class != y.Class || dns.CanonicalName(x.Name) != dns.CanonicalName(y.Name) {
		return false
	}
	// The first knows which octets of the RDATA are names, the second the same octets in another form.
	if dns.IsDuplicate(a, b) {
		return true
	}
	octets := rdata(a)
	return octets != nil && bytes.Equal(octets, rdata(b))
}

// rdata returns a record's RDATA without compression, nil where it has no wire form.
func rdata(rr dns.RR) []byte {
	b := make([]byte, dns.MaxMsgSize)
	end, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		return nil
	}
	_, start, err := dns.UnpackDomainName(b[:end], 0)
	if err != nil {
		return nil
	}
	return b[start+10 : end]
}

// pack packs a message. Where a record has no wire form the error says which.
func pack(m *dns.Msg) ([]byte, error) {
	b, err := m.Pack()
	if err != nil {
		m.Compress = false
		return m.Pack()
	}
	return b, nil
}

// setOPT adds an OPT record with option data as it is, and the RCODE's upper bits.
func setOPT(m *dns.Msg, do bool, rcode int, options []byte) {
	o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: ednsSize}}
	o.SetDo(do)
	for len(options) >= 4 {
		code := uint16(options[0])<<8 | uint16(options[1])
		end := 4 + (int(options[2])<<8 | int(options[3]))
		if end > len(options) {
			break
		}
		o.Option = append(o.Option, &dns.EDNS0_LOCAL{Code: code, Data: options[4:end]})
		options = options[end:]
	}
	m.Extra = append(m.Extra, o)
	m.Rcode = rcode
}

// ednsSize is the UDP payload size, in octets, that clients and servers of a scenario announce.
const ednsSize = 4096

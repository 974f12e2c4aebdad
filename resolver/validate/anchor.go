package validate

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// Anchor is a trust anchor: a DS or DNSKEY record that is believed as it stands (RFC 4033 §2).
type Anchor struct {
	Zone  wire.Name
	Type  wire.Type // DS or DNSKEY
	RDATA []byte
}

// builtinAnchors are the keys of the root zone, KSK-2017 and KSK-2024, as
// https://data.iana.org/root-anchors/root-anchors.xml gives them.
var builtinAnchors = []string{
	"4f660802E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D",
	"97280802683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16",
}

// BuiltinAnchors returns the anchors of the root zone, key tags 20326 and 38696.
func BuiltinAnchors() []Anchor {
	var anchors []Anchor
	for _, text := range builtinAnchors {
		rdata, _ := hex.DecodeString(text)
		anchors = append(anchors, Anchor{Zone: wire.Root, Type: wire.TypeDS, RDATA: rdata})
	}
	return anchors
}

// ParseAnchors reads DS and DNSKEY records in zone format, of any owners. filename is for errors,
// which say file:line. An input without records gives no anchors and no error.
func ParseAnchors(r io.Reader, filename string) ([]Anchor, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var anchors []Anchor
	counter := &lineCounter{text: text}
	zp := dns.NewZoneParser(counter, ".", filename)
	zp.SetDefaultTTL(3600)
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		a, err := anchorOf(rr)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", filename, counter.line(), err)
		}
		anchors = append(anchors, a)
	}
	if err := zp.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", filename, counter.line(), errors.New(parseReason(err)))
	}
	return anchors, nil
}

// lineCounter feeds the zone parser byte by byte, so that the line it has come to is known.
type lineCounter struct {
	text []byte
	read int
}

func (c *lineCounter) Read(p []byte) (int, error) {
	b, err := c.ReadByte()
	if err != nil || len(p) == 0 {
		return 0, err
	}
	p[0] = b
	return 1, nil
}

func (c *lineCounter) ReadByte() (byte, error) {
	if c.read == len(c.text) {
		return 0, io.EOF
	}
	c.read++
	return c.text[c.read-1], nil
}

// line returns the line of what was last read: an end of line belongs to the line it ends.
func (c *lineCounter) line() int {
	return 1 + bytes.Count(c.text[:max(0, c.read-1)], []byte("\n"))
}

// parseReason returns the parser's message without the prefix and the place, which we give ourselves.
func parseReason(err error) string {
	reason := strings.TrimPrefix(err.Error(), "dns: ")
	if i := strings.LastIndex(reason, " at line: "); i >= 0 {
		reason = reason[:i]
	}
	if i := strings.Index(reason, ": dns: "); i >= 0 {
		reason = reason[i+len(": dns: "):]
	}
	return reason
}

func anchorOf(rr dns.RR) (Anchor, error) {
	h := rr.Header()
	if h.Class != dns.ClassINET {
		return Anchor{}, fmt.Errorf("a trust anchor of class %s", dns.ClassToString[h.Class])
	}
	switch key := rr.(type) {
	case *dns.DS:
	case *dns.DNSKEY:
		// RFC 4034 §2.1.1, RFC 5011 §2.1: only zone keys sign, and a revoked key is no anchor.
		if key.Flags&dns.ZONE == 0 || key.Flags&dns.REVOKE != 0 || key.Protocol != 3 {
			return Anchor{}, fmt.Errorf("DNSKEY %d is no usable zone key", key.KeyTag())
		}
	default:
		return Anchor{}, fmt.Errorf("%s is neither DS nor DNSKEY", dns.TypeToString[h.Rrtype])
	}
	zone, err := wire.ParseName(h.Name)
	if err != nil {
		return Anchor{}, err
	}
	packed := make([]byte, dns.Len(rr)+wire.MaxNameLen)
	n, err := dns.PackRR(rr, packed, 0, nil, false)
	if err != nil {
		return Anchor{}, err
	}
	start := len(zone) + 10
	return Anchor{Zone: zone.Canonical(), Type: wire.Type(h.Rrtype), RDATA: packed[start:n:n]}, nil
}

package main

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/miekg/dns"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// recordText is a record in presentation format (RFC 1035 §5.1), unknown types as RFC 3597 §5 has
// them.
func recordText(owner wire.Name, t wire.Type, ttl uint32, rdata []byte) string {
	m := append([]byte(owner), 0, 0, 0, 1)
	binary.BigEndian.PutUint16(m[len(owner):], uint16(t))
	m = binary.BigEndian.AppendUint32(m, ttl)
	m = binary.BigEndian.AppendUint16(m, uint16(len(rdata)))
	rr, _, err := dns.UnpackRR(append(m, rdata...), 0)
	if err != nil {
		return fmt.Sprintf("%s\t%d\tIN\t%s\t\\# %d %x", owner, ttl, t, len(rdata), rdata)
	}
	return rr.String()
}

// recordsOf returns the records of RRsets, each set's signatures behind it.
func recordsOf(sets []wire.RRset) (lines []string) {
	for i := range sets {
		s := &sets[i]
		for _, d := range s.RDATA {
			lines = append(lines, recordText(s.Owner, s.Type, s.TTL, d))
		}
		for _, d := range s.Sigs {
			lines = append(lines, recordText(s.Owner, wire.TypeRRSIG, s.TTL, d))
		}
	}
	return lines
}

var kindNames = map[entry.Kind]string{
	entry.KindAnswer: "answer", entry.KindDenial: "denial", entry.KindUnvalidated: "unvalidated",
	entry.KindFailure: "failure", entry.KindCut: "delegation", entry.KindAddress: "address",
}

// dumpEntry writes an entry: a comment that says what it is, and its records with the TTLs left.
func dumpEntry(w io.Writer, e entry.Entry, now uint32) error {
	c, err := e.Unpack(now)
	if err != nil {
		return nil // no entry that is served
	}
	realm := ""
	if c.Realm != 0 {
		realm = fmt.Sprintf(", realm %d", c.Realm)
	}
	_, err = fmt.Fprintf(w, "; %s %s %s %s %s, expires in %d s%s\n", kindNames[c.Kind], c.QName, c.QType, c.RCODE, c.Status,
		int64(e.Expires())-int64(now), realm)
	for _, x := range c.EDE {
		if err == nil {
			_, err = fmt.Fprintf(w, ";   EDE %d %s\n", x.Code, x.Text)
		}
	}
	for _, sets := range [...][]wire.RRset{c.Answer, c.Authority, c.Additional} {
		for _, line := range recordsOf(sets) {
			if err == nil {
				_, err = fmt.Fprintln(w, line)
			}
		}
	}
	return err
}

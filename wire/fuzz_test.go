package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// FuzzMessage parses any bytes. What is read is the same once appended, grouping neither panics nor
// loses a record, and whatever the oracle reads as well it reads alike.
func FuzzMessage(f *testing.F) {
	goldenMessages(f, func(_, _ string, pkt []byte) { f.Add(pkt) })
	for seed := range uint64(10) {
		f.Add(oracleMessage(f, seed))
	}
	f.Fuzz(func(t *testing.T, pkt []byte) {
		var m Message
		if m.Parse(pkt) != nil {
			return
		}
		before := bytes.Clone(pkt)
		appendAndCompare(t, &m)
		checkGroups(t, &m)
		if !bytes.Equal(pkt, before) {
			t.Fatal("the packet was written to")
		}
		// TTLs differ where their top bit is set; other differences are not ours to find here.
		for _, r := range m.Records {
			if r.TTL == 0 {
				return
			}
		}
		if want, err := oracleRecords(t, pkt); err == nil && oracleIsExact(&m) {
			compareRecords(t, "message", ourRecords(&m), want)
		}
	})
}

// oracleIsExact says whether miekg/dns writes the RDATA of these types as it read it.
func oracleIsExact(m *Message) bool {
	for _, r := range m.Records {
		switch r.Type {
		case TypeA, TypeAAAA, TypeNS, TypeCNAME, TypePTR, TypeMX, TypeSOA, TypeSRV, TypeDNAME, TypeMINFO, TypeRP:
		default:
			return false
		}
	}
	// A class that has its own form of A is read as such by neither.
	return m.QDCount == 1
}

// checkGroups compares both ways to RRsets, and counts.
func checkGroups(t *testing.T, m *Message) {
	var r Response
	err := m.Response(&r)
	for s, sets := range [...][]RRset{r.Answer, r.Authority, r.Additional} {
		alone, err2 := m.RRsets(Section(s))
		if err == nil && (err2 != nil || show2(alone) != show2(sets)) {
			t.Fatalf("%v: %s %v, want %s", Section(s), show2(alone), err2, show2(sets))
		}
		distinct := map[string]bool{}
		for _, r := range m.Section(Section(s)) {
			if m.QDCount == 0 || r.Class == m.QClass {
				distinct[string(AppendCanonical(nil, m.Owner(&r)))+r.Type.String()+string(m.RDATA(&r))] = true
			}
		}
		got := 0
		for i, set := range alone {
			got += len(set.RDATA) + len(set.Sigs)
			for _, other := range alone[:i] {
				if other.Is(set.Owner, set.Type) {
					t.Fatalf("two RRsets of %v %v", set.Owner, set.Type)
				}
			}
			if len(alone) > 300 {
				break
			}
		}
		if err2 == nil && len(alone) <= 300 && got != len(distinct) {
			t.Fatalf("%v: %d records, want %d", Section(s), got, len(distinct))
		}
	}
}

// show2 is show for RRsets of any content.
func show2(sets []RRset) string {
	var b bytes.Buffer
	for _, s := range sets {
		b.WriteString(s.Owner.String() + s.Type.String())
		for _, r := range s.RDATA {
			b.Write(r)
		}
		for _, r := range s.Sigs {
			b.Write(r)
		}
	}
	return b.String()
}

// FuzzQuery parses any bytes as a query, and answers it.
func FuzzQuery(f *testing.F) {
	goldenMessages(f, func(_, _ string, pkt []byte) { f.Add(pkt) })
	f.Fuzz(func(t *testing.T, pkt []byte) {
		var q Query
		v := q.Parse(pkt)
		if v == QueryDrop {
			return
		}
		if q.HasQuestion() && !BorrowName(q.Name()).Valid() {
			t.Fatalf("QNAME %x", q.Name())
		}
		var b Builder
		b.Begin(nil, &q, 512, OPTSize)
		out := b.Finish(&q, FlagRA, RCODEServFail, 1232, nil)
		var m Message
		if err := m.Parse(out); err != nil || m.ID != q.ID || len(m.Records) != 0 || m.EDNS.Present != q.EDNS.Present ||
			!bytes.Equal(AppendCanonical(nil, m.QNameBytes()), q.Name()) {
			t.Fatalf("%v: %x answered %x", err, pkt, out)
		}
		if v != QueryOK {
			return
		}
		var again Query
		// What lies in records other than the OPT is nobody's business.
		err := m.Parse(pkt)
		onlyOPT := pkt[11] == 0 || pkt[11] == 1 && q.EDNS.Present
		if onlyOPT && (err != nil || m.QType != q.QType || m.EDNS.UDPSize != q.EDNS.UDPSize) {
			t.Fatalf("a query that is no message: %v %x", err, pkt)
		}
		if again.Parse(AppendQuery(nil, q.ID, q.Flags, q.Name(), q.QType, 1232, q.EDNS.Options)) != QueryOK || !bytes.Equal(again.Name(), q.Name()) {
			t.Fatalf("%x can't be asked again", pkt)
		}
	})
}

// FuzzName reads any bytes as a compressed name and any text as a name; what is read is valid, and the
// same once written. The oracle agrees on what text is a name.
func FuzzName(f *testing.F) {
	for _, text := range []string{".", "www.example.com", `a\.b.c.`, `\000\255`, "a..b", `a\`, "*.x", `л\.`} {
		f.Add([]byte("\x03www\x00\x01a\xc0\x00"), 5, text)
	}
	f.Add([]byte{0xC0, 0}, 0, "x")
	f.Add([]byte{1, 'a', 0xC0, 0}, 2, "x")
	f.Fuzz(func(t *testing.T, pkt []byte, off int, text string) {
		if off >= 0 && off <= len(pkt) {
			n, end, err := ReadName(pkt, off)
			length, walked, ok := walkName(pkt, off)
			if (err == nil) != ok {
				t.Fatalf("ReadName says %v, walkName %t", err, ok)
			}
			if ok {
				var x Expander
				ownEnd, err := NameEnd(pkt, off)
				if !n.Valid() || length != len(n) || walked != end || ownEnd != end || err != nil || x.name(pkt, off) != n || !sameName(pkt, off, off) {
					t.Fatalf("%q ends at %d, %d or %d", n, end, walked, ownEnd)
				}
				roundTrip(t, n)
			}
		}
		n, err := ParseName(text)
		if err == nil {
			roundTrip(t, n)
		}
		buf := make([]byte, 300)
		if end, oracleErr := dns.PackDomainName(fullyQualified(text), buf, 0, nil, false); err == nil && oracleErr == nil && string(buf[:end]) != string(n) {
			t.Fatalf("%q is %q, the oracle says %q", text, n, buf[:end])
		}
	})
}

// fullyQualified adds the final dot where there is none that ends a label. The oracle's own, dns.Fqdn,
// counts the backslashes before a dot wrongly behind a letter of several bytes.
func fullyQualified(text string) string {
	if bare, ok := strings.CutSuffix(text, "."); ok {
		if escapes := len(bare) - len(strings.TrimRight(bare, `\`)); escapes%2 == 0 {
			return text
		}
	}
	return text + "."
}

func roundTrip(t *testing.T, n Name) {
	if !n.Valid() || NameLen([]byte(n)) != len(n) {
		t.Fatalf("%q is not valid", string(n))
	}
	if again, err := ParseName(n.String()); err != nil || again != n {
		t.Fatalf("%q is written %q and read %q, %v", string(n), n.String(), string(again), err)
	}
	if c := n.Canonical(); !c.Equal(n) || Compare(c, n) != 0 || !n.IsSubdomainOf(c) || n.Labels() > 0 && !n.IsBelow(n.Parent()) {
		t.Fatalf("%q and its canonical form %q", string(n), string(c))
	}
}

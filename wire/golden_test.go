package wire

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the annotations of the golden messages anew")

// goldenMessages are the annotated messages that all packages may test with: comments and verdicts,
// then lines of offset, octets and what they are.
func goldenMessages(t testing.TB, f func(file, head string, pkt []byte)) {
	t.Helper()
	files, _ := filepath.Glob("../testdata/messages/*.hex")
	if len(files) == 0 {
		t.Fatal("no golden messages")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var head strings.Builder
		pkt := []byte{}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) == 0 || len(fields[0]) != 4 || strings.Trim(fields[0], "0123456789abcdef") != "" {
				head.WriteString(line)
				continue
			}
			octets, err := hex.DecodeString(fields[1])
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			pkt = append(pkt, octets...)
		}
		f(file, head.String(), pkt)
	}
}

var verdictNames = map[Verdict]string{
	QueryOK: "query", QueryDrop: "drop", QueryFormErr: "FORMERR", QueryNotImp: "NOTIMP",
	QueryBadVers: "BADVERS", QueryCookieOnly: "cookie only",
}

// verdicts says what the message is to those who read queries and to those who read responses.
func verdicts(pkt []byte) string {
	var q Query
	var m Message
	out := "as a query: " + verdictNames[q.Parse(pkt)] + "\n"
	if m.Parse(pkt) != nil {
		return out + "as a message: malformed\n"
	}
	return out + fmt.Sprintf("as a message: %v, %d questions, %d records\n", m.RCODE(), m.QDCount, len(m.Records))
}

// TestGoldenMessages holds what is read of each message, and that it is the same once appended.
func TestGoldenMessages(t *testing.T) {
	goldenMessages(t, func(file, head string, pkt []byte) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".hex"), func(t *testing.T) {
			comment, _, _ := strings.Cut(head, "as a query:")
			got := comment + verdicts(pkt) + annotate(pkt)
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("read otherwise; -rewrite renews the file\ngot:\n%swant:\n%s", got, want)
			}
			var m Message
			if m.Parse(pkt) == nil {
				appendAndCompare(t, &m)
			}
		})
	})
}

// appendAndCompare writes a parsed message anew, uncompressed, and wants to read the same of it.
func appendAndCompare(t *testing.T, m *Message) {
	t.Helper()
	var b Builder
	b.BeginMessage(nil, m.QNameBytes(), m.QType, 1<<20)
	for i := range m.Records {
		r := &m.Records[i]
		mark, owner, rdata := b.Mark(), m.Owner(r), m.RDATA(r)
		if !owner.Valid() || !ValidRDATA(r.Type, rdata) {
			t.Fatalf("record %d expanded to %x %x", i, owner, rdata)
		}
		b.Buf = AppendRecordHeader(b.Buf, []byte(owner), r.Type, r.TTL, len(rdata))
		binary.BigEndian.PutUint16(b.Buf[len(b.Buf)-8:], uint16(r.Class))
		b.Buf = append(b.Buf, rdata...)
		b.Commit(mark, r.Section, 1)
	}
	var q Query
	q.EDNS.Present = m.EDNS.Present
	q.EDNS.DO = m.EDNS.DO
	out := b.Finish(&q, 0, m.RCODE(), m.EDNS.UDPSize, m.EDNS.Options)
	if len(m.QNameBytes()) == 0 || len(out) > 0xFFFF {
		return
	}
	var again Message
	if err := again.Parse(out); err != nil {
		t.Fatalf("%v of %x", err, out)
	}
	if len(again.Records) != len(m.Records) || again.RCODE() != m.RCODE() || again.QName() != m.QName() || again.QType != m.QType ||
		string(again.EDNS.Options) != string(m.EDNS.Options) || again.EDNS.DO != m.EDNS.DO {
		t.Fatalf("got %+v, want %+v", again, m)
	}
	for i := range m.Records {
		r, s := &m.Records[i], &again.Records[i]
		if m.Owner(r) != again.Owner(s) || r.Type != s.Type || r.Class != s.Class || r.TTL != s.TTL || r.Section != s.Section ||
			string(m.RDATA(r)) != string(again.RDATA(s)) {
			t.Fatalf("record %d: got %+v %x, want %+v %x", i, s, again.RDATA(s), r, m.RDATA(r))
		}
	}
}

// An annotator walks a message by RFC 1035 §4 alone, as far as it goes.
type annotator struct {
	pkt []byte
	off int
	out strings.Builder
}

func annotate(pkt []byte) string {
	a := annotator{pkt: pkt}
	a.message()
	a.line(len(pkt), "")
	return a.out.String()
}

// line ends a field at an offset.
func (a *annotator) line(end int, format string, args ...any) {
	end = min(end, len(a.pkt))
	text := fmt.Sprintf(format, args...)
	for a.off < end {
		n := min(16, end-a.off)
		a.out.WriteString(strings.TrimRight(fmt.Sprintf("%04x  %-34x%s", a.off, a.pkt[a.off:a.off+n], text), " ") + "\n")
		a.off += n
		text = ""
	}
}

func (a *annotator) message() {
	if len(a.pkt) < HeaderSize {
		return
	}
	a.line(2, "ID")
	a.line(4, "flags")
	counts := [4]int{}
	for i, name := range []string{"questions", "answer records", "authority records", "additional records"} {
		counts[i] = int(binary.BigEndian.Uint16(a.pkt[4+2*i:]))
		a.line(6+2*i, "%d %s", counts[i], name)
	}
	for range counts[0] {
		if !a.name("QNAME") || a.off+4 > len(a.pkt) {
			return
		}
		t, c := binary.BigEndian.Uint16(a.pkt[a.off:]), binary.BigEndian.Uint16(a.pkt[a.off+2:])
		a.line(a.off+4, "QTYPE %v, QCLASS %d", Type(t), c)
	}
	for s := Answer; s <= Additional; s++ {
		for range counts[1+s] {
			if !a.record(s) {
				return
			}
		}
	}
}

func (a *annotator) name(what string) bool {
	end, err := NameEnd(a.pkt, a.off)
	n, _, err2 := ReadName(a.pkt, a.off)
	if err != nil || err2 != nil {
		return false
	}
	a.line(end, "%s %v", what, n)
	return true
}

func (a *annotator) record(s Section) bool {
	if !a.name(s.String()+":") || a.off+10 > len(a.pkt) {
		return false
	}
	h := a.pkt[a.off:]
	t, class, ttl, n := Type(binary.BigEndian.Uint16(h)), binary.BigEndian.Uint16(h[2:]), binary.BigEndian.Uint32(h[4:]), int(binary.BigEndian.Uint16(h[8:]))
	if t == TypeOPT {
		a.line(a.off+10, "OPT, size %d, flags %08x, %d octets", class, ttl, n)
		return a.options(a.off + n)
	}
	a.line(a.off+10, "%v, class %d, TTL %d, %d octets", t, class, ttl, n)
	end := a.off + n
	if end > len(a.pkt) {
		return false
	}
	for _, f := range layoutOf(t) {
		switch f {
		case compressible, plainName:
			if !a.name("name") {
				return false
			}
		case charString:
			a.line(min(end, a.off+1+int(a.pkt[min(a.off, len(a.pkt)-1)])), "string")
		case rest:
			a.line(end, "")
		default:
			a.line(min(end, a.off+int(f)), "")
		}
	}
	a.line(end, "")
	return true
}

func (a *annotator) options(end int) bool {
	for a.off+4 <= end && end <= len(a.pkt) {
		code, n := binary.BigEndian.Uint16(a.pkt[a.off:]), int(binary.BigEndian.Uint16(a.pkt[a.off+2:]))
		a.line(min(end, a.off+4+n), "option %d, %d octets", code, n)
	}
	a.line(end, "")
	return end <= len(a.pkt)
}

package exchange

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/miekg/dns"

	"bonsai/wire"
)

func queryFor(name string) []byte {
	return wire.AppendQuery(nil, 0x1234, 0, []byte(wire.MustName(name)), wire.TypeA, 1232, nil)
}

func TestBelieve(t *testing.T) {
	q := queryFor("wWw.ExaMple.")
	change := func(f func(b []byte) []byte) []byte { return f(answerTo(q)) }
	set := func(at int, v byte) []byte { return change(func(b []byte) []byte { b[at] = v; return b }) }
	end := questionEnd(q)
	tests := []struct {
		name     string
		response []byte
		udp, tcp match
	}{
		{"the answer", answerTo(q), matched, matched},
		{"empty", nil, mismatched, mismatched},
		{"shorter than a header", answerTo(q)[:11], mismatched, mismatched},
		{"other ID", set(1, 0x35), mismatched, mismatched},
		{"a query", set(2, 0), mismatched, mismatched},
		{"other opcode", set(2, 0xA0), mismatched, mismatched},
		{"other letter case", set(13, 'W'), mismatched, matched},
		{"other name", set(13, 'v'), mismatched, mismatched},
		{"other type", set(end-3, 28), mismatched, mismatched},
		{"other class", set(end-1, 3), mismatched, mismatched},
		{"no question", set(5, 0), mismatched, mismatched},
		{"two questions", set(5, 2), mismatched, mismatched},
		{"cut in the question", answerTo(q)[:end-1], mismatched, mismatched},
		{"compressed question", change(func(b []byte) []byte { b[12] = 0xC0; return b }), mismatched, mismatched},
		{"truncated", set(2, 0x82), truncated, truncated},
		{"bare header, FORMERR", []byte{0x12, 0x34, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0}, mismatched, matched},
		{"bare header, NOERROR", []byte{0x12, 0x34, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0}, mismatched, mismatched},
		{"bare header, NXDOMAIN", []byte{0x12, 0x34, 0x80, 3, 0, 0, 0, 0, 0, 0, 0, 0}, mismatched, mismatched},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := believe(q, tt.response, false); got != tt.udp {
				t.Errorf("over UDP: got %v, want %v", got, tt.udp)
			}
			if got := believe(q, tt.response, true); got != tt.tcp {
				t.Errorf("over TCP: got %v, want %v", got, tt.tcp)
			}
		})
	}
}

// FuzzBelieve holds that nothing is believed over UDP but what repeats ID and question to the bit,
// and that whatever is believed over UDP is over TCP.
func FuzzBelieve(f *testing.F) {
	q := queryFor("www.Example.")
	f.Add(answerTo(q))
	f.Add(answerTo(q)[:20])
	f.Add([]byte{0x12, 0x34, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, response []byte) {
		udp, tcp := believe(q, response, false), believe(q, response, true)
		if udp != mismatched {
			question := q[wire.HeaderSize:questionEnd(q)]
			if !bytes.Equal(response[:2], q[:2]) || !bytes.HasPrefix(response[wire.HeaderSize:], question) ||
				response[4] != 0 || response[5] != 1 || response[2]&0xF8 != 0x80 {
				t.Errorf("believed % x", response)
			}
			if udp != tcp {
				t.Errorf("%v over UDP, %v over TCP", udp, tcp)
			}
		}
		if tcp != mismatched {
			var m wire.Message
			if m.Parse(response) == nil && m.QDCount == 1 && !wire.EqualFold(m.QNameBytes(), []byte(wire.MustName("www.example."))) {
				t.Errorf("believed the name %q over TCP", m.QNameBytes())
			}
		}
		isBareError(q, response)
	})
}

// FuzzResponse gives Do whatever a server can send behind a header and question that match.
func FuzzResponse(f *testing.F) {
	q := queryFor("www.Example.")
	end := questionEnd(q)
	for _, b := range [][]byte{answerTo(q), answerTo(q, rcode(1), noOPT), answerTo(q, rcode(23))} {
		f.Add(b[2:wire.HeaderSize], b[end:])
	}
	c := New(Config{Transport: &instantNet{}, Cookies: true})
	f.Fuzz(func(t *testing.T, header, rest []byte) {
		n := &instantNet{}
		n.conn.answer = func(q []byte) []byte {
			b := append([]byte(nil), q[:questionEnd(q)]...)
			copy(b[2:4], header)
			copy(b[6:wire.HeaderSize], header[min(4, len(header)):])
			return append(b, rest...)
		}
		c.transport = n
		for i := range 2 { // the second time with what was learned
			r, err := c.Do(context.Background(), ask("192.0.2.53", "www.example."))
			if (r == nil) == (err == nil) {
				t.Errorf("try %d: got %v, %v", i, r, err)
			}
			if r != nil {
				for _, section := range []wire.Section{wire.Answer, wire.Authority, wire.Additional} {
					_, _ = r.RRsets(section)
				}
			}
		}
	})
}

// TestLetterCaseStaysHere: names of a response that point to its question have the letters that were asked for,
// and not those that were drawn for the server.
func TestLetterCaseStaysHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		alias := func(m *dns.Msg) {
			question := m.Question[0].Name
			m.Compress = true
			m.Answer = []dns.RR{&dns.CNAME{
				Hdr:    dns.RR_Header{Name: question, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: 60},
				Target: "other." + question,
			}}
		}
		n.add("192.0.2.53", &fakeServer{udp: reply(alias), tcp: reply(alias)})
		const name = "a-name-with-many-letters.example."
		r := mustDo(t, n.client(Config{}), ask("192.0.2.53", name))
		if len(r.Bytes) > 100 {
			t.Fatalf("%d bytes: not compressed", len(r.Bytes))
		}
		sets, err := r.RRsets(wire.Answer)
		if err != nil || len(sets) != 1 {
			t.Fatal(sets, err)
		}
		if got := sets[0].Owner.String(); got != name {
			t.Errorf("owner %s", got)
		}
		if got := wire.Name(sets[0].RDATA[0]).String(); got != "other."+name {
			t.Errorf("target %s", got)
		}
	})
}

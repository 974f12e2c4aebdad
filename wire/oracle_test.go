package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// oracleRecords are the records of a message as miekg/dns reads it, each written whole, without OPT.
func oracleRecords(t testing.TB, pkt []byte) (records [3][][]byte, err error) {
	t.Helper()
	var m dns.Msg
	if err := m.Unpack(pkt); err != nil {
		return records, err
	}
	buf := make([]byte, 0x10000)
	for s, list := range [...][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range list {
			if rr.Header().Rrtype == dns.TypeOPT {
				continue
			}
			n, err := dns.PackRR(rr, buf, 0, nil, false)
			if err != nil {
				return records, err
			}
			records[s] = append(records[s], bytes.Clone(buf[:n]))
		}
	}
	return records, nil
}

// ourRecords are the same as we read them.
func ourRecords(m *Message) (records [3][][]byte) {
	for i := range m.Records {
		r := &m.Records[i]
		rdata := m.RDATA(r)
		b := AppendRecordHeader(nil, []byte(m.Owner(r)), r.Type, r.TTL, len(rdata))
		binary.BigEndian.PutUint16(b[len(b)-8:], uint16(r.Class))
		records[r.Section] = append(records[r.Section], append(b, rdata...))
	}
	return records
}

func compareRecords(t testing.TB, what string, got, want [3][][]byte) {
	t.Helper()
	for s := range got {
		if len(got[s]) != len(want[s]) {
			t.Errorf("%s: %v: %d records, the oracle has %d", what, Section(s), len(got[s]), len(want[s]))
			continue
		}
		for i := range got[s] {
			if !bytes.Equal(got[s][i], want[s][i]) {
				t.Errorf("%s: %v record %d:\ngot  %x\nwant %x", what, Section(s), i, got[s][i], want[s][i])
			}
		}
	}
}

// differs are the golden messages that only one of miekg/dns and we read, with the reason.
var differs = map[string]string{
	"bad-opt-twice":       "RFC 6891 §6.1.1 allows one OPT",
	"bad-opt-answer":      "RFC 6891 §6.1.1: the OPT is in the additional section",
	"bad-opt-owner":       "RFC 6891 §6.1.2: the OPT's name is the root",
	"bad-count":           "it takes fewer records than counted",
	"bad-pointer-forward": "RFC 1035 §4.1.4: a pointer is to a prior occurrence",
	"bad-soa-cut":         "it takes RDATA that ends between fields",
	"query-badvers":       "RFC 6891 §6.1.3: what the data of that version means is unknown",
}

// alike are those that both read, and differently.
var alike = map[string]string{
	"ttl-top-bit": "RFC 2181 §8 reads such a TTL as 0",
}

// TestOracleGolden reads the golden messages with miekg/dns.
func TestOracleGolden(t *testing.T) {
	goldenMessages(t, func(file, _ string, pkt []byte) {
		name := filepath.Base(file[:len(file)-len(".hex")])
		var m Message
		err := m.Parse(pkt)
		want, oracleErr := oracleRecords(t, pkt)
		if (err == nil) != (oracleErr == nil) != (differs[name] != "") {
			t.Errorf("%s: we say %v, the oracle %v", name, err, oracleErr)
		}
		if oracleErr != nil {
			return
		}
		if err == nil && alike[name] == "" {
			compareRecords(t, name, ourRecords(&m), want)
		}
	})
}

// oracleTypes are RDATA in presentation format, of all types that hold names and some that do not: N
// stands for a name, 9 for a number of 16 bits.
var oracleTypes = []string{
	"A 192.0.2.1", "AAAA 2001:db8::9", "NS N", "CNAME N", "PTR N", "MD N", "MB N", "MG N", "MR N", "MINFO N N",
	"MX 9 N", "SOA N N 9 9 9 9 9", "SRV 9 9 9 N", "RP N N", "AFSDB 9 N", "RT 9 N", "PX 9 N N", "KX 9 N", "DNAME N",
	`NAPTR 9 9 "s" "x+y" "!a!b!" N`, "NSEC N A MX RRSIG NSEC TYPE1234",
	"RRSIG A 13 2 300 20231128000000 20231114000000 9 N q83vEjRWeJASNFZ4kKvN7w==",
	"SVCB 1 N alpn=h2 port=8443", "HTTPS 1 . ipv6hint=2001:db8::1", `TXT "a" "" "N"`, `HINFO "cpu" "os"`,
	"DS 9 13 2 0102030405060708", `TYPE65400 \# 4 c00c0001`,
}

// An oracle makes random messages with miekg/dns.
type oracle struct {
	*rand.Rand
	names []string
}

// name returns a name that likely ends in one of those before.
func (o *oracle) name() string {
	n := o.names[o.IntN(len(o.names))]
	if o.IntN(2) == 0 && len(n) < 200 {
		o.names = append(o.names, fmt.Sprintf("%c%d.%s", 'a'+o.IntN(26), o.IntN(100), strings.TrimPrefix(n, ".")))
	}
	return o.names[len(o.names)-1-o.IntN(min(len(o.names), 4))]
}

func (o *oracle) record(t testing.TB) dns.RR {
	words := strings.Fields(oracleTypes[o.IntN(len(oracleTypes))])
	for i, w := range words {
		switch {
		case w == "9":
			words[i] = fmt.Sprint(o.IntN(65536))
		case w == "N" || w == `"N"`:
			words[i] = strings.Replace(w, "N", o.name(), 1)
		}
	}
	text := fmt.Sprintf("%s %d IN %s", o.name(), o.Uint32()>>1, strings.Join(words, " "))
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(text, err)
	}
	return rr
}

// oracleMessage makes a random message, mostly compressed.
func oracleMessage(t testing.TB, seed uint64) []byte {
	o := &oracle{rand.New(rand.NewPCG(seed, 2)), []string{"www.example.com.", "example.net.", "."}}
	m := new(dns.Msg)
	m.SetQuestion(o.name(), dns.TypeA)
	m.Response, m.Compress = true, o.IntN(4) > 0
	for _, section := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		for range o.IntN(12) {
			*section = append(*section, o.record(t))
		}
	}
	if o.IntN(2) == 0 {
		m.SetEdns0(1232, true)
	}
	pkt, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return pkt
}

// TestOracleRandom reads random messages that miekg/dns wrote, and writes them for it to read.
func TestOracleRandom(t *testing.T) {
	for seed := range uint64(500) {
		pkt := oracleMessage(t, seed)
		var m Message
		if err := m.Parse(pkt); err != nil {
			t.Fatalf("seed %d: %v of %x", seed, err, pkt)
		}
		want, err := oracleRecords(t, pkt)
		if err != nil {
			t.Fatal(seed, err)
		}
		got := ourRecords(&m)
		compareRecords(t, fmt.Sprint("seed ", seed), got, want)
		appendAndCompare(t, &m)

		var b Builder
		b.BeginMessage(nil, m.QNameBytes(), m.QType, 0xFFFF)
		for s, list := range got {
			for _, r := range list {
				mark := b.Mark()
				b.Buf = append(b.Buf, r...)
				b.Commit(mark, Section(s), 1)
			}
		}
		var q Query
		again, err := oracleRecords(t, b.Finish(&q, 0, 0, 0, nil))
		if err != nil {
			t.Fatalf("seed %d: the oracle does not read what we wrote: %v", seed, err)
		}
		compareRecords(t, fmt.Sprint("written, seed ", seed), got, again)
	}
}

// TestOracleQuery reads queries that miekg/dns wrote, and the other way round.
func TestOracleQuery(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := new(dns.Msg)
		m.SetQuestion(fmt.Sprintf("%c%d.Example.", 'A'+r.IntN(26), seed), uint16(r.Uint32()))
		m.Id, m.CheckingDisabled, m.AuthenticatedData = uint16(r.Uint32()), r.IntN(2) == 0, r.IntN(2) == 0
		if r.IntN(3) > 0 {
			m.SetEdns0(uint16(r.Uint32()), r.IntN(2) == 0)
			if o := m.IsEdns0(); r.IntN(2) == 0 {
				o.Option = append(o.Option, &dns.EDNS0_NSID{Code: 3}, &dns.EDNS0_COOKIE{Code: 10, Cookie: "0102030405060708"})
			}
		}
		pkt, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q Query
		if v := q.Parse(pkt); v != QueryOK {
			t.Fatalf("%v of %x", v, pkt)
		}
		o := m.IsEdns0()
		if q.ID != m.Id || q.Has(FlagCD) != m.CheckingDisabled || q.Has(FlagAD) != m.AuthenticatedData || uint16(q.QType) != m.Question[0].Qtype ||
			BorrowName(q.Name()).String() != dns.CanonicalName(m.Question[0].Name) || q.EDNS.Present != (o != nil) ||
			o != nil && (q.EDNS.UDPSize != o.UDPSize() || q.DO() != o.Do() || len(o.Option) > 0 != (len(q.EDNS.Options) > 0)) {
			t.Fatalf("%+v of %v", q, m)
		}
	}
	var back dns.Msg
	pkt := AppendQuery(nil, 7, FlagRD, []byte(MustName("www.example")), TypeMX, 1232, AppendOption(nil, OptionNSID, nil))
	if err := back.Unpack(pkt); err != nil || back.Id != 7 || !back.RecursionDesired || back.Question[0] != (dns.Question{Name: "www.example.", Qtype: dns.TypeMX, Qclass: 1}) ||
		!back.IsEdns0().Do() || back.IsEdns0().UDPSize() != 1232 || back.IsEdns0().Option[0].Option() != dns.EDNS0NSID {
		t.Errorf("%v %v", back, err)
	}
}

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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

// oracleMessage makes a random message of all types that hold names, with miekg/dns, compressed.
func oracleMessage(t testing.TB, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	names := []string{"www.example.com.", "example.net.", "."}
	name := func() string {
		n := names[r.IntN(len(names))]
		if r.IntN(2) == 0 {
			label := fmt.Sprintf("%c%d", 'a'+r.IntN(26), r.IntN(100))
			if n == "." {
				n = ""
			}
			if len(n) < 200 {
				names = append(names, label+"."+n)
			}
		}
		return names[len(names)-1-r.IntN(min(len(names), 4))]
	}
	record := func() string {
		rdata := []func() string{
			func() string { return fmt.Sprintf("A 192.0.2.%d", r.IntN(256)) },
			func() string { return fmt.Sprintf("AAAA 2001:db8::%x", r.IntN(65536)) },
			func() string { return "NS " + name() },
			func() string { return "CNAME " + name() },
			func() string { return "PTR " + name() },
			func() string { return "MD " + name() },
			func() string { return "MB " + name() },
			func() string { return "MG " + name() },
			func() string { return "MR " + name() },
			func() string { return "MINFO " + name() + " " + name() },
			func() string { return fmt.Sprintf("MX %d %s", r.IntN(65536), name()) },
			func() string {
				return fmt.Sprintf("SOA %s %s %d %d %d %d %d", name(), name(), r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32())
			},
			func() string { return fmt.Sprintf("SRV 1 2 %d %s", r.IntN(65536), name()) },
			func() string { return "RP " + name() + " " + name() },
			func() string { return "AFSDB 1 " + name() },
			func() string { return "RT 1 " + name() },
			func() string { return "PX 1 " + name() + " " + name() },
			func() string { return "KX 1 " + name() },
			func() string { return "DNAME " + name() },
			func() string { return `NAPTR 1 2 "s" "x+y" "!a!b!" ` + name() },
			func() string { return "NSEC " + name() + " A MX RRSIG NSEC TYPE1234" },
			func() string {
				return "RRSIG A 13 2 300 20231128000000 20231114000000 1 " + name() + " q83vEjRWeJASNFZ4kKvN7w=="
			},
			func() string { return "SVCB 1 " + name() + " alpn=h2 port=8443" },
			func() string { return "HTTPS 1 . ipv6hint=2001:db8::1" },
			func() string { return `TXT "a" "" "` + name() + `"` },
			func() string { return `HINFO "cpu" "os"` },
			func() string { return "DS 1 13 2 0102030405060708" },
			func() string { return `TYPE65400 \# 4 c00c0001` },
		}
		return fmt.Sprintf("%s %d IN %s", name(), r.Uint32()>>1, rdata[r.IntN(len(rdata))]())
	}
	m := new(dns.Msg)
	m.SetQuestion(name(), dns.TypeA)
	m.Response, m.Compress = true, r.IntN(4) > 0
	for _, section := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		for range r.IntN(12) {
			text := record()
			rr, err := dns.NewRR(text)
			if err != nil {
				t.Fatal(text, err)
			}
			*section = append(*section, rr)
		}
	}
	if r.IntN(2) == 0 {
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

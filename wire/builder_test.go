package wire

import (
	"bytes"
	"testing"
)

func beginTest(t *testing.T, limit, reserve int) (*Query, *Builder) {
	t.Helper()
	q, b := new(Query), new(Builder)
	if v := q.Parse(AppendQuery(nil, 0xABCD, FlagRD|FlagCD, []byte(MustName("Www.example")), TypeA, 1232, nil)); v != QueryOK {
		t.Fatal(v)
	}
	b.Begin([]byte("TCP"), q, limit, reserve)
	return q, b
}

func TestBuilder(t *testing.T) {
	q, b := beginTest(t, 512, OPTSize+8)
	if b.Start() != 3 || b.QNameLen() != len(q.Name()) {
		t.Error("Start or QNameLen")
	}
	add := func(s Section, n int) bool {
		mark := b.Mark()
		for i := range n {
			b.Buf = append(AppendRecordHeader(b.Buf, []byte{0xC0, 12}, TypeA, 60, 4), 192, 0, 2, byte(i))
		}
		return b.Commit(mark, s, n)
	}
	if !add(Answer, 2) || !add(Authority, 1) || !add(Additional, 3) {
		t.Fatal("records do not fit")
	}
	mark := b.Mark()
	b.Buf = append(b.Buf, "not to be sent"...)
	b.Rollback(mark)
	out := b.Finish(q, FlagRA|FlagAD, RCODEBadCookie, 1232, AppendOption(nil, OptionNSID, []byte("node")))
	if string(out[:3]) != "TCP" {
		t.Error("Begin changed what was in dst")
	}
	var m Message
	if err := m.Parse(out[3:]); err != nil {
		t.Fatal(err)
	}
	nsid, _ := m.EDNS.Option(OptionNSID)
	if m.ID != 0xABCD || m.Flags != FlagQR|FlagRD|FlagCD|FlagRA|FlagAD|7 || m.RCODE() != RCODEBadCookie || !m.EDNS.DO ||
		m.EDNS.UDPSize != 1232 || string(nsid) != "node" || len(m.Section(Answer)) != 2 || len(m.Section(Authority)) != 1 || len(m.Section(Additional)) != 3 ||
		!bytes.Equal(m.QNameBytes(), []byte("\x03Www\x07example\x00")) {
		t.Errorf("%+v", m)
	}
}

// TestBuilderLimits: what passes the limit is taken back whole, and TC is set but for additional data
// (RFC 2181 §9).
func TestBuilderLimits(t *testing.T) {
	for _, test := range []struct {
		section Section
		tc      bool
	}{{Answer, true}, {Authority, true}, {Additional, false}} {
		q, b := beginTest(t, 512, OPTSize)
		room := b.Room()
		mark := b.Mark()
		b.Buf = append(b.Buf, make([]byte, room)...)
		if b.Room() != 0 || !b.Commit(mark, test.section, 0) {
			t.Error("the last octet is not given")
		}
		b.Buf = append(b.Buf, 0)
		if b.Commit(mark, test.section, 1) || b.Mark() != mark || b.Truncated() != test.tc {
			t.Errorf("%v: mark %d, truncated %t", test.section, b.Mark(), b.Truncated())
		}
		out := b.Finish(q, 0, 0, 1232, nil)[3:]
		var m Message
		if err := m.Parse(out); err != nil || m.Has(FlagTC) != test.tc || len(m.Records) != 0 {
			t.Errorf("%v: %v %+v", test.section, err, m)
		}
	}
	_, b := beginTest(t, 512, OPTSize)
	b.Truncate()
	if !b.Truncated() {
		t.Error("Truncate")
	}
}

// TestBuilderWithoutQuestion answers a query of which only the header could be read.
func TestBuilderWithoutQuestion(t *testing.T) {
	var q Query
	if v := q.Parse([]byte{9, 9, 1 | 4<<3, 0, 0, 1, 0, 0, 0, 0, 0, 0}); v != QueryNotImp {
		t.Fatal(v)
	}
	var b Builder
	b.Begin(nil, &q, 512, 0)
	if out := b.Finish(&q, 0, RCODENotImp, 1232, nil); !bytes.Equal(out, []byte{9, 9, 0x81 | 4<<3, 4, 0, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("%x", out)
	}
}

func TestExtend(t *testing.T) {
	var b Builder
	b.BeginMessage(make([]byte, 0, 20), []byte("\x00"), TypeA, 100)
	before := b.Mark()
	copy(b.Extend(40), "filled")
	if b.Mark() != before+40 || string(b.Buf[before:before+6]) != "filled" || b.Buf[before-1] != 1 {
		t.Errorf("%x", b.Buf)
	}
}

// TestResponseFlags: DO and CO come back as they were sent, and an OPT only where one was.
func TestResponseFlags(t *testing.T) {
	for _, flags := range []uint16{0, ednsDO, ednsCO, ednsDO | ednsCO} {
		pkt := AppendQuery(nil, 1, 0, []byte("\x00"), TypeNS, 1232, nil)
		pkt[len(pkt)-4], pkt[len(pkt)-3] = byte(flags>>8), byte(flags)
		var q Query
		if v := q.Parse(pkt); v != QueryOK {
			t.Fatal(v)
		}
		var b Builder
		b.Begin(nil, &q, 512, OPTSize)
		var m Message
		if err := m.Parse(b.Finish(&q, 0, 0, 1232, nil)); err != nil || m.EDNS.DO != (flags&ednsDO != 0) || m.EDNS.CO != (flags&ednsCO != 0) {
			t.Errorf("flags %04x: %+v", flags, m.EDNS)
		}
	}
	var q Query
	q.Parse(AppendQuery(nil, 1, 0, []byte("\x00"), TypeNS, 0, nil))
	var b Builder
	b.Begin(nil, &q, 512, 0)
	if out := b.Finish(&q, 0, 0, 1232, []byte("not sent")); len(out) != HeaderSize+1+4 {
		t.Errorf("%x", out)
	}
}

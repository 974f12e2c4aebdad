package entry

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"bonsai/wire"
)

// goldenContents are the contents of the golden files.
func goldenContents(t testing.TB, f func(c *Content, now uint32)) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "--\n")
		c, now := parseContent(t, head)
		f(c, now)
	}
}

// use calls every method of an entry and returns all that it says.
func use(e Entry, qname []byte, now uint32, o *Options, limit int) (message []byte, c *Content, err error) {
	e.Kind()
	e.Realm()
	e.QType()
	e.RCODE()
	e.AA()
	e.Status()
	e.Used()
	e.HasAlias()
	e.HasSpecialAddress()
	e.Original()
	e.HasEDE()
	e.EDE()
	e.Matches(KindAnswer, 0, qname, wire.TypeA)
	var b wire.Builder
	b.BeginMessage(nil, qname, e.QType(), limit)
	if !e.appendPlain(&b, now, o) {
		e.appendAll(&b, now, o)
	}
	b.Buf = e.AppendEDE(b.Buf)
	e.Check()
	c, err = e.Unpack(now)
	return b.Buf, c, err
}

// FuzzAppend gives any bytes for an entry. Nothing outside of them is read, nothing panics, and what
// passes Check makes a message that parses.
func FuzzAppend(f *testing.F) {
	goldenContents(f, func(c *Content, now uint32) {
		e := mustPack(f, c, now)
		for flags := range byte(4) {
			f.Add([]byte(e), uint32(flags), uint16(1232), flags)
		}
		for cut := 1; cut < len(e); cut += 7 {
			f.Add([]byte(e[:len(e)-cut]), uint32(cut), uint16(512), byte(3))
		}
	})
	f.Fuzz(func(t *testing.T, data []byte, age uint32, limit uint16, flags byte) {
		e := Entry(data)
		qname := e.QName()
		if flags&4 != 0 || qname == nil {
			qname = []byte("\x03www\x07example\x00")
		}
		now := e.Expires() - e.Original() + age
		o := Options{DO: flags&1 != 0, Stale: flags&2 != 0, Rotate: uint16(age)}
		message, c, err := use(e, qname, now, &o, int(limit))

		// The same bytes within others: what lies behind may not make a difference.
		behind := append(bytes.Clone(data), bytes.Repeat([]byte{0xC0, 1, 0}, 40)...)
		message2, c2, err2 := use(behind[:len(data)], qname, now, &o, int(limit))
		if !bytes.Equal(message, message2) || (err == nil) != (err2 == nil) || !reflect.DeepEqual(c, c2) {
			t.Fatalf("depends on what lies behind it: %x", data)
		}
		if e.Check() != nil {
			return
		}
		var b wire.Builder
		b.BeginMessage(nil, e.QName(), e.QType(), MaxSize)
		e.AppendTo(&b, now, &Options{DO: true})
		var m wire.Message
		q := wire.Query{}
		if err := m.Parse(b.Finish(&q, 0, e.RCODE(), 0, nil)); err != nil {
			t.Fatalf("%x passes Check and writes %x", data, b.Buf)
		}
	})
}

// contentOf makes content of what a message says.
func contentOf(m *wire.Message, kind Kind, lifetime uint32) (*Content, bool) {
	qname, _, err := wire.ReadName(m.Bytes, wire.HeaderSize)
	if err != nil || m.QNameBytes() == nil {
		return nil, false
	}
	c := &Content{Kind: kind % kinds, QName: qname, QType: m.QType, RCODE: m.RCODE(), AA: m.Has(wire.FlagAA), Lifetime: lifetime % 700000}
	for s, section := range [...]*[]wire.RRset{&c.Answer, &c.Authority, &c.Additional} {
		if *section, err = m.RRsets(wire.Section(s)); err != nil {
			return nil, false
		}
	}
	return c, true
}

// FuzzPack gives any message. What of it can be packed comes out again as it went in.
func FuzzPack(f *testing.F) {
	goldenContents(f, func(c *Content, now uint32) {
		e := mustPack(f, c, now)
		message, _ := respond(f, e, c.QName, now, &Options{DO: true}, MaxSize, Entry.AppendTo)
		f.Add(message, byte(c.Kind), c.Lifetime)
	})
	f.Fuzz(func(t *testing.T, data []byte, kind byte, lifetime uint32) {
		var m wire.Message
		if m.Parse(data) != nil {
			return
		}
		c, ok := contentOf(&m, Kind(kind), lifetime)
		if !ok {
			return
		}
		packed, err := Pack(nil, c, testNow)
		if err != nil {
			return
		}
		e := Entry(packed)
		if err := e.Check(); err != nil {
			t.Fatalf("%x of %x", packed, data)
		}
		got, err := e.Unpack(testNow)
		if err != nil {
			t.Fatal(err)
		}
		if c.EDE, got.EDE = nil, nil; sameContent(got, c, 0) != nil {
			t.Fatal(sameContent(got, c, 0))
		}
		checkResponse(t, e, c, Options{DO: true})
		checkResponse(t, e, c, Options{Rotate: uint16(lifetime)})
	})
}

// checkResponse holds what an entry writes against the model.
func checkResponse(t *testing.T, e Entry, c *Content, o Options) {
	message, truncated := respond(t, e, c.QName, testNow, &o, MaxSize, Entry.AppendTo)
	if truncated {
		t.Fatal("truncated")
	}
	got, _ := readRecords(t, message)
	var want [][]byte
	for _, w := range model(c, 0, &o) {
		want = append(want, w.records...)
	}
	if !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
		t.Fatalf("got  %x\nwant %x", got, want)
	}
}

// TestDamaged changes and cuts good entries everywhere. What passes Check is an entry all the same.
func TestDamaged(t *testing.T) {
	good, bad := 0, 0
	try := func(e Entry, qname []byte) {
		use(e, qname, testNow, &Options{DO: len(e)&1 == 0, Rotate: 1}, 700)
		if e.Check() != nil {
			bad++
			return
		}
		good++
		c, err := e.Unpack(testNow)
		if err != nil {
			t.Fatalf("%x passes Check: %v", []byte(e), err)
		}
		mustPack(t, c, testNow)
	}
	goldenContents(t, func(c *Content, now uint32) {
		e := mustPack(t, c, now)
		qname := []byte(c.QName.Canonical())
		for at := range e {
			try(e[:at:at], qname)
			for _, flip := range []byte{0x01, 0x08, 0x20, 0x80, 0xC0, 0xFF} {
				changed := Entry(bytes.Clone(e))
				changed[at] ^= flip
				try(changed, qname)
			}
		}
		try(append(bytes.Clone(e), 0), qname)
	})
	if good == 0 || bad == 0 {
		t.Errorf("%d passed and %d did not", good, bad)
	}
}

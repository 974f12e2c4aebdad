package entry

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bonsai/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestGolden holds the layout byte by byte: each file is a content, a line of dashes and the dump of
// its entry. A change of the layout shows there.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no golden files")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, want, found := strings.Cut(string(text), "--\n")
			c, now := parseContent(t, head)
			e := mustPack(t, c, now)
			got := dump(e) + sizes(c, e)
			if *rewrite {
				if err := os.WriteFile(file, []byte(head+"--\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !found || got != want {
				t.Errorf("the layout changed; -rewrite renews the file\ngot:\n%swant:\n%s", got, want)
			}
		})
	}
}

// frozenFile says what the golden files' entries were when they were frozen: a line for each, with the
// version of the layout, the file and the SHA-256 of the entry.
const frozenFile = "testdata/frozen"

// TestFrozen: the bytes of an entry change with LayoutVersion and not without. -rewrite adds lines for
// new files and a new version, and never changes one.
func TestFrozen(t *testing.T) {
	text, err := os.ReadFile(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	frozen := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		at := strings.LastIndexByte(line, ' ')
		frozen[line[:at]] = line[at+1:]
	}
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(content), "--\n")
		c, now := parseContent(t, head)
		key := fmt.Sprintf("%d %s", LayoutVersion, filepath.Base(file))
		got := fmt.Sprintf("%x", sha256.Sum256(mustPack(t, c, now)))
		switch want, ok := frozen[key]; {
		case !ok && *rewrite:
			text = fmt.Appendf(text, "%s %s\n", key, got)
		case !ok:
			t.Errorf("%s is not frozen; -rewrite adds it", key)
		case got != want:
			t.Errorf("the layout of %s is not that of version %d: raise LayoutVersion, then renew with -rewrite", file, LayoutVersion)
		}
	}
	if *rewrite {
		if err := os.WriteFile(frozenFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// parseContent reads the head of a golden file: lines of a key and values, then of a section and its
// records.
func parseContent(t testing.TB, text string) (*Content, uint32) {
	c, now := &Content{}, uint32(testNow)
	var section *[]wire.RRset
	for _, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "", "#":
		case "kind":
			for k := range kinds {
				if k.String() == value {
					c.Kind = k
				}
			}
			c.RCODE = defaultRCODE(c.Kind)
		case "question":
			name, typ, _ := strings.Cut(value, " ")
			c.QName = wire.MustName(name)
			c.QType, _ = wire.ParseType(typ)
		case "status":
			c.Status = parseStatus(value)
		case "rcode":
			c.RCODE = wire.RCODE(number(t, value))
		case "realm":
			c.Realm = uint16(number(t, value))
		case "lifetime":
			c.Lifetime = uint32(number(t, value))
		case "aa":
			c.AA = true
		case "used":
			c.Used = true
		case "ede":
			code, text, _ := strings.Cut(value, " ")
			c.EDE = append(c.EDE, wire.EDE{Code: wire.EDECode(number(t, code)), Text: text})
		case "answer":
			section = &c.Answer
		case "authority":
			section = &c.Authority
		case "additional":
			section = &c.Additional
		case "!status": // of the RRset before
			(*section)[len(*section)-1].Status = parseStatus(value)
		default:
			*section = append(*section, rrsets(t, c.Status, line)...)
			joinLast(section)
		}
	}
	return c, now
}

// joinLast puts the last record of a section to the RRset before it where it belongs there.
func joinLast(section *[]wire.RRset) {
	n := len(*section)
	if n < 2 {
		return
	}
	set, last := &(*section)[n-2], &(*section)[n-1]
	switch {
	case last.Type == wire.TypeRRSIG && set.Is(last.Owner, wire.CoveredType(last.RDATA[0])):
		set.Sigs = append(set.Sigs, last.RDATA...)
	case set.Is(last.Owner, last.Type):
		set.RDATA = append(set.RDATA, last.RDATA...)
	default:
		return
	}
	*section = (*section)[:n-1]
}

func parseStatus(word string) (s wire.Status) {
	for s = wire.Unchecked; s < wire.Indeterminate && s.String() != word; s++ {
	}
	return s
}

func number(t testing.TB, text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sizes sums up what the entry costs beyond the least that any layout has to hold.
func sizes(c *Content, e Entry) string {
	floor := len(c.QName) + 2 + 4
	for _, list := range sections(c) {
		for i := range list {
			for _, r := range list[i].RDATA {
				floor += len(r)
			}
			for _, r := range list[i].Sigs {
				floor += len(r)
			}
		}
	}
	return fmt.Sprintf("%d bytes; QNAME, type, expiry and RDATA are %d: %+d\n", len(e), floor, len(e)-floor)
}

// A dumper walks an entry and says what each byte is.
type dumper struct {
	cursor
	out  strings.Builder
	from int
}

// field ends a field at the cursor.
func (d *dumper) field(format string, args ...any) {
	for first := true; d.from < d.p; first = false {
		n := min(16, d.p-d.from)
		line := fmt.Sprintf("%04x  %-34x", d.from, d.e[d.from:d.from+n])
		if first {
			line += fmt.Sprintf(format, args...)
		}
		d.out.WriteString(strings.TrimRight(line, " ") + "\n")
		d.from += n
	}
}

// dump returns the annotated bytes of an entry.
func dump(e Entry) string {
	d := dumper{cursor: cursor{e: e}}
	d.field("expires %d", d.uint32())
	d.byte()
	d.field("kind %v, QTYPE code %d: %v", e.Kind(), e[kindAt]&codeMask, codeTypes[e[kindAt]&codeMask])
	flags := d.byte()
	d.field("flags: %s", flagWords(flags))
	d.take(wire.NameLen(e[qnameAt:]))
	d.field("QNAME %v", wire.Name(e.QName()))
	h := (&cursor{e: e, p: d.p}).header()
	if e[kindAt]&codeMask == codeOther {
		d.uint16()
		d.field("QTYPE %v", h.qtype)
	}
	d.field("lifetime %d s", d.span())
	if flags&flagExtended != 0 {
		d.extension()
	}
	var key sigKey
	for first := true; first && h.hasPlain() || d.p < len(e); first = false {
		d.set(&h, first, &key)
	}
	return d.out.String()
}

func flagWords(flags byte) string {
	words := []string{"status " + strconv.Itoa(int(flags&statusMask>>statusShift))}
	if flags&flagAA != 0 {
		words = append(words, "AA")
	}
	if n := flags & countMask; n != 0 {
		words = append(words, fmt.Sprintf("plain RRset of %d", n))
		if flags&flagSigned != 0 {
			words = append(words, "signed")
		}
	} else if flags&flagAlias != 0 {
		words = append(words, "alias")
	}
	if flags&flagExtended != 0 {
		words = append(words, "extended")
	}
	return strings.Join(words, ", ")
}

func (d *dumper) extension() {
	ext := d.byte()
	d.field("extension %06b", ext)
	if ext&extRealm != 0 {
		d.field("realm %d", d.uint16())
	}
	if ext&extRCODE != 0 {
		d.field("RCODE %v", wire.RCODE(d.byte()))
	}
	if ext&extEDE != 0 {
		n := d.byte()
		d.field("extended errors: %d", n)
		for range n {
			code := d.uint16()
			text := d.take(int(d.byte()))
			d.field("EDE %d %q", code, text)
		}
	}
}

func (d *dumper) set(h *header, first bool, key *sigKey) {
	at := d.p
	s := d.cursor.set(h, first)
	if d.p > at {
		owner := [...]string{"QNAME", "suffix of QNAME", "target", "as before", "literal", "hash", "HASH"}[s.owner]
		d.field("RRset in %v: %d %v, %s, TTL %d, %v", s.section, s.count, s.typ, owner, s.ttl, s.status)
	}
	for range s.count {
		d.skipRecord(codeForms[s.code])
		d.field("%v", s.typ)
	}
	for more := s.signed; more; {
		sig := d.signature(key, Entry(d.e).QName(), s.ttl)
		more = sig.more
		d.field("RRSIG of %v: labels %d, original TTL %d, to %d, from %d, key %d/%d, %v", s.typ, sig.labels, sig.originalTTL,
			key.expiration, key.inception, key.algorithm, key.tag, wire.Name(key.signer))
	}
}

package replay

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	scenarios = flag.String("scenarios", "", "folder of scenarios to read, too")
	_         = flag.String("topics", "", "read by the tests of package resolver")
)

const deckardText = `; a comment
    stub-addr: 193.0.14.129 	# a root server
    val-override-date: "20181130121750"
    trust-anchor: ". 3600 IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D"
    query-minimization: off
    features: min_ttl = 5; max_ttl = 10
CONFIG_END
SCENARIO_BEGIN a title ; and a comment
RANGE_BEGIN 0 100
    ADDRESS 193.0.14.129
    ADDRESS 2001:db8::1
ENTRY_BEGIN
MATCH opcode subdomain
ADJUST copy_id copy_query sleep=1.5
REPLY QR NXDOMAIN
SECTION QUESTION
com. IN A
SECTION AUTHORITY
$ORIGIN com.
$TTL 60
a IN NS a.gtld-servers.net.
broken. IN A \# 3 010203
nothing. IN A
z. NSEC a. TXT A
s. IN SOA m. r. 1 2 3 4 5 6
SECTION ADDITIONAL
a.gtld-servers.net.	IN 	A	192.5.6.30
ENTRY_END
RANGE_END
STEP 1 QUERY ADDRESS 10.1.2.3
ENTRY_BEGIN
REPLY RD DO
SECTION QUESTION
www.com. TYPE65
ENTRY_END
STEP 10 CHECK_ANSWER within=2.5
ENTRY_BEGIN
MATCH all ede=22
REPLY QR RD RA BADVERS
HEX_ANSWER_BEGIN
; 0 1
 0001 02 # and more
 03
HEX_ANSWER_END
ENTRY_END
STEP 20 TIME_PASSES ELAPSE 12.5
SCENARIO_END
`

func parse(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse(strings.NewReader(text), "dir/test.rpl")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseDeckard(t *testing.T) {
	s := parse(t, deckardText)
	if s.Dialect != Deckard || s.Title != "a title" || len(s.Ranges) != 1 || len(s.Steps) != 3 {
		t.Fatalf("%+v", s)
	}
	r := s.Ranges[0]
	if r.First != 0 || r.Last != 100 || len(r.Addrs) != 2 || len(r.Entries) != 1 {
		t.Fatalf("%+v", r)
	}
	e := r.Entries[0]
	if e.Delay != 1500*time.Millisecond || !e.Adjust["copy_query"] || !e.Match["subdomain"] || e.RCODE != 3 {
		t.Errorf("%+v", e)
	}
	var owners []string
	for _, rr := range e.Message.Ns {
		owners = append(owners, rr.Header().Name)
	}
	if got := strings.Join(owners, " "); got != "a.com. broken. nothing. z. s." || e.Message.Ns[0].Header().Ttl != 60 {
		t.Errorf("authority section %s, %v", got, e.Message.Ns[0])
	}
	if b, err := pack(e.template()); err != nil {
		t.Errorf("pack: %v, %x", err, b)
	}
	q := s.Steps[0]
	if q.Addr.String() != "10.1.2.3" || q.Entry.Message.Question[0].Qtype != 65 || !q.Entry.DO {
		t.Errorf("%+v", q)
	}
	c := s.Steps[1]
	if c.Within != 2500*time.Millisecond || string(c.Entry.Raw) != "\x00\x01\x02\x03" || c.Entry.RCODE != 16 || c.Entry.EDE[0] != "22" {
		t.Errorf("%+v %+v", c, c.Entry)
	}
	if s.Steps[2].Elapse != 12500*time.Millisecond {
		t.Errorf("%+v", s.Steps[2])
	}
}

func TestSettingsDeckard(t *testing.T) {
	set, err := parse(t, deckardText).Settings()
	if err != nil {
		t.Fatal(err)
	}
	if set.Clock != 1543580270 || set.ValidationTime != 0 {
		t.Errorf("clock %d, validation time %d: a clock that moves is the validator's, too", set.Clock, set.ValidationTime)
	}
	if set.QNAMEMinimisation != "off" || set.CacheMinTTL != 5 || set.CacheMaxTTL != 10 || !set.QueryLocalhost == false {
		t.Errorf("%+v", set)
	}
	want := ". 3600000 IN NS root-server.test.\nroot-server.test. 3600000 IN A 193.0.14.129\n"
	if set.RootHints != want {
		t.Errorf("hints %q", set.RootHints)
	}
	if !strings.HasPrefix(set.TrustAnchors, ". 3600 IN DS 20326") || strings.Contains(set.TrustAnchors, `"`) {
		t.Errorf("anchors %q", set.TrustAnchors)
	}
	if got := strings.Join(set.Needs(), ","); got != "ttl-limits" {
		t.Errorf("needs %q", got)
	}
}

func TestSettingsTestbound(t *testing.T) {
	s := parse(t, `; comment
server:
	trust-anchor: "example.com. DS 55566 8 2 9c148338951ce1c3b5cd3da532f3d90dfcf92595148022f2c2fd98e5deee90af"
	val-override-date: "20070916134226"
	qname-minimisation: "no" access-control: 127.0.0.1 allow_snoop
	private-address: 10.0.0.0/8 # comment
	local-zone: "10.in-addr.arpa" nodefault
	serve-expired: no
stub-zone:
	name: "."
	stub-addr: 193.0.14.129
stub-zone:
	name: "example."
	stub-addr: 1.2.3.4
	stub-first: yes
forward-zone:
	name: "."
	forward-addr: 1.1.1.1@53
CONFIG_END
SCENARIO_BEGIN x
SCENARIO_END
`)
	if s.Dialect != Testbound {
		t.Fatal("not recognised by its clauses")
	}
	set, err := s.Settings()
	if err != nil {
		t.Fatal(err)
	}
	if set.ValidationTime != 1189950146 || set.Clock != 0 || set.IPv6 || set.QNAMEMinimisation != "off" {
		t.Errorf("%+v", set)
	}
	if len(set.HintAddrs) != 1 || len(set.Stubs) != 1 || !set.Stubs[0].First || len(set.Forwards) != 1 || len(set.AllowSnoop) != 1 {
		t.Errorf("%+v", set)
	}
	if got := strings.Join(set.Needs(), ","); got != "forward-zone,private-address,stub-zone" {
		t.Errorf("needs %q", got)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	const head = "stub-addr: 1.2.3.4\nCONFIG_END\nSCENARIO_BEGIN x\n"
	const inEntry = head + "RANGE_BEGIN 0 1\nENTRY_BEGIN\n"
	for _, c := range []struct{ name, text, want string }{
		{"directive", head + "FROBNICATE\n", `test.rpl:4: unknown directive "FROBNICATE"`},
		{"step", head + "STEP 1 JUMP\n", `test.rpl:4: unknown type of STEP "JUMP"`},
		{"step argument", head + "STEP 1 TRAFFIC now\n", `test.rpl:4: unknown argument "now" of STEP TRAFFIC`},
		{"step entry", head + "\nSTEP 1 QUERY\nSCENARIO_END\n", `test.rpl:5: STEP QUERY without an entry`},
		{"range", head + "RANGE_BEGIN 0 1\nPORT 53\n", `test.rpl:5: unknown directive "PORT 53" in a RANGE`},
		{"range end", head + "RANGE_BEGIN 0 1\n", `test.rpl:4: RANGE_BEGIN without RANGE_END`},
		{"match", inEntry + "MATCH qname colour\n", `test.rpl:6: unknown word "colour" in MATCH`},
		{"adjust", inEntry + "ADJUST copy\n", `test.rpl:6: unknown word "copy" in ADJUST`},
		{"reply", inEntry + "REPLY QR FINE\n", `test.rpl:6: unknown word "FINE" in REPLY`},
		{"section", inEntry + "SECTION PREREQUISITE\n", `test.rpl:6: unknown "SECTION PREREQUISITE"`},
		{"record", inEntry + "SECTION ANSWER\na. IN A 1.2.3\n", `test.rpl:7: record "a. IN A 1.2.3"`},
		{"entry", inEntry + "a. IN A 1.2.3.4\n", `test.rpl:6: unknown directive "a. IN A 1.2.3.4" in an ENTRY`},
		{"hex", inEntry + "RAW\n0g\n", `test.rpl:7: RAW:`},
		{"option", "stub-addr: 1.2.3.4\ncolour: red\nCONFIG_END\nSCENARIO_BEGIN x\n", `test.rpl:2: colour: unknown option`},
		{"value", "do-ip6: maybe\nCONFIG_END\nSCENARIO_BEGIN x\n", `test.rpl:1: do-ip6: "maybe" is neither yes nor no`},
		{"header", "stub-addr: 1.2.3.4\n", `no CONFIG_END`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse(strings.NewReader(c.text), "dir/test.rpl")
			if err == nil {
				_, err = s.Settings()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestReadAll reads every scenario there is: the project's, and those of a folder given by flag.
func TestReadAll(t *testing.T) {
	for _, dir := range []string{"../../testdata/scenarios", *scenarios} {
		if dir == "" {
			continue
		}
		if !filepath.IsAbs(dir) && dir == *scenarios {
			dir = filepath.Join("../..", dir)
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".rpl" {
				return err
			}
			s, err := Load(path)
			if err == nil {
				_, err = s.Settings()
			}
			if err != nil {
				t.Error(err)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
}

// FuzzParse: a scenario is a test's input, yet a broken one is told, never a panic.
func FuzzParse(f *testing.F) {
	f.Add(deckardText)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse(strings.NewReader(text), "fuzz.rpl"); err == nil {
			s.Settings()
		}
	})
}

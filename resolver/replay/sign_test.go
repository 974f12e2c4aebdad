package replay

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// signedText is a scenario with one entry whose answer section is to be filled in.
func signedText(lines string) string {
	return "anchor: example. key=top\nCONFIG_END\nSCENARIO_BEGIN x\nRANGE_BEGIN 0 1\nENTRY_BEGIN\nMATCH all\nREPLY QR\n" +
		"SECTION QUESTION\nwww.example. IN A\nSECTION ANSWER\n" + lines + "\nENTRY_END\nRANGE_END\nSCENARIO_END\n"
}

func signedRecords(t *testing.T, lines string) []dns.RR {
	t.Helper()
	return parse(t, signedText(lines)).Ranges[0].Entries[0].Message.Answer
}

// TestSign: what is signed verifies by the key of its zone, and what is spoilt does not.
func TestSign(t *testing.T) {
	key := signedRecords(t, "$DNSKEY example. key=top")[0].(*dns.DNSKEY)
	for _, row := range []struct {
		name, lines string
		verifies    bool
	}{
		{"one record", "www.example. A 192.0.2.1\n$SIGN example. key=top", true},
		{"an RRset, and another before it", "a.example. A 192.0.2.9\nwww.example. A 192.0.2.1\nwww.example. A 192.0.2.2\n$SIGN example. key=top", true},
		{"a wildcard", "www.example. A 192.0.2.1\n$SIGN example. key=top labels=1", true},
		{"two signatures", "www.example. A 192.0.2.1\n$SIGN example.\n$SIGN example. key=top", true},
		{"other TTL", "www.example. 60 A 192.0.2.1\n$SIGN example. key=top ttl=300", true},
		{"other key", "www.example. A 192.0.2.1\n$SIGN example.", false},
		{"broken", "www.example. A 192.0.2.1\n$SIGN example. key=top broken", false},
		{"other signer", "www.example. A 192.0.2.1\n$SIGN example. key=top signer=www.example.", false},
		{"other algorithm", "www.example. A 192.0.2.1\n$SIGN example. key=top alg=13", false},
		{"other type", "www.example. A 192.0.2.1\n$SIGN example. key=top type=TXT", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			records := signedRecords(t, row.lines)
			sig := records[len(records)-1].(*dns.RRSIG)
			set := lastSet(records)
			if sig.Labels == 1 && !strings.HasPrefix(row.name, "a wildcard") {
				t.Errorf("%d labels", sig.Labels)
			}
			if err := sig.Verify(key, set); (err == nil) != row.verifies {
				t.Errorf("%v: %v", sig, err)
			}
			if now := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC); !sig.ValidityPeriod(now) {
				t.Errorf("not valid at %v: %v", now, sig)
			}
		})
	}
}

// TestSignedRecords: DS records are of keys, NSEC3 records match and cover, and reading again gives the same.
func TestSignedRecords(t *testing.T) {
	const lines = "$DNSKEY example. key=top\n$DS example. key=top\n$DS example. digest=4 key=top\n$DS example. key=top broken\n" +
		"$NSEC3 example. a.example. b.example. salt=beef iterations=3 A RRSIG\n$NSEC3 example. -a.example. + flags=1"
	records := signedRecords(t, lines)
	key := records[0].(*dns.DNSKEY)
	for i, digest := range []uint8{dns.SHA256, dns.SHA384} {
		if want := key.ToDS(digest); want.Digest != records[1+i].(*dns.DS).Digest {
			t.Errorf("%v, want %v", records[1+i], want)
		}
	}
	if records[3].(*dns.DS).Digest == records[1].(*dns.DS).Digest {
		t.Error("a broken digest is right")
	}
	if n := records[4].(*dns.NSEC3); !n.Match("a.example.") || len(n.TypeBitMap) != 2 {
		t.Errorf("%v does not match a.example.", n)
	}
	if n := records[5].(*dns.NSEC3); n.Match("a.example.") || !n.Cover("a.example.") || n.Cover("b.example.") || n.Flags != 1 {
		t.Errorf("%v does not cover a.example. alone", n)
	}
	s := parse(t, signedText(lines))
	if plain := parse(t, s.Plain()); strings.Contains(s.Plain(), "$DS") || !strings.Contains(plain.Ranges[0].Entries[0].template().String(), records[5].String()) {
		t.Errorf("in plain text:\n%s", s.Plain())
	}
	set, err := s.Settings()
	if err != nil || !strings.Contains(set.TrustAnchors, strings.ToUpper(records[1].(*dns.DS).Digest)) && !strings.Contains(set.TrustAnchors, records[1].(*dns.DS).Digest) {
		t.Errorf("anchor %q, %v", set.TrustAnchors, err)
	}
}

func TestSignErrors(t *testing.T) {
	for line, want := range map[string]string{
		"$SIGN example.":                          "no record above it",
		"$SIGN":                                   "takes 1 names",
		"$DS example. kez=top":                    `unknown option "kez=top"`,
		"$DS example. tag=x":                      "tag=x is not a number",
		"$NSEC3 example. a.example.":              "takes 3 names",
		"$NSEC3 example. a.example. + NOTYPE":     `unknown type "NOTYPE"`,
		"$FOO example.":                           "unknown directive",
		"a.example. A 192.0.2.1\n$SIGN . from=no": "not a date",
	} {
		_, err := Parse(strings.NewReader(signedText(line)), "x.rpl")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.rpl:1") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

var plainFlag = flag.String("plain", "", "folder to write the project's scenarios to as other programs can read them")

// TestPlain: in plain text every scenario of the project still parses, and to the same.
func TestPlain(t *testing.T) {
	const own = "../../testdata/scenarios"
	err := filepath.WalkDir(own, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".rpl" {
			return err
		}
		s, err := Load(path)
		if err != nil {
			return err
		}
		again := parse(t, s.Plain())
		if again.Plain() != s.Plain() || len(again.Steps) != len(s.Steps) || len(again.Ranges) != len(s.Ranges) {
			t.Errorf("%s is another scenario in plain text", path)
		}
		if *plainFlag == "" {
			return nil
		}
		name, err := filepath.Rel(own, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(*plainFlag, strings.ReplaceAll(name, string(filepath.Separator), "_")), []byte(s.Plain()), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

package resolver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/resolver/lab"
	"bonsai/resolver/validate"
	"bonsai/wire"
)

// TestFollowAnchors: the root's key is seen and stays trusted; the state is written and read again,
// and a state that can't be read is an error, not a beginning anew.
func TestFollowAnchors(t *testing.T) {
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	r := newLabResolver(t, world)
	file := filepath.Join(t.TempDir(), "root.anchors")
	r.config.Anchors = KeepAnchors{Follow: true, File: file}
	keeper, err := newKeeper(&r.config, int64(r.now()))
	if err != nil {
		t.Fatal(err)
	}
	before := r.validator.KeyTags(wire.Root)
	r.keeper = &sharedKeeper{Keeper: keeper}
	if wait := r.checkAnchors(); wait.Hours() < 1 {
		t.Errorf("asked again in %v, RFC 5011 has an hour at least", wait)
	}
	r.saveAnchors()
	if after := r.validator.KeyTags(wire.Root); len(after) != 1 || after[0] != before[0] {
		t.Errorf("key tags %v, before %v", after, before)
	}
	again, err := newKeeper(&r.config, int64(r.now()))
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Anchors()) == 0 {
		t.Error("no anchor in the saved state")
	}
	if err := os.WriteFile(file, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newKeeper(&r.config, int64(r.now())); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v does not name the file", err)
	}
}

// TestSentinel: what RFC 8509 §3.2 says of a key that is trusted, and of one that is not.
func TestSentinel(t *testing.T) {
	anchor := append([]byte{0x4f, 0x66, 8, 2}, make([]byte, 32)...) // key tag 20326
	r := newTestResolver(t, func(c *Config) {
		c.Validate = &validate.Config{Anchors: []validate.Anchor{{Zone: wire.Root, Type: wire.TypeDS, RDATA: anchor}}}
	})
	w := r.NewWorker()
	for name, fails := range map[string]bool{
		"root-key-sentinel-is-ta-20326.example.": false, "root-key-sentinel-not-ta-20326.example.": true,
		"root-key-sentinel-is-ta-38696.example.": true, "root-key-sentinel-not-ta-38696.example.": false,
		"a-label-of-twenty-nine-octets.example.": false,
	} {
		r.put(t, answerA(name, 300, wire.Secure), testNow)
		m := msg(name, 1)
		got, _ := hit(t, w, m, client4)
		if (got.Rcode == 2) != fails {
			t.Errorf("%s: %v", name, got)
		}
		m.CheckingDisabled = true
		if got, _ = hit(t, w, m, client4); got.Rcode != 0 {
			t.Errorf("%s with CD: %v", name, got)
		}
	}
}

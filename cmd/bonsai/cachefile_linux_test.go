package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// A disk that is full when bonsai stops: the old file is whole, nothing is left beside it, and one line
// says so.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("a small file system takes root: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	file := filepath.Join(dir, "cache")
	edit := func(c *Config) { c.CacheFile = file }
	runOnce(t, edit, func(d *daemon) { askWarm(t, d) })
	before, err := os.ReadFile(file)
	if err != nil || len(before) == 0 {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), make([]byte, 116<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	log := runOnce(t, edit, func(d *daemon) {
		for i := range 40 {
			query(t, d.addr(), "udp", "n"+string(rune('a'+i%26))+string(rune('a'+i/26))+".signed-bench.", dns.TypeA, nil)
		}
	})
	if strings.Count(log, "no space left") != 1 || !strings.Contains(log, "cache not saved") {
		t.Errorf("log: %s", log)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file has changed: %v", err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	runOnce(t, edit, func(d *daemon) {
		if _, missed := askWarm(t, d); missed != 0 {
			t.Errorf("%d misses from the old file", missed)
		}
	})
}

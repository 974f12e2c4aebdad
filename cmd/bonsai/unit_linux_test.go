package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// systemd has nothing against the units, as they are but for where the binary lies, and finds the service
// well shut off.
func TestUnits(t *testing.T) {
	need(t, "systemd-analyze")
	binary, err := release()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"bonsai.service", "bonsai.socket"} {
		content, err := os.ReadFile(filepath.Join("dist", name))
		if err != nil {
			t.Fatal(err)
		}
		unit := strings.ReplaceAll(string(content), "/usr/bin/bonsai", binary)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(unit), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("systemd-analyze", "verify", "--man=no", filepath.Join(dir, name)).CombinedOutput()
		if err != nil || strings.Contains(string(out), dir) || strings.Contains(string(out), name) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", filepath.Join(dir, "bonsai.service")).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for bonsai.service: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		t.Skipf("no judgement: %v: %s", err, out)
	}
	const most = 2.0 // of 10
	if exposure, _ := strconv.ParseFloat(string(m[1]), 64); exposure > most {
		t.Errorf("exposure %s, more than %v:\n%s", m[1], most, out)
	}
	t.Logf("exposure %s", m[1])
}

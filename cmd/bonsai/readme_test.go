package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The README has a row for every key, and no other.
func TestReadmeHasEveryKey(t *testing.T) {
	named := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(readme(t), -1) {
		for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			named[key[1]] = true
			if findSetting(key[1]) == nil {
				t.Errorf("README has a row for %q, which is no key", key[1])
			}
		}
	}
	for _, s := range settings {
		if !named[s.key] {
			t.Errorf("README has no row for %q", s.key)
		}
	}
}

// Its configuration is one.
func TestReadmeConfiguration(t *testing.T) {
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readme(t))
	if m == nil {
		t.Fatal("no example")
	}
	c, err := configure(nil, write(t, "bonsai.yaml", m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if c.CacheSize != 512<<20 || len(c.Zones) != 1 || len(c.LocalData) != 1 {
		t.Errorf("got %+v", c)
	}
}

// Its queries name metrics that there are.
func TestReadmeQueries(t *testing.T) {
	d := start(t, nil)
	_, page := get(t, d, metricsPath)
	names := regexp.MustCompile(`\b(bonsai|process|go)_[a-z_]+[a-z]`).FindAllString(readme(t), -1)
	if len(names) < 5 {
		t.Errorf("only %v", names)
	}
	for _, name := range names {
		if !strings.Contains(page, "\n"+name) && !strings.Contains(page, "# TYPE "+name+"\n") {
			t.Errorf("README names %s, which is no metric", name)
		}
	}
	for _, flag := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(readme(t), -1) {
		var out bytes.Buffer
		(&command{name: ""}).usage(&out)
		(&command{name: "lab"}).usage(&out)
		(&command{name: "ctl"}).usage(&out)
		if !strings.Contains(out.String(), "--"+flag[1]) {
			t.Errorf("README names --%s, which is no flag", flag[1])
		}
	}
}

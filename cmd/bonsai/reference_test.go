package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write bonsai.example.yaml anew")

const exampleFile = "../../bonsai.example.yaml"

// The reference has every setting once, and no other.
func TestReferenceIsWhole(t *testing.T) {
	seen := map[string]int{}
	for _, group := range reference {
		for _, n := range group.notes {
			seen[n.key]++
			if findSetting(n.key) == nil {
				t.Errorf("%s is no setting", n.key)
			}
			if n.why == "" || n.value == "" && n.example == "" {
				t.Errorf("%s lacks its reason, or default and example", n.key)
			}
		}
	}
	for _, s := range settings {
		if seen[s.key] != 1 {
			t.Errorf("%s is in the reference %d times: add a note to reference.go", s.key, seen[s.key])
		}
	}
}

// The example is what the table says, and changes nothing.
func TestExampleEqualsDefaults(t *testing.T) {
	var made bytes.Buffer
	writeExample(&made)
	if *rewrite {
		if err := os.WriteFile(exampleFile, made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if made.String() != string(kept) {
		t.Errorf("bonsai.example.yaml is not what the table says: go test ./cmd/bonsai -run Example -rewrite")
	}
	c, err := configure(nil, exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	got, expected := reflect.ValueOf(*c), reflect.ValueOf(*want)
	for i := range got.NumField() {
		g, w := got.Field(i), expected.Field(i)
		if got.Type().Field(i).Name == "Files" {
			continue // the example itself
		}
		if k := g.Kind(); (k == reflect.Slice || k == reflect.Map) && g.Len() == 0 && w.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(g.Interface(), w.Interface()) {
			t.Errorf("%s: %v is not the default, %v", got.Type().Field(i).Name, g, w)
		}
	}
}

// What stands in comments is right, too, but for the key that is always refused.
func TestExampleComments(t *testing.T) {
	dir := t.TempDir()
	_, certificate := selfSigned(t)
	for name, content := range map[string]string{
		"named.root": someHints, "root.key": ". DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n",
		"ads.txt": "ads.example\n", "good.txt": "good.example\n", "clock": "1700000000", "corp.pem": certificate,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range reference {
		for _, n := range group.notes {
			if n.example == "" {
				continue
			}
			example := strings.NewReplacer("/etc/hosts", "clock", "/run/bonsai", dir).Replace(n.example)
			file := filepath.Join(dir, "bonsai.yaml")
			if err := os.WriteFile(file, []byte(n.key+": "+example+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := configure(nil, file)
			if value := findSetting(n.key).value; err == nil && len(c.Files) < 2 && (value == "FILE" || value == "PATH" || value == "LISTS") {
				t.Errorf("%s: its file is none of %v: one who is locked in would not reach it; use Config.reads, open or writes", n.key, c.Files)
			}
			if refused := n.key == "dns64-prefix"; (err != nil) != refused {
				t.Errorf("%s: %v", n.key, err)
			}
		}
	}
}

// Every key is in the manual page, which man and its like take without a warning.
func TestManual(t *testing.T) {
	var page bytes.Buffer
	writeManual(&page)
	for _, s := range settings {
		if !strings.Contains(page.String(), roff(s.key)) {
			t.Errorf("no %s", s.key)
		}
	}
	if m := regexp.MustCompile(`(?m)^\.(?:TP|SH|SS|B|TH)?$`).FindString(page.String()); m == "" {
		t.Error("no macro")
	}
	tool, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not here")
	}
	cmd := exec.Command(tool, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = &page
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// law is the order of packages: of "a < b", b and all above b may import a and all below a. What it
// does not allow is forbidden.
const law = `
	NONE < wire, cache/offheap, cmd/bonsai/confine;
	wire < cache/entry < cache;
	wire < resolver/serve, resolver/exchange, resolver/validate;
	cache/entry, cache/offheap < resolver/policy;
	cache < resolver/zonecut;
	cache, resolver/exchange, resolver/zonecut < resolver/iterate;
	cache, cache/offheap < resolver/denial;
	resolver/serve, resolver/iterate, resolver/policy, resolver/validate, resolver/denial < resolver;
	resolver/exchange < resolver/replay, resolver/lab;
	resolver, resolver/lab, cmd/bonsai/confine < cmd/bonsai;
	resolver, resolver/replay, resolver/lab < bench < bench/report;
`

// confined are the outside libraries, each with where it may be imported: packages, or single files.
var confined = map[string][]string{
	"github.com/cespare/xxhash/v2": {"cache/key.go", "bench"},
	"github.com/prometheus/":       {"cmd/bonsai/metrics.go"},
	"github.com/dchest/siphash":    {"resolver/cookie.go"},
	"github.com/spf13/pflag":       {"cmd/bonsai/flags.go"},
	"go.yaml.in/yaml/v3":           {"cmd/bonsai/yaml.go"},
	"github.com/miekg/dns": {"bench", "bench/report", "resolver/validate", "resolver/zonecut/hints.go", "resolver/policy/localdata.go", "cmd/bonsai/records.go",
		"resolver/replay", "resolver/lab"},
	"github.com/cloudflare/circl/": {"resolver/validate"},
	"golang.org/x/sys/":            {"cache", "cache/offheap", "resolver/serve", "resolver/exchange", "cmd/bonsai", "cmd/bonsai/confine"},
	"golang.org/x/net/":            {"resolver/serve"},
	"gonum.org/v1/plot":            {"bench/report"},
}

// timeless are packages whose every output is a function of their inputs.
var timeless = map[string][]string{
	"wire":          {"net", "time"},
	"cache/entry":   {"net", "time"},
	"cache":         {"net", "time"},
	"cache/offheap": {"net", "time"},
}

const module = "bonsai/"

// order is what each package may import.
type order map[string]map[string]bool

func parseLaw(text string) (order, error) {
	o := order{}
	for _, rule := range strings.Split(text, ";") {
		rule = strings.TrimSpace(rule)
		if rule == "" {
			continue
		}
		groups := strings.Split(rule, "<")
		if len(groups) < 2 {
			return nil, fmt.Errorf("%q is no rule", rule)
		}
		for i := 1; i < len(groups); i++ {
			for _, above := range names(groups[i]) {
				if o[above] == nil {
					o[above] = map[string]bool{}
				}
				for _, below := range names(groups[i-1]) {
					if below != "NONE" && o[below] == nil {
						return nil, fmt.Errorf("%q stands above %q before that has its place", above, below)
					}
					o[above][below] = true
					for b := range o[below] {
						o[above][b] = true
					}
				}
			}
		}
	}
	return o, nil
}

func names(group string) []string {
	list := strings.Split(group, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (list []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// broken returns what of the imports the law forbids.
func (o order) broken(p *listed) (list []string) {
	name := strings.TrimPrefix(p.ImportPath, module)
	may, known := o[name]
	if !known {
		return []string{name + " has no place in the law"}
	}
	for _, i := range p.Imports {
		below, ours := strings.CutPrefix(i, module)
		if ours && !may[below] {
			list = append(list, name+" imports "+below)
		}
		if slices.Contains(timeless[name], i) {
			list = append(list, name+" imports "+i)
		}
	}
	return list
}

func TestImportsPointDown(t *testing.T) {
	o, err := parseLaw(law)
	if err != nil {
		t.Fatal(err)
	}
	list := packages(t)
	if len(list) < 10 {
		t.Errorf("go list knows only %d packages", len(list))
	}
	for _, p := range list {
		for _, b := range o.broken(&p) {
			t.Error(b)
		}
	}
}

// The test itself sees what it is there for.
func TestTheLawForbids(t *testing.T) {
	o, err := parseLaw(law)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		pkg, imports string
		wrong        int
	}{
		{"wire", "fmt", 0},
		{"wire", "bonsai/cache", 1},
		{"wire", "time", 1},
		{"cache", "bonsai/wire", 0},
		{"cache", "net", 1},
		{"cache/entry", "bonsai/cache", 1},
		{"resolver/serve", "bonsai/cache", 1},
		{"resolver/iterate", "bonsai/wire", 0},
		{"resolver/iterate", "bonsai/resolver/validate", 1},
		{"resolver", "bonsai/cache/entry", 0},
		{"resolver", "bonsai/resolver/replay", 1},
		{"cmd/bonsai", "bonsai/resolver/zonecut", 0},
		{"cmd/bonsai", "bonsai/resolver/replay", 1},
		{"resolver/util", "fmt", 1},
	}
	for _, c := range cases {
		got := o.broken(&listed{ImportPath: module + c.pkg, Imports: []string{c.imports}})
		if len(got) != c.wrong {
			t.Errorf("%s imports %s: %v", c.pkg, c.imports, got)
		}
	}
	for _, bad := range []string{"a, b", "a < b"} {
		if _, err := parseLaw(bad); err == nil {
			t.Errorf("%q is taken for a law", bad)
		}
	}
}

// Files for other systems count, too, which go list does not show here.
func TestLibrariesAreConfined(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return fs.SkipDir
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if problem := confinement(filepath.ToSlash(name), path); problem != "" {
				t.Error(problem)
			}
			seen++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d imports seen", seen)
	}
}

// confinement says what is wrong with an import of an outside library, "" if nothing.
func confinement(file, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return "" // of the standard library, or ours
	}
	for library, places := range confined {
		if imported != library && !(strings.HasSuffix(library, "/") && strings.HasPrefix(imported, library)) &&
			!strings.HasPrefix(imported, library+"/") {
			continue
		}
		for _, place := range places {
			if file == place || filepath.ToSlash(filepath.Dir(file)) == place {
				return ""
			}
		}
		return fmt.Sprintf("%s imports %s, which is for %s", file, imported, alternatives(places))
	}
	return fmt.Sprintf("%s imports %s, which has no place in the law", file, imported)
}

func TestConfinement(t *testing.T) {
	for _, c := range []struct {
		file, imported string
		ok             bool
	}{
		{"cache/key.go", "github.com/cespare/xxhash/v2", true},
		{"cache/cache.go", "github.com/cespare/xxhash/v2", false},
		{"wire/name.go", "strings", true},
		{"resolver/lab/lab.go", "github.com/miekg/dns", true},
		{"resolver/lab/lab.go", "github.com/miekg/dnsv2", false},
		{"resolver/iterate/iterate.go", "github.com/miekg/dns", false},
		{"cmd/bonsai/daemon.go", "github.com/prometheus/client_golang/prometheus", false},
		{"cmd/bonsai/metrics.go", "github.com/prometheus/client_golang/prometheus", true},
		{"bench/report/plots.go", "gonum.org/v1/plot/plotter", true},
		{"wire/name.go", "example.com/new", false},
	} {
		if got := confinement(c.file, c.imported); (got == "") != c.ok {
			t.Errorf("%s imports %s: %q", c.file, c.imported, got)
		}
	}
}

package confine

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
)

func TestFoldersCover(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"etc/lists", "etc-more", "state", "far"} {
		if err := os.MkdirAll(in(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"etc/bonsai.yaml", "etc/lists/ads", "etc-more/ads", "far/ads"} {
		if err := os.WriteFile(in(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"etc/out": "far/ads", "etc-link": "etc", "etc/near": "etc/lists/ads"} {
		if err := os.Symlink(in(to), in(link)); err != nil {
			t.Fatal(err)
		}
	}
	f := Folders(nil).Add(in("etc-link/bonsai.yaml"), false).Add(in("etc/bonsai.yaml"), false).Add(in("state/cache"), false).Add(in("state/cache"), true)
	if want := (Folders{{in("etc"), false}, {in("state"), true}}); !reflect.DeepEqual(f, want) {
		t.Errorf("%v, want %v", f, want)
	}
	if !slices.Equal(f.Paths(false), []string{in("etc")}) || !slices.Equal(f.Paths(true), []string{in("state")}) {
		t.Errorf("%q and %q", f.Paths(false), f.Paths(true))
	}
	for _, c := range []struct {
		file  string
		write bool
		want  bool
	}{
		{"etc/bonsai.yaml", false, true},
		{"etc/bonsai.yaml", true, false},
		{"etc/new", false, true},
		{"etc/lists/ads", false, true},
		{"etc-link/lists/ads", false, true},
		{"etc/near", false, true},
		{"etc/out", false, false},
		{"etc/../far/ads", false, false},
		{"etc-more/ads", false, false},
		{"far/ads", false, false},
		{"far/new", true, false},
		{"state/cache", true, true},
		{"state/cache", false, true},
		{"nowhere/at/all", false, true}, // opening it says more
	} {
		if got := f.Cover(in(c.file), c.write); got != c.want {
			t.Errorf("%s, write %v: %v", c.file, c.write, got)
		}
	}
	if f = Folders(nil).Add(in("etc/out"), false); !f.Cover(in("far/ads"), false) || !f.Cover(in("etc/bonsai.yaml"), false) {
		t.Errorf("of a link, not both places: %v", f)
	}
	if f = (Folders{{"/", false}}); !f.Cover(in("far/ads"), false) {
		t.Error("the root does not cover all")
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A clock file that is replaced by rename counts at the next look, however soon that comes.
func TestClockFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	set := func(now int64) {
		if err := os.WriteFile(file+".new", fmt.Appendf(nil, "%d\n", now), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	set(1700000000)
	c, err := newClock(file)
	if err != nil {
		t.Fatal(err)
	}
	for now := int64(1700000000); now < 1700000300; now++ {
		set(now)
		if got := c.Now(); got != uint32(now) {
			t.Fatalf("got %d, want %d", got, now)
		}
	}
	for range 3 {
		if got := c.Now(); got != 1700000299 {
			t.Errorf("the clock moved to %d by itself", got)
		}
	}
}

func TestClockFileWrong(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "word": "now", "negative": "-1", "fraction": "1.5", "huge": "99999999999"} {
		t.Run(name, func(t *testing.T) {
			if _, err := newClock(write(t, "clock", content)); err == nil {
				t.Error("no error")
			}
		})
	}
	if _, err := newClock("/no/such/clock"); err == nil {
		t.Error("no error for a missing file")
	}
	file := write(t, "clock", "1700000000")
	c, err := newClock(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.Now(); got != 1700000000 {
		t.Errorf("a broken file moved the clock to %d", got)
	}
}

func TestSystemClock(t *testing.T) {
	c, err := newClock("")
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Now().Unix() - c.Unix(); d < -1 || d > 1 {
		t.Errorf("off by %d s", d)
	}
}

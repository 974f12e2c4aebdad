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

// What the cache goes by neither stands still while the machine is suspended nor follows a wall clock
// that is set.
func TestClockGoesOn(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		name             string
		mono, boot, wall time.Duration // gone by at the look
		portable         bool          // there is no boot clock
		want             time.Duration
	}{
		{name: "a minute", mono: time.Minute, boot: time.Minute, wall: time.Minute, want: time.Minute},
		{name: "suspended for an hour", mono: time.Minute, boot: 61 * time.Minute, wall: 61 * time.Minute, want: 61 * time.Minute},
		{name: "set back a day", mono: time.Minute, boot: time.Minute, wall: -24 * time.Hour, want: time.Minute},
		{name: "set from 1970 to now", mono: time.Minute, boot: time.Minute, wall: 56 * 365 * 24 * time.Hour, want: time.Minute},
		{name: "suspended, and set back on waking", mono: time.Minute, boot: 61 * time.Minute, wall: -time.Hour, want: 61 * time.Minute},
		{name: "suspended, no boot clock", mono: time.Minute, wall: 61 * time.Minute, portable: true, want: 61 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			booted, looks := 5*time.Hour, 0
			c := new(clock)
			c.start(begin, func() (time.Duration, bool) { looks++; return booted, !test.portable })
			booted += test.boot
			wall := begin.Add(test.wall).UnixNano()
			want := uint32(begin.Add(test.want).Unix())
			looks = 0
			for range 3 {
				if got := c.at(test.mono, wall); got != want {
					t.Errorf("got %+d s, want %v", int64(got)-begin.Unix(), test.want)
				}
			}
			if looks > 1 {
				t.Errorf("asked for the boot clock %d times", looks)
			}
			// And it goes on from there.
			booted += time.Minute
			if got := c.at(test.mono+time.Minute, wall+int64(time.Minute)); got != want+60 {
				t.Errorf("a minute later it is %+d s", int64(got)-int64(want))
			}
		})
	}
}

// The boot clock is one that goes.
func TestSinceBoot(t *testing.T) {
	a, ok := sinceBoot()
	if !ok {
		t.Skip("not known on this system")
	}
	if b, _ := sinceBoot(); a <= 0 || b < a {
		t.Errorf("%v, then %v", a, b)
	}
}

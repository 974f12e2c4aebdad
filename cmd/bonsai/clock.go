package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// clock is the daemon's time in Unix seconds. Now is what TTLs and expiry go by: it begins with the wall
// clock and then goes as time goes, through suspend, whatever becomes of the wall clock. Unix is the wall
// clock, for signatures. What times out or is measured goes by Go's monotonic clock instead.
type clock struct {
	file string // "" for the system's clocks

	begin  time.Time
	boot   func() (time.Duration, bool) // since the system booted, suspended or not; false: unknown
	booted time.Duration                // boot at begin
	anchor atomic.Int64                 // Now at begin, in nanoseconds, and all that was slept since
	ahead  atomic.Int64                 // of Now, the wall clock: nanoseconds

	mu   sync.Mutex
	info os.FileInfo // of the file as it was read
	now  int64
}

// newClock returns the system's clock or, with a file name, the one of that file.
func newClock(file string) (*clock, error) {
	c := &clock{file: file}
	if file == "" {
		c.start(time.Now(), sinceBoot)
		return c, nil
	}
	now, err := readClock(file)
	c.now = now
	return c, err
}

func (c *clock) start(begin time.Time, boot func() (time.Duration, bool)) {
	c.begin, c.boot = begin, boot
	c.anchor.Store(begin.UnixNano())
	c.booted, _ = boot()
}

// Now returns the current second.
func (c *clock) Now() uint32 {
	if c.file != "" {
		return uint32(c.fromFile())
	}
	t := time.Now()
	return c.at(t.Sub(c.begin), t.UnixNano())
}

// jump is by how much the wall clock may move against the monotonic one without it being asked why.
const jump = int64(time.Second)

// at returns the second at which the monotonic clock has gone on by so much, and the wall clock shows
// so many nanoseconds. It asks for the boot clock, which takes a system call, only where the two have
// moved against each other: the system slept, or the wall clock was set.
func (c *clock) at(mono time.Duration, wall int64) uint32 {
	now := c.anchor.Load() + int64(mono)
	if moved := wall - now - c.ahead.Load(); moved > jump || moved < -jump {
		now = c.look(mono, wall)
	}
	return uint32(now / int64(time.Second))
}

func (c *clock) look(mono time.Duration, wall int64) (now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin := c.begin.UnixNano()
	if boot, ok := c.boot(); ok {
		now = max(begin+int64(boot-c.booted), c.anchor.Load()+int64(mono))
	} else {
		now = wall // what it was cannot be told: it may have slept
	}
	c.anchor.Store(now - int64(mono))
	c.ahead.Store(wall - now)
	return now
}

// Unix returns the second that the wall clock shows, without the wrap in 2106.
func (c *clock) Unix() int64 {
	if c.file == "" {
		return time.Now().Unix()
	}
	return c.fromFile()
}

// fromFile looks at the file at every call, so that a change counts for the query that comes next,
// and reads it when it is another or was written to. A file that can't be read leaves the time as
// it was: it may be about to be replaced.
func (c *clock) fromFile() int64 {
	info, err := os.Stat(c.file)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.info != nil && os.SameFile(info, c.info) &&
		info.ModTime().Equal(c.info.ModTime()) && info.Size() == c.info.Size() {
		return c.now
	}
	if now, err := readClock(c.file); err == nil {
		c.info, c.now = info, now
	}
	return c.now
}

// readClock reads a file that holds Unix seconds in decimal.
func readClock(name string) (int64, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	now, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a Unix time; write seconds in decimal, such as 1700000000", name, content)
	}
	return int64(now), nil
}

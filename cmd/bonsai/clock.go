package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// clock is the daemon's wall clock in Unix seconds: of TTLs, of expiry and of signatures. What times
// out or is measured goes by Go's monotonic clock instead.
type clock struct {
	file string // "" for the system's clock

	mu   sync.Mutex
	info os.FileInfo // of the file as it was read
	now  int64
}

// newClock returns the system's clock or, with a file name, the one of that file.
func newClock(file string) (*clock, error) {
	c := &clock{file: file}
	if file == "" {
		return c, nil
	}
	now, err := readClock(file)
	c.now = now
	return c, err
}

// Now returns the current second.
func (c *clock) Now() uint32 { return uint32(c.Unix()) }

// Unix is Now without the wrap in 2106.
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

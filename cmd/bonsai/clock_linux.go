package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns how long ago the system booted; that includes what it was suspended.
func sinceBoot() (time.Duration, bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

//go:build !linux

package main

import "time"

// sinceBoot is not known here: there is no portable clock that goes on through suspend and is never set.
func sinceBoot() (time.Duration, bool) { return 0, false }

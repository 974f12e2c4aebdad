//go:build race

package main

// raceEnabled: the detector moves values to the heap that are on the stack without it.
const raceEnabled = true

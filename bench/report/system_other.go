//go:build !linux

package main

import (
	"errors"
	"runtime"
	"time"
)

var began = time.Now()

// threadCPU is the time passed: this system is not asked for CPU time.
func threadCPU() int64 { return int64(time.Since(began)) }

// processCPU is the time passed.
func processCPU() int64 { return threadCPU() }

// resident returns what the Go runtime has from the system and did not give back. Memory that a
// layout maps itself is not in it.
func resident() int64 {
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return int64(st.Sys - st.HeapReleased)
}

// footprint is the memory of a process, in bytes.
type footprint struct{ resident, peak int64 }

var errMemory = errors.New("memory of other processes is not known on this system")

func (s *server) memory() (footprint, error) { return footprint{}, errMemory }

func (s *server) settledMemory(time.Duration) (footprint, error) { return footprint{}, errMemory }

func (s *server) clearPeak() error { return errMemory }

func machine() string { return "CPU not asked for" }

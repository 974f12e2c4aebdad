package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Clocks of clock_gettime(2).
const (
	clockProcess = 2
	clockThread  = 3
)

func cpuClock(id uintptr) int64 {
	var ts syscall.Timespec
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		panic(e)
	}
	return ts.Nano()
}

// threadCPU returns how many nanoseconds of CPU the calling thread has had.
func threadCPU() int64 { return cpuClock(clockThread) }

// processCPU returns how many nanoseconds of CPU all threads have had, the collector's included.
func processCPU() int64 { return cpuClock(clockProcess) }

// resident returns the bytes of memory of this process that are resident.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "Rss: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	panic("no Rss in smaps_rollup")
}

// footprint is the memory of a process, in bytes.
type footprint struct {
	resident int64
	peak     int64 // the most that was resident since the start, or since clearPeak
}

func (s *server) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", s.cmd.Process.Pid, file) }

func (s *server) memory() (m footprint, err error) {
	text, err := os.ReadFile(s.proc("status"))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			m.resident = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			m.peak = kib << 10
		}
	}
	return m, nil
}

// settledMemory waits for what is free to be given back.
func (s *server) settledMemory(after time.Duration) (footprint, error) {
	time.Sleep(after)
	return s.memory()
}

// clearPeak makes the peak begin with what is resident now: see clear_refs in proc(5).
func (s *server) clearPeak() error { return os.WriteFile(s.proc("clear_refs"), []byte("5"), 0) }

// machine names CPU and system.
func machine() string {
	cpu := "unknown CPU"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			cpu = strings.Trim(name, " \t\n:")
			break
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("%s, load when written %s", cpu, strings.TrimSpace(string(load)))
}

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
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

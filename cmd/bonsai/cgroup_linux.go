package main

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupCPUs returns the CPUs that the process's cgroup and those above it grant, rounded up, the
// least of them. Go's own limit is at least 2, which is one thread too many in a cgroup of one CPU.
// root is where the file system begins.
func cgroupCPUs(root string) (n int, ok bool) { return cgroupLimit(root, "cpu", cpuMax, cfsQuota) }

// cgroupMemory returns the memory that they grant, in bytes.
func cgroupMemory(root string) (n int64, ok bool) {
	return cgroupLimit(root, "memory", memoryFile("memory.max"), memoryFile("memory.limit_in_bytes"))
}

// cgroupLimit returns the least limit that a controller has for the process's cgroup and those
// above it. v2 and v1 read the limit of one folder.
func cgroupLimit[T int | int64](root, controller string, v2, v1 func(dir string) (T, bool)) (n T, ok bool) {
	content, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(content)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, found := strings.Cut(rest, ":")
		if !found {
			continue
		}
		read := v2
		base := filepath.Join(root, "sys/fs/cgroup")
		if id != "0" || controllers != "" {
			if !strings.Contains(","+controllers+",", ","+controller+",") {
				continue
			}
			read, base = v1, filepath.Join(base, controller)
		}
		for ; ; group = path.Dir(group) {
			if limit, has := read(filepath.Join(base, group)); has && (!ok || limit < n) {
				n, ok = limit, true
			}
			if group == "/" || group == "." || group == "" {
				break
			}
		}
	}
	return n, ok
}

// memoryFile reads a number of bytes; "max" and the huge number of cgroup v1 stand for none.
func memoryFile(name string) func(dir string) (int64, bool) {
	const none = 1 << 60
	return func(dir string) (int64, bool) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		return n, err == nil && n > 0 && n < none
	}
}

// cpuMax reads cgroup v2's "QUOTA PERIOD", or "max PERIOD" for none.
func cpuMax(dir string) (n int, ok bool) {
	content, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return 0, false
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(content)), " ")
	return ceilRatio(quota, period)
}

// cfsQuota reads cgroup v1's two files; a quota of -1 is none.
func cfsQuota(dir string) (n int, ok bool) {
	quota, err1 := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	period, err2 := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return ceilRatio(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

func ceilRatio(quota, period string) (n int, ok bool) {
	q, err1 := strconv.ParseInt(quota, 10, 64)
	p, err2 := strconv.ParseInt(period, 10, 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0, false
	}
	return int((q + p - 1) / p), true
}

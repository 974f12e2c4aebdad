package main

import "runtime"

// usableCPUs returns how many CPUs the process may use: those it is bound to, or fewer where a
// cgroup grants less time than theirs or GOMAXPROCS says so.
func usableCPUs() int {
	n := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	if limit, ok := cgroupCPUs("/"); ok {
		n = min(n, limit)
	}
	return max(1, n)
}

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// fileTree makes files below a new folder.
func fileTree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCgroupMemory(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64 // 0: no limit
	}{
		{"no cgroup", nil, 0},
		{"v2 without limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"v2 limit above", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "536870912\n",
			"sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, 512 << 20},
		{"v1", map[string]string{"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n"}, 1 << 20},
		{"v1 without limit", map[string]string{"proc/self/cgroup": "4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := cgroupMemory(fileTree(t, c.files)); got != c.want && ok || ok != (c.want > 0) {
				t.Errorf("got %d, %t, want %d", got, ok, c.want)
			}
		})
	}
}

func TestCgroupCPUs(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  int // 0: no limit
	}{
		{"no cgroup", nil, 0},
		{"v2 without limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 0},
		{"v2 one CPU", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "100000 100000\n"}, 1},
		{"v2 rounded up", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 2},
		{"v2 limit above", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n",
			"sys/fs/cgroup/a/b/cpu.max": "400000 100000\n"}, 1},
		{"v2 in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3},
		{"v1", map[string]string{"proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n"}, 2},
		{"v1 without limit", map[string]string{"proc/self/cgroup": "3:cpu,cpuacct:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0},
		{"broken", map[string]string{"proc/self/cgroup": "0::/a\nnonsense\n", "sys/fs/cgroup/a/cpu.max": "x y\n"}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := fileTree(t, c.files)
			got, ok := cgroupCPUs(root)
			if got != c.want || ok != (c.want > 0) {
				t.Errorf("got %d, %t, want %d", got, ok, c.want)
			}
		})
	}
	if n := usableCPUs(); n < 1 {
		t.Errorf("%d usable CPUs", n)
	}
}

package main

import (
	"os"
	"path/filepath"
	"testing"
)

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
			root := t.TempDir()
			for name, content := range c.files {
				file := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
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

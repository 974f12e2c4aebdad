package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// openDir is a folder that other users may look into.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bonsai")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// site is the files of a bonsai: configuration and lists in etc, what it writes in state, and a list in
// far, which it has not been told of.
type site struct{ dir, config, metrics string }

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: openDir(t), metrics: freeAddress(t)}
	for _, name := range []string{"etc", "state", "far"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.config = filepath.Join(s.dir, "etc/bonsai.yaml")
	s.write(t, "etc/named.root", ". NS a.root.\na.root. A 127.0.0.1\n")
	s.write(t, "etc/ads", "ads.example\n")
	s.write(t, "etc/more", "more.example\n")
	s.write(t, "far/ads", "far.example\n")
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// configure writes the configuration: what all sites have, and more.
func (s *site) configure(t *testing.T, more string) {
	t.Helper()
	s.write(t, "etc/bonsai.yaml", "listen: 127.0.0.1:0\nroot-hints: named.root\ncontrol: ../state/control\ncache-file: ../state/cache\n"+
		"trust-anchor-state: ../state/anchors\nmetrics: "+s.metrics+"\n"+more)
}

// line finds the line of a log that has this message.
func (p *process) line(t *testing.T, message string) string {
	t.Helper()
	for _, line := range p.early {
		if strings.Contains(line, "msg="+strconv.Quote(message)) {
			return line
		}
	}
	t.Fatalf("no %q in the log", message)
	return ""
}

// threads returns the values of a key of /proc/PID/task/*/status, each once.
func (p *process) threads(t *testing.T, key string) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, threads: %v", err, files)
	}
	seen := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the thread ended
		}
		_, rest, _ := strings.Cut(string(content), "\n"+key+":")
		value, _, _ := strings.Cut(rest, "\n")
		seen[strings.Join(strings.Fields(value), " ")] = true
	}
	if len(seen) != 1 {
		t.Fatalf("threads differ in %s: %v", key, seen)
	}
	for value := range seen {
		return value
	}
	return ""
}

// stop ends the process as a supervisor does, and waits for it.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range p.lines { // to the end, so that nothing is cut off
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Locked in it does all its work: answers, reads lists anew, saves the cache; and names what it can't
// reach, as bonsai check does.
func TestLockedIn(t *testing.T) {
	s := newSite(t)
	s.configure(t, "block-lists:\n  - etc-link\n  - ads\n")
	if err := os.Symlink("more", s.path("etc/etc-link")); err != nil {
		t.Fatal(err)
	}
	p, at := launchRelease(t, "--config", s.config)
	line := p.line(t, "locked in")
	if strings.Contains(line, "the kernel has no") || strings.Contains(line, "is not on in the kernel") {
		t.Skip(line)
	}
	for _, part := range []string{`landlock="on, version `, "seccomp=on", "reads=\"/proc " + s.path("etc"), "writes=" + s.path("state")} {
		if !strings.Contains(line, part) {
			t.Errorf("no %s in %s", part, line)
		}
	}
	if seccomp, privileges := p.threads(t, "Seccomp"), p.threads(t, "NoNewPrivs"); seccomp != "2" || privileges != "1" {
		t.Errorf("Seccomp %s, NoNewPrivs %s", seccomp, privileges)
	}
	want := "0000000000000000"
	if os.Geteuid() == 0 {
		want = "0000000000000002" // root alone keeps the right to its files in folders of others
	}
	if got := p.threads(t, "CapEff"); got != want {
		t.Errorf("capabilities %s, want %s", got, want)
	}
	blocked := func(name string) bool {
		return query(t, at, "udp", name, dns.TypeA, nil).Rcode == dns.RcodeNameError
	}
	control := s.path("state/control")
	if !blocked("ads.example.") || !blocked("more.example.") {
		t.Error("the lists do nothing")
	}
	mustCtl(t, control, []string{s.path("etc"), s.path("state")}, "status")
	if _, page := fetch(t, "http://"+s.metrics+metricsPath); value(t, page, "process_resident_memory_bytes") <= 0 || value(t, page, "process_open_fds") <= 0 {
		t.Error("the process has no metrics")
	}
	mustCtl(t, control, []string{"saved to"}, "save")
	mustCtl(t, control, []string{"loaded from"}, "load")
	// A list that is new in a folder that is known, one that was replaced, and none any more.
	s.write(t, "etc/newer", "newer.example\n")
	s.write(t, "etc/replaced", "replaced.example\n")
	if err := os.Rename(s.path("etc/replaced"), s.path("etc/ads")); err != nil {
		t.Fatal(err)
	}
	s.configure(t, "block-lists:\n  - ads\n  - newer\n")
	mustCtl(t, control, []string{"block-lists"}, "reload")
	if !blocked("newer.example.") || !blocked("replaced.example.") {
		t.Error("a new list was not read")
	}
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err == nil { // the first zone that takes whom the system trusts
		s.configure(t, "block-lists:\n  - ads\n  - newer\nforward-zones:\n  - {name: far.example, tls: true, addrs: ['192.0.2.1#dns.example']}\n")
		mustCtl(t, control, []string{"forward-zones"}, "reload")
	}
	t.Run("out of reach", func(t *testing.T) { outOfReach(t, s, blocked) })
	p.stop(t)
	if info, err := os.Stat(s.path("state/cache")); err != nil || info.Size() == 0 {
		t.Errorf("the cache was not saved: %v", err)
	}
	if _, err := os.Stat(control); err == nil {
		t.Error("the control socket is left")
	}
}

// outOfReach names files elsewhere: check tells, a reload refuses, and what held goes on.
func outOfReach(t *testing.T, s *site, blocked func(string) bool) {
	control := s.path("state/control")
	for _, c := range []struct {
		more string // from line 7 on
		want []string
	}{
		{"block-lists:\n  - newer\n  - ../far/ads\n", []string{":9: block-lists: " + s.path("far/ads"), "can read, /proc " + s.path("etc")}},
		{"allow-lists:\n  - newer\n  - " + s.path("far/ads") + "\n", []string{":9: allow-lists: " + s.path("far/ads")}},
		{"hosts-files: ../far/ads\n", []string{":7: hosts-files: " + s.path("far/ads")}},
		{"trust-anchor: [../far/ads]\n", []string{":7: trust-anchor: " + s.path("far/ads")}},
		{"clock-file: ../far/ads\n", []string{":7: clock-file: " + s.path("far/ads")}},
	} {
		s.configure(t, c.more)
		c.want = append(c.want, s.config, "outside of the folders that the running bonsai can")
		_, err := ctl(t, control, "reload")
		for _, part := range append(c.want, "nothing was changed", "restart bonsai") {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("no %q in %v", part, err)
			}
		}
		if strings.Contains(c.more, "trust-anchor") || strings.Contains(c.more, "clock-file") {
			continue // the file is no such thing, which check says first
		}
		out, err := bonsai("check", "--config", s.config).CombinedOutput()
		for _, part := range append(c.want, "a reload refuses it, a restart takes it", s.config+": ok\n") {
			if err != nil || !strings.Contains(string(out), part) {
				t.Errorf("check: no %q in %s, %v", part, out, err)
			}
		}
	}
	// Nor may the cache go elsewhere: it could not be saved when it is too late to tell.
	s.configure(t, "")
	content, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "etc/bonsai.yaml", strings.Replace(string(content), "../state/cache", "../etc/cache", 1))
	if _, err := ctl(t, control, "reload"); err == nil || !strings.Contains(err.Error(), ":4: cache-file: "+s.path("etc/cache")) ||
		!strings.Contains(err.Error(), "can write in, "+s.path("state")) {
		t.Errorf("a cache file in a folder to read: %v", err)
	}
	if !blocked("newer.example.") || blocked("far.example.") {
		t.Error("refused reloads changed something")
	}
	s.configure(t, "block-lists:\n  - newer\n")
	out, err := bonsai("check", "--config", s.config).CombinedOutput()
	if err != nil || string(out) != s.config+": ok\n" {
		t.Errorf("check of what is within reach: %s, %v", out, err)
	}
}

func TestLockdownOff(t *testing.T) {
	s := newSite(t)
	s.configure(t, "lockdown: off\n")
	p, _ := launchRelease(t, "--config", s.config)
	if line := p.line(t, "not locked in"); !strings.Contains(line, `reason="lockdown: off"`) {
		t.Error(line)
	}
	if seccomp := p.threads(t, "Seccomp"); seccomp != "0" {
		t.Errorf("Seccomp %s", seccomp)
	}
	s.configure(t, "lockdown: off\nblock-lists:\n  - ../far/ads\n")
	mustCtl(t, s.path("state/control"), []string{"block-lists"}, "reload")
	p.stop(t)
}

// nobody has no rights at all.
const nobody = 65534

// As root on port 53 it becomes a user, who has no more than it needs.
func TestBecomesUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, tool := range []string{"unshare", "nsenter", "ip", "dig"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	if out, err := exec.Command("unshare", "-n", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("no namespace here: %v, %s", err, out)
	}
	binary, err := release()
	if err != nil {
		t.Skip(err)
	}
	s := newSite(t)
	s.configure(t, fmt.Sprintf("user: %d:%d\nblock-lists:\n  - ads\n", nobody, nobody))
	s.write(t, "state/cache", "foreign")
	for name, mode := range map[string]os.FileMode{"etc/ads": 0o600, "state/cache": 0o600} {
		if err := os.Chmod(s.path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	// Files that it could not reach later are named before it starts, each with its line.
	unreachable := []string{
		":4: cache-file: user 65534:65534 can't make files in " + s.path("state"),
		":5: trust-anchor-state: user 65534:65534 can't make files in " + s.path("state"),
		":9: block-lists: user 65534:65534 can't read " + s.path("etc/ads"),
	}
	for _, args := range [][]string{{"--config", s.config}, {"check", "--config", s.config}} {
		out, err := exec.Command(binary, args...).CombinedOutput()
		for _, part := range unreachable {
			if err == nil || !strings.Contains(string(out), "bonsai: "+s.config+part) {
				t.Errorf("%v: no %q in %s, %v", args, part, out, err)
			}
		}
	}
	if err := os.Chown(s.path("state"), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.path("etc/ads"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "check", "--config", s.config).CombinedOutput()
	if err == nil || !strings.Contains(string(out), ":4: cache-file: user 65534:65534 can't read "+s.path("state/cache")) {
		t.Errorf("a cache file of root's: %s, %v", out, err)
	}
	if err := os.Remove(s.path("state/cache")); err != nil {
		t.Fatal(err)
	}
	p, _ := launchCommand(t, exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, binary, "--config", s.config, "--listen", "127.0.0.1:53"))
	if line := p.line(t, "locked in"); !strings.Contains(line, "user=65534:65534 capabilities=none") {
		t.Error(line)
	}
	for key, want := range map[string]string{"Uid": "65534 65534 65534 65534", "Gid": "65534 65534 65534 65534", "Groups": "",
		"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000"} {
		if got := p.threads(t, key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	out, err = exec.Command("nsenter", "-t", strconv.Itoa(p.cmd.Process.Pid), "-n", "dig", "@127.0.0.1", "localhost", "+short").CombinedOutput()
	if err != nil || string(out) != "127.0.0.1\n" {
		t.Errorf("on port 53: %q, %v", out, err)
	}
	control := s.path("state/control")
	// nobody, too, may tell it something: it is who it runs as.
	as := exec.Command(binary, "ctl", "--control", control, "reload")
	as.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := as.CombinedOutput(); err != nil {
		t.Errorf("a reload by the user: %s, %v", out, err)
	}
	mustCtl(t, control, []string{"saved to"}, "save")
	p.stop(t)
	info, err := os.Stat(s.path("state/cache"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("the cache file is not the user's: %v", err)
	}
}

// Who is not root can't become another, and is told so; who is the user already goes on.
func TestUserWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes root to start as one who is not")
	}
	binary, err := release()
	if err != nil {
		t.Skip(err)
	}
	s := newSite(t)
	if err := os.Chown(s.path("state"), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	run := func(user string, args ...string) *exec.Cmd {
		s.configure(t, "user: "+user+"\n")
		cmd := exec.Command(binary, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	out, err := run("65532:65532", "--config", s.config).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "only root can become 65532:65532") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err = run("65532:65532", "check", "--config", s.config).CombinedOutput(); err != nil {
		t.Errorf("check by another than root: %s, %v", out, err)
	}
	out, err = run("no-such-user", "check", "--config", s.config).CombinedOutput()
	if err == nil || !strings.Contains(string(out), s.config+`:7: user: there is no user "no-such-user"`) {
		t.Errorf("%s, %v", out, err)
	}
	p, at := launchCommand(t, run(strconv.Itoa(nobody)+":"+strconv.Itoa(nobody), "--config", s.config))
	if got := query(t, at, "udp", "localhost.", dns.TypeA, nil); len(got.Answer) != 1 {
		t.Errorf("as the user already: %v", got)
	}
	// A reload does not look users up again: it may not read who there is.
	mustCtl(t, s.path("state/control"), nil, "reload")
	p.stop(t)
}

// What locking in takes of start and memory is told; that the idle process is small is held.
func TestIdleLockedIn(t *testing.T) {
	s := newSite(t)
	if _, err := release(); err != nil {
		t.Skip(err)
	}
	for _, lockdown := range []string{"off", "auto"} {
		s.configure(t, "lockdown: "+lockdown+"\n")
		begin := time.Now()
		p, at := launchRelease(t, "--config", s.config)
		query(t, at, "udp", "localhost.", dns.TypeA, nil)
		took := time.Since(begin)
		kib := resident(t, p)
		t.Logf("lockdown %s: first answer after %v, %d KiB resident", lockdown, took, kib)
		if kib > mostIdle {
			t.Errorf("%d KiB resident, more than %d", kib, mostIdle)
		}
		p.stop(t)
	}
}

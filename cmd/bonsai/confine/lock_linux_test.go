package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asLocked makes the test's binary lock itself in, in the folder that it names, and tell what then is.
const asLocked = "CONFINE_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asLocked); dir != "" {
		locked(dir)
		return
	}
	os.Exit(m.Run())
}

// attempt is something that a locked process tries, and the error it is to get.
type attempt struct {
	name string
	want error // nil: it works
	of   string
	try  func(dir string) error
}

// Parts that an attempt hangs on.
const ofLandlock, ofSeccomp = "Landlock", "seccomp"

var attempts = []attempt{
	{"read in the folder", nil, "", func(dir string) error { return second(os.ReadFile(filepath.Join(dir, "open/file"))) }},
	{"list the folder", nil, "", func(dir string) error { return second(os.ReadDir(filepath.Join(dir, "open"))) }},
	{"write where it may only read", unix.EACCES, ofLandlock, func(dir string) error { return os.WriteFile(filepath.Join(dir, "open/file"), nil, 0o600) }},
	{"make a file where it may", nil, "", func(dir string) error { return replace(filepath.Join(dir, "state/file")) }},
	{"make a folder", unix.EPERM, ofSeccomp, func(dir string) error { return os.Mkdir(filepath.Join(dir, "state/folder"), 0o700) }},
	{"read outside", unix.EACCES, ofLandlock, func(dir string) error { return second(os.ReadFile(filepath.Join(dir, "closed/file"))) }},
	{"read through a link", unix.EACCES, ofLandlock, func(dir string) error { return second(os.ReadFile(filepath.Join(dir, "open/link"))) }},
	{"remove outside", unix.EACCES, ofLandlock, func(dir string) error { return os.Remove(filepath.Join(dir, "closed/file")) }},
	{"read outside on other threads", unix.EACCES, ofLandlock, onManyThreads},
	{"execute a program", unix.EPERM, ofSeccomp, func(string) error {
		return second(syscall.ForkExec("/proc/self/exe", []string{"x"}, nil))
	}},
	{"become a program", unix.EPERM, ofSeccomp, func(string) error { return unix.Exec("/proc/self/exe", []string{"x"}, nil) }},
	{"trace", unix.EPERM, ofSeccomp, func(string) error { return unix.PtraceAttach(os.Getppid()) }},
	{"kill another", unix.EPERM, ofSeccomp, func(string) error { return unix.Kill(os.Getppid(), 0) }},
	{"signal itself", nil, "", func(string) error { return unix.Kill(os.Getpid(), 0) }},
	{"make memory executable", unix.EPERM, ofSeccomp, executable},
	{"a raw socket", unix.EPERM, ofSeccomp, func(string) error { return socket(unix.AF_PACKET) }},
	{"a Unix socket", unix.EPERM, ofSeccomp, func(string) error { return socket(unix.AF_UNIX) }},
	{"listen anew", unix.EPERM, ofSeccomp, func(string) error { return second(net.Listen("tcp4", "127.0.0.1:0")) }},
	{"a socket to ask from", nil, "", func(string) error { return second(net.ListenPacket("udp4", "127.0.0.1:0")) }},
	{"a namespace", unix.EPERM, ofSeccomp, func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	{"mount", unix.EPERM, ofSeccomp, func(dir string) error { return unix.Mount("none", dir, "tmpfs", 0, "") }},
	{"io_uring", unix.EPERM, ofSeccomp, func(string) error { return raw(unix.SYS_IO_URING_SETUP) }},
	{"bpf", unix.EPERM, ofSeccomp, func(string) error { return raw(unix.SYS_BPF) }},
	{"clone3", unix.ENOSYS, ofSeccomp, func(string) error { return raw(unix.SYS_CLONE3) }},
	{"a call that is yet to come", unix.ENOSYS, ofSeccomp, func(string) error { return raw(1 << 20) }},
	{"another filter", unix.EPERM, ofSeccomp, func(string) error { return raw(unix.SYS_SECCOMP) }},
}

func second[T any](_ T, err error) error { return err }

func raw(number uintptr) error {
	if _, _, errno := unix.Syscall(number, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func socket(family int) error { return second(unix.Socket(family, unix.SOCK_DGRAM, 0)) }

func executable(string) error {
	return second(unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON))
}

// replace does what is done to save a file.
func replace(name string) error {
	f, err := os.CreateTemp(filepath.Dir(name), "x.*")
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), name))
}

// onManyThreads tries on threads that were there before and on new ones; it returns the error that all
// got, or that they differ.
func onManyThreads(dir string) error {
	const threads = 20
	errs := make([]error, threads)
	var wait, together sync.WaitGroup
	together.Add(threads)
	for i := range threads {
		wait.Go(func() {
			runtime.LockOSThread() // and the thread ends with the goroutine
			together.Done()
			together.Wait()
			errs[i] = second(os.ReadFile(filepath.Join(dir, "closed/file")))
		})
	}
	wait.Wait()
	for _, err := range errs {
		if fmt.Sprint(err) != fmt.Sprint(errs[0]) {
			return fmt.Errorf("%v here, %v there", errs[0], err)
		}
	}
	return errs[0]
}

// locked is the child: a line for what holds, and one for each attempt.
func locked(dir string) {
	busy := make(chan struct{})
	for range 8 { // threads that are there already
		go func() {
			runtime.LockOSThread()
			<-busy
		}()
	}
	time.Sleep(20 * time.Millisecond)
	o := Lock(Folders(nil).Add(filepath.Join(dir, "open/file"), false).Add(filepath.Join(dir, "state/file"), true).Add("/proc/self", false))
	fmt.Printf("Landlock=%s\nseccomp=%s\ncapabilities=%s\n", o.Landlock, o.Seccomp, o.Capabilities)
	defer close(busy)
	for _, a := range attempts {
		err := a.try(dir)
		if a.want == nil && err == nil || a.want != nil && errors.Is(err, a.want) {
			err = nil
		} else if err == nil {
			err = errors.New("it works")
		}
		fmt.Printf("%s=%v\n", a.name, err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	fmt.Println("threads=", len(tasks), err)
	for _, task := range tasks {
		status, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		for line := range strings.Lines(string(status)) {
			if key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t"); key == "Seccomp" || key == "NoNewPrivs" || key == "CapEff" || key == "CapPrm" {
				fmt.Printf("thread %s=%s\n", key, value)
			}
		}
	}
}

// What Lock gives up is gone, on all threads, and what the daemon needs is not.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"open", "state", "closed"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../closed/file", filepath.Join(dir, "open/link")); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "probe")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // with cgo threads are out of reach
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no go to build with: %v: %s", err, out)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), asLocked+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		said[key] = append(said[key], value)
	}
	one := func(key string) string { return strings.Join(said[key], ", ") }
	t.Logf("Landlock %s; seccomp %s; capabilities %s; threads %s", one(ofLandlock), one(ofSeccomp), one("capabilities"), one("threads"))
	for _, a := range attempts {
		if a.of != "" && strings.HasPrefix(one(a.of), "off: the kernel") {
			t.Logf("%s: left out, %s is %s", a.name, a.of, one(a.of))
		} else if got := one(a.name); got != "<nil>" {
			t.Errorf("%s: %s, want %v", a.name, got, a.want)
		}
	}
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0000000000000000", "CapPrm": "0000000000000000"}
	if os.Geteuid() == 0 {
		want["CapEff"], want["CapPrm"] = "0000000000000002", "0000000000000002"
	}
	for key, value := range want {
		if len(said["thread "+key]) < 8 {
			t.Errorf("%s of %d threads", key, len(said["thread "+key]))
		}
		for _, got := range said["thread "+key] {
			if got != value && !strings.HasPrefix(one(ofSeccomp), "off: the kernel") {
				t.Errorf("a thread has %s %s, want %s", key, got, value)
			}
		}
	}
}

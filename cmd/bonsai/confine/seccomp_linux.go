//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a filter finds of a system call, by offset in bytes (seccomp(2)). Arguments are 64 bits wide with
// the lower half first, on the machines there are lists for.
const (
	numberAt   = 0
	archAt     = 4
	argumentAt = 16
	argumentBy = 8
)

// call is a system call that may be made: always, or as its argument says.
type call struct {
	number   uint32
	argument int
	when     condition
	values   []uint32
}

// condition is what the lower half of an argument is held against.
type condition uint8

const (
	always condition = iota
	isOneOf
	hasAll  // the bits of the one value
	hasNone // of them
)

// calls are what a server at work needs: those that every packet takes stand first.
func calls() []call {
	self := uint32(os.Getpid())
	list := []call{
		// Nothing is made executable.
		{unix.SYS_MMAP, 2, hasNone, []uint32{unix.PROT_EXEC}},
		{unix.SYS_MPROTECT, 2, hasNone, []uint32{unix.PROT_EXEC}},
		{unix.SYS_CLONE, 0, hasAll, []uint32{unix.CLONE_VM | unix.CLONE_THREAD}}, // threads, and no process
		{unix.SYS_SOCKET, 0, isOneOf, []uint32{unix.AF_INET, unix.AF_INET6}},
		{unix.SYS_PRCTL, 0, isOneOf, []uint32{unix.PR_SET_VMA}}, // names of memory
		{unix.SYS_TGKILL, 0, isOneOf, []uint32{self}},
		{unix.SYS_KILL, 0, isOneOf, []uint32{self}},
	}
	plain := make([]call, 0, len(network)+len(runtimeCalls)+len(files)+len(ofMachine)+len(list))
	for _, group := range [][]uint32{network, runtimeCalls, files, ofMachine} {
		for _, number := range group {
			plain = append(plain, call{number: number})
		}
	}
	return append(plain, list...)
}

// network is what sockets take. There is no listen among it: what clients reach is bound before.
var network = []uint32{
	unix.SYS_RECVMMSG, unix.SYS_SENDMMSG, unix.SYS_EPOLL_PWAIT, unix.SYS_RECVFROM, unix.SYS_SENDTO,
	unix.SYS_RECVMSG, unix.SYS_SENDMSG, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_ACCEPT4, unix.SYS_SHUTDOWN,
	unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_PIPE2, unix.SYS_PPOLL,
}

// runtimeCalls are those of Go's runtime, and of a C library's and the race detector's where they are.
var runtimeCalls = []uint32{
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_CLOCK_GETRES, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETRANDOM, unix.SYS_MUNMAP,
	unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_MEMBARRIER, unix.SYS_RT_SIGACTION,
	unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT,
	unix.SYS_EXIT_GROUP, unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ, unix.SYS_GETPID,
	unix.SYS_GETTID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRUSAGE, unix.SYS_PRLIMIT64,
}

// files is what reading and writing them takes; which, is Landlock's to say.
var files = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_CLOSE, unix.SYS_OPENAT, unix.SYS_FSTAT, statAt, unix.SYS_STATX, unix.SYS_LSEEK, unix.SYS_GETDENTS64,
	unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
	unix.SYS_UNLINKAT, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_SYNC_FILE_RANGE, unix.SYS_FADVISE64, unix.SYS_MSYNC, unix.SYS_FCHMOD, unix.SYS_FCNTL, unix.SYS_FLOCK,
	unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE, unix.SYS_GETCWD,
	unix.SYS_FSTATFS, unix.SYS_STATFS, unix.SYS_UMASK,
}

// newest is the last system call that was looked at. Those that came later, and clone3, whose flags a
// filter can't see, are said not to be there, so that who tries them goes on without; all else is refused.
const newest = unix.SYS_LANDLOCK_RESTRICT_SELF

// The instructions that are used of a filter's machine.
const (
	load       = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	ifEqual    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ifAbove    = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	and        = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	end        = unix.BPF_RET | unix.BPF_K
	allow      = unix.SECCOMP_RET_ALLOW
	refuse     = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	notThere   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	foreignABI = unix.SECCOMP_RET_KILL_PROCESS
)

// filter makes the program that judges each system call.
func filter(list []call) []unix.SockFilter {
	program := []unix.SockFilter{
		{Code: load, K: archAt},
		{Code: ifEqual, K: auditArch, Jt: 1},
		{Code: end, K: foreignABI},
		{Code: load, K: numberAt},
	}
	for i := range list {
		program = append(program, list[i].judge()...)
	}
	return append(program,
		unix.SockFilter{Code: ifEqual, K: unix.SYS_CLONE3, Jt: 1},
		unix.SockFilter{Code: ifAbove, K: newest + 1, Jf: 1},
		unix.SockFilter{Code: end, K: notThere},
		unix.SockFilter{Code: end, K: refuse})
}

// judge makes the part for one system call: what is not its own goes on behind it.
func (c *call) judge() []unix.SockFilter {
	var body []unix.SockFilter
	if c.when != always {
		body = append(body, unix.SockFilter{Code: load, K: uint32(argumentAt + argumentBy*c.argument)})
	}
	switch c.when {
	case isOneOf:
		for i, v := range c.values {
			body = append(body, unix.SockFilter{Code: ifEqual, K: v, Jt: uint8(len(c.values) - i)})
		}
		body = append(body, unix.SockFilter{Code: end, K: refuse})
	case hasAll:
		body = append(body, unix.SockFilter{Code: and, K: c.values[0]}, unix.SockFilter{Code: ifEqual, K: c.values[0], Jt: 1},
			unix.SockFilter{Code: end, K: refuse})
	case hasNone:
		body = append(body, unix.SockFilter{Code: and, K: c.values[0]}, unix.SockFilter{Code: ifEqual, K: 0, Jt: 1},
			unix.SockFilter{Code: end, K: refuse})
	}
	body = append(body, unix.SockFilter{Code: end, K: allow})
	return append([]unix.SockFilter{{Code: ifEqual, K: c.number, Jf: uint8(len(body))}}, body...)
}

// seccomp puts the filter on all threads.
func seccomp() error {
	// For the thread that asks; the others get it along with the filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	program := filter(calls())
	form := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// The log says what was refused; and there is no code of others here that would call for slower caches.
	const wanted = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_LOG | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	errno := unix.EINVAL
	for _, flags := range []uintptr{wanted, unix.SECCOMP_FILTER_FLAG_TSYNC} {
		if errno != unix.EINVAL {
			break
		}
		var thread uintptr
		thread, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&form)))
		if errno == 0 && thread != 0 {
			return fmt.Errorf("thread %d has a filter of its own", thread)
		}
	}
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS, unix.EINVAL:
		return errors.New("the kernel has no seccomp filters")
	}
	return fmt.Errorf("seccomp: %w", errno)
}

package confine

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lock gives up, for good and for all threads, capabilities, files outside the folders, and system calls
// that a server at work has no use for. What the kernel lacks or refuses is left out and told.
//
// The folders are to be there. It comes after the sockets are bound: none can be listened on later.
func Lock(folders Folders) Outcome {
	o := Outcome{Whole: true}
	tell := func(err error, on string) string {
		if err == nil {
			return on
		}
		o.Whole = false
		return "off: " + err.Error()
	}
	kept, err := dropCapabilities()
	o.Capabilities = tell(err, kept)
	abi, err := landlock(folders)
	o.Landlock, o.Locked = tell(err, fmt.Sprintf("on, version %d", abi)), err == nil
	o.Seccomp = tell(seccomp(), "on")
	return o
}

// errCgo says why threads can't be reached: a C library has its own, which the runtime does not know.
var errCgo = errors.New("built with cgo; build with CGO_ENABLED=0")

// onAllThreads makes a system call on every thread of the process. Memory that an argument points to
// stays where it is, as with syscall.Syscall.
//
//go:uintptrescapes
func onAllThreads(what string, number, a, b, c, d, e uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall6(number, a, b, c, d, e, 0)
	switch errno {
	case 0:
		return nil
	case unix.ENOTSUP:
		return errCgo
	}
	return fmt.Errorf("%s: %w", what, errno)
}

// giveUpPrivileges makes sure that no program that is executed, set-user-ID or not, has more rights than
// this process. Without root the kernel asks for it before it takes restrictions.
func giveUpPrivileges() error {
	return onAllThreads("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

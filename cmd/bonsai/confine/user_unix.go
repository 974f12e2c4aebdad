//go:build unix

package confine

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Become makes the process, all its threads, run as a user with that user's group and no other. It can't
// go back, which is tried.
func (u *User) Become() error {
	if os.Getuid() == u.UID && os.Geteuid() == u.UID && os.Getgid() == u.GID && os.Geteuid() != 0 {
		return nil // a supervisor has seen to it
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root can become %s; start bonsai as root, or remove the key user", u.Name)
	}
	// The groups first: who is not root any more may not change them.
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(u.GID), syscall.Setuid(u.UID)); err != nil {
		return fmt.Errorf("can't become %s: %w", u.Name, err)
	}
	if u.UID != 0 && syscall.Setuid(0) == nil {
		return fmt.Errorf("became %s, but could be root again", u.Name)
	}
	return nil
}

// Own gives a file to the user, where the process is root and can.
func (u *User) Own(file string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(file, u.UID, u.GID)
}

// CanRead says whether the process, as it is, may read a file; CanWriteIn whether it may make files in a
// folder. An error says why not.
func CanRead(file string) error { return syscall.Access(file, 4) }

// CanWriteIn is CanRead's twin for folders.
func CanWriteIn(folder string) error { return syscall.Access(folder, 2|1) }

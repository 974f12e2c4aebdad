//go:build !unix

package confine

import "errors"

var errNoUsers = errors.New("a process can't become another user on this system; remove the key user")

// Become says that there is no such thing here.
func (u *User) Become() error { return errNoUsers }

// Own does nothing.
func (u *User) Own(string) error { return nil }

// CanRead and CanWriteIn leave it to the opening of files.
func CanRead(string) error { return nil }

// CanWriteIn is CanRead's twin for folders.
func CanWriteIn(string) error { return nil }

//go:build unix

package main

import (
	"net"
	"syscall"
)

// listenPrivate binds a Unix socket with mode 0600 from its first moment on. It is called before
// anything else makes files.
func listenPrivate(path string) (net.Listener, error) {
	const ownerOnly = 0o177
	old := syscall.Umask(ownerOnly)
	defer syscall.Umask(old)
	return net.Listen("unix", path)
}

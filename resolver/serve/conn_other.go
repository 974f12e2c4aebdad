//go:build !unix

package serve

import "syscall"

// setRaw leaves the connection to readWaiting.
func (c *conn) setRaw(syscall.Conn) {}

// readReady and try are never called where setRaw sets nothing.
func (c *conn) readReady() cause { return c.readWaiting() }

func (c *conn) try([]byte) int { return 0 }

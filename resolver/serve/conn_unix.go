//go:build unix

package serve

import (
	"errors"
	"os"
	"syscall"
)

// setRaw lets the connection's socket be tried without waiting, so that buffers are held only while
// there is something in them, and a response is sent by one call.
func (c *conn) setRaw(sc syscall.Conn) {
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	c.raw, c.onReadable, c.onWritable = raw, c.readable, c.writable
}

// readReady reads when the socket is readable.
func (c *conn) readReady() cause {
	for {
		if why, ok := c.arm(); !ok {
			return why
		}
		err := c.raw.Read(c.onReadable)
		switch {
		case c.done:
			return c.why
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.armed = 0
		case err != nil:
			return causeClient
		}
	}
}

// readable reads until the socket is empty, and then returns false to wait until it no longer is.
func (c *conn) readable(fd uintptr) (done bool) {
	for {
		c.grab()
		n, err := syscall.Read(int(fd), c.buf[c.have:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			if c.have == 0 {
				c.ungrab()
			}
			why, ok := c.arm()
			c.done, c.why = !ok, why
			return !ok
		case err != nil || n <= 0:
			c.done, c.why = true, causeClient
			return true
		}
		if why, ok := c.took(n); !ok {
			c.done, c.why = true, why
			return true
		}
		if c.s.draining.Load() {
			c.done, c.why = true, causeDrain
			return true
		}
	}
}

// try writes what the socket has room for. c.mu is held.
func (c *conn) try(frames []byte) int {
	c.trying, c.tried = frames, 0
	// An error shows again when the rest is written.
	_ = c.raw.Write(c.onWritable)
	c.trying = nil
	return c.tried
}

// writable makes one attempt.
func (c *conn) writable(fd uintptr) (done bool) {
	if n, err := syscall.Write(int(fd), c.trying); err == nil {
		c.tried = n
	}
	return true
}

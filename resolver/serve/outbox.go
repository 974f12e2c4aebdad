package serve

import "time"

// outbox holds framed responses that wait for the client to read.
type outbox struct{ frames []byte }

// charge takes n bytes out of what all connections may have waiting.
func (s *Server) charge(n int) bool {
	if s.pending.Add(int64(n)) > maxPendingTotal {
		s.pending.Add(-int64(n))
		return false
	}
	return true
}

// post sends framed responses as far as that needs no waiting, and keeps a copy of the rest for flush.
// A client that leaves too much unread loses the connection.
func (c *conn) post(frames []byte, now time.Duration) {
	if len(frames) == 0 {
		return
	}
	c.last.Store(int64(now))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed {
		return
	}
	if c.raw != nil && !c.writing && c.pending == nil {
		frames = frames[c.try(frames):]
		if len(frames) == 0 {
			return
		}
	}
	if c.pendingBytes()+len(frames) > maxPending || !c.s.charge(len(frames)) {
		c.failLocked(causeUnread)
		return
	}
	if c.pending == nil {
		c.pending = c.s.outboxes.Get().(*outbox)
	}
	c.pending.frames = append(c.pending.frames, frames...)
}

// pendingBytes returns what waits and is not being sent. c.mu is held.
func (c *conn) pendingBytes() int {
	if c.pending == nil {
		return 0
	}
	return len(c.pending.frames)
}

// flush sends what is pending, and waits for the client to take it. Where another goroutine is at it,
// that one takes all along, and flush waits for it only if told to.
func (c *conn) flush(wait bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing && wait {
		c.changed.Wait()
	}
	if c.writing || c.pending == nil {
		return
	}
	c.writing = true
	for c.pending != nil {
		out := c.pending
		c.pending = nil
		if !c.failed && !c.write(out.frames) {
			c.failLocked(causeUnread)
		}
		c.s.pending.Add(-int64(len(out.frames)))
		out.frames = out.frames[:0]
		c.s.outboxes.Put(out)
	}
	c.writing = false
	c.changed.Broadcast()
}

// write gives the frames to the system within TCPWrite. c.mu is held, but not meanwhile.
func (c *conn) write(frames []byte) (ok bool) {
	c.nc.SetWriteDeadline(time.Now().Add(c.s.config.TCPWrite))
	c.mu.Unlock()
	_, err := c.nc.Write(frames)
	c.mu.Lock()
	c.last.Store(int64(c.s.now()))
	if !c.failed {
		// A deadline that has passed would keep try from trying.
		c.nc.SetWriteDeadline(time.Time{})
	}
	return err == nil
}

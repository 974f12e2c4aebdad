package exchange

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"
)

// stream is one TCP connection that queries share, pipelined and answered in any order (RFC 7766
// §6.2.1.1). All but ready, dialled, conn, from and writing is guarded by the pool's lock; these are
// set before ready is closed.
type stream struct {
	peer    peer
	ready   chan struct{} // closed when the connection is open, or failed to
	dialled error
	conn    net.Conn
	from    netip.Addr    // as configured; invalid where the system chose
	writing chan struct{} // holds a token while a message is written

	users   int // Asks that have joined
	pending map[uint16]*call
	answers int
	alone   bool // for one Ask
	sick    bool // left something unanswered: no new queries
	ended   bool
}

// call is one query on a stream. msg or err is set before done is closed.
type call struct {
	id   uint16
	done chan struct{}
	msg  []byte
	err  error
	gone bool // nobody waits for it any more
}

// join takes a place on an open stream to the server, or puts a new one into the pool for the
// caller to open, which mine tells.
func (p *streamPool) join(x *exchange, alone bool) (st *stream, mine bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, errClosed
	}
	streams := p.byPeer[x.peer()]
	for _, st := range streams {
		if !alone && !st.alone && !st.sick && st.users < streamDepth {
			if st.users++; st.users == 1 && st.conn != nil {
				_ = st.conn.SetReadDeadline(time.Time{})
			}
			return st, false, nil
		}
	}
	if len(streams) >= streamsPerServer || p.count >= streamsInAll && !p.endIdle() {
		return nil, false, x.fail(ErrBusy, errConnections)
	}
	if b, ok := x.a.Budget.(ConnBudget); ok {
		if err := b.Connect(x.a.Server); err != nil {
			return nil, false, x.fail(ErrBudget, err)
		}
	}
	st = &stream{
		peer: x.peer(), alone: alone, users: 1,
		ready: make(chan struct{}), writing: make(chan struct{}, 1), pending: make(map[uint16]*call),
	}
	p.byPeer[st.peer] = append(streams, st)
	p.count++
	return st, true, nil
}

// endIdle ends some stream that nobody uses, and says whether there was one.
func (p *streamPool) endIdle() bool {
	for _, streams := range p.byPeer {
		for _, st := range streams {
			if st.users == 0 {
				p.endLocked(st, errEnded)
				return true
			}
		}
	}
	return false
}

// opened takes the outcome of dialling.
func (p *streamPool) opened(st *stream, conn net.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.closed {
		_ = conn.Close()
		err = errClosed
	}
	st.dialled = err
	if err == nil {
		st.conn = conn
		p.readers.Go(func() { p.read(st) })
	} else {
		p.endLocked(st, err)
	}
	close(st.ready)
}

// register gives the query an ID that is free on the stream.
func (p *streamPool) register(st *stream, x *exchange) (*call, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st.ended {
		return nil, errEnded
	}
	id := binary.BigEndian.Uint16(x.query)
	for st.pending[id] != nil {
		id = x.draws.uint16()
	}
	binary.BigEndian.PutUint16(x.query, id)
	call := &call{id: id, done: make(chan struct{})}
	st.pending[id] = call
	return call, nil
}

// abandon leaves the call's ID taken, so that a late response is known for what it is.
func (p *streamPool) abandon(st *stream, call *call) {
	p.mu.Lock()
	call.gone = true
	p.mu.Unlock()
}

// release gives back a place. A stream that left a query unanswered takes no further ones.
func (p *streamPool) release(st *stream, sick bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st.users--
	st.sick = st.sick || sick
	if st.users > 0 || st.ended || st.conn == nil {
		return
	}
	if st.sick || st.alone {
		p.endLocked(st, errEnded)
		return
	}
	idle := streamIdle
	if st.peer.tls {
		idle = tlsIdle
	}
	_ = st.conn.SetReadDeadline(time.Now().Add(idle))
}

func (p *streamPool) answers(st *stream) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return st.answers
}

// end takes the stream out of the pool, closes it and fails the calls on it.
func (p *streamPool) end(st *stream, err error) {
	p.mu.Lock()
	p.endLocked(st, err)
	p.mu.Unlock()
}

func (p *streamPool) endLocked(st *stream, err error) {
	if st.ended {
		return
	}
	st.ended = true
	streams := p.byPeer[st.peer]
	if i := slices.Index(streams, st); i >= 0 {
		streams = slices.Delete(streams, i, i+1)
		p.count--
	}
	if p.byPeer[st.peer] = streams; len(streams) == 0 {
		delete(p.byPeer, st.peer)
	}
	if st.conn != nil {
		_ = st.conn.Close()
	}
	for _, call := range st.pending {
		call.err = err
		close(call.done)
	}
	st.pending = nil
}

// read hands each message to the call with its ID, until the connection ends.
func (p *streamPool) read(st *stream) {
	r := bufio.NewReader(st.conn)
	for {
		msg, err := readMessage(r)
		if err != nil {
			p.end(st, errEnded)
			return
		}
		if !p.deliver(st, msg) {
			// Whatever this is, the server does not keep to the protocol.
			p.end(st, ErrMismatch)
			return
		}
	}
}

func (p *streamPool) deliver(st *stream, msg []byte) bool {
	if len(msg) < 2 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	call := st.pending[binary.BigEndian.Uint16(msg)]
	if call == nil {
		return false
	}
	delete(st.pending, call.id)
	st.answers++
	if !call.gone {
		call.msg = msg
		close(call.done)
	}
	return true
}

// write sends one message whole, or says that the connection is no longer of use. Only one writes
// at a time; who is called off while waiting for that has sent nothing, and done no harm.
func (st *stream) write(ctx context.Context, frame []byte) error {
	select {
	case st.writing <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	deadline, _ := ctx.Deadline()
	_ = st.conn.SetWriteDeadline(deadline)
	_, err := st.conn.Write(frame)
	<-st.writing
	return err
}

// messageStep is how much memory a message is given before its bytes have come.
const messageStep = 4096

// readMessage reads one message behind its length (RFC 1035 §4.2.2). The length is the server's
// word: memory grows with what has come.
func readMessage(r io.Reader) ([]byte, error) {
	var prefix [2]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(prefix[:]))
	msg := make([]byte, min(n, messageStep))
	have, err := io.ReadFull(r, msg)
	for err == nil && have < n {
		grown := make([]byte, min(n, 2*have))
		copy(grown, msg)
		msg = grown
		var more int
		more, err = io.ReadFull(r, msg[have:])
		have += more
	}
	if err != nil {
		return nil, err
	}
	return msg, nil
}

package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// scripted is a handler that does what the first label of the QNAME begins with:
//
//	h…   Hit answers with the query and QR set
//	b…   Hit answers with 5000 bytes, more than there is room for
//	m…   Miss answers likewise, once the gate is open
//	n…   Miss has no response
//	d…   Hit drops it
type scripted struct {
	gate chan struct{} // Miss waits until it is closed, or its context ends; nil: it does not wait

	mu   sync.Mutex
	seen []Exchange // clones
}

func (h *scripted) NewWorker() Worker { return scriptedWorker{h} }

type scriptedWorker struct{ h *scripted }

func (w scriptedWorker) Hit(batch []Exchange, results []Result) {
	for i := range batch {
		x := &batch[i]
		w.h.note(x)
		switch verb(x.Query) {
		case 'h':
			x.Response = append(x.Response, x.Query...)
			x.Response[2] |= 0x80
			results[i] = Answered
		case 'b':
			x.Response = append(x.Response, x.Query...)
			x.Response[2] |= 0x80
			x.Response = append(x.Response, make([]byte, 5000-len(x.Response))...)
			results[i] = Answered
		case 'm', 'n':
			// What a worker leaves in the response of a miss does not matter.
			x.Response = append(x.Response, "rest"...)
			results[i] = Missed
		default:
			results[i] = Dropped
		}
	}
}

func (h *scripted) note(x *Exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clone := *x
	clone.Query, clone.Response = bytes.Clone(x.Query), nil
	h.seen = append(h.seen, clone)
}

func (h *scripted) exchanges() []Exchange {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Exchange(nil), h.seen...)
}

func (h *scripted) Miss(ctx context.Context, x *Exchange) {
	if h.gate != nil {
		select {
		case <-h.gate:
		case <-ctx.Done():
			return
		}
	}
	if verb(x.Query) == 'm' {
		x.Response = append(x.Response, x.Query...)
		x.Response[2] |= 0x80
	}
}

// Shed answers SERVFAIL, which tells it from the other answers.
func (h *scripted) Shed(x *Exchange) {
	x.Response = append(x.Response, x.Query...)
	x.Response[2] |= 0x80
	x.Response[3] |= 2
}

func verb(query []byte) byte {
	if len(query) < 14 {
		return 0
	}
	return query[13]
}

// query makes a query of one label.
func query(id uint16, label string) []byte {
	q := binary.BigEndian.AppendUint16(nil, id)
	q = append(q, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, byte(len(label)))
	q = append(q, label...)
	return append(q, 0, 0, 1, 0, 1)
}

func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

func idOf(message []byte) uint16 { return binary.BigEndian.Uint16(message) }

func isServfail(message []byte) bool { return message[3]&0xF == 2 }

// checkEcho fails unless response is what scripted says to the query.
func checkEcho(t *testing.T, response, query []byte) {
	t.Helper()
	want := bytes.Clone(query)
	want[2] |= 0x80
	if !bytes.Equal(response, want) {
		t.Errorf("got response %x, want %x", response, want)
	}
}

// start serves until the test ends.
func start(t testing.TB, c Config, h Handler) *Server {
	t.Helper()
	s, err := New(c, h)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	t.Cleanup(func() {
		s.Shutdown(context.Background())
		if err := <-served; err != nil && !errors.Is(err, ErrAbandoned) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// eventually waits, in real time but rarely for long, until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 5000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

// paths are the ways in which sockets are read; what holds of one holds of the other.
var paths = []struct {
	name     string
	portable bool
}{{"system", false}, {"portable", true}}

// local returns a loopback address with a port of the system's choice; IPv6 only where there is any.
func local(t testing.TB, address string) netip.AddrPort {
	t.Helper()
	a := netip.AddrPortFrom(netip.MustParseAddr(address), 0)
	if a.Addr().Is6() && !hasIPv6() {
		t.Skip("this machine has no IPv6 loopback address")
	}
	return a
}

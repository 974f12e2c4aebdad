package exchange

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

func askTCP(server, name string) *Ask {
	a := ask(server, name)
	a.TCP = true
	return a
}

// TestTCPReuse: one connection serves queries one after another, and ends when idle.
func TestTCPReuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: reply()})
		c := n.client(Config{})
		for i := range 20 {
			if r := mustDo(t, c, askTCP("192.0.2.53", fmt.Sprintf("n%d.example.", i))); !r.TCP {
				t.Error("not over TCP")
			}
			time.Sleep(time.Second)
		}
		if _, tcp := s.counts(); n.dials != 1 || tcp != 20 {
			t.Errorf("got %d connections for %d queries, want 1 for 20", n.dials, tcp)
		}
		time.Sleep(streamIdle)
		synctest.Wait()
		if n.open != 0 {
			t.Errorf("%d connections are open after %v without a query", n.open, streamIdle)
		}
		mustDo(t, c, askTCP("192.0.2.53", "again.example."))
		if n.dials != 2 {
			t.Errorf("got %d connections, want a second one", n.dials)
		}
	})
}

// TestTCPPipelining: many queries share a connection and are answered out of order.
func TestTCPPipelining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{})
		s.tcp = func(q []byte) [][]byte {
			var m dns.Msg
			_ = m.Unpack(q)
			// The later asked, the sooner answered.
			time.Sleep(time.Second - 10*time.Millisecond*time.Duration(len(strings.Split(m.Question[0].Name, ".")[0])))
			return reply()(q)
		}
		c := n.client(Config{})
		var clients sync.WaitGroup
		start := time.Now()
		for i := range streamDepth {
			clients.Go(func() {
				name := wire.MustName(strings.Repeat("x", i+1) + ".example.")
				r, err := c.Do(context.Background(), &Ask{Server: addr("192.0.2.53"), Name: name, Type: wire.TypeA, TCP: true})
				if err != nil {
					t.Error(err)
				} else if !r.Owner(&r.Records[0]).Equal(name) {
					t.Errorf("got the answer of %v, want %v", r.Owner(&r.Records[0]), name)
				}
			})
			synctest.Wait()
		}
		clients.Wait()
		if took := time.Since(start); took > time.Second || n.dials != 1 {
			t.Errorf("took %v over %d connections, want less than 1s over 1", took, n.dials)
		}
	})
}

// TestTCPOneQuery: a server that closes after each answer gets a connection for each query, and no
// more than the limit of them for one Ask.
func TestTCPOneQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{udp: reply(), perConn: 1, delay: 20 * time.Millisecond})
		c := n.client(Config{})
		for range 5 {
			mustDo(t, c, askTCP("192.0.2.53", "www.example."))
		}
		if _, tcp := s.counts(); n.dials != 5 || tcp != 5 {
			t.Errorf("one after another: got %d connections, %d queries, want 5 and 5", n.dials, tcp)
		}
		n.dials = 0
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() { mustDo(t, c, askTCP("192.0.2.53", "www.example.")) })
		}
		clients.Wait()
		if n.dials > 4*streamTries {
			t.Errorf("at once: got %d connections for 4 queries", n.dials)
		}
		n.dials = 0
		for range 5 {
			mustDo(t, c, askTCP("192.0.2.53", "www.example."))
		}
		if n.dials != 5 {
			t.Errorf("once known: got %d connections for 5 queries", n.dials)
		}
	})
}

// TestTCPClosedWhileIdle: a connection that the server has closed costs no answer.
func TestTCPClosedWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.53", &fakeServer{udp: reply(), perConn: 2})
		c := n.client(Config{})
		for range 10 {
			mustDo(t, c, askTCP("192.0.2.53", "www.example."))
			time.Sleep(time.Second)
		}
		if n.dials != 5 {
			t.Errorf("got %d connections, want 5 for 10 queries at 2 each", n.dials)
		}
	})
}

func TestTCPServers(t *testing.T) {
	big := reply(func(m *dns.Msg) {
		for range 200 {
			m.Answer = append(m.Answer, &dns.TXT{
				Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60},
				Txt: []string{strings.Repeat("x", 250)},
			})
		}
	})
	tests := []struct {
		name   string
		server *fakeServer
		err    error
		took   time.Duration
	}{
		{"good", &fakeServer{tcp: reply()}, nil, 0},
		{"50 KB", &fakeServer{tcp: big}, nil, 0},
		{"refused", &fakeServer{refuse: true}, ErrUnreachable, 0},
		{"hangs", &fakeServer{hang: true}, ErrTimeout, minTCPTimeout},
		{"silent", &fakeServer{tcp: nothing}, ErrTimeout, minTCPTimeout},
		{"slow", &fakeServer{tcp: reply(), delay: time.Second}, nil, time.Second},
		{"closes at once", &fakeServer{tcp: nothing, perConn: 1}, ErrUnreachable, 0},
		{"other ID", &fakeServer{tcp: raw(flip(0, 1))}, ErrMismatch, 0},
		{"other question", &fakeServer{tcp: raw(flip(13, 1))}, ErrMismatch, 0},
		{"empty message", &fakeServer{tcp: func([]byte) [][]byte { return [][]byte{{}} }}, ErrMismatch, 0},
		{"answers twice", &fakeServer{tcp: func(q []byte) [][]byte { return [][]byte{answerTo(q), answerTo(q)} }}, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				n.add("192.0.2.53", tt.server)
				c := n.client(Config{})
				start := time.Now()
				_, err := c.Do(context.Background(), askTCP("192.0.2.53", "www.example."))
				if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				if took := time.Since(start); took > max(tt.took, 4*unknownRTO) || took < tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				// The server is asked again, whatever it did.
				tt.server.set(func(s *fakeServer) { s.tcp, s.hang, s.refuse, s.perConn, s.delay = reply(), false, false, 0, 0 })
				mustDo(t, c, askTCP("192.0.2.53", "www.example."))
				time.Sleep(2 * streamIdle)
				synctest.Wait()
				if n.open != 0 || c.streams.count != 0 {
					t.Errorf("%d connections are open, %d counted", n.open, c.streams.count)
				}
			})
		})
	}
}

// TestTCPFailureLeavesUDP: what TCP does after UDP has answered says nothing of the server's RTT or
// silence.
func TestTCPFailureLeavesUDP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.53", &fakeServer{udp: truncatedReply, hang: true, delay: 20 * time.Millisecond})
		c := n.client(Config{})
		for range 5 {
			_, _ = c.Do(context.Background(), ask("192.0.2.53", "www.example."))
		}
		i, _ := c.Server(addr("192.0.2.53"))
		if i.Fails != 0 || i.SRTT != 20*time.Millisecond {
			t.Errorf("got %+v, want no timeouts and 20ms", i)
		}
	})
}

// TestTCPLateAnswer: a response that comes after its Ask has gone is no fault of the connection.
func TestTCPLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.add("192.0.2.53", &fakeServer{tcp: reply(), delay: 500 * time.Millisecond})
		c := n.client(Config{})
		var clients sync.WaitGroup
		clients.Go(func() { mustDo(t, c, askTCP("192.0.2.53", "stays.example.")) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := c.Do(ctx, askTCP("192.0.2.53", "leaves.example."))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		clients.Wait()
		time.Sleep(time.Second)
		mustDo(t, c, askTCP("192.0.2.53", "www.example."))
		if _, tcp := s.counts(); n.dials != 1 || tcp != 3 {
			t.Errorf("got %d connections, %d queries, want 1 and 3", n.dials, tcp)
		}
	})
}

// TestTCPBounds: connections are bounded for a server and in all; idle ones make room.
func TestTCPBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.53", &fakeServer{tcp: reply(), delay: time.Second})
		c := n.client(Config{})
		mustDo(t, c, askTCP("192.0.2.53", "www.example."))
		var clients sync.WaitGroup
		var mu sync.Mutex
		busy := 0
		for range streamDepth*streamsPerServer + 50 {
			clients.Go(func() {
				_, err := c.Do(context.Background(), askTCP("192.0.2.53", "www.example."))
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, ErrBusy) {
					busy++
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		if busy != 50 || n.dials != streamsPerServer {
			t.Errorf("got %d refused over %d connections, want 50 over %d", busy, n.dials, streamsPerServer)
		}
		for i := range 2 * streamsInAll {
			a := fmt.Sprintf("198.51.%d.%d", i/250, i%250+1)
			n.add(a, &fakeServer{tcp: reply()})
			mustDo(t, c, askTCP(a, "www.example."))
			if c.streams.count > streamsInAll {
				t.Fatalf("%d connections in all", c.streams.count)
			}
		}
	})
}

// TestClose: Close ends what runs and what is kept.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.53", &fakeServer{tcp: nothing})
		c := n.client(Config{})
		var clients sync.WaitGroup
		clients.Go(func() {
			if _, err := c.Do(context.Background(), askTCP("192.0.2.53", "www.example.")); !errors.Is(err, errClosed) {
				t.Errorf("got %v, want %v", err, errClosed)
			}
		})
		synctest.Wait()
		c.Close()
		clients.Wait()
		synctest.Wait()
		if n.open != 0 {
			t.Errorf("%d connections are open", n.open)
		}
		if _, err := c.Do(context.Background(), askTCP("192.0.2.53", "www.example.")); !errors.Is(err, errClosed) {
			t.Errorf("after Close: got %v, want %v", err, errClosed)
		}
	})
}

// slowReader gives the bytes one read at a time, and counts what it was asked to fill.
type slowReader struct {
	data []byte
	most int
}

func (r *slowReader) Read(b []byte) (int, error) {
	r.most = max(r.most, len(b))
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.data[:min(len(r.data), 1000)])
	r.data = r.data[n:]
	return n, nil
}

// TestReadMessage: memory for a message grows with what has come, whatever its length claims.
func TestReadMessage(t *testing.T) {
	for _, size := range []int{0, 1, 12, messageStep - 1, messageStep, messageStep + 1, 20000, 65535} {
		data := binary.BigEndian.AppendUint16(nil, uint16(size))
		for i := range size {
			data = append(data, byte(i))
		}
		msg, err := readMessage(&slowReader{data: data})
		if err != nil || len(msg) != size || cap(msg) > size || size > 0 && string(msg) != string(data[2:]) {
			t.Errorf("%d bytes: got %d (room for %d), %v", size, len(msg), cap(msg), err)
		}
		r := &slowReader{data: data[:max(1, min(len(data)-1, 1002))]}
		if _, err := readMessage(r); err == nil {
			t.Errorf("%d bytes, cut: no error", size)
		}
		if r.most > messageStep {
			t.Errorf("%d bytes claimed, 1000 sent: asked for %d", size, r.most)
		}
	}
}

package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// memoryListener hands out connections made in memory, so that time may be false.
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func newMemoryListener() *memoryListener {
	return &memoryListener{make(chan net.Conn), make(chan struct{})}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddr("192.0.2.53:53") }

type memoryAddr string

func (memoryAddr) Network() string  { return "tcp" }
func (a memoryAddr) String() string { return string(a) }

type memoryConn struct {
	net.Conn
	client string
}

func (c memoryConn) RemoteAddr() net.Addr { return memoryAddr(c.client) }
func (c memoryConn) LocalAddr() net.Addr  { return memoryAddr("192.0.2.53:53") }

// world is a server with nothing but a listener in memory, in false time.
type world struct {
	t *testing.T
	*Server
	l *memoryListener
}

func inFalseTime(t *testing.T, c Config, h Handler, run func(*testing.T, world)) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemoryListener()
		c.Listeners = []net.Listener{l}
		s, err := New(c, h)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error)
		go func() { served <- s.Serve(t.Context()) }()
		defer func() {
			s.Shutdown(context.Background())
			if err := <-served; err != nil && !errors.Is(err, ErrAbandoned) {
				t.Error(err)
			}
		}()
		run(t, world{t, s, l})
	})
}

// dial opens a connection as the client.
func (w world) dial(client string) stream {
	ours, theirs := net.Pipe()
	w.t.Cleanup(func() { ours.Close() })
	w.l.conns <- memoryConn{theirs, client}
	synctest.Wait()
	return stream{w.t, ours}
}

// isOpen looks whether a connection is still open, without moving the clock.
func (c stream) isOpen() bool {
	synctest.Wait()
	c.SetReadDeadline(time.Now().Add(time.Nanosecond))
	_, err := c.Read(make([]byte, 1))
	c.SetReadDeadline(time.Time{})
	return !errors.Is(err, io.EOF)
}

const alice, bob = "192.0.2.1:1000", "192.0.2.2:1000"

func TestTCPIdle(t *testing.T) {
	inFalseTime(t, Config{TCPIdle: 10 * time.Second}, &scripted{}, func(t *testing.T, w world) {
		c := w.dial(alice)
		time.Sleep(9 * time.Second)
		c.send(query(1, "hit"))
		c.receive()
		// The time runs from the last response, not from the beginning.
		time.Sleep(9 * time.Second)
		if !c.isOpen() {
			t.Error("the connection was closed after 9 s")
		}
		time.Sleep(2 * time.Second)
		if c.isOpen() {
			t.Error("the connection is open after 11 s")
		}
		if st := w.Stats().Connections; st.Idle != 1 || st.Open != 0 {
			t.Errorf("got %+v, want one closed for idleness", st)
		}
	})
}

func TestTCPSilentFromTheStart(t *testing.T) {
	inFalseTime(t, Config{TCPIdle: 10 * time.Second}, &scripted{}, func(t *testing.T, w world) {
		c := w.dial(alice)
		time.Sleep(11 * time.Second)
		if c.isOpen() {
			t.Error("the connection is open after 11 s")
		}
	})
}

func TestTCPSlowMessage(t *testing.T) {
	inFalseTime(t, Config{TCPIdle: 100 * time.Second, TCPRead: 5 * time.Second}, &scripted{}, func(t *testing.T, w world) {
		c := w.dial(alice)
		time.Sleep(50 * time.Second)
		c.send(query(1, "hit"))
		c.receive()
		// A byte every second keeps nothing alive.
		message := frame(query(2, "hit"))
		for i := range 6 {
			if !c.isOpen() {
				t.Fatalf("the connection was closed after %d s", i)
			}
			if i < 5 {
				c.Write(message[i : i+1])
				time.Sleep(999 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		if c.isOpen() {
			t.Error("the connection is open after 6 s")
		}
		if st := w.Stats().Connections; st.Slow != 1 {
			t.Errorf("got %+v, want one closed for slowness", st)
		}
	})
}

// TestTCPIsNotIdleWhileOwed: no deadline runs while the server is the slow one.
func TestTCPIsNotIdleWhileOwed(t *testing.T) {
	h := &scripted{gate: make(chan struct{})}
	inFalseTime(t, Config{TCPIdle: 10 * time.Second}, h, func(t *testing.T, w world) {
		h.gate = make(chan struct{})
		c := w.dial(alice)
		c.send(query(1, "miss"))
		time.Sleep(35 * time.Second)
		close(h.gate)
		checkEcho(t, c.receive(), query(1, "miss"))
		time.Sleep(9 * time.Second)
		if !c.isOpen() {
			t.Error("the connection was closed 9 s after the response")
		}
		time.Sleep(12 * time.Second)
		if c.isOpen() {
			t.Error("the connection is open 21 s after the response")
		}
	})
}

func TestTCPClientDoesNotRead(t *testing.T) {
	for _, label := range []string{"hit", "miss"} {
		t.Run(label, func(t *testing.T) {
			inFalseTime(t, Config{TCPWrite: 5 * time.Second}, &scripted{}, func(t *testing.T, w world) {
				c := w.dial(alice)
				c.send(query(1, label))
				time.Sleep(4 * time.Second)
				if st := w.Stats(); st.Connections.Open != 1 || st.Inflight != 0 {
					t.Errorf("got %+v with %d in flight after 4 s, want the slot free and the connection open", st.Connections, st.Inflight)
				}
				time.Sleep(2 * time.Second)
				if st := w.Stats().Connections; st.Unread != 1 || st.Open != 0 {
					t.Errorf("got %+v after 6 s, want one closed for not reading", st)
				}
				if got := w.pending.Load(); got != 0 {
					t.Errorf("got %d bytes still waiting", got)
				}
			})
		})
	}
}

// TestTCPMissesPendingAreBounded: a client that reads nothing cannot make its misses fill memory.
func TestTCPMissesPendingAreBounded(t *testing.T) {
	inFalseTime(t, Config{MaxTCPInflight: 10}, &scripted{}, func(t *testing.T, w world) {
		c := w.dial(alice)
		long := append(query(1, "miss"), make([]byte, 30_000)...)
		go func() {
			for range 10 {
				if _, err := c.Write(frame(long)); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if got := w.pending.Load(); got > maxPending+2*maxFrame {
			t.Errorf("got %d bytes waiting, want at most %d", got, maxPending+2*maxFrame)
		}
		time.Sleep(6 * time.Second)
		if st := w.Stats().Connections; st.Unread != 1 || st.Open != 0 {
			t.Errorf("got %+v, want one closed for not reading", st)
		}
		if got := w.pending.Load(); got != 0 {
			t.Errorf("got %d bytes still waiting", got)
		}
	})
}

// TestTCPPendingTotal: what all clients together leave unread is bounded, too.
func TestTCPPendingTotal(t *testing.T) {
	inFalseTime(t, Config{MaxTCPPerClient: 1000}, &scripted{}, func(t *testing.T, w world) {
		if !w.charge(maxPendingTotal - 100) {
			t.Fatal("cannot take nearly all")
		}
		c := w.dial(alice)
		c.send(query(1, "hit"))
		checkEcho(t, c.receive(), query(1, "hit"))
		c.send(query(1, "big"))
		synctest.Wait()
		if st := w.Stats().Connections; st.Unread != 1 || st.Open != 0 {
			t.Errorf("got %+v, want the connection closed for lack of room", st)
		}
		d := w.dial(bob)
		d.Write([]byte{0xff, 0xff})
		synctest.Wait()
		if st := w.Stats().Connections; st.Slow != 1 || st.Open != 0 {
			t.Errorf("got %+v, want the connection closed for lack of room", st)
		}
		w.pending.Add(-(maxPendingTotal - 100))
		if got := w.pending.Load(); got != 0 {
			t.Errorf("got %d bytes still taken", got)
		}
	})
}

func TestTCPPerClient(t *testing.T) {
	inFalseTime(t, Config{MaxTCPPerClient: 2}, &scripted{}, func(t *testing.T, w world) {
		first, second, third := w.dial(alice), w.dial("192.0.2.1:1001"), w.dial("192.0.2.1:1002")
		other := w.dial(bob)
		for i, c := range []stream{first, second, other} {
			if !c.isOpen() {
				t.Errorf("connection %d is closed", i)
			}
		}
		if third.isOpen() {
			t.Error("the third connection of one client is open")
		}
		first.Close()
		synctest.Wait()
		if c := w.dial("192.0.2.1:1003"); !c.isOpen() {
			t.Error("the place of a closed connection is not free")
		}
		if st := w.Stats().Connections; st.RefusedClient != 1 || st.Accepted != 4 || st.Open != 3 {
			t.Errorf("got %+v, want 1 refused, 4 accepted, 3 open", st)
		}
	})
}

func TestClientOf(t *testing.T) {
	for a, want := range map[string]string{
		"192.0.2.1":          "192.0.2.1",
		"::ffff:192.0.2.1":   "192.0.2.1",
		"2001:db8:1:2:3::4":  "2001:db8:1:2::",
		"2001:db8:1:2:ff::4": "2001:db8:1:2::",
		"fe80::1%eth0":       "fe80::",
	} {
		if got := clientOf(netip.MustParseAddr(a)); got.String() != want {
			t.Errorf("%s: got %s, want %s", a, got, want)
		}
	}
}

// TestTCPEviction: with no place left, the connection idle for longest goes, and none with work.
func TestTCPEviction(t *testing.T) {
	h := &scripted{}
	inFalseTime(t, Config{MaxTCP: 3, TCPIdle: 100 * time.Second}, h, func(t *testing.T, w world) {
		h.gate = make(chan struct{})
		busy := w.dial("192.0.2.1:1")
		busy.send(query(1, "miss"))
		time.Sleep(time.Second)
		older := w.dial("192.0.2.2:1")
		time.Sleep(time.Second)
		newer := w.dial("192.0.2.3:1")
		time.Sleep(time.Second)
		latest := w.dial("192.0.2.4:1")
		for name, c := range map[string]stream{"busy": busy, "newer": newer, "latest": latest} {
			if !c.isOpen() {
				t.Errorf("the %s connection is closed", name)
			}
		}
		if older.isOpen() {
			t.Error("the connection idle for longest is open")
		}
		newer.send(query(2, "miss"))
		latest.send(query(3, "miss"))
		synctest.Wait()
		if c := w.dial("192.0.2.5:1"); c.isOpen() {
			t.Error("a connection is open for which there is no room")
		}
		if st := w.Stats().Connections; st.Evicted != 1 || st.Refused != 1 || st.Open != 3 {
			t.Errorf("got %+v, want 1 evicted, 1 refused, 3 open", st)
		}
		close(h.gate)
		checkEcho(t, busy.receive(), query(1, "miss"))
	})
}

// TestTCPKeepalive: what clients are told shrinks as places run out.
func TestTCPKeepalive(t *testing.T) {
	h := &scripted{}
	inFalseTime(t, Config{MaxTCP: 10, TCPIdle: 10 * time.Second}, h, func(t *testing.T, w world) {
		want := []uint16{100, 100, 100, 100, 100, 80, 60, 40, 20, 10}
		for i := range want {
			c := w.dial(alice)
			c.send(query(1, "hit"))
			c.receive()
			if seen := h.exchanges(); seen[i].Keepalive != want[i] {
				t.Errorf("with %d connections: got %d, want %d", i+1, seen[i].Keepalive, want[i])
			}
		}
		time.Sleep(1100 * time.Millisecond)
		if got := w.Stats().Connections.Open; got == 10 {
			t.Error("no connection was closed early")
		}
	})
}

func TestShutdownTakesAtMost5s(t *testing.T) {
	h := &scripted{gate: make(chan struct{})}
	inFalseTime(t, Config{}, deaf{h}, func(t *testing.T, w world) {
		c := w.dial(alice)
		c.send(query(1, "miss"))
		synctest.Wait()
		began := time.Now()
		if err := w.Shutdown(context.Background()); err != ErrAbandoned {
			t.Errorf("got %v, want %v", err, ErrAbandoned)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the shutdown took %v", took)
		}
		c.closed()
		time.Sleep(time.Minute) // lets the handler end
	})
}

// deaf is a handler whose misses neither end nor heed their context, for a minute.
type deaf struct{ *scripted }

func (deaf) Miss(context.Context, *Exchange) { time.Sleep(time.Minute) }

package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/wire"
)

// copies answers with the same datagram n times.
func copies(n int) reaction {
	return func(q []byte) (all [][]byte) {
		m := answerTo(q)
		for range n {
			all = append(all, m)
		}
		return all
	}
}

// reusing makes a net and a client whose sockets may be reused.
func reusing(t *testing.T, s *fakeServer, config Config) (*fakeNet, *Client) {
	n := newFakeNet(t)
	n.reuse = true
	n.add("192.0.2.53", s)
	return n, n.client(config)
}

// under is a question whose zone has eight letters.
func under() *Ask {
	a := ask("192.0.2.53", "www.an-example.")
	a.Zone = wire.MustName("an-example.")
	return a
}

func TestSocketReuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := reusing(t, &fakeServer{udp: reply(), delay: 10 * time.Millisecond}, Config{})
		for range 3*socketUses + 1 {
			mustDo(t, c, under())
		}
		if got := len(n.sockets); got != 4 {
			t.Errorf("got %d sockets for %d queries, want 4", got, 3*socketUses+1)
		}
		if got := n.openSockets(); got != 1 {
			t.Errorf("%d sockets are open, want the last", got)
		}
		time.Sleep(socketAge + sweepEvery)
		synctest.Wait()
		if got := n.openSockets(); got != 0 {
			t.Errorf("%d sockets are open after %v", got, socketAge+sweepEvery)
		}
		// The sweep starts again.
		mustDo(t, c, under())
		time.Sleep(socketAge + sweepEvery)
		synctest.Wait()
		if got := n.openSockets(); got != 0 {
			t.Errorf("%d sockets are open after another %v", got, socketAge+sweepEvery)
		}
		if c.idle.count.Load() != 0 || len(c.idle.servers) != 0 {
			t.Errorf("%d idle sockets counted, of %d servers", c.idle.count.Load(), len(c.idle.servers))
		}
	})
}

func TestSocketAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := reusing(t, &fakeServer{udp: reply(), delay: 10 * time.Millisecond}, Config{})
		start := time.Now()
		for range 9 {
			mustDo(t, c, under())
			time.Sleep(140 * time.Millisecond)
		}
		// Sent at 0, 150, 300, 450: the fifth comes 600 ms after the first socket was made.
		if got := len(n.sockets); got != 3 {
			t.Errorf("got %d sockets in %v, want 3", got, time.Since(start))
		}
	})
}

// TestSocketRule: what a question must have for its socket to be used before or after.
func TestSocketRule(t *testing.T) {
	tests := []struct {
		name, zone, qname string
		cookies           bool
		want              int // sockets for four queries
	}{
		{"eight letters", "example.a.", "www.example.a.", false, 1},
		{"seven letters", "12345678.example.", "www.12345678.example.", false, 4},
		{"letters of the client's", "com.", "abcdefghijklmnop.com.", false, 4},
		{"root", ".", "abcdefghijklmnop.", false, 4},
		{"the zone itself", "example.a.", "example.a.", false, 1},
		{"another zone's name", "example.a.", "www.example.b.", false, 4},
		{"cookies", "com.", "1.com.", true, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, c := reusing(t, &fakeServer{udp: withCookie(good)}, Config{Cookies: tt.cookies})
				for range 4 {
					a := ask("192.0.2.53", tt.qname)
					a.Zone = wire.MustName(tt.zone)
					mustDo(t, c, a)
				}
				if got := len(n.sockets); got != tt.want {
					t.Errorf("got %d sockets, want %d", got, tt.want)
				}
			})
		})
	}
}

// TestSocketEnds: what ends a socket that was used before, and sends the question over TCP.
func TestSocketEnds(t *testing.T) {
	tests := []struct {
		name       string
		server     *fakeServer // from the second query on
		idle       []byte      // comes in while the socket is idle
		overTCP    bool
		mismatches uint64
		err        error
	}{
		{name: "nothing", server: &fakeServer{udp: reply()}},
		{name: "timeout", server: &fakeServer{tcp: reply()}, overTCP: true},
		{name: "timeout, TCP too", server: &fakeServer{tcp: nothing}, err: ErrTimeout},
		{name: "timeout, TCP refused", server: &fakeServer{refuse: true}, err: ErrTimeout},
		{name: "ICMP error", server: &fakeServer{icmp: true, tcp: reply()}, overTCP: true},
		{name: "other ID", server: &fakeServer{udp: raw(flip(0, 1)), tcp: reply()}, overTCP: true, mismatches: 1},
		{name: "while idle", server: &fakeServer{udp: reply()}, idle: []byte("what is this?"), overTCP: true, mismatches: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{udp: reply()}
				n, c := reusing(t, s, Config{})
				mustDo(t, c, under())
				s.set(func(s *fakeServer) {
					s.udp, s.tcp, s.icmp, s.refuse = tt.server.udp, tt.server.tcp, tt.server.icmp, tt.server.refuse
				})
				if tt.idle != nil {
					n.sockets[0].in <- tt.idle
				}
				start := time.Now()
				r, err := c.Do(context.Background(), under())
				if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Fatalf("got %v, want %v", err, tt.err)
				}
				if err == nil && r.TCP != tt.overTCP {
					t.Errorf("over TCP: got %v, want %v", r.TCP, tt.overTCP)
				}
				if took := time.Since(start); took > minRTO+minLastTry {
					t.Errorf("took %v", took)
				}
				if got := c.Stats().Mismatches; got != tt.mismatches {
					t.Errorf("got %d mismatches, want %d", got, tt.mismatches)
				}
				if open := n.openSockets(); (open == 0) != (tt.overTCP || tt.err != nil) {
					t.Errorf("%d sockets are open", open)
				}
				if tt.err == nil {
					if i, _ := c.Server(addr("192.0.2.53")); i.Fails != 0 {
						t.Errorf("%d timeouts are held against the server", i.Fails)
					}
				}
			})
		})
	}
}

// TestSocketCopies: copies of the response before are passed over, as far as they can be a network's.
func TestSocketCopies(t *testing.T) {
	for n, wantTCP := range map[int]bool{1: false, 2: false, 3: false, 4: true, 50: true} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeServer{udp: copies(n), tcp: reply()}
			_, c := reusing(t, s, Config{})
			mustDo(t, c, under())
			time.Sleep(10 * time.Millisecond)
			if r := mustDo(t, c, under()); r.TCP != wantTCP {
				t.Errorf("%d copies: over TCP %v, want %v", n, r.TCP, wantTCP)
			}
		})
	}
}

// TestSocketOneQuery: a socket never carries two queries at once, however many ask.
func TestSocketOneQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := reusing(t, &fakeServer{udp: reply(), delay: 10 * time.Millisecond}, Config{})
		var clients sync.WaitGroup
		for i := range 2000 {
			clients.Go(func() { mustDo(t, c, under()) })
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		clients.Wait()
		for _, u := range n.sockets {
			if u.overlaps != 0 {
				t.Fatalf("a socket carried %d queries at once", u.overlaps+1)
			}
		}
		if got := len(n.sockets); got > 2000/socketUses*2 {
			t.Errorf("got %d sockets for 2000 queries, want about %d", got, 2000/socketUses)
		}
		if got := n.openSockets(); got > idlePerServer {
			t.Errorf("%d idle sockets are kept, want at most %d", got, idlePerServer)
		}
		c.Close()
		if got := n.openSockets(); got != 0 {
			t.Errorf("%d sockets are open after Close", got)
		}
		mustDo(t, c, under())
		if got := n.openSockets(); got != 0 {
			t.Errorf("%d sockets are kept after Close", got)
		}
	})
}

// TestSocketsInAll: idle sockets are bounded over all servers.
func TestSocketsInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.reuse = true
		c := n.client(Config{})
		for i := range 2 * idleInAll {
			a := under()
			host := fmt.Sprintf("198.51.%d.%d", i/250, i%250+1)
			n.add(host, &fakeServer{udp: reply()})
			a.Server = addr(host)
			mustDo(t, c, a)
		}
		if got := n.openSockets(); got > idleInAll || got < idleInAll/2 {
			t.Errorf("%d sockets are kept, want %d", got, idleInAll)
		}
		time.Sleep(socketAge + sweepEvery)
		synctest.Wait()
		if got := n.openSockets(); got != 0 {
			t.Errorf("%d sockets are open after %v", got, socketAge+sweepEvery)
		}
	})
}

// TestSocketCanceled: a Do that was called off leaves no socket behind.
func TestSocketCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := reusing(t, &fakeServer{udp: reply(), delay: 100 * time.Millisecond}, Config{})
		mustDo(t, c, under())
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := c.Do(ctx, under()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if got := n.openSockets(); got != 0 {
			t.Errorf("%d sockets are open", got)
		}
	})
}

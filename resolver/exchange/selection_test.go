package exchange

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/wire"
)

// resolve asks the servers of a zone as iterate does: one after the other as Choose picks, until
// one answers, with up to rounds passes over all of them.
func resolve(c *Client, servers []netip.AddrPort, rounds int) error {
	err := error(ErrTimeout)
	since := time.Now()
	for round := range rounds {
		var tried []netip.AddrPort
		for {
			server, ok := c.Choose(wire.MustName("example."), servers, tried)
			if !ok {
				break
			}
			tried = append(tried, server)
			a := &Ask{Server: server, Zone: wire.MustName("example."), Name: wire.MustName("www.example."), Type: wire.TypeA, Retry: round, Since: since,
				Others: len(tried) < len(servers)}
			if _, err = c.Do(context.Background(), a); err == nil {
				return nil
			} else if errors.Is(err, ErrWaited) {
				tried = tried[:len(tried)-1]
			}
		}
	}
	return err
}

func addrs(list ...string) (all []netip.AddrPort) {
	for _, s := range list {
		all = append(all, addr(s))
	}
	return all
}

func (n *fakeNet) sent(a string) int {
	udp, _ := n.servers[addr(a)].counts()
	return udp
}

// TestFastestIsPreferred: most queries go to the fastest, and the others are still tried.
func TestFastestIsPreferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		for i, ms := range []int{200, 20, 90, 150} {
			n.add(fmt.Sprintf("192.0.2.%d", i+1), &fakeServer{udp: reply(), delay: time.Duration(ms) * time.Millisecond})
		}
		servers := addrs("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")
		c := n.client(Config{})
		for range 600 {
			if err := resolve(c, servers, 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if fast := n.sent("192.0.2.2"); fast < 450 {
			t.Errorf("the fastest got %d of 600 queries, want most", fast)
		}
		for _, s := range servers {
			// 600 s of traffic: at least once a minute.
			if got := n.sent(s.Addr().String()); got < 10 {
				t.Errorf("%v got %d queries in 10 minutes, want at least 10", s, got)
			}
		}
	})
}

// TestEqualsShare: servers that are about as fast share the load.
func TestEqualsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		for i, ms := range []int{20, 22, 24} {
			n.add(fmt.Sprintf("192.0.2.%d", i+1), &fakeServer{udp: reply(), delay: time.Duration(ms) * time.Millisecond})
		}
		servers := addrs("192.0.2.1", "192.0.2.2", "192.0.2.3")
		c := n.client(Config{})
		for range 600 {
			if err := resolve(c, servers, 1); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range servers {
			if got := n.sent(s.Addr().String()); got < 120 {
				t.Errorf("%v got %d of 600 queries, want about a third", s, got)
			}
		}
	})
}

// TestOneDead: a dead server beside a live one costs its clients little, and is found again within
// a minute of traffic once it is back.
func TestOneDead(t *testing.T) {
	for _, every := range []time.Duration{50 * time.Millisecond, time.Second, 5 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				dead := n.add("192.0.2.1", &fakeServer{})
				n.add("192.0.2.2", &fakeServer{udp: reply(), delay: 20 * time.Millisecond})
				servers := addrs("192.0.2.1", "192.0.2.2")
				c := n.client(Config{})
				var slow, all int
				for start := time.Now(); time.Since(start) < min(20*time.Minute, 2000*every); all++ {
					begin := time.Now()
					if err := resolve(c, servers, 1); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begin); took > 25*time.Millisecond {
						slow++
						if took > 1600*time.Millisecond {
							t.Errorf("an answer took %v", took)
						}
					}
					time.Sleep(every)
				}
				if limit := 5 + all/6; slow > limit || slow > 100 {
					t.Errorf("%d of %d answers waited for the dead server", slow, all)
				}
				dead.set(func(s *fakeServer) { s.udp, s.udpSeen = reply(), nil })
				for start := time.Now(); time.Since(start) < 60*time.Second; {
					_ = resolve(c, servers, 1)
					time.Sleep(every)
				}
				if n.sent("192.0.2.1") == 0 {
					t.Error("not tried in a minute of traffic after it came back")
				}
			})
		})
	}
}

// TestOutage: whenever a zone's servers come back after an outage of any length, the first fresh
// name is answered within 5 s, and every address is asked within a minute of traffic.
func TestOutage(t *testing.T) {
	for _, servers := range [][]netip.AddrPort{
		addrs("192.0.2.1"),
		addrs("192.0.2.1", "192.0.2.2"),
		addrs("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"),
	} {
		for _, outage := range []time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour} {
			for _, known := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d servers, %v, known %v", len(servers), outage, known), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testOutage(t, servers, outage, known) })
				})
			}
		}
	}
}

func testOutage(t *testing.T, servers []netip.AddrPort, outage time.Duration, known bool) {
	n := newFakeNet(t)
	for _, s := range servers {
		n.add(s.Addr().String(), &fakeServer{udp: reply(), delay: 30 * time.Millisecond})
	}
	c := n.client(Config{})
	turn := func(answer reaction) {
		for _, s := range n.servers {
			s.set(func(s *fakeServer) { s.udp, s.udpSeen = answer, nil })
		}
	}
	for range 100 {
		if known {
			_ = resolve(c, servers, 1)
		}
	}
	turn(nil)
	var clients sync.WaitGroup
	for start := time.Now(); time.Since(start) < outage; time.Sleep(max(300*time.Millisecond, outage/500)) {
		clients.Go(func() { _ = resolve(c, servers, 1) })
	}
	turn(reply())
	start := time.Now()
	if err := resolve(c, servers, 1); err != nil {
		t.Fatalf("the first fresh name failed after %v: %v", time.Since(start), err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the first fresh name took %v", took)
	}
	clients.Wait()
	for time.Since(start) < 60*time.Second {
		if err := resolve(c, servers, 1); err != nil {
			t.Errorf("failed %v after the outage: %v", time.Since(start), err)
		}
		time.Sleep(time.Second)
	}
	for _, s := range servers {
		if n.sent(s.Addr().String()) == 0 {
			t.Errorf("%v not asked in the minute after the outage", s)
		}
	}
}

// TestOneOfManyComesBack: it makes no difference that the other servers of the zone stay dead.
func TestOneOfManyComesBack(t *testing.T) {
	servers := addrs("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")
	for i := range servers {
		for _, outage := range []time.Duration{10 * time.Second, 73 * time.Second, 20 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				for _, s := range servers {
					n.add(s.Addr().String(), &fakeServer{})
				}
				c := n.client(Config{})
				var clients sync.WaitGroup
				for start := time.Now(); time.Since(start) < outage; time.Sleep(777 * time.Millisecond) {
					clients.Go(func() { _ = resolve(c, servers, 1) })
				}
				n.servers[servers[i]].set(func(s *fakeServer) { s.udp, s.delay = reply(), 30*time.Millisecond })
				start := time.Now()
				if err := resolve(c, servers, 1); err != nil || time.Since(start) > 5*time.Second {
					t.Errorf("server %d after %v: the first fresh name took %v (%v)", i, outage, time.Since(start), err)
				}
				clients.Wait()
			})
		}
	}
}

// TestSince: a resolution does not wait for a server that was found silent since it began.
func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.1", &fakeServer{})
		c := n.client(Config{})
		start := time.Now()
		for range deadAfter {
			_, _ = c.Do(context.Background(), ask("192.0.2.1", "www.example."))
		}
		for since, want := range map[time.Time]time.Duration{start: 0, time.Now(): minHold + unknownRTO} {
			begin := time.Now()
			a := ask("192.0.2.1", "www.example.")
			a.Since = since
			if _, err := c.Do(context.Background(), a); !errors.Is(err, ErrTimeout) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begin); took > want {
				t.Errorf("since %v: took %v, want at most %v", since.Sub(start), took, want)
			}
		}
	})
}

// TestManyComeBack: of the 26 addresses of a root or TLD, too, each is asked within the minute.
func TestManyComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		var servers []netip.AddrPort
		for i := range 13 {
			for _, format := range []string{"192.0.2.%d", "2001:db8::%d"} {
				a := fmt.Sprintf(format, i+1)
				n.add(a, &fakeServer{udp: reply(), delay: time.Duration(5+10*i) * time.Millisecond})
				servers = append(servers, addr(a))
			}
		}
		c := n.client(Config{})
		pass := func(d time.Duration) {
			for start := time.Now(); time.Since(start) < d; time.Sleep(time.Second) {
				_ = resolve(c, servers, 1)
			}
		}
		pass(5 * time.Minute)
		for _, s := range n.servers {
			s.set(func(s *fakeServer) { s.udp = nil })
		}
		pass(time.Hour)
		for _, s := range n.servers {
			s.set(func(s *fakeServer) { s.udp, s.udpSeen = reply(), nil })
		}
		pass(time.Minute)
		for _, s := range servers {
			if n.sent(s.Addr().String()) == 0 {
				t.Errorf("%v not asked in the minute after the outage", s)
			}
		}
	})
}

// TestFamilyGoesDark: the loss of a family whose servers were known and fast costs the next answers
// little.
func TestFamilyGoesDark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		var zones [3][]netip.AddrPort
		for z := range zones {
			for i := range 2 {
				for _, format := range []string{"192.0.%d.%d", "2001:db8:%d::%d"} {
					a := fmt.Sprintf(format, z, i+1)
					s := n.add(a, &fakeServer{udp: reply(), delay: 30 * time.Millisecond})
					if addr(a).Addr().Is6() {
						s.delay = 5 * time.Millisecond
					}
					zones[z] = append(zones[z], addr(a))
				}
			}
		}
		c := n.client(Config{})
		for range 30 {
			for _, servers := range zones {
				_ = resolve(c, servers, 1)
			}
		}
		for a, s := range n.servers {
			if a.Addr().Is6() {
				s.set(func(s *fakeServer) { s.udp = nil })
			}
		}
		start := time.Now()
		for _, servers := range zones {
			if err := resolve(c, servers, 1); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took > 1500*time.Millisecond {
			t.Errorf("three zones took %v", took)
		}
	})
}

// TestSilentServerIsLeftAlone: fresh names under a dead server cost one packet at a time, seconds
// apart, and the Asks beyond a few fail at once.
func TestSilentServerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.1", &fakeServer{})
		c := n.client(Config{})
		var clients sync.WaitGroup
		for range 200 {
			clients.Go(func() { _ = resolve(c, addrs("192.0.2.1"), 3) })
			time.Sleep(100 * time.Millisecond)
		}
		clients.Wait()
		// Those that joined before it was known to be dead are on top: 4 a round trip of 376 ms.
		if got := n.sent("192.0.2.1"); got > 50 {
			t.Errorf("got %d packets in 20 s, want at most 50", got)
		}
		n.servers[addr("192.0.2.1")].set(func(s *fakeServer) { s.udpTimes = nil })
		for range 200 {
			clients.Go(func() { _ = resolve(c, addrs("192.0.2.1"), 1) })
			time.Sleep(100 * time.Millisecond)
		}
		clients.Wait()
		if got := len(n.servers[addr("192.0.2.1")].udpTimes); got > 10 {
			t.Errorf("got %d packets in the next 20 s, want at most 10", got)
		}
	})
}

// TestFlood: of a flood of queries for a silent server only a few wait, and for no long time.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.1", &fakeServer{})
		c := n.client(Config{})
		var clients sync.WaitGroup
		var mu sync.Mutex
		waiting, most, busy := 0, 0, 0
		for i := range 5000 {
			clients.Go(func() {
				mu.Lock()
				waiting++
				most = max(most, waiting)
				mu.Unlock()
				_, err := c.Do(context.Background(), ask("192.0.2.1", "www.example."))
				mu.Lock()
				waiting--
				if errors.Is(err, ErrBusy) {
					busy++
				}
				mu.Unlock()
				if err == nil {
					t.Error("an answer of a silent server")
				}
			})
			if i%5 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		clients.Wait()
		if limit := maxOutstandingUnknown + maxQueued + 8; most > limit {
			t.Errorf("%d waited at once, want at most %d", most, limit)
		}
		if got := n.sent("192.0.2.1"); got > 500 {
			t.Errorf("got %d packets, want at most 500", got)
		}
		if got := c.Stats().Busy; got != uint64(busy) || busy == 0 {
			t.Errorf("got %d counted as busy, want %d", got, busy)
		}
	})
}

// TestBurstAtUnknown: a burst at a server never heard of waits for its first answer, and then goes
// on.
func TestBurstAtUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.1", &fakeServer{udp: reply(), delay: 100 * time.Millisecond})
		c := n.client(Config{})
		var clients sync.WaitGroup
		start := time.Now()
		for range maxOutstandingUnknown + maxQueued {
			clients.Go(func() { mustDo(t, c, ask("192.0.2.1", "www.example.")) })
		}
		clients.Wait()
		if took := time.Since(start); took > 250*time.Millisecond {
			t.Errorf("took %v, want two round trips", took)
		}
	})
}

// TestSlowServer: a server slower than the first timeout is waited for longer and longer, and then
// known.
func TestSlowServer(t *testing.T) {
	for _, rtt := range []time.Duration{500 * time.Millisecond, time.Second, 1400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			n := newFakeNet(t)
			n.add("192.0.2.1", &fakeServer{udp: reply(), delay: rtt})
			c := n.client(Config{})
			start := time.Now()
			if err := resolve(c, addrs("192.0.2.1"), 3); err != nil {
				t.Errorf("round trip %v: %v", rtt, err)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("round trip %v: took %v", rtt, took)
			}
			start = time.Now()
			if err := resolve(c, addrs("192.0.2.1"), 1); err != nil || time.Since(start) != rtt {
				t.Errorf("round trip %v: the next query took %v (%v)", rtt, time.Since(start), err)
			}
		})
	}
}

// TestFamilies: with one family swallowed by the network or without route, a chain of three cold
// zones with addresses of both costs at most a second over its round trips.
func TestFamilies(t *testing.T) {
	tests := []struct {
		name string
		down bool // IPv4 is the one
		err  error
	}{
		{"IPv6 black-holed", false, nil},
		{"IPv4 black-holed", true, nil},
		{"IPv6 without route", false, syscall.ENETUNREACH},
		{"IPv4 without route", true, syscall.ENETUNREACH},
		{"IPv6 not in the kernel", false, syscall.EAFNOSUPPORT},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 8 {
				synctest.Test(t, func(t *testing.T) { testFamily(t, tt.down, tt.err) })
			}
		})
	}
}

func testFamily(t *testing.T, downIs4 bool, dialErr error) {
	n := newFakeNet(t)
	if dialErr != nil {
		n.dialErr[downIs4] = dialErr
	}
	var zones [40][]netip.AddrPort
	for z := range zones {
		for i := range 3 {
			for _, format := range []string{"192.0.%d.%d", "2001:db8:%d::%d"} {
				a := fmt.Sprintf(format, z, i+1)
				s := n.add(a, &fakeServer{})
				if addr(a).Addr().Is4() != downIs4 {
					s.udp, s.delay = reply(), 30*time.Millisecond
				}
				zones[z] = append(zones[z], addr(a))
			}
		}
	}
	c := n.client(Config{})
	start := time.Now()
	for _, servers := range zones[:3] {
		if err := resolve(c, servers, 1); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took > 1200*time.Millisecond {
		t.Errorf("three cold zones took %v", took)
	}
	// Once it is learned, hardly a cold zone pays for it.
	paid := 0
	for _, servers := range zones[3:] {
		begin := time.Now()
		if err := resolve(c, servers, 1); err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) > 30*time.Millisecond {
			paid++
		}
		time.Sleep(100 * time.Millisecond)
	}
	if paid > 4 {
		t.Errorf("%d of 37 later zones paid for the family that is down", paid)
	}
	for range 20 {
		_ = resolve(c, zones[0], 1)
	}
	v4, v6 := c.Families()
	if dialErr != nil && (v4 == downIs4 || v6 != downIs4) {
		t.Errorf("Families: got %v, %v with IPv4 down: %v", v4, v6, downIs4)
	}
}

// TestFamilyComesBack: a family that was learned to be down is used again within a minute of
// traffic once it works.
func TestFamilyComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.add("192.0.2.1", &fakeServer{udp: reply(), delay: 30 * time.Millisecond})
		six := n.add("2001:db8::1", &fakeServer{})
		servers := addrs("192.0.2.1", "2001:db8::1")
		c := n.client(Config{})
		for range 300 {
			_ = resolve(c, servers, 1)
			time.Sleep(time.Second)
		}
		if _, ipv6 := c.Families(); ipv6 {
			t.Error("IPv6 is thought to work after 5 minutes without a response")
		}
		six.set(func(s *fakeServer) { s.udp, s.delay = reply(), 10*time.Millisecond })
		for range 60 {
			_ = resolve(c, servers, 1)
			time.Sleep(time.Second)
		}
		if _, ipv6 := c.Families(); !ipv6 {
			t.Error("IPv6 is not used a minute after it came back")
		}
	})
}

// TestBothFamiliesEarly: after a few queries both families have been tried.
func TestBothFamiliesEarly(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			n := newFakeNet(t)
			var servers []netip.AddrPort
			for i := range 13 {
				for _, format := range []string{"192.0.2.%d", "2001:db8::%d"} {
					a := fmt.Sprintf(format, i+1)
					n.add(a, &fakeServer{udp: reply(), delay: 30 * time.Millisecond})
					servers = append(servers, addr(a))
				}
			}
			c := n.client(Config{})
			for range 16 { // 2^-15 to miss
				_ = resolve(c, servers, 1)
			}
			var seen [2]int
			for _, i := range c.Servers() {
				seen[familyIndex(i.Addr.Addr())]++
			}
			if seen[0] == 0 || seen[1] == 0 {
				t.Errorf("tried %d IPv4 and %d IPv6 addresses in 16 queries", seen[0], seen[1])
			}
		})
	}
}

func TestLame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		c := n.client(Config{})
		zone, other := wire.MustName("Example."), wire.MustName("other.")
		servers := addrs("192.0.2.1", "192.0.2.2")
		c.MarkLame(servers[0], zone)
		seen := map[netip.AddrPort]int{}
		for range 200 {
			s, _ := c.Choose(wire.MustName("example."), servers, nil)
			seen[s]++
		}
		if seen[servers[0]] != 0 {
			t.Errorf("a lame server was chosen %d times", seen[servers[0]])
		}
		if s, ok := c.Choose(zone, servers, servers[1:]); !ok || s != servers[0] {
			t.Errorf("with nothing else left: got %v, %v, want the lame one", s, ok)
		}
		for range 200 {
			s, _ := c.Choose(other, servers, nil)
			seen[s]++
		}
		if seen[servers[0]] == 0 {
			t.Error("lame for a zone it was not marked for")
		}
		time.Sleep(lameFor)
		clear(seen)
		for range 200 {
			s, _ := c.Choose(zone, servers, nil)
			seen[s]++
		}
		if seen[servers[0]] == 0 {
			t.Errorf("still lame after %v", lameFor)
		}
		for i := range 100 {
			c.MarkLame(servers[0], wire.MustName(fmt.Sprintf("zone%d.", i)))
		}
		if i, _ := c.Server(servers[0]); i.LameZones != lameLimit {
			t.Errorf("got %d zones remembered, want %d", i.LameZones, lameLimit)
		}
	})
}

// TestTableIsBounded: addresses made up by a hostile zone push out each other, not the servers that
// answer.
func TestTableIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.dialErr[false] = syscall.ENETUNREACH
		n.add("192.0.2.1", &fakeServer{udp: reply()})
		c := n.client(Config{Servers: 512})
		for i := range 50 {
			n.add(fmt.Sprintf("192.0.2.%d", i+1), &fakeServer{udp: reply()})
			mustDo(t, c, ask(fmt.Sprintf("192.0.2.%d", i+1), "www.example."))
		}
		for i := range 6000 {
			_, _ = c.Do(context.Background(), ask(fmt.Sprintf("2001:db8::%x", i+1), "www.example."))
		}
		good := 0
		all := c.Servers()
		for _, i := range all {
			if i.SRTT > 0 {
				good++
			}
		}
		if len(all) > 512 {
			t.Errorf("got %d records, want at most 512", len(all))
		}
		if good < 45 {
			t.Errorf("%d of 50 good servers are still known", good)
		}
	})
}

func TestChooseUsable(t *testing.T) {
	n := newFakeNet(t)
	c := n.client(Config{DoNotQuery: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:bad::/48")}})
	bad := []string{"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.9.9.9", "224.0.0.1", "255.255.255.255", "198.51.100.7",
		"::", "::1", "ff02::1", "::ffff:192.0.2.1", "fe80::1", "2001:db8:bad::1"}
	for _, a := range bad {
		if c.Usable(netip.MustParseAddr(a)) {
			t.Errorf("%s may be asked", a)
		}
		if s, ok := c.Choose(wire.Root, addrs(a), nil); ok {
			t.Errorf("%v was chosen", s)
		}
		if _, err := c.Do(context.Background(), ask(a, "www.example.")); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: got %v, want %v", a, err, ErrUnreachable)
		}
	}
	if len(n.ports) != 0 {
		t.Errorf("%d packets were sent", len(n.ports))
	}
	for _, a := range []string{"192.0.2.1", "10.0.0.1", "169.254.1.1", "2001:db8::1", "fe80::1%eth0"} {
		if !c.Usable(netip.MustParseAddr(a)) {
			t.Errorf("%s may not be asked", a)
		}
	}
	for _, tt := range []struct {
		config Config
		v4, v6 bool
		local  bool
	}{
		{Config{IPv4: true}, true, false, false},
		{Config{IPv6: true}, false, true, false},
		{Config{IPv4: true, IPv6: true, QueryLocalhost: true}, true, true, true},
	} {
		c := n.client(tt.config)
		got := [3]bool{c.Usable(netip.MustParseAddr("192.0.2.1")), c.Usable(netip.MustParseAddr("2001:db8::1")), c.Usable(netip.MustParseAddr("127.0.0.1"))}
		if got != [3]bool{tt.v4, tt.v6, tt.local} {
			t.Errorf("%+v: got %v", tt.config, got)
		}
	}
}

// TestChooseMany: a zone of very many addresses costs a bounded look, and all get their turn.
func TestChooseMany(t *testing.T) {
	n := newFakeNet(t)
	c := n.client(Config{})
	var servers []netip.AddrPort
	for i := range 1500 {
		servers = append(servers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), 53))
	}
	seen := map[netip.AddrPort]bool{}
	for range 3000 {
		s, ok := c.Choose(wire.Root, servers, nil)
		if !ok {
			t.Fatal("none chosen")
		}
		seen[s] = true
	}
	if len(seen) < 1000 {
		t.Errorf("only %d of 1500 were chosen", len(seen))
	}
	var tried []netip.AddrPort
	for range 3 {
		s, _ := c.Choose(wire.Root, servers[:3], tried)
		tried = append(tried, s)
	}
	if _, ok := c.Choose(wire.Root, servers[:3], tried); ok {
		t.Error("something was chosen although all were tried")
	}
}

package serve

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func newUnbound(c Config) *Server {
	c.setDefaults()
	s := &Server{config: c, handler: &scripted{}, drain: make(chan struct{})}
	return s
}

func TestBindIsAllOrNothing(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			var taken netip.AddrPort
			if network == "udp" {
				conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				taken = addrPortOf(conn.LocalAddr())
			} else {
				l, err := net.Listen("tcp4", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				taken = addrPortOf(l.Addr())
			}
			free, err := New(Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}}, &scripted{})
			if err != nil {
				t.Fatal(err)
			}
			free.closeSockets()
			first := free.Addrs()[0]

			_, err = New(Config{Listen: []netip.AddrPort{first, taken}, Workers: 2}, &scripted{})
			var bindError *BindError
			if !errors.As(err, &bindError) || bindError.Addr != taken || bindError.Network != network {
				t.Fatalf("got error %v, want one about %s %s", err, network, taken)
			}
			if text := err.Error(); !strings.Contains(text, taken.String()) || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line with the address", text)
			}
			again, err := New(Config{Listen: []netip.AddrPort{first}}, &scripted{})
			if err != nil {
				t.Fatalf("the first address is still taken: %v", err)
			}
			again.closeSockets()
		})
	}
}

// TestBindIsExclusive: that the workers of one server share a port must not let two servers share it.
func TestBindIsExclusive(t *testing.T) {
	c := Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}, Workers: 3}
	s, err := New(c, &scripted{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.closeSockets()
	for _, l := range s.listeners {
		l.Close() // UDP alone must hold it
	}
	c.Listen = s.Addrs()
	if other, err := New(c, &scripted{}); err == nil {
		other.closeSockets()
		t.Error("got a second server on the same port")
	}
}

func TestBindErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  BindError
		want []string
	}{
		{"denied", BindError{"udp", netip.MustParseAddrPort("127.0.0.1:53"), os.NewSyscallError("bind", syscall.EACCES)},
			[]string{"udp 127.0.0.1:53", "another port"}},
		{"denied above the limit", BindError{"udp", netip.MustParseAddrPort("127.0.0.1:5300"), syscall.EACCES},
			[]string{"udp 127.0.0.1:5300"}},
		{"in use", BindError{"tcp", netip.MustParseAddrPort("[::1]:53"), &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}},
			[]string{"tcp [::1]:53", "another server"}},
		{"not ours", BindError{"udp", netip.MustParseAddrPort("192.0.2.1:53"), syscall.EADDRNOTAVAIL},
			[]string{"192.0.2.1:53", "no interface"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, want := range tc.want {
				if got := tc.err.Error(); !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
		})
	}
}

// TestOptionalAddresses binds 192.0.2.1, which no machine has (RFC 5737), in place of a ::1 that the
// machine lacks.
func TestOptionalAddresses(t *testing.T) {
	present, lacking := netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("192.0.2.1:53000")
	for _, tc := range []struct {
		name     string
		addrs    []netip.AddrPort
		optional bool
		bound    int
		fails    bool
	}{
		{"second lacks", []netip.AddrPort{present, lacking}, true, 1, false},
		{"first lacks", []netip.AddrPort{lacking, present}, true, 1, false},
		{"all lack", []netip.AddrPort{lacking, lacking}, true, 0, true},
		{"asked for", []netip.AddrPort{present, lacking}, false, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newUnbound(Config{Workers: 1})
			defer s.closeSockets()
			err := s.bindAll(tc.addrs, tc.optional)
			if got := err != nil; got != tc.fails {
				t.Errorf("got error %v, want failure %v", err, tc.fails)
			}
			if len(s.addrs) != tc.bound {
				t.Errorf("got %v bound, want %d addresses", s.addrs, tc.bound)
			}
			if !tc.fails && !slices.Equal(s.Absent(), []netip.AddrPort{lacking}) {
				t.Errorf("got %v left out, want %v", s.Absent(), lacking)
			}
		})
	}
}

func TestDualStack(t *testing.T) {
	parse := func(texts ...string) (addrs []netip.AddrPort) {
		for _, s := range texts {
			addrs = append(addrs, netip.MustParseAddrPort(s))
		}
		return addrs
	}
	for _, tc := range []struct {
		listen []netip.AddrPort
		want   []bool
	}{
		{parse("[::]:53"), []bool{true}},
		{parse("[::]:53", "0.0.0.0:53"), []bool{false, false}},
		{parse("0.0.0.0:54", "[::]:53"), []bool{false, true}},
		{parse("127.0.0.1:53", "[::1]:53"), []bool{false, false}},
	} {
		t.Run(fmt.Sprint(tc.listen), func(t *testing.T) {
			for i, a := range tc.listen {
				if got := dualStack(a, tc.listen); got != tc.want[i] {
					t.Errorf("%v: got %v, want %v", a, got, tc.want[i])
				}
			}
		})
	}
}

func TestBothWildcards(t *testing.T) {
	four := local(t, "0.0.0.0")
	local(t, "::1")
	s, err := New(Config{Listen: []netip.AddrPort{four}, Workers: 2}, &scripted{})
	if err != nil {
		t.Fatal(err)
	}
	port := s.Addrs()[0].Port()
	s.closeSockets()
	both := []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), port), netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
	h := &scripted{}
	start(t, Config{Listen: both, Workers: 2}, h)
	for _, a := range []string{"127.0.0.1", "::1"} {
		c := dial(t, netip.AddrPortFrom(netip.MustParseAddr(a), port))
		c.send(query(1, "hit"))
		checkEcho(t, c.receive(), query(1, "hit"))
	}
}

func TestExpandWildcard(t *testing.T) {
	for _, tc := range []struct {
		wildcard string
		dual     bool
		want     []string
	}{
		{"0.0.0.0:53", false, []string{"192.0.2.1:53"}},
		{"[::]:53", false, []string{"[2001:db8::1]:53", "[fe80::1%if0]:53"}},
		{"[::]:53", true, []string{"192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%if0]:53"}},
	} {
		t.Run(fmt.Sprint(tc.wildcard, " ", tc.dual), func(t *testing.T) {
			var got []string
			for _, a := range []string{"192.0.2.1", "2001:db8::1", "fe80::1"} {
				for _, e := range appendExpanded(nil, netip.MustParseAddrPort(tc.wildcard), tc.dual, net.ParseIP(a), "if0") {
					got = append(got, e.String())
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if addrs, err := expandInterfaces(netip.MustParseAddrPort("0.0.0.0:53"), false); err != nil || len(addrs) == 0 {
		t.Errorf("got %v and error %v, want this machine's addresses", addrs, err)
	}
}

// TestHandedIn serves sockets made by someone else, and closes them.
func TestHandedIn(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrapped := range []bool{false, true} {
		t.Run(fmt.Sprint("wrapped ", wrapped), func(t *testing.T) {
			c := Config{PacketConns: []net.PacketConn{conn}, Listeners: []net.Listener{l}}
			if wrapped {
				// Of another type than the system's own, and so read as any net.PacketConn can be.
				other, err := net.ListenPacket("udp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				c = Config{PacketConns: []net.PacketConn{struct{ net.PacketConn }{other}}}
			}
			s := start(t, c, &scripted{})
			want := []netip.AddrPort{addrPortOf(c.PacketConns[0].LocalAddr())}
			if !wrapped {
				want = append(want, addrPortOf(l.Addr()))
			}
			if !slices.Equal(s.Addrs(), want) {
				t.Errorf("got %v, want %v and nothing bound besides", s.Addrs(), want)
			}
			d := dial(t, addrPortOf(c.PacketConns[0].LocalAddr()))
			for _, label := range []string{"hit", "miss"} {
				d.send(query(1, label))
				checkEcho(t, d.receive(), query(1, label))
			}
		})
	}
	if _, err := conn.WriteTo(nil, conn.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want the socket closed with the server", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want the listener closed with the server", err)
	}
}

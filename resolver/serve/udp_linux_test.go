package serve

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// hasManyLoopbacks says that all of 127.0.0.0/8 is this machine, as on Linux.
const hasManyLoopbacks = true

// TestUDPBadSource forges datagrams from where nothing can be sent back to.
func TestUDPBadSource(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP)
	if err != nil {
		t.Skip("needs the right to make raw sockets: ", err)
	}
	defer unix.Close(fd)
	for _, path := range paths {
		for _, listen := range []string{"127.0.0.1", "0.0.0.0"} {
			t.Run(path.name+"/"+listen, func(t *testing.T) {
				s := start(t, Config{Listen: []netip.AddrPort{local(t, listen)}, Portable: path.portable, Workers: 1}, &scripted{})
				port := s.Addrs()[0].Port()
				q := query(1, "hit")
				// RFC 768: source port, destination port, length, checksum (none).
				d := binary.BigEndian.AppendUint16([]byte{0, 0}, port)
				d = binary.BigEndian.AppendUint16(d, uint16(8+len(q)))
				d = append(append(d, 0, 0), q...)
				if err := unix.Sendto(fd, d, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the datagram is dropped", func() bool { return s.Stats().BadSource == 1 })
				if st := s.Stats(); st.UDP != (Flow{}) {
					t.Errorf("got %+v, want nothing counted", st.UDP)
				}
			})
		}
	}
}

func TestUDPBroadcastIsDropped(t *testing.T) {
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			s := start(t, Config{Listen: []netip.AddrPort{local(t, "0.0.0.0")}, Portable: path.portable, Workers: 1}, &scripted{})
			conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.255.255.255"), s.Addrs()[0].Port()))
			if _, err := conn.WriteTo(query(1, "hit"), to); err != nil {
				t.Skip("no broadcast on the loopback interface: ", err)
			}
			eventually(t, "the datagram is dropped", func() bool { return s.Stats().BadSource == 1 })
		})
	}
}

func TestKernelDrops(t *testing.T) {
	s, err := New(Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}, Workers: 1, ReceiveBuffer: 1}, &scripted{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.closeSockets()
	// Nothing reads; the system's default is some hundred datagrams.
	c := dial(t, s.Addrs()[0])
	size := s.Stats().Sockets[0].ReceiveBuffer
	n := size/100 + 1
	for range n {
		c.send(query(1, "hit"))
	}
	if st := s.Stats(); st.KernelDrops == 0 || st.KernelDrops >= uint64(n) {
		t.Errorf("got %d drops of %d datagrams in a buffer of %d bytes, want some", st.KernelDrops, n, size)
	}
}

func TestBuffersAreSized(t *testing.T) {
	s, err := New(Config{Listen: []netip.AddrPort{local(t, "127.0.0.1")}, Workers: 1, ReceiveBuffer: 300_000, SendBuffer: 300_000}, &scripted{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.closeSockets()
	// An ordinary process gets at least what net.core.rmem_max allows, of 212,992 bytes at least.
	for _, st := range s.Stats().Sockets {
		if st.ReceiveBuffer < 212_992 || st.SendBuffer < 212_992 {
			t.Errorf("got %+v, want buffers of the size asked for", st)
		}
	}
}

func TestAncillary(t *testing.T) {
	for _, tc := range []struct {
		name  string
		local string
		six   bool
	}{
		{"IPv4", "192.0.2.7", false},
		{"IPv6", "2001:db8::7", true},
		{"IPv4 on an IPv6 socket", "192.0.2.7", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			oob := appendSource(nil, netip.MustParseAddr(tc.local), tc.six)
			if !tc.six {
				// Received, it names the destination in the header as well.
				copy(oob[ancillaryHeader+8:], oob[ancillaryHeader+4:ancillaryHeader+8])
			}
			if got := destination(oob); got.String() != tc.local {
				t.Errorf("got %v, want %v", got, tc.local)
			}
			for n := range oob {
				if got := destination(oob[:min(n, ancillaryHeader)]); got.IsValid() {
					t.Errorf("got %v from %d bytes, want none", got, n)
				}
			}
		})
	}
}

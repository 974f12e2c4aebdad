package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"bonsai/resolver/serve"
	"bonsai/wire"
)

// oneZone is an Internet of one server that answers any A query of the root zone and the zone bench.
// It keeps what it allocates apart from what the resolver does.
type oneZone struct{}

func (oneZone) DialUDP(context.Context, netip.AddrPort, netip.AddrPort) (net.Conn, error) {
	return &oneZoneConn{}, nil
}

func (oneZone) DialTCP(context.Context, netip.AddrPort, netip.AddrPort) (net.Conn, error) {
	return nil, errors.New("no TCP here")
}

type oneZoneConn struct {
	buf [512]byte
	n   int
}

func (c *oneZoneConn) Write(query []byte) (int, error) {
	end := wire.HeaderSize
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5
	b := append(c.buf[:0], query[:end]...)
	b[2], b[3] = 0x84, 0
	binary.BigEndian.PutUint16(b[6:], 0)
	binary.BigEndian.PutUint32(b[8:], 0)
	name := wire.BorrowName(query[wire.HeaderSize : end-4])
	qtype := wire.Type(binary.BigEndian.Uint16(query[end-4:]))
	root := []byte{0, 0, 2, 0, 1, 0, 1, 0x51, 0x80, 0, 8, 1, 'a', 4, 'r', 'o', 'o', 't', 0}
	glue := append([]byte("\x01a\x04root\x00"), 0, 1, 0, 1, 0, 1, 0x51, 0x80, 0, 4, 192, 0, 2, 1)
	switch {
	case name == wire.Root && qtype == wire.TypeNS:
		b[7], b[11] = 1, 1
		b = append(append(b, root...), glue...)
	case qtype == wire.TypeA && name.Labels() == 1: // a referral to the zone
		b[2], b[9], b[11] = 0x80, 1, 1
		b = append(b, 0xC0, 12, 0, 2, 0, 1, 0, 1, 0x51, 0x80, 0, 8, 1, 'a', 4, 'r', 'o', 'o', 't', 0)
		b = append(b, glue...)
	default:
		b[7] = 1
		b = append(b, 0xC0, 12, 0, 1, 0, 1, 0, 0, 0x0E, 0x10, 0, 4, 192, 0, 2, 80)
	}
	c.n = len(b)
	return len(query), nil
}

func (c *oneZoneConn) Read(b []byte) (int, error)         { return copy(b, c.buf[:c.n]), nil }
func (c *oneZoneConn) Close() error                       { return nil }
func (c *oneZoneConn) LocalAddr() net.Addr                { return &net.UDPAddr{} }
func (c *oneZoneConn) RemoteAddr() net.Addr               { return &net.UDPAddr{} }
func (c *oneZoneConn) SetDeadline(time.Time) error        { return nil }
func (c *oneZoneConn) SetReadDeadline(t time.Time) error  { return nil }
func (c *oneZoneConn) SetWriteDeadline(t time.Time) error { return nil }

// coldRecent is how many resolutions are remembered, as they are by the daemon; their memory is used again
// once there have been so many.
const coldRecent = 64

func newColdResolver(t testing.TB) *Resolver {
	return newTestResolver(t, func(c *Config) {
		c.Exchange.Transport = oneZone{}
		c.Recent = coldRecent
		c.Cuts.Hints[0].Addrs = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53")}
	})
}

// coldQuery writes a query for the i-th name that nobody asked before into buf.
func coldQuery(buf []byte, i int) []byte {
	var label [16]byte
	n := copy(label[1:], fmt.Appendf(label[1:1], "host%08d", i))
	label[0] = byte(n)
	name := append(label[:1+n:16], 5)
	var full [64]byte
	q := append(append(full[:0], name[:1+n]...), "\x05bench\x00"...)
	return wire.AppendQuery(buf[:0], uint16(i), wire.FlagRD, q, wire.TypeA, 0, nil)
}

// coldClient asks for one cold name after the other as the front end would.
type coldClient struct {
	t       testing.TB
	r       *Resolver
	w       serve.Worker
	batch   [1]serve.Exchange
	results [1]serve.Result
	i       int
}

func newColdClient(t testing.TB) *coldClient {
	c := newColdClientOf(t, newColdResolver(t))
	for range 2 * coldRecent {
		c.next()
	}
	return c
}

func newColdClientOf(t testing.TB, r *Resolver) *coldClient {
	c := &coldClient{t: t, r: r, w: r.NewWorker()}
	c.batch[0] = serve.Exchange{Client: client4, Response: make([]byte, 0, 1232), Query: make([]byte, 0, 512)}
	return c
}

func (c *coldClient) next() {
	x := &c.batch[0]
	x.Query = coldQuery(x.Query, c.i)
	x.Response = x.Response[:0]
	if c.w.Hit(c.batch[:], c.results[:]); c.results[0] != serve.Missed {
		c.t.Fatalf("name %d is in the cache", c.i)
	}
	x.Response = x.Response[:0]
	c.r.Miss(context.Background(), x)
	if len(x.Response) < wire.HeaderSize || x.Response[7] != 1 || x.Response[3]&0xF != 0 {
		c.t.Fatalf("name %d: response %x", c.i, x.Response)
	}
	c.i++
}

func BenchmarkCold(b *testing.B) {
	c := newColdClient(b)
	b.ReportAllocs()
	for b.Loop() {
		c.next()
	}
}

// TestColdAllocs: what a cold name may allocate, without what the test's Internet does: a dial and the
// name of its server.
func TestColdAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	if n := testing.AllocsPerRun(500, newColdClient(t).next); n > 12 {
		t.Errorf("%v allocations", n)
	}
}

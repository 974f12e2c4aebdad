package iterate

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"bonsai/cache"
	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// canned is an Exchanger that gives the same response to everything.
type canned struct {
	*world
	packet []byte
}

func (c canned) Release(*exchange.Reply) {}

func (c canned) Do(_ context.Context, a *exchange.Ask) (*exchange.Reply, error) {
	r := &exchange.Reply{Server: a.Server}
	return r, r.Parse(c.packet)
}

// BenchmarkResolve is one link below a warm cut, without the exchange: find the cut, choose, scrub,
// classify.
func BenchmarkResolve(b *testing.B) {
	store, err := cache.New(cache.Config{Size: cache.MinSize})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	cuts := zonecut.New(zonecut.Config{Cache: store})
	const now = 1_700_000_000
	cuts.Store(&zonecut.Cut{Zone: wire.MustName("com."), Parent: wire.Root, Expires: now + 86400,
		Servers: []zonecut.Server{{Name: wire.MustName("a.gtld.net."), Addrs: addrs("192.0.2.1")}}}, now, 0)
	cuts.Store(&zonecut.Cut{Zone: wire.MustName("example.com."), Parent: wire.MustName("com."), Expires: now + 86400,
		Servers: []zonecut.Server{
			{Name: wire.MustName("ns1.example.com."), Addrs: addrs("192.0.2.2", "2001:db8::2")},
			{Name: wire.MustName("ns2.example.com."), Addrs: addrs("192.0.2.3", "2001:db8::3")},
		}}, now, 0)
	packet := wire.AppendQuery(nil, 1, wire.FlagAA|1<<15, []byte(wire.MustName("www.example.com.")), wire.TypeA, 0, nil)
	packet[7] = 1 // ANCOUNT
	packet = wire.AppendRecordHeader(packet, []byte{0xC0, 12}, wire.TypeA, 300, 4)
	packet = append(packet, 192, 0, 2, 80)
	it := New(Config{Exchange: canned{&world{}, packet}, Cuts: cuts, Now: func() uint32 { return now }})
	name := wire.MustName("www.example.com.")
	b.ReportAllocs()
	for b.Loop() {
		task := Task{Budget: NewBudget(Limits{})}
		if _, err := it.Resolve(b.Context(), &task, name, wire.TypeA, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestManyServersKept: of a delegation of as many servers as an RRset may have a bounded part is kept.
func TestManyServersKept(t *testing.T) {
	zone := wire.MustName("evil.com.")
	var glue []wire.RRset
	ns := wire.RRset{Owner: zone, Type: wire.TypeNS, Class: wire.ClassIN, TTL: 300}
	for i := range wire.MaxRRsetRecords {
		name := wire.MustName(fmt.Sprintf("n%d.evil.com.", i))
		ns.RDATA = append(ns.RDATA, []byte(name))
		glue = append(glue, wire.RRset{Owner: name, Type: wire.TypeA, Class: wire.ClassIN, TTL: 300, RDATA: [][]byte{{192, 0, 2, byte(i)}}})
	}
	got := makeServers(&ns, glue, wire.MustName("com."), 1)
	if len(got) != zonecut.MaxServers {
		t.Errorf("kept %d servers, want %d", len(got), zonecut.MaxServers)
	}
	p := newPool(&zonecut.Cut{Zone: zone, Servers: got}, nil, &world{barred: map[netip.Addr]bool{}})
	if len(p.addrs) > zonecut.MaxAddrs {
		t.Errorf("kept %d addresses, want at most %d", len(p.addrs), zonecut.MaxAddrs)
	}
}

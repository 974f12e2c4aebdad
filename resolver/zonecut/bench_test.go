package zonecut

import (
	"fmt"
	"testing"

	"bonsai/cache"
	"bonsai/wire"
)

// BenchmarkDeepest is the lookup that each resolution begins with: a zone below a large TLD.
func BenchmarkDeepest(b *testing.B) {
	c, err := cache.New(cache.Config{Size: cache.MinSize})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	m := New(Config{Cache: c})
	tld := &Cut{Zone: wire.MustName("com."), Parent: wire.Root, Expires: start + 86400}
	for i := range 13 {
		tld.Servers = append(tld.Servers, server(fmt.Sprintf("%c.gtld-servers.net.", 'a'+i), fmt.Sprintf("192.0.2.%d", i+1), fmt.Sprintf("2001:db8::%d", i+1)))
	}
	m.Store(tld, start, 0)
	m.Store(&Cut{Zone: wire.MustName("example.com."), Parent: tld.Zone, Expires: start + 86400, Servers: []Server{
		server("ns1.example.com.", "192.0.2.31", "2001:db8::31"), server("ns2.example.com.", "192.0.2.32", "2001:db8::32"),
	}}, start, 0)
	name := wire.MustName("www.example.com.")
	b.ReportAllocs()
	for b.Loop() {
		if m.Deepest(name, start).Zone == wire.Root {
			b.Fatal("not found")
		}
	}
}

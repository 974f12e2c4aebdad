package exchange

import (
	"context"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// TestLoopback asks a real server over real sockets.
func TestLoopback(t *testing.T) {
	started := make(chan struct{})
	server := &dns.Server{Addr: "127.0.0.1:0", Net: "udp", NotifyStartedFunc: func() { close(started) }}
	server.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		rr, _ := dns.NewRR(q.Question[0].Name + " 60 IN A 192.0.2.1")
		m.Answer = append(m.Answer, rr)
		_ = w.WriteMsg(m)
	})
	go func() { _ = server.ListenAndServe() }()
	<-started
	defer server.Shutdown()
	c := New(Config{QueryLocalhost: true})
	defer c.Close()
	addr := netip.MustParseAddrPort(server.PacketConn.LocalAddr().String())
	r, err := c.Do(context.Background(), &Ask{Server: addr, Zone: wire.Root, Name: wire.MustName("www.example."), Type: wire.TypeA})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Records) != 1 || r.Records[0].Type != wire.TypeA || r.TCP || !r.EDNS {
		t.Errorf("got %+v", r)
	}
}

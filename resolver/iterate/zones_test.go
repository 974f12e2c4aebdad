package iterate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/wire"
)

// TestRefusingZone: a zone whose servers refuse everything is asked once in a few seconds, and the
// first answer to anything ends that.
func TestRefusingZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tree+"@ 192.0.2.2\n?? . ANY REFUSED")
		asked := 0
		for i := range 200 {
			w.wantFailure(fmt.Sprintf("n%d.example.com.", i), "A", wire.EDENoReachable)
			asked += len(w.asked)
			time.Sleep(100 * time.Millisecond)
		}
		if asked > 3+10 { // root, com. and example.com. are found first
			t.Errorf("%d queries in 20 s", asked)
		}
		time.Sleep(zoneHold)
		w.servers[netip.MustParseAddr("192.0.2.2")] = nil
		w.parse(zone)
		w.want("www.example.com.", "AAAA", "NODATA | | "+soa)
		w.servers[netip.MustParseAddr("192.0.2.2")] = nil
		w.wantFailure("a.example.com.", "A", wire.EDENoReachable)
		if len(w.asked) != 1 {
			t.Errorf("asked %v, want the count to start anew after an answer", w.asked)
		}
	})
}

// TestFailingZone: a zone whose servers say SERVFAIL to everything is left alone likewise; three types of
// one name say nothing of the others.
func TestFailingZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tree+"@ 192.0.2.2\n? www.example.com. A aa\nan www.example.com. A 192.0.2.80\n?? . ANY SERVFAIL")
		for _, t := range []string{"AAAA", "TYPE65", "MX", "TXT", "AAAA", "NAPTR"} {
			w.wantFailure("one.example.com.", t, wire.EDENetworkError)
		}
		w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
		for _, n := range []string{"a", "b", "c"} {
			w.wantFailure(n+".example.com.", "AAAA", wire.EDENetworkError)
		}
		w.wantFailure("d.example.com.", "AAAA", wire.EDENetworkError)
		w.wantAsked()
		w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
		asked := 0
		for i := range 200 {
			w.wantFailure(fmt.Sprintf("n%d.example.com.", i), "A", wire.EDENetworkError)
			asked += len(w.asked)
			time.Sleep(100 * time.Millisecond)
		}
		if asked > 10 {
			t.Errorf("%d queries in 20 s", asked)
		}
		time.Sleep(zoneHold)
		w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
	})
}

// TestRefusedTypes: servers that refuse some types only are asked for the others.
func TestRefusedTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tree+"@ 192.0.2.2\n?? example.com. A aa\nan www.example.com. A 192.0.2.80")
		for range 10 {
			w.wantFailure("www.example.com.", "AAAA", wire.EDENoReachable)
			w.wantFailure("www.example.com.", "TYPE65", wire.EDENoReachable)
			w.want("www.example.com.", "A", "answer | www.example.com. A 192.0.2.80")
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// TestSilentZone: a zone found silent costs less the next time, and its glue is asked for once.
func TestSilentZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tree)
		w.dead[netip.MustParseAddr("192.0.2.2")] = true
		w.wantFailure("a.example.com.", "A", wire.EDENoReachable)
		if n := strings.Count(strings.Join(w.asked, "\n"), "192.0.2.1 ns.example.com. AAAA"); n != 1 {
			t.Errorf("asked %v, want the parent asked for AAAA", w.asked)
		}
		w.wantFailure("b.example.com.", "A", wire.EDENoReachable)
		w.wantAsked("192.0.2.2 b.example.com. A", "192.0.2.2 b.example.com. A")
		time.Sleep(2 * zoneMemory)
		w.wantFailure("c.example.com.", "A", wire.EDENoReachable)
		if len(w.asked) != 3 {
			t.Errorf("asked %v, want three tries again", w.asked)
		}
	})
}

func TestZonesBounded(t *testing.T) {
	var z zones
	z.init()
	for i := range 2 * maxZones {
		z.failed(wire.MustName(fmt.Sprintf("z%d.", i)), question{wire.Root, wire.TypeA}, troubleKind(i%2))
	}
	if len(z.state) != maxZones || z.count.Load() != maxZones {
		t.Errorf("remembers %d zones, counts %d", len(z.state), z.count.Load())
	}
	for zone := range z.state {
		z.answered(zone)
	}
	if len(z.state) != 0 || z.count.Load() != 0 {
		t.Errorf("remembers %d zones, counts %d", len(z.state), z.count.Load())
	}
}

package lab

import (
	"embed"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"bonsai/wire"
)

//go:embed zones/*.zone
var zoneFiles embed.FS

// zoneSpec says how one zone of the lab is signed and served. Its records are in zones/.
type zoneSpec struct {
	name      string
	algorithm uint8 // 0: unsigned
	split     bool  // a key for keys and one for data
	nsec3     *nsec3Spec
	window    func(now int64) window // nil: soundWindow
	synth     bool
	servers   []string
}

// internet lists the zones, a parent before its children.
var internet = []zoneSpec{
	{name: ".", algorithm: dns.RSASHA256, split: true,
		servers: []string{"192.0.2.1", "2001:db8::1", "192.0.2.2"}},
	{name: "lab.", algorithm: dns.ECDSAP256SHA256, split: true, nsec3: &nsec3Spec{},
		servers: []string{"192.0.2.11", "2001:db8::11", "192.0.2.12"}},
	{name: "optout.", algorithm: dns.RSASHA256, split: true, nsec3: &nsec3Spec{optOut: true},
		servers: []string{"192.0.2.21"}},
	{name: "bench.", synth: true, servers: []string{"192.0.2.31"}},
	{name: "signed-bench.", algorithm: dns.ECDSAP256SHA256, synth: true, servers: []string{"192.0.2.32"}},

	{name: "ecdsa.lab.", algorithm: dns.ECDSAP256SHA256,
		servers: []string{"198.51.100.1", "2001:db8:1::1", "198.51.100.2"}},
	{name: "sub.ecdsa.lab.", algorithm: dns.ED25519,
		servers: []string{"198.51.100.1", "2001:db8:1::1", "198.51.100.2"}},
	{name: "rsa.lab.", algorithm: dns.RSASHA256, nsec3: &nsec3Spec{iterations: 5, salt: "ba5eba11"},
		servers: []string{"198.51.100.3"}},
	{name: "ed25519.lab.", algorithm: dns.ED25519, servers: []string{"198.51.100.4"}},
	{name: "unsigned.lab.", servers: []string{"198.51.100.5"}},
	{name: "six.lab.", algorithm: dns.ECDSAP256SHA256, servers: []string{"2001:db8:6::1"}},
	{name: "glueless.lab.", algorithm: dns.ECDSAP256SHA256, servers: []string{"203.0.113.1"}},
	{name: "deep.lab.", algorithm: dns.ECDSAP256SHA256, servers: []string{"203.0.113.1"}},

	{name: "bogus.lab.", algorithm: dns.ECDSAP256SHA256, servers: []string{"198.51.100.10"}},
	{name: "wrong-ds.lab.", algorithm: dns.ED25519, servers: []string{"198.51.100.11"}},
	{name: "expired.lab.", algorithm: dns.ECDSAP256SHA256, window: expiredWindow,
		servers: []string{"198.51.100.12"}},
	{name: "future.lab.", algorithm: dns.ECDSAP256SHA256, window: futureWindow,
		servers: []string{"198.51.100.13"}},
	{name: "lame.lab.", algorithm: dns.ECDSAP256SHA256, servers: []string{"198.51.100.21"}},
	{name: "silent.lab.", algorithm: dns.ECDSAP256SHA256, servers: []string{"198.51.100.31"}},
	// Its only server never answers. It has no row: a table should not take ten seconds more.
	{name: "dead.lab.", servers: []string{"198.51.100.30"}},
	{name: "no-edns.lab.", servers: []string{"198.51.100.40"}},

	{name: "plain.optout.", servers: []string{"203.0.113.2"}},
	{name: "signed.optout.", algorithm: dns.ECDSAP256SHA256, nsec3: &nsec3Spec{}, servers: []string{"203.0.113.3"}},
	{name: "hosting.optout.", servers: []string{"203.0.113.1"}},
}

// quirks lists the servers that are not sound.
var quirks = map[string]quirk{
	"198.51.100.20": lame,
	"198.51.100.30": silent,
	"198.51.100.40": noEDNS,
}

// bigStrings is how many strings of 250 bytes the TXT record at big.ecdsa.lab. has: too much for UDP.
const bigStrings = 12

// build makes zones, keys, signatures and servers, all but the sockets.
func (w *World) build(c Config) error {
	for _, s := range internet {
		z, err := loadZone(&s, !c.Unsigned)
		if err != nil {
			return err
		}
		w.zones = append(w.zones, z)
	}
	if !c.Unsigned {
		if err := w.signAll(c.Now); err != nil {
			return err
		}
	} else {
		for _, z := range w.zones {
			z.finish()
		}
	}
	for i, s := range internet {
		for _, addr := range s.servers {
			sv := w.server(netip.MustParseAddr(addr))
			sv.zones = append(sv.zones, w.zones[i])
		}
	}
	for addr, q := range quirks {
		w.server(netip.MustParseAddr(addr)).quirk = q
	}
	return nil
}

func (w *World) server(addr netip.Addr) *server {
	s := w.servers[addr]
	if s == nil {
		s = &server{addr: addr, window: soundWindow(w.now)}
		w.servers[addr] = s
	}
	return s
}

func loadZone(s *zoneSpec, signed bool) (*zone, error) {
	file := strings.TrimSuffix(s.name, ".")
	if file == "" {
		file = "root"
	}
	text, err := zoneFiles.ReadFile("zones/" + file + ".zone")
	if err != nil {
		return nil, err
	}
	z, err := parseZone(s.name, string(text))
	if err != nil {
		return nil, err
	}
	z.synth = s.synth
	if s.name == "ecdsa.lab." {
		if err := z.add(bigText("big." + s.name)); err != nil {
			return nil, err
		}
	}
	if !signed || s.algorithm == 0 {
		return z, nil
	}
	z.nsec3 = s.nsec3
	if z.nsec3 != nil {
		err = z.add(&dns.NSEC3PARAM{
			Hdr:  dns.RR_Header{Name: z.name, Rrtype: dns.TypeNSEC3PARAM, Class: dns.ClassINET, Ttl: keyTTL},
			Hash: dns.SHA1, Iterations: s.nsec3.iterations,
			SaltLength: uint8(len(s.nsec3.salt) / 2), Salt: s.nsec3.salt,
		})
	}
	return z, err
}

func bigText(name string) dns.RR {
	txt := make([]string, bigStrings)
	for i := range txt {
		txt[i] = strings.Repeat(string(rune('a'+i)), 250)
	}
	return &dns.TXT{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: keyTTL},
		Txt: txt}
}

// signAll makes all keys, hands each DS to its parent, and signs.
func (w *World) signAll(now int64) error {
	err := w.each(func(z *zone, s *zoneSpec) error {
		if s.algorithm == 0 {
			return nil
		}
		if err := z.makeKeys(s.algorithm, s.split); err != nil {
			return err
		}
		return z.publishKeys()
	})
	if err != nil {
		return err
	}
	for _, z := range w.zones {
		if len(z.keys) == 0 {
			continue
		}
		if err := w.delegate(z); err != nil {
			return err
		}
	}
	err = w.each(func(z *zone, s *zoneSpec) error {
		z.finish()
		if len(z.keys) == 0 || z.synth {
			return nil
		}
		validity := soundWindow
		if s.window != nil {
			validity = s.window
		}
		return z.sign(validity(now))
	})
	if err != nil {
		return err
	}
	return w.zone("bogus.lab.").spoil("www.bogus.lab.", dns.TypeA)
}

// delegate gives the zone's DS to its parent, or to the world as its anchor.
func (w *World) delegate(z *zone) error {
	if z.origin == wire.Root {
		w.anchors = append(w.anchors, z.ds())
		return nil
	}
	ds := z.ds()
	if z.name == "wrong-ds.lab." {
		other, err := newKey(z.name, dns.ED25519, flagSEP)
		if err != nil {
			return err
		}
		ds = other.record.ToDS(dns.SHA256)
	}
	return w.parent(z).add(ds)
}

func (w *World) parent(z *zone) *zone {
	best := w.zones[0]
	for _, p := range w.zones {
		if z.origin.IsBelow(p.origin) && p.origin.IsBelow(best.origin) {
			best = p
		}
	}
	return best
}

func (w *World) zone(name string) *zone {
	for _, z := range w.zones {
		if z.name == name {
			return z
		}
	}
	return nil
}

// each runs do for every zone on all CPUs, and returns the first error in the order of zones.
func (w *World) each(do func(*zone, *zoneSpec) error) error {
	errs := make([]error, len(w.zones))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, z := range w.zones {
		wait.Go(func() {
			slots <- struct{}{}
			errs[i] = do(z, &internet[i])
			<-slots
		})
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("zone %s: %w", w.zones[i].name, err)
		}
	}
	return nil
}

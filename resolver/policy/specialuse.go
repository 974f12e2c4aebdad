package policy

import (
	"bonsai/cache/entry"
	"bonsai/wire"
)

// specialUse answers for names that mean nothing to the public DNS, so that they don't leak to it:
// special-use names (RFC 6761 and its registry) and the reverse zones of addresses that are private
// or reserved (RFC 6303 §4).
type specialUse struct {
	zones map[wire.Name]useKind
	tops  map[wire.Name]bool // their top-level domains, for a quick no
}

type useKind uint8

const (
	emptyZone useKind = iota // SOA and NS at its apex, NXDOMAIN below (RFC 6303 §3)
	nxdomain                 // nothing at all, not even at the apex
	loopback                 // RFC 6761 §6.3: any name at or below has the loopback addresses
	noData                   // no name at or below it has any data
)

var specialZones = map[string]useKind{
	"localhost.": loopback,
	"invalid.":   nxdomain,  // RFC 6761 §6.4
	"test.":      nxdomain,  // RFC 6761 §6.2
	"onion.":     nxdomain,  // RFC 7686 §2
	"alt.":       nxdomain,  // RFC 9476 §3
	"local.":     nxdomain,  // RFC 6762 §22.1
	"home.arpa.": emptyZone, // RFC 8375 §4
	// RFC 9462 §4: a resolver without designated ones answers NODATA, and §6.4: never asks others.
	"resolver.arpa.": noData,
	"service.arpa.":  emptyZone, // RFC 9665 §10

	"10.in-addr.arpa.": emptyZone, "168.192.in-addr.arpa.": emptyZone, // RFC 6303 §4.1
	"16.172.in-addr.arpa.": emptyZone, "17.172.in-addr.arpa.": emptyZone, "18.172.in-addr.arpa.": emptyZone,
	"19.172.in-addr.arpa.": emptyZone, "20.172.in-addr.arpa.": emptyZone, "21.172.in-addr.arpa.": emptyZone,
	"22.172.in-addr.arpa.": emptyZone, "23.172.in-addr.arpa.": emptyZone, "24.172.in-addr.arpa.": emptyZone,
	"25.172.in-addr.arpa.": emptyZone, "26.172.in-addr.arpa.": emptyZone, "27.172.in-addr.arpa.": emptyZone,
	"28.172.in-addr.arpa.": emptyZone, "29.172.in-addr.arpa.": emptyZone, "30.172.in-addr.arpa.": emptyZone,
	"31.172.in-addr.arpa.": emptyZone,

	"0.in-addr.arpa.": emptyZone, "127.in-addr.arpa.": emptyZone, "254.169.in-addr.arpa.": emptyZone, // RFC 6303 §4.2
	"2.0.192.in-addr.arpa.": emptyZone, "100.51.198.in-addr.arpa.": emptyZone,
	"113.0.203.in-addr.arpa.": emptyZone, "255.255.255.255.in-addr.arpa.": emptyZone,

	"0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.": emptyZone, // RFC 6303 §4.3
	"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.": emptyZone,
	"d.f.ip6.arpa.":   emptyZone, // RFC 6303 §4.4, RFC 4193
	"8.e.f.ip6.arpa.": emptyZone, "9.e.f.ip6.arpa.": emptyZone, "a.e.f.ip6.arpa.": emptyZone,
	"b.e.f.ip6.arpa.":           emptyZone, // RFC 6303 §4.5
	"8.b.d.0.1.0.0.2.ip6.arpa.": emptyZone, // RFC 6303 §4.6
	"0.f.f.3.ip6.arpa.":         emptyZone, // RFC 9637
}

// sharedReverse are the reverse zones of 100.64.0.0/10 (RFC 7793 §2).
func sharedReverse(zones map[wire.Name]useKind) {
	for n := 64; n <= 127; n++ {
		label := string(rune('0'+n/100)) + string(rune('0'+n/10%10)) + string(rune('0'+n%10))
		if n < 100 {
			label = label[1:]
		}
		zones[wire.MustName(label+".100.in-addr.arpa.")] = emptyZone
	}
}

func newSpecialUse() *specialUse {
	s := &specialUse{zones: make(map[wire.Name]useKind), tops: make(map[wire.Name]bool)}
	for name, kind := range specialZones {
		s.zones[wire.MustName(name)] = kind
	}
	sharedReverse(s.zones)
	for zone := range s.zones {
		s.tops[zone.Suffix(1)] = true
	}
	return s
}

func (s *specialUse) Judge(r *Request) Outcome {
	name := wire.BorrowName(r.Query.Name())
	if !s.tops[name.Suffix(1)] {
		return Outcome{}
	}
	zone, kind, ok := s.find(name)
	// RFC 6761 §6, RFC 4035 §3.1.4.1: what the parent says of the zone (DS) is still the parent's.
	if !ok || r.Query.QType == wire.TypeDS && name == zone {
		return Outcome{}
	}
	name = wire.Name(r.Query.Name()) // a copy: the entry outlives the query
	e, err := entry.Pack(nil, localContent(name, r.Query.QType, name.Suffix(zone.Labels()), kind), r.Now)
	if err != nil {
		return Outcome{}
	}
	return Outcome{Action: Answer, Entry: e, EDE: wire.NoEDE, Rule: "special-use"}
}

// find returns the special zone that name is at or below. No two of them nest.
func (s *specialUse) find(name wire.Name) (wire.Name, useKind, bool) {
	for n := name; n != wire.Root; n = n.Parent() {
		if kind, ok := s.zones[n]; ok {
			return n, kind, true
		}
	}
	return "", 0, false
}

// zoneOf implements builtIn.
func (s *specialUse) zoneOf(name wire.Name) (wire.Name, bool) {
	zone, _, ok := s.find(name)
	return zone, ok
}

// negativeTTL of local zones, in seconds: RFC 6303 §3 has 10800 in its example zone.
const negativeTTL = 10800

// localContent is what a special zone says of a name and type.
func localContent(name wire.Name, t wire.Type, zone wire.Name, kind useKind) *entry.Content {
	c := &entry.Content{Kind: entry.KindAnswer, QName: name, QType: t, Status: wire.Insecure}
	if kind == loopback {
		switch t {
		case wire.TypeA:
			c.Answer = []wire.RRset{record(name, t, 127, 0, 0, 1)}
		case wire.TypeAAAA:
			c.Answer = []wire.RRset{record(name, t, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)}
		}
	}
	if kind == emptyZone && name == zone {
		switch t {
		case wire.TypeSOA:
			c.Answer = []wire.RRset{localSOA(zone)}
		case wire.TypeNS:
			c.Answer = []wire.RRset{{Owner: zone, Type: t, Class: wire.ClassIN, TTL: negativeTTL, RDATA: [][]byte{[]byte(zone)}}}
		}
	}
	if len(c.Answer) > 0 {
		return c
	}
	if kind == nxdomain || kind == emptyZone && name != zone {
		c.RCODE = wire.RCODENXDomain
	}
	c.Authority = []wire.RRset{localSOA(zone)}
	return c
}

func record(owner wire.Name, t wire.Type, rdata ...byte) wire.RRset {
	return wire.RRset{Owner: owner, Type: t, Class: wire.ClassIN, TTL: negativeTTL, RDATA: [][]byte{rdata}}
}

// localSOA is the SOA of RFC 6303 §3: the zone is its own master, nobody answers for it.
func localSOA(zone wire.Name) wire.RRset {
	rdata := append([]byte(zone), "\x06nobody\x07invalid\x00"...)
	rdata = append(rdata, 0, 0, 0, 1, 0, 0, 0x0e, 0x10, 0, 0, 0x04, 0xb0, 0, 0x09, 0x3a, 0x80, 0, 0, 0x2a, 0x30)
	return wire.RRset{Owner: zone, Type: wire.TypeSOA, Class: wire.ClassIN, TTL: negativeTTL, RDATA: [][]byte{rdata}}
}

package policy

import (
	"bytes"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// as112 is the role of a node of the AS112 project: authoritative for the reverse zones of private
// addresses, which are delegated to such nodes (RFC 7534 §3.5), and for the zone that others lead to by
// DNAME (RFC 7535 §3). What it says is the same at every node.
type as112 struct {
	zones map[wire.Name]*as112Zone
	tops  map[wire.Name]bool // their top-level domains, for a quick no
}

type as112Zone struct {
	sets []wire.RRset // at the apex, SOA first; there is nothing below
}

// as112TTL is that of every record, in seconds: a week (RFC 7534 §3.5).
const as112TTL = 604800

// as112Direct are the zones of direct delegation (RFC 7534 §3.5).
var as112Direct = []string{
	"10.in-addr.arpa.", "168.192.in-addr.arpa.", "254.169.in-addr.arpa.",
	"16.172.in-addr.arpa.", "17.172.in-addr.arpa.", "18.172.in-addr.arpa.", "19.172.in-addr.arpa.",
	"20.172.in-addr.arpa.", "21.172.in-addr.arpa.", "22.172.in-addr.arpa.", "23.172.in-addr.arpa.",
	"24.172.in-addr.arpa.", "25.172.in-addr.arpa.", "26.172.in-addr.arpa.", "27.172.in-addr.arpa.",
	"28.172.in-addr.arpa.", "29.172.in-addr.arpa.", "30.172.in-addr.arpa.", "31.172.in-addr.arpa.",
}

// newAS112 makes the zones. site, if not empty, is told to who asks which node answers.
func newAS112(site string) *as112 {
	a := &as112{zones: make(map[wire.Name]*as112Zone), tops: make(map[wire.Name]bool)}
	// RFC 7534 §3.5: db.dd-empty, and for the target of DNAME db.dr-empty.
	iana := []string{"blackhole-1.iana.org.", "blackhole-2.iana.org."}
	arpa := []string{"blackhole.as112.arpa."}
	for _, zone := range as112Direct {
		a.add(zone, "prisoner.iana.org.", "hostmaster.root-servers.org.", iana, "")
	}
	a.add("empty.as112.arpa.", "blackhole.as112.arpa.", "noc.dns.icann.org.", arpa, "")
	// RFC 7534 §3.5: the zones by which a node can be told from others.
	a.add("hostname.as112.net.", "prisoner.iana.org.", "hostmaster.root-servers.org.", iana, site)
	a.add("hostname.as112.arpa.", "blackhole.as112.arpa.", "noc.dns.icann.org.", arpa, site)
	return a
}

func (a *as112) add(zone, primary, mailbox string, servers []string, text string) {
	apex := wire.MustName(zone)
	soa := bytes.Join([][]byte{[]byte(wire.MustName(primary)), []byte(wire.MustName(mailbox)), as112Timers}, nil)
	set := func(t wire.Type, rdata ...[]byte) wire.RRset {
		return wire.RRset{Owner: apex, Type: t, Class: wire.ClassIN, TTL: as112TTL, RDATA: rdata}
	}
	var ns [][]byte
	for _, server := range servers {
		ns = append(ns, []byte(wire.MustName(server)))
	}
	z := &as112Zone{sets: []wire.RRset{set(wire.TypeSOA, soa), set(wire.TypeNS, ns...)}}
	if text != "" {
		text = text[:min(len(text), 255)]
		z.sets = append(z.sets, set(wire.TypeTXT, append([]byte{byte(len(text))}, text...)))
	}
	a.zones[apex], a.tops[apex.Suffix(1)] = z, true
}

// as112Timers are serial 1, refresh and expire of a week, retry after a minute, and a week for denials.
var as112Timers = []byte{0, 0, 0, 1, 0, 9, 0x3a, 0x80, 0, 0, 0, 60, 0, 9, 0x3a, 0x80, 0, 9, 0x3a, 0x80}

func (a *as112) Judge(r *Request) Outcome {
	name := wire.BorrowName(r.Query.Name())
	if !a.tops[name.Suffix(1)] {
		return Outcome{}
	}
	zone, ok := a.zoneOf(name)
	// RFC 4035 §3.1.4.1: the parent has the DS.
	if !ok || r.Query.QType == wire.TypeDS && name == zone {
		return Outcome{}
	}
	e, err := entry.Pack(nil, a.zones[zone].content(wire.Name(r.Query.Name()), r.Query.QType), r.Now)
	if err != nil {
		return fail("as112", wire.RCODEServFail, wire.EDEOther, "")
	}
	return Outcome{Action: Answer, Entry: e, EDE: wire.NoEDE, Rule: "as112"}
}

// zoneOf implements builtIn. No two of the zones nest.
func (a *as112) zoneOf(name wire.Name) (wire.Name, bool) {
	for n := name; n != wire.Root; n = n.Parent() {
		if a.zones[n] != nil {
			return n, true
		}
	}
	return "", false
}

// content is what the zone says with authority of a name in it.
func (z *as112Zone) content(name wire.Name, t wire.Type) *entry.Content {
	c := &entry.Content{Kind: entry.KindAnswer, QName: name, QType: t, Status: wire.Insecure, AA: true}
	if name != z.sets[0].Owner {
		c.RCODE = wire.RCODENXDomain
	} else {
		for _, s := range z.sets {
			if s.Type == t || t == wire.TypeANY {
				c.Answer = append(c.Answer, s)
			}
		}
	}
	if len(c.Answer) == 0 {
		c.Authority = z.sets[:1:1]
	}
	return c
}

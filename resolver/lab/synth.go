package lab

import (
	"crypto/sha256"
	"fmt"
	"net"
	"slices"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// synthTTL is how long a made-up answer may be kept: the day that most resolvers keep at most.
const synthTTL = 86400

// absent begins the first label of names that a zone of made-up answers does not have.
const absent = "nx-"

// synthesise answers for a zone in which any name has A, AAAA and TXT records, made from the name so
// that each asks for its own, except those that begin with "nx-". A signed one signs while it
// answers, and denies by the compact denial of RFC 9824.
func (a *answerer) synthesise(z *zone, name wire.Name, t uint16) {
	canonical := name.Canonical()
	apex := canonical == z.origin
	exists := apex || len(canonical.Label()) < len(absent) || canonical.Label()[:len(absent)] != absent
	n := z.nodes[canonical]
	if n == nil {
		n = newNode()
		if exists {
			z.makeUp(n, canonical)
		}
	}
	if len(n.sets[t]) > 0 {
		a.putSigned(z, &a.m.Answer, n.sets[t], name)
		a.addresses(z, n.sets[t])
		return
	}
	soa := *z.apex().sets[dns.TypeSOA][0].(*dns.SOA)
	soa.Hdr.Ttl = z.negativeTTL()
	a.putSigned(z, &a.m.Ns, []dns.RR{&soa}, z.origin)
	if a.do && len(z.keys) > 0 {
		a.putSigned(z, &a.m.Ns, []dns.RR{z.compact(n, canonical, exists)}, canonical)
	}
	if !exists && (!a.do || len(z.keys) == 0) {
		a.m.Rcode = dns.RcodeNameError
	}
}

// makeUp fills a node with records made from its name.
func (z *zone) makeUp(n *node, name wire.Name) {
	sum := sha256.Sum256([]byte(name))
	header := func(t uint16) dns.RR_Header {
		return dns.RR_Header{Name: name.String(), Rrtype: t, Class: dns.ClassINET, Ttl: synthTTL}
	}
	v4 := net.IP{198, 18, sum[0], sum[1]}
	v6 := append(net.IP{0x20, 0x01, 0x0d, 0xb8}, sum[4:16]...)
	n.sets[dns.TypeA] = []dns.RR{&dns.A{Hdr: header(dns.TypeA), A: v4}}
	n.sets[dns.TypeAAAA] = []dns.RR{&dns.AAAA{Hdr: header(dns.TypeAAAA), AAAA: v6}}
	n.sets[dns.TypeTXT] = []dns.RR{&dns.TXT{Hdr: header(dns.TypeTXT), Txt: []string{fmt.Sprintf("%x", sum)}}}
}

// compact returns the NSEC that says what the name has, and next to nothing else (RFC 9824 §3):
// for a name that does not exist the type NXNAME.
func (z *zone) compact(n *node, name wire.Name, exists bool) dns.RR {
	types := []uint16{dns.TypeRRSIG, dns.TypeNSEC}
	if !exists {
		types = append(types, dns.TypeNXNAME)
	}
	for t := range n.sets {
		types = append(types, t)
	}
	slices.Sort(types)
	next, ok := name.Prepend("\x00")
	if !ok {
		next = z.origin
	}
	return &dns.NSEC{
		Hdr: dns.RR_Header{Name: name.String(), Rrtype: dns.TypeNSEC, Class: dns.ClassINET,
			Ttl: z.negativeTTL()},
		NextDomain: next.String(),
		TypeBitMap: types,
	}
}

// putSigned adds an RRset, signed now where the zone has keys and the client wants signatures.
func (a *answerer) putSigned(z *zone, section *[]dns.RR, set []dns.RR, owner wire.Name) {
	n := newNode()
	t := set[0].Header().Rrtype
	n.sets[t] = set
	if a.do && len(z.keys) > 0 {
		sig, err := z.signSet(set, a.window)
		if err != nil {
			a.m.Rcode = dns.RcodeServerFailure
			return
		}
		n.sigs[t] = []dns.RR{sig}
	}
	a.put(section, n, t, owner)
}

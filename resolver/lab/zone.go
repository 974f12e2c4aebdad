package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// zone is one zone's data. It is not changed once its servers run.
type zone struct {
	origin wire.Name
	name   string // the origin in presentation format
	nodes  map[wire.Name]*node
	order  []wire.Name // owners of the zone in canonical order: no glue, but cuts and empty non-terminals
	keys   []*key
	nsec3  *nsec3Spec
	hashes []*hashed // NSEC3 records in order of hash
	synth  bool
}

// node is one owner name. One without sets is an empty non-terminal (RFC 8499 §7).
type node struct {
	sets map[uint16][]dns.RR
	sigs map[uint16][]dns.RR // by the type they cover
	glue bool                // below a cut: served as an address only, never signed
}

// parseZone reads a zone file.
func parseZone(name, text string) (*zone, error) {
	z := &zone{name: name, nodes: map[wire.Name]*node{}}
	z.origin = wire.MustName(name)
	p := dns.NewZoneParser(strings.NewReader(text), name, name)
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		if err := z.add(rr); err != nil {
			return nil, err
		}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	if len(z.apex().sets[dns.TypeSOA]) != 1 {
		return nil, fmt.Errorf("zone %s: no SOA", name)
	}
	return z, nil
}

func (z *zone) add(rr dns.RR) error {
	owner, err := wire.ParseName(rr.Header().Name)
	if err != nil {
		return err
	}
	owner = owner.Canonical()
	if !owner.IsSubdomainOf(z.origin) {
		return fmt.Errorf("zone %s: %s is outside", z.name, rr.Header().Name)
	}
	n := z.nodes[owner]
	if n == nil {
		n = newNode()
		z.nodes[owner] = n
	}
	t := rr.Header().Rrtype
	n.sets[t] = append(n.sets[t], rr)
	return nil
}

func newNode() *node { return &node{sets: map[uint16][]dns.RR{}, sigs: map[uint16][]dns.RR{}} }

func (z *zone) apex() *node { return z.nodes[z.origin] }

// set returns the RRset of a name in presentation format, glue included.
func (z *zone) set(name string, t uint16) []dns.RR {
	owner, err := wire.ParseName(name)
	if err != nil {
		return nil
	}
	if n := z.nodes[owner.Canonical()]; n != nil {
		return n.sets[t]
	}
	return nil
}

// isCut says whether the name is a delegation point of this zone.
func (z *zone) isCut(name wire.Name) bool {
	n := z.nodes[name]
	return n != nil && name != z.origin && len(n.sets[dns.TypeNS]) > 0
}

// finish marks glue, adds the empty non-terminals and sorts the owners.
func (z *zone) finish() {
	names := make([]wire.Name, 0, len(z.nodes))
	for name := range z.nodes {
		names = append(names, name)
	}
	for _, name := range names {
		for up := name; up != z.origin; up = up.Parent() {
			if up != name && z.isCut(up) {
				z.nodes[name].glue = true
			}
		}
	}
	for _, name := range names {
		if z.nodes[name].glue {
			continue
		}
		for up := name; up != z.origin; up = up.Parent() {
			if z.nodes[up] == nil {
				z.nodes[up] = newNode()
			}
		}
	}
	for name, n := range z.nodes {
		if !n.glue {
			z.order = append(z.order, name)
		}
	}
	slices.SortFunc(z.order, wire.Compare)
}

// authoritative returns the types of a node that this zone signs: at a cut those are DS and NSEC
// (RFC 4035 §2.2).
func (z *zone) authoritative(name wire.Name) []uint16 {
	var types []uint16
	cut := z.isCut(name)
	for t := range z.nodes[name].sets {
		if !cut || t == dns.TypeDS || t == dns.TypeNSEC {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

// bitmap returns the types that a denial record of this name lists.
func (z *zone) bitmap(name wire.Name) []uint16 {
	var types []uint16
	n, cut := z.nodes[name], z.isCut(name)
	for t := range n.sets {
		// RFC 4035 §2.3: at a cut only what the parent holds there, NS and DS.
		if !cut || t == dns.TypeDS || t == dns.TypeNS {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

// previous returns the last owner of the zone's order, empty non-terminals left out, that is not
// after the name: where the NSEC that covers or matches it lies.
func (z *zone) previous(name wire.Name) wire.Name {
	i, found := slices.BinarySearchFunc(z.order, name, wire.Compare)
	if !found {
		i--
	}
	for i > 0 && len(z.nodes[z.order[i]].sets) == 0 {
		i--
	}
	return z.order[i]
}

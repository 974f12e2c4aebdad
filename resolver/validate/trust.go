package validate

import "bonsai/wire"

// trust is where validation starts and where it is switched off. It is immutable once made.
type trust struct {
	anchors  map[wire.Name][]Anchor // by canonical name
	insecure map[wire.Name]bool     // negative trust anchors (RFC 7646)
}

func newTrust(anchors []Anchor, insecure []wire.Name) *trust {
	t := &trust{anchors: make(map[wire.Name][]Anchor), insecure: make(map[wire.Name]bool)}
	for _, a := range anchors {
		zone := a.Zone.Canonical()
		t.anchors[zone] = append(t.anchors[zone], a)
	}
	for _, n := range insecure {
		t.insecure[n.Canonical()] = true
	}
	return t
}

// closest returns the zone of the closest trust anchor at or above name; ok is false where there
// is none, or a negative trust anchor is closer. RFC 7646 §2: an anchor below a negative one holds.
func (t *trust) closest(name wire.Name) (zone wire.Name, ok bool) {
	if len(t.anchors) == 0 {
		return "", false
	}
	for n := name.Canonical(); ; n = n.Parent() {
		if t.insecure[n] {
			return "", false
		}
		if len(t.anchors[n]) > 0 {
			return n, true
		}
		if n == wire.Root {
			return "", false
		}
	}
}

// Covers says whether name is to be validated: a trust anchor lies at or above it, and no negative one
// closer.
func (v *Validator) Covers(name wire.Name) bool {
	_, ok := v.trust.Load().closest(name)
	return ok
}

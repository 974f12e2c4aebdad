package validate

import "bonsai/wire"

// trust is where validation starts and where it is switched off. It is immutable once made.
type trust struct {
	anchors  map[wire.Name][]Anchor // by canonical name
	negative map[wire.Name]bool
}

func newTrust(anchors []Anchor, insecure []wire.Name) *trust {
	t := &trust{anchors: make(map[wire.Name][]Anchor), negative: make(map[wire.Name]bool)}
	for _, a := range anchors {
		zone := a.Zone.Canonical()
		t.anchors[zone] = append(t.anchors[zone], a)
	}
	for _, n := range insecure {
		t.negative[n.Canonical()] = true
	}
	return t
}

// Covers says whether name is to be validated: a trust anchor lies at or above it, and no negative one
// closer.
func (v *Validator) Covers(name wire.Name) bool {
	_, ok := v.trust.Load().closest(name)
	return ok
}

// Anchors returns the trust anchors that hold now.
func (v *Validator) Anchors() (anchors []Anchor) {
	for _, of := range v.trust.Load().anchors {
		anchors = append(anchors, of...)
	}
	return anchors
}

// closest returns the zone of the closest trust anchor at or above name; ok is false where there
// is none, or a negative trust anchor is closer. RFC 7646 §2: an anchor below a negative one holds.
func (t *trust) closest(name wire.Name) (zone wire.Name, ok bool) {
	if len(t.anchors) == 0 {
		return "", false
	}
	for n := name.Canonical(); ; n = n.Parent() {
		if t.negative[n] {
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

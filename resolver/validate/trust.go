package validate

import (
	"math"

	"bonsai/wire"
)

// NegativeAnchor switches validation off at and below a zone (RFC 7646).
type NegativeAnchor struct {
	Zone  wire.Name
	Until int64 // Unix second by the time of validation; 0: for ever
}

// trust is where validation starts and where it is switched off. It is immutable once made.
type trust struct {
	anchors  map[wire.Name][]Anchor // by canonical name
	negative map[wire.Name]int64    // until when
}

func newTrust(anchors []Anchor, insecure []wire.Name, negative []NegativeAnchor) *trust {
	t := &trust{anchors: make(map[wire.Name][]Anchor), negative: make(map[wire.Name]int64)}
	for _, a := range anchors {
		zone := a.Zone.Canonical()
		t.anchors[zone] = append(t.anchors[zone], a)
	}
	for _, n := range negative {
		until := n.Until
		if until == 0 {
			until = math.MaxInt64
		}
		zone := n.Zone.Canonical()
		t.negative[zone] = max(t.negative[zone], until)
	}
	for _, n := range insecure {
		t.negative[n.Canonical()] = math.MaxInt64
	}
	return t
}

// Covers says whether name is to be validated: a trust anchor lies at or above it, and no negative one
// closer.
func (v *Validator) Covers(name wire.Name) bool {
	_, ok := v.trust.Load().closest(name, v.config.Now())
	return ok
}

// closest returns the zone of the closest trust anchor at or above name; ok is false where there
// is none, or a negative trust anchor is closer. RFC 7646 §2: an anchor below a negative one holds.
func (t *trust) closest(name wire.Name, now int64) (zone wire.Name, ok bool) {
	if len(t.anchors) == 0 {
		return "", false
	}
	for n := name.Canonical(); ; n = n.Parent() {
		if until, ok := t.negative[n]; ok && now < until {
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

package denial

import (
	"bytes"
	"fmt"
)

// check says how the store breaks its invariants, nil if it does not.
func (s *Store) check() error {
	found, err := s.ring.check()
	if err != nil {
		return err
	}
	records := 0
	for _, z := range s.byID {
		refs, err := z.check(&s.ring)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", z.name, err)
		case s.zones[z.name] != z:
			return fmt.Errorf("%s is not held by its name", z.name)
		case len(refs) == 0:
			return fmt.Errorf("%s has no records", z.name)
		}
		for _, at := range refs {
			if !found[at] || s.ring.zone(at) != z.id {
				return fmt.Errorf("%s: the record at %d is not in the ring, or another zone's", z.name, at)
			}
		}
		records += len(refs)
	}
	if records != len(found) || int64(records) != s.stats.records.Load() {
		return fmt.Errorf("%d records in lists, %d in the ring, %d counted", records, len(found), s.stats.records.Load())
	}
	if n := len(s.byID); n != len(s.zones) || int64(n) != s.stats.zones.Load() || n > s.maxZones {
		return fmt.Errorf("%d zones, %d by name, %d counted, at most %d", n, len(s.zones), s.stats.zones.Load(), s.maxZones)
	}
	return nil
}

// mustHold panics where the store breaks its invariants.
func (s *Store) mustHold() {
	if err := s.check(); err != nil {
		panic("denial: " + err.Error())
	}
}

// check walks the ring and returns the records in it that are not gone.
func (r *ring) check() (map[ref]bool, error) {
	found := make(map[ref]bool)
	at := r.tail
	for seen := 0; seen < r.full; {
		n := r.length(ref(at))
		if n == 0 || at+n > len(r.bytes) {
			return nil, fmt.Errorf("the record at %d has length %d", at, n)
		}
		if r.kind(ref(at)) != goneKind {
			found[ref(at)] = true
		}
		seen += n
		if at += n; at == len(r.bytes) {
			at = unit
		}
	}
	if at != r.head && !(r.head == len(r.bytes) && at == unit) {
		return nil, fmt.Errorf("the records end at %d, not %d", at, r.head)
	}
	return found, nil
}

// check returns all records of a zone.
func (z *zone) check(r *ring) (refs []ref, err error) {
	if z.soa != 0 {
		refs = append(refs, z.soa)
	}
	for k := range z.list {
		count := 0
		var last []byte
		for _, p := range z.list[k].pieces {
			if len(p) == 0 || len(p) >= maxPiece {
				return nil, fmt.Errorf("a piece of %d records", len(p))
			}
			for _, at := range p {
				key := r.key(at)
				if count > 0 && bytes.Compare(last, key) >= 0 {
					return nil, fmt.Errorf("%x comes before %x", last, key)
				}
				if r.kind(at) != kind(k) {
					return nil, fmt.Errorf("kind %d among %d", r.kind(at), k)
				}
				last = key
				count++
			}
			refs = append(refs, p...)
		}
		if count != z.list[k].len() {
			return nil, fmt.Errorf("%d records, counted as %d", count, z.list[k].len())
		}
	}
	return refs, nil
}

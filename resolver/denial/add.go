package denial

import (
	"bytes"

	"bonsai/wire"
)

// Add takes what a judged response holds of use: its secure NSEC, NSEC3 and SOA RRsets, and what was
// made of wildcards. epoch is that of the resolution's start, see Flush.
func (s *Store) Add(r *wire.Response, now uint32, epoch uint64) {
	if !hasProofs(r.Authority) {
		return
	}
	var records []record
	for i := range r.Authority {
		if rec, ok := s.recordOf(&r.Authority[i]); ok {
			records = append(records, rec)
		}
	}
	for i := range r.Answer {
		if rec, ok := wildcardRecord(&r.Answer[i]); ok {
			records = append(records, rec)
		}
	}
	if len(records) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch < s.epoch {
		return
	}
	for i := range records {
		s.put(&records[i], now)
	}
	if invariants {
		s.mustHold()
	}
}

func hasProofs(sets []wire.RRset) bool {
	for i := range sets {
		if t := sets[i].Type; (t == wire.TypeNSEC || t == wire.TypeNSEC3) && sets[i].Status == wire.Secure {
			return true
		}
	}
	return false
}

// signer returns the zone that signed a secure RRset, in canonical case, and its count of labels.
func signer(set *wire.RRset) (zone wire.Name, labels int, ok bool) {
	if set.Status != wire.Secure || set.TTL == 0 || len(set.Sigs) == 0 || set.Class != wire.ClassIN {
		return "", 0, false
	}
	s, ok := wire.ParseRRSIG(set.Sigs[0])
	if !ok || !set.Owner.IsSubdomainOf(s.Signer) {
		return "", 0, false
	}
	return wire.Name(append([]byte(nil), s.Signer.Canonical()...)), int(s.Labels), true
}

// recordOf makes a record of an RRset of the authority section; ok is false where it is of no use.
func (s *Store) recordOf(set *wire.RRset) (rec record, ok bool) {
	zone, labels, ok := signer(set)
	if !ok || len(set.RDATA) != 1 {
		return rec, false
	}
	rec = record{zone: zone, ttl: set.TTL}
	whole := labels == set.Owner.Labels() || set.Owner.IsWildcard() && labels == set.Owner.Labels()-1
	switch set.Type {
	case wire.TypeSOA:
		rec.kind = soaKind
		rec.payload = appendField(nil, set.RDATA[0])
		ok = len(set.Owner) == len(zone)
	case wire.TypeNSEC:
		ok = whole && rec.takeNSEC(set)
	case wire.TypeNSEC3:
		ok = whole && s.config.Hash != nil && rec.takeNSEC3(set)
	default:
		return rec, false
	}
	rec.payload = appendSigs(rec.payload, set.Sigs, zone)
	return rec, ok
}

func (rec *record) takeNSEC(set *wire.RRset) bool {
	n, ok := wire.ParseNSEC(set.RDATA[0])
	// RFC 9824 §3.1: a name that is there only to be denied tells of no other.
	if !ok || !n.Next.IsSubdomainOf(rec.zone) || n.Types.Has(wire.TypeNXNAME) {
		return false
	}
	rec.kind = nsecKind
	rec.key = appendKey(nil, set.Owner, rec.zone)
	rec.payload = appendNSEC(nil, &n, rec.zone)
	return true
}

func (rec *record) takeNSEC3(set *wire.RRset) bool {
	n, ok := wire.ParseNSEC3(set.RDATA[0])
	// RFC 8198 §5.2 with RFC 5155 §6: an opt-out span may hold delegations, and denies nothing.
	if !ok || n.Hash != wire.NSEC3HashSHA1 || n.Flags != 0 || len(n.Next) != hashLength {
		return false
	}
	hash, err := hexEncoding.DecodeString(string(bytes.ToLower([]byte(set.Owner.Label()))))
	if err != nil || len(hash) != hashLength || !set.Owner.Parent().Equal(rec.zone) {
		return false
	}
	rec.kind, rec.key = nsec3Kind, hash
	rec.payload = appendField(nil, n.Next, n.Types)
	rec.salt, rec.iterations = n.Salt, n.Iterations
	return true
}

// wildcardRecord makes a record of an RRset that was made of a wildcard, or is one, under the
// wildcard's name and its type.
func wildcardRecord(set *wire.RRset) (rec record, ok bool) {
	zone, labels, ok := signer(set)
	if !ok || labels < zone.Labels() || labels >= set.Owner.Labels() || len(set.RDATA) > 255 {
		return rec, false
	}
	encloser := set.Owner.Suffix(labels)
	rec = record{kind: wildcardKind, zone: zone, ttl: set.TTL}
	rec.key = append(appendKey(nil, encloser, zone), wildcardLabel...)
	rec.key = append(rec.key, byte(set.Type>>8), byte(set.Type))
	rec.payload = append(rec.payload, byte(len(set.RDATA)))
	for _, rdata := range set.RDATA {
		rec.payload = appendField(rec.payload, rdata)
	}
	rec.payload = appendSigs(rec.payload, set.Sigs, zone)
	return rec, true
}

// put stores a record, in the place of one with the same key.
func (s *Store) put(rec *record, now uint32) {
	if recordLength(len(rec.key), len(rec.payload)) > maxRecord {
		return
	}
	z := s.zoneFor(rec, now)
	if old := s.existing(z, rec); old != 0 {
		if s.isFresh(old, rec, now) {
			return
		}
		if s.remove(z, old); s.byID[z.id] == nil {
			z = s.zoneFor(rec, now)
		}
	}
	n := recordLength(len(rec.key), len(rec.payload))
	for again := maxAgain; !s.ring.room(n); {
		s.evict(&again, now)
	}
	if s.byID[z.id] == nil { // gone with its last record
		s.zones[z.name], s.byID[z.id] = z, z
		s.stats.zones.Add(1)
	}
	at := s.ring.write(rec.kind, z.id, now+rec.ttl, rec.key, rec.payload)
	if rec.kind == soaKind {
		z.soa = at
	} else {
		z.list[rec.kind].insert(&s.ring, at)
	}
	s.stats.records.Add(1)
	s.stats.added.Add(1)
}

// zoneFor returns the zone of a record, a new one where it is not held yet. An NSEC3 of other
// parameters than those held begins a new chain.
func (s *Store) zoneFor(rec *record, now uint32) *zone {
	z := s.zones[rec.zone]
	if z == nil {
		for again := maxAgain; len(s.byID) >= s.maxZones; {
			s.evict(&again, now)
		}
		s.next++
		z = &zone{name: rec.zone, id: s.next}
		s.zones[z.name], s.byID[z.id] = z, z
		s.stats.zones.Add(1)
	}
	if rec.kind == nsec3Kind && (z.iterations != rec.iterations || !bytes.Equal(z.salt, rec.salt)) {
		for z.list[nsec3Kind].len() > 0 {
			s.remove(z, z.list[nsec3Kind].at(0))
		}
		z.salt, z.iterations = bytes.Clone(rec.salt), rec.iterations
	}
	return z
}

// existing returns the record with the same key.
func (s *Store) existing(z *zone, rec *record) ref {
	if rec.kind == soaKind {
		return z.soa
	}
	if at, found := z.list[rec.kind].atOrBefore(&s.ring, rec.key, false); found {
		return at
	}
	return 0
}

// isFresh says whether a record holds the same for about as long.
func (s *Store) isFresh(old ref, rec *record, now uint32) bool {
	payload := s.ring.payload(old)
	if !bytes.HasPrefix(payload, rec.payload) {
		return false
	}
	left := s.ring.expires(old) - min(now, s.ring.expires(old))
	return left >= rec.ttl-rec.ttl/8
}

// maxAgain bounds the records that are written again to make room for one.
const maxAgain = 64

// evict gives up the oldest record; one that was used since it was written is written again.
func (s *Store) evict(again *int, now uint32) {
	r := &s.ring
	at := ref(r.tail)
	k := r.kind(at)
	if k == goneKind {
		r.drop()
		return
	}
	z := s.byID[r.zone(at)]
	if r.touched(at) && *again > 0 && r.expires(at) > now {
		*again--
		s.renew(z, at)
		return
	}
	s.remove(z, at)
	r.drop()
	s.stats.evicted.Add(1)
}

// renew writes the oldest record again as the newest.
func (s *Store) renew(z *zone, at ref) {
	r := &s.ring
	k, expires := r.kind(at), r.expires(at)
	key, payload := bytes.Clone(r.key(at)), bytes.Clone(r.payload(at))
	piece, index := 0, 0
	if k != soaKind {
		piece, index, _ = z.list[k].find(r, key) // before its bytes may be written over
	}
	r.drop()
	if !r.room(recordLength(len(key), len(payload))) {
		s.remove(z, at) // the end of the ring leaves a gap too large
		return
	}
	// From here on the record's old place is not looked at any more.
	to := r.write(k, z.id, expires, key, payload)
	if k == soaKind {
		z.soa = to
	} else {
		z.list[k].pieces[piece][index] = to
	}
}

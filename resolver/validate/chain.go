package validate

import (
	"encoding/binary"
	"errors"

	"bonsai/wire"
)

// standing is what is known of a name as a zone.
type standing uint8

const (
	zoneUnknown  standing = iota // keys or DS cannot be had
	zoneBogus                    // what was had does not validate
	zoneInsecure                 // it, or a zone above it, is an insecure delegation
	zoneSecure                   // a zone with a chain of trust
	notZone                      // proven to be no zone cut
	notThere                     // proven not to exist, nor anything below
)

// state is a name's standing, why, and the keys of a secure zone.
type state struct {
	name wire.Name // canonical
	standing
	reason reason
	ds     [][]byte // that count, of a secure delegation
	keys   []*key   // of a secure zone
}

// errRank says that a judgement asked for what its own subject is needed for.
var errRank = errors.New("validate: the chain of trust leads back to where it came from")

// errQuiet says that something was not known without asking.
var errQuiet = errors.New("validate: not known")

// rank orders what judgements are about. The judgement of a DS or DNSKEY fetches only what is of
// lesser rank, so that chains end and no two resolutions wait for each other.
func rank(name wire.Name, t wire.Type) int {
	switch {
	case t == wire.TypeDS && name != wire.Root: // the root's is denied by the root itself
		return 2 * name.Labels()
	case t == wire.TypeDNSKEY:
		return 2*name.Labels() + 1
	}
	return 1 << 16
}

func (j *judgement) fetch(name wire.Name, t wire.Type) (*Fetched, error) {
	if rank(name, t) >= j.rank {
		return nil, errRank
	}
	if j.quiet {
		return nil, errQuiet
	}
	return j.f.Fetch(j.ctx, name, t)
}

// remembered returns a state found earlier in this judgement.
func remembered(states []state, name wire.Name) *state {
	for i := range states {
		if states[i].name == name {
			return &states[i]
		}
	}
	return nil
}

// remember keeps a state for the rest of this judgement, unless it was found in haste.
func (j *judgement) remember(states *[]state, s state) *state {
	if j.quiet {
		return &s
	}
	*states = append(*states, s)
	return &(*states)[len(*states)-1]
}

// zoneOf returns what name is as a zone, with its keys where it is secure.
func (j *judgement) zoneOf(name wire.Name) *state {
	name = name.Canonical()
	if s := remembered(j.zones, name); s != nil {
		return s
	}
	s := state{name: name, standing: zoneInsecure, reason: noReason}
	if point, ok := j.closest(name); ok {
		s.standing = zoneSecure
		if point != name {
			s = *j.cut(name)
		}
		if s.standing == zoneSecure {
			s = j.keysOf(name)
		}
	}
	return j.remember(&j.zones, s)
}

// keysOf fetches the keys of a zone.
func (j *judgement) keysOf(name wire.Name) state {
	s := state{name: name, reason: noReason}
	f, err := j.fetch(name, wire.TypeDNSKEY)
	s.standing = fetchedStanding(f, err)
	var keys *wire.RRset
	if s.standing == zoneSecure || s.standing == zoneBogus {
		for i := range f.Answer {
			if set := &f.Answer[i]; set.Is(name, wire.TypeDNSKEY) {
				keys = set
			}
		}
		// A bogus response may come without its records, and then with what was wrong with them.
		if keys == nil && (s.standing == zoneSecure || isAbsence(f.EDE.Code)) {
			s.standing = zoneBogus
			s.reason = because(wire.EDEDNSKEYMissing, name, "there is a DS and no DNSKEY")
			return s
		}
	}
	if s.standing != zoneSecure {
		s.reason = j.fetchReason(f, err, name, wire.TypeDNSKEY)
		return s
	}
	s.keys = j.v.keysIn(keys)
	return s
}

// isAbsence says whether an extended error is about what is not there, or is none.
func isAbsence(code wire.EDECode) bool {
	return code == wire.NoEDE || code == wire.EDERRSIGsMissing || code == wire.EDENSECMissing
}

// keysIn reads the keys of a DNSKEY RRset.
func (v *Validator) keysIn(set *wire.RRset) []*key {
	keys := make([]*key, len(set.RDATA))
	for i, rdata := range set.RDATA {
		keys[i] = v.keys.get(rdata)
	}
	return keys
}

// fetchedStanding is the standing of what was fetched, before looking into it.
func fetchedStanding(f *Fetched, err error) standing {
	switch {
	case errors.Is(err, errRank):
		return notZone
	case err != nil || f.Status == wire.Indeterminate || f.Status == wire.Unchecked:
		return zoneUnknown
	case f.Status == wire.Bogus:
		return zoneBogus
	case f.Status == wire.Insecure:
		return zoneInsecure
	}
	return zoneSecure
}

// fetchReason says why what was fetched is not secure.
func (j *judgement) fetchReason(f *Fetched, err error, name wire.Name, t wire.Type) reason {
	if err != nil {
		r := because(wire.EDEIndeterminate, name, "no response for %s", t)
		r.err = err
		return r
	}
	r := reason{ede: f.EDE, zone: f.Zone, err: f.Err, clock: f.Clock}
	if f.EDE == (wire.EDE{}) {
		r.ede.Code = wire.NoEDE
	}
	if f.Status == wire.Bogus && r.ede.Code == wire.NoEDE {
		r = because(wire.EDEBogus, name, "%s does not validate", t)
	}
	return r
}

// cut returns what name is as a delegation, from the DS RRset its parent has of it.
func (j *judgement) cut(name wire.Name) *state {
	name = name.Canonical()
	if s := remembered(j.cuts, name); s != nil {
		return s
	}
	s := state{name: name, reason: noReason}
	f, err := j.fetch(name, wire.TypeDS)
	if s.standing = fetchedStanding(f, err); s.standing == zoneSecure {
		j.readDS(&s, &f.Response)
	} else {
		s.reason = j.fetchReason(f, err, name, wire.TypeDS)
	}
	return j.remember(&j.cuts, s)
}

// readDS says what a secure response to a DS query tells.
func (j *judgement) readDS(s *state, r *wire.Response) {
	for i := range r.Answer {
		if set := &r.Answer[i]; set.Is(s.name, wire.TypeDS) {
			j.chooseDS(s, set.RDATA)
			return
		}
	}
	switch {
	case len(r.Answer) > 0:
		s.standing = notZone // RFC 2181 §10.1: beside an alias there is no NS RRset
	case r.RCODE == wire.RCODENXDomain:
		s.standing = notThere
	default:
		s.standing = j.withoutDS(s.name, r.Authority)
	}
}

// withoutDS tells an insecure delegation from a name that is no zone cut. RFC 6840 §4.4: the proof
// that there is no DS tells of a delegation only if it has the NS bit.
func (j *judgement) withoutDS(name wire.Name, authority []wire.RRset) standing {
	for i := range authority {
		types, ok := j.typesAt(name, &authority[i])
		switch {
		case !ok:
		case types.Has(wire.TypeNS) && !types.Has(wire.TypeSOA):
			return zoneInsecure
		case types.Has(wire.TypeNXNAME):
			return notThere // RFC 9824 §3.1
		default:
			return notZone
		}
	}
	return notZone
}

// typesAt returns the types at name, where set is the NSEC or NSEC3 RRset that matches it.
func (j *judgement) typesAt(name wire.Name, set *wire.RRset) (wire.Bitmap, bool) {
	switch {
	case len(set.RDATA) != 1:
	case set.Type == wire.TypeNSEC && set.Owner.Equal(name):
		n, ok := wire.ParseNSEC(set.RDATA[0])
		return n.Types, ok
	case set.Type == wire.TypeNSEC3:
		n, ok := wire.ParseNSEC3(set.RDATA[0])
		own, okHash := ownerHash(set.Owner)
		if !ok || !okHash || n.Hash != wire.NSEC3HashSHA1 || int(n.Iterations) > j.v.config.MaxIterations {
			return nil, false
		}
		h, okHash := j.hash(name, n.Salt, n.Iterations)
		return n.Types, okHash && h == own
	}
	return nil, false
}

// chooseDS keeps the DS records that count. Without any the zone is as good as unsigned (RFC 4035
// §5.2, RFC 6840 §5.2).
func (j *judgement) chooseDS(s *state, records [][]byte) {
	algorithms, stronger := false, false
	for _, ds := range records {
		if len(ds) <= dsFixed || !j.v.config.supported(ds[2]) {
			continue
		}
		algorithms = true
		if j.v.config.supportedDigest(ds[3]) {
			s.ds = append(s.ds, ds)
			stronger = stronger || ds[3] != digestSHA1
		}
	}
	switch {
	case len(s.ds) > 0:
		s.standing = zoneSecure
	case algorithms:
		s.standing = zoneInsecure
		s.reason = because(wire.EDEUnsupportedDS, s.name, "no DS has a supported digest")
	default:
		s.standing = zoneInsecure
		s.reason = because(wire.EDEUnsupportedDNSKEY, s.name, "no DS has a supported algorithm")
	}
	if stronger {
		// RFC 4509 §3: beside SHA-256, SHA-1 is ignored, lest the weaker decide.
		kept := s.ds[:0]
		for _, ds := range s.ds {
			if ds[3] != digestSHA1 {
				kept = append(kept, ds)
			}
		}
		s.ds = kept
	}
}

// insecureAt says what is known of the way from the trust anchor at point down to name: insecure
// where some delegation on it is, secure where none is, or why that cannot be said. Known cuts are
// looked at first, from the top; then every name between the deepest of them and name, for servers
// may hide a cut by serving both sides of it.
func (j *judgement) insecureAt(name, point wire.Name) *state {
	cuts := j.knownCuts(name, point)
	from := point.Labels()
	for i := len(cuts) - 1; i >= 0; i-- {
		if s := j.cut(cuts[i]); s.standing < zoneSecure || s.standing == notThere {
			return s
		}
		from = cuts[i].Labels()
	}
	for labels := from + 1; labels <= name.Labels(); labels++ {
		if s := j.cut(name.Suffix(labels)); s.standing < zoneSecure || s.standing == notThere {
			return s
		}
	}
	return &state{name: name, standing: zoneSecure, reason: noReason}
}

// knownCuts returns the cuts known between point and name, name included, deepest first.
func (j *judgement) knownCuts(name, point wire.Name) (cuts []wire.Name) {
	c := j.zone
	if c == "" || !name.IsSubdomainOf(c) {
		c = j.f.Cut(name)
	}
	for c != "" && c.IsBelow(point) && len(cuts) < wire.MaxNameLen/2 {
		if name.IsSubdomainOf(c) {
			cuts = append(cuts, c)
		}
		above := j.f.Cut(c)
		if len(above) >= len(c) {
			break
		}
		c = above
	}
	return cuts
}

// judgeKeys judges the DNSKEY RRset of a zone: one of its keys must be what a trust anchor or a DS
// says, and have signed it. RFC 6840 §5.11: any such path suffices.
func (j *judgement) judgeKeys(set *wire.RRset, point wire.Name) finding {
	zone := set.Owner.Canonical()
	anchors := j.trust.anchors[zone]
	s := state{name: zone, standing: zoneSecure, reason: noReason}
	if point == zone {
		j.chooseAnchors(&s, anchors)
	} else {
		anchors, s = nil, *j.cut(zone)
	}
	switch s.standing {
	case zoneUnknown, zoneBogus, zoneInsecure:
		return finding{status: s.standing.status(), reason: s.reason}
	case notZone, notThere:
		return finding{status: wire.Bogus, reason: because(wire.EDEBogus, zone, "DNSKEY at a name that is no zone cut")}
	}
	t := trial{set: set, zone: zone}
	keys := j.v.keysIn(set)
	trusted, zoneKeys := j.trustedKeys(&t, s.ds, anchors, keys)
	f := j.trySigs(&t, trusted)
	if f.status == wire.Secure {
		s.keys = keys
		j.zones = append(j.zones, s)
		return f
	}
	switch {
	case len(trusted) > 0:
		f.reason.clock = t.clock(len(set.Sigs))
	case t.spent:
	case zoneKeys:
		f.reason = because(wire.EDEDNSKEYMissing, zone, "no DNSKEY matches a DS or trust anchor")
	default:
		f.reason = because(wire.EDENoZoneKeyBit, zone, "no DNSKEY is a zone key")
	}
	return f
}

// trySigs tries the signatures of a DNSKEY RRset with the keys that are trusted.
func (j *judgement) trySigs(t *trial, trusted []*key) finding {
	for _, raw := range t.set.Sigs {
		s, ok := wire.ParseRRSIG(raw)
		if !ok || !admissible(t.set, &s) || !hasTag(trusted, s.KeyTag) || !t.inTime(&s, j.now) {
			continue
		}
		if j.try(t, &s, trusted) {
			clamp(t.set, &s, j.now)
			return finding{status: wire.Secure, reason: noReason, signer: s.Signer, labels: int(s.Labels)}
		}
	}
	return t.bogus()
}

func hasTag(keys []*key, tag uint16) bool {
	for _, k := range keys {
		if k.tag == tag {
			return true
		}
	}
	return false
}

// clock says whether all signatures of the root's keys are out of time in one direction.
func (t *trial) clock(sigs int) Clock {
	switch {
	case t.zone != wire.Root || sigs == 0 || t.failed > 0:
	case t.expired > 0 && t.early == 0:
		return ClockAhead
	case t.early > 0 && t.expired == 0:
		return ClockBehind
	}
	return ClockRight
}

// chooseAnchors keeps the DS anchors that count; insecure where neither they nor a DNSKEY do.
func (j *judgement) chooseAnchors(s *state, anchors []Anchor) {
	var records [][]byte
	usable := false
	for _, a := range anchors {
		if a.Type == wire.TypeDS {
			records = append(records, a.RDATA)
		} else if len(a.RDATA) > dnskeyFixed && j.v.config.supported(a.RDATA[3]) {
			usable = true
		}
	}
	j.chooseDS(s, records)
	if usable {
		s.standing, s.reason = zoneSecure, noReason
	}
}

// trustedKeys returns the keys that a DS or an anchor names. zoneKeys says whether any key may
// sign at all. Digests that do not match count as failed verifications, for they cost as well.
func (j *judgement) trustedKeys(t *trial, ds [][]byte, anchors []Anchor, keys []*key) (trusted []*key, zoneKeys bool) {
	for _, k := range keys {
		if !k.signs {
			continue
		}
		zoneKeys = true
		if isAnchor(anchors, k) {
			trusted = append(trusted, k)
			continue
		}
		for _, d := range ds {
			if binary.BigEndian.Uint16(d) != k.tag || d[2] != k.algorithm {
				continue
			}
			if t.failed >= j.v.config.MaxFailedRRset || j.spent() {
				t.spent = t.spent || j.spent()
				return trusted, zoneKeys
			}
			if matchesDS(d, t.set.Owner, []byte(k.rdata)) {
				trusted = append(trusted, k)
				break
			}
			t.failed++
			j.cost.failed.Add(1)
			j.v.stats.failed.Add(1)
		}
	}
	return trusted, zoneKeys
}

func isAnchor(anchors []Anchor, k *key) bool {
	for _, a := range anchors {
		if a.Type == wire.TypeDNSKEY && string(a.RDATA) == k.rdata {
			return true
		}
	}
	return false
}

// status is that of data in a zone of such standing that no signature vouches for.
func (s standing) status() wire.Status {
	switch s {
	case zoneUnknown:
		return wire.Indeterminate
	case zoneInsecure:
		return wire.Insecure
	}
	return wire.Bogus
}

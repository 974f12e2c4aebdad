package validate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// Keeper keeps the trust anchors of one zone up to date from its own DNSKEY RRset (RFC 5011). It does
// no input or output: the resolver gives it each secure DNSKEY RRset and the time, and keeps the file.
// It is not for several goroutines at once.
type Keeper struct {
	zone wire.Name
	keys []keptKey
}

// keptKey is a trust anchor, or a key on its way to be or from having been one.
type keptKey struct {
	Anchor
	state keyState
	since int64 // Unix second of the last change of state
	// until is when a pending key may be trusted: the later of hold-down and the first TTL.
	until int64
}

// keyState is a state of RFC 5011 §4.2. A DS anchor whose key was not seen yet is valid.
type keyState string

const (
	keyPending keyState = "pending" // AddPend
	keyValid   keyState = "valid"
	keyMissing keyState = "missing"
	keyRevoked keyState = "revoked"
)

// Times of RFC 5011, in seconds.
const (
	addHoldDown    = 30 * 86400 // §2.4.1
	removeHoldDown = 30 * 86400 // §2.4.2
	hour, day      = 3600, 86400
)

// NewKeeper begins with anchors that were configured.
func NewKeeper(zone wire.Name, anchors []Anchor, now int64) *Keeper {
	k := &Keeper{zone: zone.Canonical()}
	k.Add(anchors, now)
	return k
}

// Add takes anchors into trust that are not known yet, such as those of a newer release. What was
// revoked stays so.
func (k *Keeper) Add(anchors []Anchor, now int64) {
	for _, a := range anchors {
		if a.Zone.Equal(k.zone) && !k.knows(&a) {
			k.keys = append(k.keys, keptKey{Anchor: a, state: keyValid, since: now})
		}
	}
}

func (k *Keeper) knows(a *Anchor) bool {
	return slices.ContainsFunc(k.keys, func(have keptKey) bool {
		if have.Type == a.Type {
			return bytes.Equal(unrevoked(have.RDATA, have.Type), unrevoked(a.RDATA, a.Type))
		}
		return a.Type == wire.TypeDS && matchesDS(a.RDATA, k.zone, unrevoked(have.RDATA, have.Type))
	})
}

// unrevoked returns a DNSKEY's RDATA without the REVOKE bit, which is no part of what the key is.
func unrevoked(rdata []byte, t wire.Type) []byte {
	if t != wire.TypeDNSKEY || len(rdata) < dnskeyFixed {
		return rdata
	}
	out := bytes.Clone(rdata)
	binary.BigEndian.PutUint16(out, binary.BigEndian.Uint16(out)&^flagRevoke)
	return out
}

// Anchors returns what is to be trusted now: valid keys, and those missing, which RFC 5011 §4.2 keeps.
func (k *Keeper) Anchors() (anchors []Anchor) {
	for i := range k.keys {
		if s := k.keys[i].state; s == keyValid || s == keyMissing {
			anchors = append(anchors, k.keys[i].Anchor)
		}
	}
	return anchors
}

// Update takes the zone's DNSKEY RRset, which was found secure by the present anchors, and says
// whether anything is to be written down.
func (k *Keeper) Update(set *wire.RRset, now int64) (changed bool) {
	if !set.Is(k.zone, wire.TypeDNSKEY) || set.Status != wire.Secure {
		return false
	}
	before := string(k.AppendTo(nil))
	k.settleDS(set, now)
	seen := make([]bool, len(k.keys))
	for _, rdata := range set.RDATA {
		i := slices.IndexFunc(k.keys, func(have keptKey) bool {
			return have.Type == wire.TypeDNSKEY && bytes.Equal(unrevoked(have.RDATA, have.Type), unrevoked(rdata, wire.TypeDNSKEY))
		})
		switch {
		case i >= 0 && i < len(seen):
			seen[i] = true
			k.see(&k.keys[i], set, rdata, now)
		case i < 0 && isNewAnchor(rdata):
			k.keys = append(k.keys, keptKey{
				Anchor: Anchor{Zone: k.zone, Type: wire.TypeDNSKEY, RDATA: bytes.Clone(rdata)},
				state:  keyPending, since: now, until: now + max(addHoldDown, int64(originalTTL(set))),
			})
		}
	}
	k.miss(seen, now)
	return before != string(k.AppendTo(nil))
}

// settleDS puts the key in the place of a DS anchor that names it, once it is seen.
func (k *Keeper) settleDS(set *wire.RRset, now int64) {
	for i := range k.keys {
		if k.keys[i].Type != wire.TypeDS {
			continue
		}
		for _, rdata := range set.RDATA {
			if matchesDS(k.keys[i].RDATA, k.zone, unrevoked(rdata, wire.TypeDNSKEY)) {
				k.keys[i].Anchor = Anchor{Zone: k.zone, Type: wire.TypeDNSKEY, RDATA: unrevoked(rdata, wire.TypeDNSKEY)}
				k.keys[i].since = now
			}
		}
	}
	kept := k.keys[:0]
	for _, have := range k.keys { // several DS records may have named one key
		if !slices.ContainsFunc(kept, func(other keptKey) bool { return other.Type == have.Type && bytes.Equal(other.RDATA, have.RDATA) }) {
			kept = append(kept, have)
		}
	}
	k.keys = kept
}

// isNewAnchor says whether a key unknown so far is meant to be an anchor: RFC 5011 §2.4.1 has it be a
// key with the SEP bit, not revoked.
func isNewAnchor(rdata []byte) bool {
	const flagSEP = 1
	if len(rdata) <= dnskeyFixed || rdata[2] != dnskeyProtocol {
		return false
	}
	flags := binary.BigEndian.Uint16(rdata)
	return flags&(flagZoneKey|flagSEP|flagRevoke) == flagZoneKey|flagSEP
}

// see moves a key that is in the RRset.
func (k *Keeper) see(have *keptKey, set *wire.RRset, rdata []byte, now int64) {
	move := func(to keyState) { have.state, have.since = to, now }
	// RFC 5011 §2.1: a key is revoked by the bit and its own signature over the RRset.
	if binary.BigEndian.Uint16(rdata)&flagRevoke != 0 {
		if have.state != keyRevoked && selfSigned(set, rdata, uint32(now)) {
			have.RDATA = bytes.Clone(rdata)
			move(keyRevoked)
		}
		return
	}
	switch {
	case have.state == keyMissing:
		move(keyValid)
	case have.state == keyPending && now >= have.until:
		move(keyValid)
	}
}

// miss moves the keys that are not in the RRset.
func (k *Keeper) miss(seen []bool, now int64) {
	kept := k.keys[:0]
	for i, have := range k.keys {
		if i < len(seen) && !seen[i] && have.Type == wire.TypeDNSKEY {
			switch have.state {
			case keyPending:
				continue // KeyRem of AddPend: it begins anew if it comes back
			case keyValid:
				have.state, have.since = keyMissing, now
			case keyRevoked:
				if now-have.since >= removeHoldDown {
					continue
				}
			}
		}
		kept = append(kept, have)
	}
	k.keys = kept
}

// selfSigned says whether a key, revoked or not, signed the RRset that it is in.
func selfSigned(set *wire.RRset, rdata []byte, now uint32) bool {
	key := newKey(string(rdata))
	for _, raw := range set.Sigs {
		s, ok := wire.ParseRRSIG(raw)
		if ok && admissible(set, &s) && s.KeyTag == key.tag && s.Algorithm == key.algorithm && validity(&s, now) == 0 {
			return key.verify(appendSignedData(nil, set, &s), s.Signature)
		}
	}
	return false
}

func originalTTL(set *wire.RRset) (ttl uint32) {
	for _, raw := range set.Sigs {
		if s, ok := wire.ParseRRSIG(raw); ok {
			ttl = max(ttl, s.OriginalTTL)
		}
	}
	return ttl
}

// NextQuery returns the seconds until the zone's keys are to be asked for again, after the RRset, or,
// with failed, after no answer that was secure (RFC 5011 §2.3).
func NextQuery(set *wire.RRset, failed bool, now int64) int64 {
	left := int64(365 * day)
	for _, raw := range set.Sigs {
		if s, ok := wire.ParseRRSIG(raw); ok {
			left = min(left, int64(int32(s.Expiration-uint32(now))))
		}
	}
	ttl := int64(originalTTL(set))
	if failed {
		return max(hour, min(day, ttl/10, left/10))
	}
	return max(hour, min(15*day, ttl/2, left/2))
}

// stateHeader is the first line of a state file.
const stateHeader = "; Trust anchors as kept by RFC 5011: state, since and until (Unix seconds), record.\n"

// AppendTo appends the state as text, for ReadKeeper.
func (k *Keeper) AppendTo(dst []byte) []byte {
	dst = append(dst, stateHeader...)
	for i := range k.keys {
		have := &k.keys[i]
		dst = fmt.Appendf(dst, "%s %d %d %s IN %s %s\n", have.state, have.since, have.until, k.zone, have.Type, presentation(&have.Anchor))
	}
	return dst
}

func presentation(a *Anchor) string {
	buf := append(make([]byte, 0, 64+len(a.RDATA)), a.Zone...)
	buf = binary.BigEndian.AppendUint16(buf, uint16(a.Type))
	buf = append(buf, 0, 1, 0, 0, 0, 0)
	buf = append(binary.BigEndian.AppendUint16(buf, uint16(len(a.RDATA))), a.RDATA...)
	rr, _, err := dns.UnpackRR(buf, 0)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(rr.String(), rr.Header().String())
}

// ReadKeeper reads the state of a zone's anchors. Errors say filename:line.
func ReadKeeper(r io.Reader, filename string, zone wire.Name) (*Keeper, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	k := &Keeper{zone: zone.Canonical()}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == ';' {
			continue
		}
		if err := k.readLine(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", filename, i+1, err)
		}
	}
	return k, nil
}

func (k *Keeper) readLine(line string) error {
	f := strings.SplitN(line, " ", 4)
	if len(f) < 4 {
		return fmt.Errorf("a line has state, since, until and record")
	}
	have := keptKey{state: keyState(f[0])}
	switch have.state {
	case keyPending, keyValid, keyMissing, keyRevoked:
	default:
		return fmt.Errorf("unknown state %q", f[0])
	}
	var err error
	if have.since, err = strconv.ParseInt(f[1], 10, 64); err != nil {
		return err
	}
	if have.until, err = strconv.ParseInt(f[2], 10, 64); err != nil {
		return err
	}
	rr, err := dns.NewRR(f[3])
	if err != nil || rr == nil {
		return fmt.Errorf("no record: %q", f[3])
	}
	flags := uint16(0)
	if key, ok := rr.(*dns.DNSKEY); ok {
		flags, key.Flags = key.Flags, key.Flags&^dns.REVOKE
	}
	if have.Anchor, err = anchorOf(rr); err != nil {
		return err
	}
	if have.Type == wire.TypeDNSKEY {
		binary.BigEndian.PutUint16(have.RDATA, flags)
	}
	if have.Zone != k.zone {
		return fmt.Errorf("an anchor of %s, not %s", have.Zone, k.zone)
	}
	k.keys = append(k.keys, have)
	return nil
}

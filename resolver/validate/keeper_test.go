package validate

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// rollover is a zone whose keys change, and who follows it.
type rollover struct {
	t      *testing.T
	keeper *Keeper
	now    int64
}

// show gives the keeper a DNSKEY RRset of these keys, signed by some of them.
func (r *rollover) show(keys []testKey, signers ...testKey) (changed bool) {
	r.t.Helper()
	var rrs []dns.RR
	for _, k := range keys {
		rrs = append(rrs, k.record)
	}
	z := testZone{origin: "."}
	all := rrs
	for _, k := range signers {
		s := z.signature(k, rrs)
		s.Inception, s.Expiration = uint32(r.now-100), uint32(r.now+20*86400)
		if err := s.Sign(k.signer, rrs); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, s)
	}
	set := parseSets(r.t, &dns.Msg{Ns: all})[0]
	set.Status = wire.Secure
	changed = r.keeper.Update(&set, r.now)
	// What is written down is what is read.
	text := string(r.keeper.AppendTo(nil))
	read, err := ReadKeeper(strings.NewReader(text), "state", wire.Root)
	if err != nil {
		r.t.Fatal(err)
	}
	if again := string(read.AppendTo(nil)); again != text {
		r.t.Fatalf("read again:\n%swritten:\n%s", again, text)
	}
	r.keeper = read
	return changed
}

// trusts says whether the anchors are just these keys.
func (r *rollover) trusts(what string, keys ...testKey) {
	r.t.Helper()
	anchors := r.keeper.Anchors()
	found := 0
	for _, k := range keys {
		want, err := anchorOf(k.record)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, a := range anchors {
			if a.Type == wire.TypeDNSKEY && string(a.RDATA) == string(want.RDATA) || a.Type == wire.TypeDS && matchesDS(a.RDATA, wire.Root, want.RDATA) {
				found++
			}
		}
	}
	if found != len(keys) || len(anchors) != len(keys) {
		r.t.Errorf("%s: %d of %d keys are trusted, %d anchors:\n%s", what, found, len(keys), len(anchors), r.keeper.AppendTo(nil))
	}
}

func revoke(k testKey) testKey {
	record := dns.Copy(k.record).(*dns.DNSKEY)
	record.Flags |= dns.REVOKE
	return testKey{record, k.signer}
}

// TestRollover follows a zone from one key to the next (RFC 5011 §6.3).
func TestRollover(t *testing.T) {
	a, b, z := makeKey(t, ".", 13), makeKey(t, ".", 13), makeKey(t, ".", 13)
	z.record.Flags = dns.ZONE
	ds, err := anchorOf(a.record.ToDS(dns.SHA256))
	if err != nil {
		t.Fatal(err)
	}
	ds384, err := anchorOf(a.record.ToDS(dns.SHA384))
	if err != nil {
		t.Fatal(err)
	}
	r := &rollover{t: t, now: testNow, keeper: NewKeeper(wire.Root, []Anchor{ds, ds384, ds}, testNow)}
	if got := len(r.keeper.Anchors()); got != 2 {
		t.Errorf("%d anchors to begin with", got)
	}
	if !r.show([]testKey{a, z}, a) {
		t.Error("the key is not written down")
	}
	r.trusts("the first key takes the place of its DS", a)
	if r.now += day; r.show([]testKey{a, z}, a) {
		t.Error("something changes where nothing does")
	}
	r.show([]testKey{a, b, z}, a)
	r.trusts("a new key is pending", a)
	r.now += 29 * day
	r.show([]testKey{a, b, z}, a)
	r.trusts("a day before the hold-down ends", a)
	r.show([]testKey{a, z}, a)
	r.now += day
	r.show([]testKey{a, b, z}, a)
	r.trusts("it was gone in between, and begins anew", a)
	r.now += 30 * day
	r.show([]testKey{a, b, z}, a, b)
	r.trusts("the hold-down has ended", a, b)

	// Revoked by a bit that the key itself has not signed, it stays.
	r.show([]testKey{revoke(a), b, z}, b)
	r.trusts("not signed by itself", a, b)
	r.show([]testKey{revoke(a), b, z}, b, revoke(a))
	r.trusts("revoked", b)
	r.keeper.Add([]Anchor{ds}, r.now)
	r.trusts("what is revoked is not added", b)
	r.show([]testKey{a, b, z}, a, b)
	r.trusts("nor comes back", b)
	r.now += 30 * day
	r.show([]testKey{b, z}, b)
	if strings.Contains(string(r.keeper.AppendTo(nil)), "revoked") {
		t.Error("the revoked key is remembered for ever")
	}
	r.show([]testKey{a, z}, a)
	r.trusts("missing keys are trusted", b)
	r.show([]testKey{a, b, z}, b)
	r.trusts("and come back", b)
}

// TestRolloverRefused: what is not secure, or not of the zone, changes nothing.
func TestRolloverRefused(t *testing.T) {
	a := makeKey(t, ".", 13)
	anchor, err := anchorOf(a.record)
	if err != nil {
		t.Fatal(err)
	}
	k := NewKeeper(wire.Root, []Anchor{anchor}, testNow)
	set := parseSets(t, &dns.Msg{Ns: []dns.RR{makeKey(t, ".", 13).record}})[0]
	for _, status := range []wire.Status{wire.Unchecked, wire.Insecure, wire.Bogus, wire.Indeterminate} {
		if set.Status = status; k.Update(&set, testNow) {
			t.Error(status, " changes something")
		}
	}
	set.Status, set.Owner = wire.Secure, wire.MustName("example.")
	if k.Update(&set, testNow) {
		t.Error("another zone's keys change something")
	}
}

func TestNextQuery(t *testing.T) {
	k := makeKey(t, ".", 13)
	set, _ := signedSet(t, k, ". 3600 A 192.0.2.1", nil, nil)
	sig := func(ttl, left uint32) *wire.RRset {
		s := set
		raw := append([]byte(nil), set.Sigs[0]...)
		for i, v := range []uint32{ttl, testNow + left} {
			raw[4+4*i], raw[5+4*i], raw[6+4*i], raw[7+4*i] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
		}
		s.Sigs = [][]byte{raw}
		return &s
	}
	for _, c := range []struct {
		ttl, left uint32
		failed    bool
		want      int64
	}{
		{172800, 20 * day, false, day}, {172800, 20 * day, true, 17280}, {172800, day, false, day / 2},
		{60, 20 * day, false, hour}, {60, 20 * day, true, hour}, {100 * day, 100 * day, false, 15 * day}, {100 * day, 100 * day, true, day},
	} {
		if got := NextQuery(sig(c.ttl, c.left), c.failed, testNow); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

func TestReadKeeperErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"; a comment\n\nvalid 1 2\n", "state:3: a line has"},
		{"trusted 1 2 . IN DS 1 8 2 00", "state:1: unknown state"},
		{"valid x 2 . IN DS 1 8 2 00", "state:1: "},
		{"valid 1 2 . IN DS 1 8", "state:1: no record"},
		{"valid 1 2 . IN A 192.0.2.1", "state:1: A is neither"},
		{"\nvalid 1 2 example. IN DS 1 8 2 00", "state:2: an anchor of example., not ."},
	} {
		if _, err := ReadKeeper(strings.NewReader(c.text), "state", wire.Root); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

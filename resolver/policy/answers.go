package policy

import (
	"encoding/binary"
	"net/netip"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// AnswerRule looks at an answer before it goes to a client. It is asked of every answer anew, cached
// or not, so that a change of lists needs no flush; Concerns keeps it from looking where it can have
// nothing to say.
type AnswerRule interface {
	// Concerns says from an entry's bits whether the rule may have something to say of it.
	Concerns(e entry.Entry) bool
	// Examine decides. It may change the content and then says Changed.
	Examine(c *entry.Content, now uint32) Outcome
	Describe() Description
}

// NewAnswerRules builds the rules that look at answers, in order.
func NewAnswerRules(c *Config) (rules []AnswerRule) {
	if len(c.BlockLists) > 0 {
		rules = append(rules, &aliasBlock{block{allow: c.AllowLists, lists: c.BlockLists}})
	}
	if len(c.PrivateAddress) > 0 {
		rules = append(rules, newRebinding(c.PrivateAddress, c.PrivateDomain))
	}
	return rules
}

// aliasBlock blocks names that are aliases of blocked ones.
type aliasBlock struct{ block }

func (b *aliasBlock) Concerns(e entry.Entry) bool { return e.HasAlias() }

func (b *aliasBlock) Examine(c *entry.Content, now uint32) Outcome {
	for i := range c.Answer {
		if c.Answer[i].Type != wire.TypeCNAME {
			continue
		}
		for _, target := range c.Answer[i].RDATA {
			if list := b.find(wire.Name(target).Canonical()); list != nil {
				return list.outcome(c.QName, c.QType, now)
			}
		}
	}
	return Outcome{}
}

// rebinding takes addresses of the local network out of answers of names that have no business
// there: a page from outside could else reach what is inside through the client's own browser.
type rebinding struct {
	private []netip.Prefix
	allowed []wire.Name
	special bool // all private prefixes lie in special-purpose blocks, which entries have a bit for
}

func newRebinding(private []netip.Prefix, allowed []wire.Name) *rebinding {
	r := &rebinding{special: true}
	for _, p := range private {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		p = p.Masked()
		r.private = append(r.private, p)
		r.special = r.special && isSpecial(p)
	}
	for _, name := range allowed {
		r.allowed = append(r.allowed, name.Canonical())
	}
	return r
}

// specialBlocks are those that entries mark (the special-purpose registries of RFC 6890).
var specialBlocks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/3"), netip.MustParsePrefix("4000::/2"), netip.MustParsePrefix("8000::/1"),
}

func isSpecial(p netip.Prefix) bool {
	for _, block := range specialBlocks {
		if block.Bits() <= p.Bits() && block.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

func (r *rebinding) Concerns(e entry.Entry) bool {
	if r.special {
		return e.HasSpecialAddress()
	}
	return true
}

func (r *rebinding) Examine(c *entry.Content, _ uint32) Outcome {
	changed, emptied := false, false
	for _, sets := range []*[]wire.RRset{&c.Answer, &c.Additional} {
		kept := (*sets)[:0]
		for _, s := range *sets {
			if !r.isAllowed(s.Owner) && r.strip(&s) {
				changed = true
				if len(s.RDATA) == 0 {
					emptied = emptied || s.Type == c.QType && s.Type != wire.TypeHTTPS && s.Type != wire.TypeSVCB
					continue
				}
			}
			kept = append(kept, s)
		}
		*sets = kept
	}
	if !changed {
		return Outcome{}
	}
	if emptied {
		// An answer of private addresses alone is a failure, as BIND and Unbound have it: the name has data, and
		// who gets none may not take that for a denial.
		return Outcome{Action: Fail, RCODE: wire.RCODEServFail, EDE: wire.EDEFiltered, Text: "private address", Rule: "rebinding"}
	}
	c.Status = wire.Insecure // what was signed is not what is left
	c.EDE = append(c.EDE[:0:0], wire.EDE{Code: wire.EDEFiltered, Text: "private address"})
	return Outcome{Action: Changed, EDE: wire.NoEDE, Rule: "rebinding"}
}

func (r *rebinding) isAllowed(owner wire.Name) bool {
	for _, name := range r.allowed {
		if owner.IsSubdomainOf(name) {
			return true
		}
	}
	return false
}

// strip takes private records out of an RRset and says whether there were any.
func (r *rebinding) strip(s *wire.RRset) bool {
	var private func([]byte) bool
	switch s.Type {
	case wire.TypeA, wire.TypeAAAA:
		private = r.isPrivate
	case wire.TypeSVCB, wire.TypeHTTPS:
		private = r.hasPrivateHint
	default:
		return false
	}
	var kept [][]byte
	for _, rdata := range s.RDATA {
		if !private(rdata) {
			kept = append(kept, rdata)
		}
	}
	if len(kept) == len(s.RDATA) {
		return false
	}
	s.RDATA, s.Sigs = kept, nil
	return true
}

// nat64 are the prefixes with an IPv4 address in their last 32 bits (RFC 6052 §2.1, RFC 8215).
var nat64 = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/96")}

// isPrivate looks at an address and at the IPv4 address that it may stand for.
func (r *rebinding) isPrivate(raw []byte) bool {
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return false
	}
	if r.contains(addr.Unmap()) {
		return true
	}
	for _, p := range nat64 {
		if p.Contains(addr) {
			v4, _ := netip.AddrFromSlice(raw[12:])
			return r.contains(v4)
		}
	}
	return false
}

func (r *rebinding) contains(addr netip.Addr) bool {
	for _, p := range r.private {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Keys of address hints in SVCB and HTTPS (RFC 9460 §14.3.2).
const (
	keyIPv4Hint = 4
	keyIPv6Hint = 6
)

// hasPrivateHint walks the parameters of a service binding (RFC 9460 §2.2).
func (r *rebinding) hasPrivateHint(rdata []byte) bool {
	p, ok := svcParams(rdata)
	for ok && len(p) >= 4 {
		key, n := binary.BigEndian.Uint16(p), int(binary.BigEndian.Uint16(p[2:]))
		if len(p) < 4+n {
			return false
		}
		value, size := p[4:4+n], 0
		switch key {
		case keyIPv4Hint:
			size = 4
		case keyIPv6Hint:
			size = 16
		}
		for ; size > 0 && len(value) >= size; value = value[size:] {
			if r.isPrivate(value[:size]) {
				return true
			}
		}
		p = p[4+n:]
	}
	return false
}

// svcParams returns what follows priority and target.
func svcParams(rdata []byte) (params []byte, ok bool) {
	wire.NameFields(wire.TypeSVCB, rdata, func(_, end int, _ bool) { params, ok = rdata[end:], true })
	return params, ok
}

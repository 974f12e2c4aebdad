package policy

import (
	"bonsai/cache/entry"
	"bonsai/wire"
)

// builtIn is a rule of zones that are built in.
type builtIn interface {
	Rule
	// zoneOf returns the built-in zone that name, in canonical case, is at or below.
	zoneOf(name wire.Name) (wire.Name, bool)
}

// configured lets a rule of built-in zones say nothing of what lies in zones that are configured: whoever
// named servers for a private zone has data there, and the most specific zone decides. A configured zone
// above a built-in one leaves it as it is, so that a resolver that forwards everything does not forward
// what is nobody's business (RFC 6303 §3).
type configured struct {
	builtIn
	zones map[wire.Name]bool
}

// newConfigured returns the rule itself where no zones are configured.
func newConfigured(rule builtIn, zones []wire.Name) Rule {
	c := &configured{builtIn: rule, zones: make(map[wire.Name]bool)}
	for _, zone := range zones {
		zone = zone.Canonical()
		if _, ok := rule.zoneOf(zone); ok {
			c.zones[zone] = true
		}
	}
	if len(c.zones) == 0 {
		return rule
	}
	return c
}

func (c *configured) Judge(r *Request) Outcome {
	name := wire.BorrowName(r.Query.Name())
	// RFC 4035 §3.1.4.1: the DS of a zone is its parent's.
	isDS := r.Query.QType == wire.TypeDS && c.zones[name]
	above := name
	if isDS {
		above = name.Parent()
	}
	for n := above; n != wire.Root; n = n.Parent() {
		if c.zones[n] {
			return Outcome{}
		}
	}
	o := c.builtIn.Judge(r)
	if isDS && o.Action == Answer {
		return exists(o, r.Now)
	}
	return o
}

// exists makes of the denial of a name that of its type: what is configured below a built-in zone is there,
// and with an NXDOMAIN nothing would be at and below it (RFC 8020 §2).
func exists(o Outcome, now uint32) Outcome {
	c, err := o.Entry.Unpack(now)
	if err != nil || c.RCODE == wire.RCODENoError {
		return o
	}
	c.RCODE = wire.RCODENoError
	e, err := entry.Pack(nil, c, now)
	if err != nil {
		return fail(o.Rule, wire.RCODEServFail, wire.EDEOther, "")
	}
	o.Entry = e
	return o
}

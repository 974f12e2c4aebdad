package resolver

import (
	"context"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// maxAliases bounds a chain. RFC 1034 §5.2.2 asks for a limit and names none; peers follow 8 to 16.
const maxAliases = 11

// chain is an answer as it grows, link by link.
type chain struct {
	question question
	links    []*link
	failure  *failure  // the first; what follows it is for clients that set CD
	failed   wire.Name // where it failed
}

// resolve answers the question of a flight: links, until one leads no further.
func (t *tree) resolve(ctx context.Context, fl *flight) *result {
	c := chain{question: fl.question}
	epoch := t.r.epoch()
	for name := fl.question.name; ; {
		l, failure := t.next(ctx, name, fl.question.t)
		if failure != nil && c.failure == nil {
			c.failure, c.failed = failure, name
		}
		if l == nil {
			if c.failure != failure {
				c.links = nil // what a CD client is to get ends in a failure as well
			}
			break
		}
		c.links = append(c.links, l)
		if fl.question.link || !leadsOn(l, fl.question.t) {
			break
		}
		// Those who set CD get what there is, though it does not validate.
		if c.failure != nil && !t.r.flights.wantsRaw(fl) {
			break
		}
		if name = l.target(); c.aliases() > maxAliases || c.passed(name) {
			c.failure, c.failed = c.endless(name), name
			c.links = nil
			break
		}
	}
	return t.conclude(&c, epoch)
}

// aliases counts the CNAMEs so far.
func (c *chain) aliases() (n int) {
	for _, l := range c.links {
		for i := range l.Answer {
			if l.Answer[i].Type == wire.TypeCNAME {
				n++
			}
		}
	}
	return n
}

// synthetic says whether a link was made from proofs about other names.
func (c *chain) synthetic() bool {
	for _, l := range c.links {
		if l.synthetic {
			return true
		}
	}
	return false
}

// passed says whether the chain went through name already.
func (c *chain) passed(name wire.Name) bool {
	for _, l := range c.links {
		for i := range l.Answer {
			if l.Answer[i].Type == wire.TypeCNAME && l.Answer[i].Owner.Equal(name) {
				return true
			}
		}
	}
	return false
}

// endless is the failure of a chain that goes on and on. RFC 1034 §3.6.2: a loop is signalled as an
// error; the aliases that make it are shown with it.
func (c *chain) endless(name wire.Name) *failure {
	f := newFailure(wire.EDEOther, "aliases loop or are too many")
	if c.passed(name) {
		for _, l := range c.links {
			f.loop = appendNew(f.loop, l.Answer)
		}
	}
	return f
}

// compose joins the links into the answer to the question: one entry more, gone with its first
// record. It is of the kind given.
func (c *chain) compose(kind entry.Kind) *link {
	last := c.links[len(c.links)-1]
	if len(c.links) == 1 && last.QName.Equal(c.question.name) && last.Kind != entry.KindUnvalidated {
		return last
	}
	out := newLink(kind, c.question.name, c.question.t)
	// RFC 2308 §2.1, RFC 6604 §3: the RCODE is that of the last link.
	out.RCODE, out.Status, out.Lifetime = last.RCODE, wire.Secure, last.Lifetime
	if last.isCompact() {
		out.RCODE = wire.RCODENoError // as its proof says: a validator behind us may know no other
	}
	for _, l := range c.links {
		// One DNAME may have made more than one of the links.
		out.Answer = appendNew(out.Answer, l.Answer)
		out.Authority = appendNew(out.Authority, l.Authority)
		out.Status = weaker(out.Status, l.Status)
		out.Lifetime = min(out.Lifetime, l.Lifetime)
		if len(out.EDE) < entry.MaxEDE {
			out.EDE = append(out.EDE, l.EDE[:min(len(l.EDE), entry.MaxEDE-len(out.EDE))]...)
		}
	}
	out.Additional = last.Additional
	return out
}

// appendNew adds the RRsets that are not there yet.
func appendNew(to, sets []wire.RRset) []wire.RRset {
next:
	for i := range sets {
		for j := range to {
			if to[j].Is(sets[i].Owner, sets[i].Type) {
				continue next
			}
		}
		to = append(to, sets[i])
	}
	return to
}

// conclude makes the result, and keeps the composed answer.
func (t *tree) conclude(c *chain, epoch uint64) *result {
	r, now := t.r, t.r.now()
	if c.failure != nil {
		return t.fail(c, now, epoch)
	}
	whole := c.compose(entry.KindAnswer)
	packed := whole.packed
	if packed == nil {
		var err error
		if packed, err = entry.Pack(nil, &whole.Content, now); err != nil {
			c.failure = newFailure(wire.EDEOther, "response cannot be packed: "+err.Error())
			return t.fail(c, now, epoch)
		}
	}
	if len(c.links) > 1 && whole.Lifetime > 0 && c.question.t != wire.TypeANY && !c.synthetic() {
		r.storePacked(&whole.Content, packed, now, epoch, &missing{})
	}
	return &result{content: whole, packed: packed}
}

// fail makes the result of a failure, with what did not validate beside it, and remembers it.
func (t *tree) fail(c *chain, now uint32, epoch uint64) *result {
	r, f := t.r, c.failure
	res := &result{failure: f, failed: t.r.packFailure(c.question, f, now), budget: f.budget}
	if n := len(c.links); n > 0 && !leadsOn(c.links[n-1], c.question.t) {
		raw := c.compose(entry.KindUnvalidated)
		raw.Status = weaker(raw.Status, wire.Indeterminate)
		if packed, err := entry.Pack(nil, &raw.Content, now); err == nil {
			res.raw = packed
			if raw.Lifetime > 0 && c.question.t != wire.TypeANY {
				r.storePacked(&raw.Content, packed, now, epoch, &missing{})
			}
		}
	}
	// RFC 9520 §3.2: a failure is remembered. One that the budget of this client query made is so for
	// the client's own question alone: it says nothing of the names on the way.
	if !f.local && (!f.budget || t.level == 1) {
		r.keepFailure(c.question, f, now, epoch)
		if c.failed != "" && c.failed != c.question.name && !f.budget {
			own := *f
			own.loop = nil
			r.keepFailure(question{name: c.failed, t: c.question.t}, &own, now, epoch)
		}
	}
	return res
}

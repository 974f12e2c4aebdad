package policy

import (
	"net/netip"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// ListAction is what a block list's names get.
type ListAction uint8

// The actions.
const (
	ListNXDomain ListAction = iota
	ListNoData
	ListRefuse
	ListAddress // List.Addrs for A and AAAA, NODATA for other types
)

// List is a set of names that are blocked, each with all names below it.
type List struct {
	Label  string // for counters and explanations
	Names  *NameSet
	Action ListAction
	Addrs  []netip.Addr
	EDE    wire.EDECode // 15 Blocked, 16 Censored or 17 Filtered (RFC 8914 §4.16 to §4.18)
}

// block answers for blocked names in place of their zones. An allow list lets pass what a block
// list has.
type block struct {
	allow []*NameSet
	lists []List
}

func (b *block) Judge(r *Request) Outcome {
	list := b.find(wire.BorrowName(r.Query.Name()))
	if list == nil {
		return Outcome{}
	}
	return list.outcome(wire.Name(r.Query.Name()), r.Query.QType, r.Now)
}

// find returns the first list that blocks name.
func (b *block) find(name wire.Name) *List {
	for i := range b.lists {
		if !b.lists[i].Names.Covers(name) {
			continue
		}
		for _, allow := range b.allow {
			if allow.Covers(name) {
				allow.decided()
				return nil
			}
		}
		b.lists[i].Names.decided()
		return &b.lists[i]
	}
	return nil
}

// blockTTL is how long clients may keep what a list made, in seconds: lists change.
const blockTTL = 60

func (l *List) outcome(name wire.Name, t wire.Type, now uint32) Outcome {
	if l.Action == ListRefuse {
		return fail("block", wire.RCODERefused, l.EDE, "")
	}
	c := &entry.Content{Kind: entry.KindAnswer, QName: name, QType: t, Status: wire.Insecure}
	switch {
	case l.Action == ListAddress && (t == wire.TypeA || t == wire.TypeAAAA):
		s := wire.RRset{Owner: name, Type: t, Class: wire.ClassIN, TTL: blockTTL}
		for _, a := range l.Addrs {
			if a.Is4() == (t == wire.TypeA) {
				s.RDATA = append(s.RDATA, a.AsSlice())
			}
		}
		if len(s.RDATA) > 0 {
			c.Answer = []wire.RRset{s}
		}
	case l.Action == ListNXDomain:
		c.RCODE = wire.RCODENXDomain
	}
	if len(c.Answer) == 0 {
		soa := localSOA(name)
		soa.TTL = blockTTL
		c.Authority = []wire.RRset{soa}
	}
	c.EDE = []wire.EDE{{Code: l.EDE}}
	e, err := entry.Pack(nil, c, now)
	if err != nil {
		return fail("block", wire.RCODERefused, l.EDE, "")
	}
	return Outcome{Action: Answer, Entry: e, EDE: wire.NoEDE, Rule: "block"}
}

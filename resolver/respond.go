package resolver

import (
	"encoding/binary"

	"bonsai/cache/entry"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// maxOptions bounds the EDNS options of a response: COOKIE, NSID, keepalive and two extended
// errors with their texts.
const maxOptions = 1024

// writer is what writing a response uses. It is kept and used again, so that nothing is allocated.
type writer struct {
	builder wire.Builder
	options entry.Options
	buf     []byte // encoded EDNS options
	stats   *workerStats
	view    *view // the client's

	authority bool // what is written is said with authority
}

func newWriter(s *workerStats) writer { return writer{buf: make([]byte, 0, maxOptions), stats: s} }

// maxTCPSize is what a length prefix can say (RFC 7766 §8).
const maxTCPSize = 0xFFFF

// limit is how long a response to this client may be.
func (r *Resolver) limit(x *serve.Exchange, q *wire.Query) int {
	if x.Transport == serve.UDP {
		return q.UDPLimit(r.config.UDPSize)
	}
	return maxTCPSize
}

// respond answers a query from an entry: hit or miss, every answer of data is written here. how says
// where the entry is from; lookupMiss is a fresh one.
func (r *Resolver) respond(x *serve.Exchange, q *wire.Query, e entry.Entry, now uint32, how lookupResult, w *writer) {
	for _, rule := range w.view.examiners {
		if rule.Concerns(e) {
			var o policy.Outcome
			e, o = examine(rule, q, e, now)
			w.stats.countDecision(&o)
			if o.Action == policy.Fail {
				r.refuse(x, q, o.RCODE, o.EDE, o.Text, w)
				return
			}
		}
	}
	if e.Status() == wire.Secure && r.sentinelFails(q) {
		r.refuse(x, q, wire.RCODEServFail, wire.NoEDE, "", w)
		return
	}
	options := w.buf[:0]
	if q.EDNS.Present {
		options = r.clientOptions(options, x, q, now)
		options = appendErrors(options, e, how)
	}
	b := &w.builder
	b.Begin(x.Response, q, r.limit(x, q), optRoom(q, options))
	w.options = entry.Options{DO: q.DO(), Stale: how == lookupStale, StaleTTL: r.config.StaleTTL}
	if !r.config.NoRotation {
		w.options.Rotate = q.ID
	}
	e.AppendTo(b, now, &w.options)
	flags := wire.FlagRA
	if w.authority {
		flags |= wire.FlagAA
	}
	// RFC 6840 §5.8, RFC 4035 §3.2.3: AD where all is secure and the client understands it.
	if e.Status() == wire.Secure && q.WantsAD() && how != lookupStale {
		flags |= wire.FlagAD
	}
	if how == lookupStale {
		w.stats.stale.add(1)
	}
	rcode := clientRCODE(e, q)
	w.stats.responses[rcode&0xF].add(1)
	x.Response = b.Finish(q, flags, rcode, uint16(r.config.UDPSize), options)
}

// sentinelFails says whether the question is one about the root's keys whose answer is an error
// (RFC 8509 §3.2). Its first label has one of two lengths, which lets all others pass at once.
func (r *Resolver) sentinelFails(q *wire.Query) bool {
	name := q.Name()
	return (name[0] == 29 || name[0] == 30) && r.validator != nil && !q.Has(wire.FlagCD) &&
		r.validator.SentinelFails(wire.BorrowName(name), q.QType)
}

// clientRCODE is an entry's RCODE, but that a compact denial is NOERROR to who wants the proof and does
// not say that it understands it (RFC 9824 §5.1). Such a one is proven; what a policy denies is not.
func clientRCODE(e entry.Entry, q *wire.Query) wire.RCODE {
	rcode := e.RCODE()
	if rcode == wire.RCODENXDomain && q.EDNS.DO && !q.EDNS.CO && e.Status() == wire.Secure &&
		e.Kind() == entry.KindAnswer && !e.HasAlias() {
		return wire.RCODENoError
	}
	return rcode
}

// examine asks a rule about an answer and returns what is left of it.
func examine(rule policy.AnswerRule, q *wire.Query, e entry.Entry, now uint32) (entry.Entry, policy.Outcome) {
	c, err := e.Unpack(now)
	if err != nil {
		return e, policy.Outcome{}
	}
	c.QName, c.QType = wire.Name(q.Name()), q.QType
	o := rule.Examine(c, now)
	switch o.Action {
	case policy.Answer:
		return o.Entry, o
	case policy.Changed:
		if packed, err := entry.Pack(nil, c, now); err == nil {
			return packed, o
		}
		o.Action, o.RCODE, o.EDE = policy.Fail, wire.RCODEServFail, wire.EDEFiltered
	}
	return e, o
}

// optRoom is how many bytes the OPT will take.
func optRoom(q *wire.Query, options []byte) int {
	if !q.EDNS.Present {
		return 0
	}
	return wire.OPTSize + len(options)
}

// appendErrors appends the extended errors of an entry (RFC 8914 §2).
func appendErrors(options []byte, e entry.Entry, how lookupResult) []byte {
	if how == lookupStale {
		// RFC 8914 §4.4 and §4.20: stale data, or a stale NXDOMAIN.
		code := wire.EDEStaleAnswer
		if e.RCODE() == wire.RCODENXDomain {
			code = wire.EDEStaleNXDomain
		}
		return appendEDE(options, code, "")
	}
	options = e.AppendEDE(options)
	// RFC 8914 §4.14: Cached Error, beside the reason it had.
	if how == lookupHit && e.Kind() == entry.KindFailure {
		options = appendEDE(options, wire.EDECachedError, "")
	}
	return options
}

func appendEDE[T ~string | ~[]byte](options []byte, code wire.EDECode, text T) []byte {
	options = binary.BigEndian.AppendUint16(options, uint16(wire.OptionEDE))
	options = binary.BigEndian.AppendUint16(options, uint16(2+len(text)))
	options = binary.BigEndian.AppendUint16(options, uint16(code))
	return append(options, text...)
}

// clientOptions appends the options that answer those of the query.
func (r *Resolver) clientOptions(options []byte, x *serve.Exchange, q *wire.Query, now uint32) []byte {
	if len(q.EDNS.Options) == 0 {
		return options
	}
	if c, ok := q.EDNS.Option(wire.OptionCookie); ok && wellFormedCookie(c) {
		options = r.cookies.appendOption(options, c[:clientCookieLen], x.Client.Addr(), now)
	}
	if _, ok := q.EDNS.Option(wire.OptionNSID); ok && r.config.NSID != "" {
		options = wire.AppendOption(options, wire.OptionNSID, []byte(r.config.NSID))
	}
	// RFC 7828 §3.2.1: over TCP only.
	if _, ok := q.EDNS.Option(wire.OptionKeepalive); ok && x.Transport == serve.TCP {
		var units [2]byte
		binary.BigEndian.PutUint16(units[:], x.Keepalive)
		options = wire.AppendOption(options, wire.OptionKeepalive, units[:])
	}
	return options
}

// reject answers a query whose shape is refused, or says that it is dropped.
func (r *Resolver) reject(x *serve.Exchange, q *wire.Query, v wire.Verdict, w *writer) serve.Result {
	rcode := wire.RCODENoError
	switch v {
	case wire.QueryDrop:
		w.stats.dropped.add(1)
		return serve.Dropped
	case wire.QueryFormErr:
		rcode = wire.RCODEFormErr
	case wire.QueryNotImp:
		rcode = wire.RCODENotImp
	case wire.QueryBadVers:
		rcode = wire.RCODEBadVers
	}
	if v == wire.QueryCookieOnly && !cookieHolds(q) {
		rcode = wire.RCODEFormErr
	}
	r.refuse(x, q, rcode, wire.NoEDE, "", w)
	return serve.Answered
}

// refuse answers with an RCODE and nothing else.
func (r *Resolver) refuse(x *serve.Exchange, q *wire.Query, rcode wire.RCODE, code wire.EDECode, text string, w *writer) {
	options := w.buf[:0]
	if q.EDNS.Present {
		options = r.clientOptions(options, x, q, r.now())
		if code != wire.NoEDE {
			options = appendEDE(options, code, text)
		}
	}
	b := &w.builder
	b.Begin(x.Response, q, r.limit(x, q), optRoom(q, options))
	w.stats.responses[rcode&0xF].add(1)
	// RFC 1035 §4.1.1: RA says whether recursion is to be had, which is not for whom it is denied.
	flags := wire.FlagRA
	if code == wire.EDEProhibited {
		flags = 0
	}
	x.Response = b.Finish(q, flags, rcode, uint16(r.config.UDPSize), options)
}

// decide carries out what a policy decided.
func (r *Resolver) decide(x *serve.Exchange, q *wire.Query, o *policy.Outcome, now uint32, w *writer) serve.Result {
	switch o.Action {
	case policy.Drop:
		w.stats.dropped.add(1)
		return serve.Dropped
	case policy.Answer:
		w.authority = o.Entry.AA() // a rule's own; what is cached is said by others
		r.respond(x, q, o.Entry, now, lookupMiss, w)
		w.authority = false
	case policy.Truncate:
		r.respondTruncated(x, q, w)
	case policy.Text:
		r.respondText(x, q, o.Text, w)
	default:
		r.refuse(x, q, o.RCODE, o.EDE, o.Text, w)
	}
	return serve.Answered
}

// respondTruncated sends the client over to TCP, with a cookie if it brought one.
func (r *Resolver) respondTruncated(x *serve.Exchange, q *wire.Query, w *writer) {
	options := w.buf[:0]
	if q.EDNS.Present {
		options = r.clientOptions(options, x, q, r.now())
	}
	b := &w.builder
	b.Begin(x.Response, q, r.limit(x, q), optRoom(q, options))
	b.Truncate()
	w.stats.responses[wire.RCODENoError].add(1)
	x.Response = b.Finish(q, wire.FlagRA, wire.RCODENoError, uint16(r.config.UDPSize), options)
}

// ownerIsQName points to the question (RFC 1035 §4.1.4).
var ownerIsQName = []byte{0xC0, wire.HeaderSize}

// respondText answers with one TXT record of the query's class.
func (r *Resolver) respondText(x *serve.Exchange, q *wire.Query, text string, w *writer) {
	options := w.buf[:0]
	if q.EDNS.Present {
		options = r.clientOptions(options, x, q, r.now())
	}
	b := &w.builder
	b.Begin(x.Response, q, r.limit(x, q), optRoom(q, options))
	mark := b.Mark()
	b.Buf = wire.AppendRecordHeader(b.Buf, ownerIsQName, wire.TypeTXT, 0, 1+len(text))
	binary.BigEndian.PutUint16(b.Buf[mark+4:], uint16(q.QClass))
	b.Buf = append(append(b.Buf, byte(len(text))), text...)
	b.Commit(mark, wire.Answer, 1)
	w.stats.responses[wire.RCODENoError].add(1)
	x.Response = b.Finish(q, wire.FlagRA, wire.RCODENoError, uint16(r.config.UDPSize), options)
}

// refer answers with the deepest delegation that is cached for the name, REFUSED where none is.
func (r *Resolver) refer(x *serve.Exchange, q *wire.Query, now uint32, w *writer) {
	cut := r.cuts.Shown(wire.Name(q.Name()), now)
	if cut.Prime || cut.Forward {
		r.refuse(x, q, wire.RCODERefused, wire.EDENotAuthoritative, "", w)
		return
	}
	c := entry.Content{Kind: entry.KindAnswer, QName: wire.Name(q.Name()), QType: q.QType, Status: wire.Insecure}
	c.Authority = []wire.RRset{{Owner: cut.Zone, Type: wire.TypeNS, Class: wire.ClassIN, TTL: cut.Expires - now}}
	for _, s := range cut.Servers {
		if s.Name != "" {
			c.Authority[0].RDATA = append(c.Authority[0].RDATA, []byte(s.Name))
			c.Additional = appendAddresses(c.Additional, &s, cut.Expires-now)
		}
	}
	e, err := entry.Pack(nil, &c, now)
	if err != nil {
		r.refuse(x, q, wire.RCODEServFail, wire.EDEOther, "", w)
		return
	}
	r.respond(x, q, e, now, lookupMiss, w)
}

// appendAddresses appends a name server's addresses as A and AAAA RRsets.
func appendAddresses(sets []wire.RRset, s *zonecut.Server, ttl uint32) []wire.RRset {
	a := wire.RRset{Owner: s.Name, Type: wire.TypeA, Class: wire.ClassIN, TTL: ttl}
	aaaa := wire.RRset{Owner: s.Name, Type: wire.TypeAAAA, Class: wire.ClassIN, TTL: ttl}
	for _, addr := range s.Addrs {
		if addr.Addr().Is4() {
			a.RDATA = append(a.RDATA, addr.Addr().AsSlice())
		} else {
			aaaa.RDATA = append(aaaa.RDATA, addr.Addr().AsSlice())
		}
	}
	for _, set := range []wire.RRset{a, aaaa} {
		if len(set.RDATA) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}

package replay

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// inferred answers what a scenario leaves out but a server that holds its data could not answer
// otherwise: most were written by watching one resolver, and another asks for an NS, address or DS
// where that one did not. It is nil where the scenario says too little, and is never asked where
// the scenario has an answer.
func (n *Internet) inferred(q *dns.Msg, to netip.Addr, tcp bool) *dns.Msg {
	if len(q.Question) != 1 || q.Opcode != dns.OpcodeQuery || q.Question[0].Qclass != dns.ClassINET {
		return nil
	}
	m := n.rootInferred(q, to)
	if m == nil {
		m = n.typeInferred(q, to, tcp)
	}
	if m == nil {
		m = n.rrsetInferred(q, to)
	}
	if m == nil {
		return nil
	}
	m.Id, m.Question, m.Compress = q.Id, slices.Clone(q.Question), true
	m.Response = true
	mirrorOPT(m, q, m.Rcode, nil)
	return m
}

// rootInferred gives the root's NS RRset and the addresses in it, as the header has them.
func (n *Internet) rootInferred(q *dns.Msg, to netip.Addr) *dns.Msg {
	if !slices.Contains(n.settings.HintAddrs, to) {
		return nil
	}
	var addrs []dns.RR
	for _, a := range n.settings.HintAddrs {
		h := dns.RR_Header{Name: n.settings.HintName, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: rootTTL}
		if a.Is4() {
			addrs = append(addrs, &dns.A{Hdr: h, A: a.AsSlice()})
		} else {
			h.Rrtype = dns.TypeAAAA
			addrs = append(addrs, &dns.AAAA{Hdr: h, AAAA: a.AsSlice()})
		}
	}
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Authoritative: true, RecursionDesired: q.RecursionDesired}}
	qname, qtype := q.Question[0].Name, q.Question[0].Qtype
	switch {
	case qname == "." && qtype == dns.TypeNS:
		h := dns.RR_Header{Name: ".", Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: rootTTL}
		m.Answer = []dns.RR{&dns.NS{Hdr: h, Ns: n.settings.HintName}}
		m.Extra = addrs
	case strings.EqualFold(qname, n.settings.HintName) && (qtype == dns.TypeA || qtype == dns.TypeAAAA) && !n.signedRoot():
		for _, r := range addrs {
			if r.Header().Rrtype == qtype {
				m.Answer = append(m.Answer, r)
			}
		}
	default:
		return nil
	}
	return m
}

// rootTTL is the TTL, in seconds, that root hints are published with.
const rootTTL = 3600000

// signedRoot says whether the root has a trust anchor, so that what is not signed would be bogus.
func (n *Internet) signedRoot() bool {
	for l := range strings.Lines(n.settings.TrustAnchors) {
		if w := strings.Fields(l); len(w) > 0 && w[0] == "." {
			return true
		}
	}
	return false
}

// typeInferred finds a referral or NXDOMAIN for the same name and another type: a server says the
// same whatever the type. A DS is asked of the parent and needs an answer of its own.
func (n *Internet) typeInferred(q *dns.Msg, to netip.Addr, tcp bool) *dns.Msg {
	for e := range n.entries(to) {
		m := &e.Message
		if !e.has("qtype") || len(m.Question) == 0 || e.Raw != nil || e.Adjust["do_not_answer"] ||
			!e.Adjust["copy_id"] || m.Opcode != dns.OpcodeQuery || len(m.Answer) > 0 {
			continue
		}
		d := e.differences(q, tcp, n.scenario.Dialect, rules{})
		if len(d) != 1 || d[0].What != "qtype" {
			continue
		}
		referral := m.Rcode == dns.RcodeSuccess && !m.Authoritative && q.Question[0].Qtype != dns.TypeDS &&
			slices.ContainsFunc(m.Ns, func(r dns.RR) bool { return cutAbove(r, q.Question[0].Name) })
		if referral || m.Rcode == dns.RcodeNameError {
			n.fired[e]++
			return e.template()
		}
	}
	return nil
}

// cutAbove says whether a record is the NS of a zone, not the root, that holds the name.
func cutAbove(r dns.RR, name string) bool {
	owner := dns.CanonicalName(r.Header().Name)
	return r.Header().Rrtype == dns.TypeNS && owner != "." && dns.IsSubDomain(owner, dns.CanonicalName(name))
}

// rrsetInferred finds the RRset in something else that the same server says: in an answer, or for
// a DS in a referral.
func (n *Internet) rrsetInferred(q *dns.Msg, to netip.Addr) *dns.Msg {
	qname, qtype := q.Question[0].Name, q.Question[0].Qtype
	if qtype == dns.TypeANY || qtype == dns.TypeRRSIG {
		return nil
	}
	for _, r := range n.scenario.Ranges {
		if !r.holds(n.now()) || !slices.Contains(r.Addrs, to) {
			continue
		}
		for _, e := range r.Entries {
			m := &e.Message
			if e.Raw != nil || e.Adjust["do_not_answer"] || m.Rcode == dns.RcodeServerFailure || m.Rcode == dns.RcodeRefused {
				continue
			}
			set := rrset(m.Answer, qname, qtype)
			if set == nil && qtype == dns.TypeDS && !m.Authoritative {
				set = rrset(m.Ns, qname, qtype)
			}
			if set != nil {
				return &dns.Msg{
					MsgHdr: dns.MsgHdr{Authoritative: true, RecursionDesired: q.RecursionDesired}, Answer: set,
				}
			}
		}
	}
	return nil
}

// rrset returns copies of an RRset's records with the signatures behind them, nil where there is none.
func rrset(section []dns.RR, owner string, t uint16) []dns.RR {
	var set, sigs []dns.RR
	for _, r := range section {
		if !strings.EqualFold(r.Header().Name, owner) {
			continue
		}
		if s, ok := r.(*dns.RRSIG); ok && s.TypeCovered == t {
			sigs = append(sigs, dns.Copy(r))
		} else if r.Header().Rrtype == t {
			set = append(set, dns.Copy(r))
		}
	}
	if set == nil {
		return nil
	}
	return append(set, sigs...)
}

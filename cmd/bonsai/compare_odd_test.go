package main

import (
	"net"
	"testing"

	"github.com/miekg/dns"
)

// oddServers are the name servers of the world of testdata/compare/run.sh that NSD can't be: address and what is
// answered there, nil for nothing at all.
var oddServers = map[string]func(*dns.Msg) *dns.Msg{
	"198.18.6.1": func(*dns.Msg) *dns.Msg { return nil },
	"198.18.6.2": func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeServerFailure) },
	// RFC 6891 §7: a server that knows no EDNS.
	"198.18.6.3": func(q *dns.Msg) *dns.Msg {
		if q.IsEdns0() != nil {
			return &dns.Msg{MsgHdr: dns.MsgHdr{Id: q.Id, Response: true, Rcode: dns.RcodeFormatError}}
		}
		return oddAnswer(q, "plain.example.")
	},
	// It is not the zone's, and refers to the root.
	"198.18.6.4": func(q *dns.Msg) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Ns = []dns.RR{oddRecord(". 86400 NS a.root-servers.example.")}
		return m
	},
	"198.18.6.5": func(q *dns.Msg) *dns.Msg {
		m := oddAnswer(q, "noaa.example.")
		m.Authoritative = false
		return m
	},
	"198.18.6.6": func(q *dns.Msg) *dns.Msg {
		if q.IsEdns0() != nil {
			return new(dns.Msg).SetRcode(q, dns.RcodeNotImplemented)
		}
		return oddAnswer(q, "notimp.example.")
	},
	// It denies what has names below it (RFC 8020 §2 says that it must not).
	"198.18.6.7": func(q *dns.Msg) *dns.Msg {
		m := oddAnswer(q, "unent.example.")
		if q.Question[0].Name != "a.unent.example." && len(m.Answer) == 0 {
			m.Rcode = dns.RcodeNameError
		}
		return m
	},
}

// oddAnswer is what a small zone says: an A record at www and a, an NS and an SOA record at its apex, NXDOMAIN
// for any other name.
func oddAnswer(q *dns.Msg, zone string) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	soa := zone + " 300 SOA ns." + zone + " hostmaster." + zone + " 1 1800 900 604800 300"
	name, qtype := dns.CanonicalName(q.Question[0].Name), q.Question[0].Qtype
	switch host := name == "www."+zone || name == "a."+zone || name == "ns."+zone; {
	case host && qtype == dns.TypeA:
		m.Answer = []dns.RR{oddRecord(q.Question[0].Name + " 300 A 198.18.8.10")}
	case name == zone && qtype == dns.TypeNS:
		m.Answer = []dns.RR{oddRecord(zone + " 300 NS ns." + zone)}
	case name == zone && qtype == dns.TypeSOA:
		m.Answer = []dns.RR{oddRecord(soa)}
	default:
		m.Ns = []dns.RR{oddRecord(soa)}
		if !host && name != zone {
			m.Rcode = dns.RcodeNameError
		}
	}
	return m
}

func oddRecord(s string) dns.RR {
	rr, err := dns.NewRR(s)
	if err != nil {
		panic(err)
	}
	return rr
}

// serveOdd serves them on port 53, over UDP and TCP, until the test ends.
func serveOdd(t *testing.T) {
	t.Helper()
	for address, answer := range oddServers {
		handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
			if m := answer(q); m != nil {
				w.WriteMsg(m)
			}
		})
		at := net.JoinHostPort(address, "53")
		packets, err := net.ListenPacket("udp", at)
		if err != nil {
			t.Fatal(err)
		}
		streams, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: streams, Handler: handler}} {
			go server.ActivateAndServe()
			t.Cleanup(func() { server.Shutdown() })
		}
	}
}

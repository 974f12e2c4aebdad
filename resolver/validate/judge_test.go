package validate

import (
	"testing"

	"bonsai/wire"
)

// signedTexts are zones with everything that a proof may be about.
func signedTexts(options string) []string {
	return []string{
		"zone . \nexample. NS ns.example.\nplain. NS ns.example.\nsigned-only. NS ns.example.",
		"zone example. " + options + `
ns A 192.0.2.1
www A 192.0.2.2
www TXT "one" "two"
www TXT "three"
MiXed MX 10 MAIL.Example.
alias CNAME www
away CNAME www.plain.
lost CNAME nothing
ent.deep.er A 192.0.2.3
*.wild A 192.0.2.4
*.wild TXT "wild"
x.there.wild A 192.0.2.5
*.cwild CNAME www
dname DNAME www.plain.
self DNAME sub.example.
sub NS ns.sub
ns.sub A 192.0.2.6
bare NS ns.bare
ns.bare A 192.0.2.7
a.b.c.d TXT "deep"`,
		"zone sub.example. " + options + "\nns A 192.0.2.6\nwww A 192.0.2.8\n",
		"zone bare.example. unsigned\nns A 192.0.2.7\nwww A 192.0.2.9\nalias CNAME www",
		"zone plain. unsigned\nwww A 192.0.2.10\nhost.www A 192.0.2.11\nback CNAME www.example.",
		"zone signed-only. insecure\nwww A 192.0.2.12",
	}
}

// expectation is what is to be found.
type expectation struct {
	name, qtype string
	status      wire.Status
	rcode       wire.RCODE
	denial      Denial
}

var expectations = []expectation{
	{"www.example.", "A", wire.Secure, 0, NotDenied},
	{"www.example.", "TXT", wire.Secure, 0, NotDenied},
	{"WWW.example.", "A", wire.Secure, 0, NotDenied},
	{"mixed.example.", "MX", wire.Secure, 0, NotDenied},
	{"example.", "SOA", wire.Secure, 0, NotDenied},
	{"example.", "NS", wire.Secure, 0, NotDenied},
	{"example.", "DNSKEY", wire.Secure, 0, NotDenied},
	{"example.", "DS", wire.Secure, 0, NotDenied},
	{".", "DNSKEY", wire.Secure, 0, NotDenied},
	{".", "DS", wire.Secure, 0, NoData},
	{".", "TXT", wire.Secure, 0, NoData},
	{"sub.example.", "DS", wire.Secure, 0, NotDenied},
	{"www.sub.example.", "A", wire.Secure, 0, NotDenied},
	{"www.example.", "AAAA", wire.Secure, 0, NoData},
	{"www.example.", "DS", wire.Secure, 0, NoData},
	{"www.example.", "DNSKEY", wire.Secure, 0, NoData},
	{"sub.example.", "MX", wire.Secure, 0, NoData},
	{"no.example.", "A", wire.Secure, 3, NXDomain},
	{"a.no.example.", "A", wire.Secure, 3, NXDomain},
	{"zzz.example.", "DS", wire.Secure, 3, NXDomain},
	{"a.www.example.", "A", wire.Secure, 3, NXDomain},
	{"nothing.", "A", wire.Secure, 3, NXDomain},
	{"er.example.", "A", wire.Secure, 0, NoData},
	{"deep.er.example.", "TXT", wire.Secure, 0, NoData},
	{"c.d.example.", "TXT", wire.Secure, 0, NoData},
	{"x.d.example.", "TXT", wire.Secure, 3, NXDomain},
	{"a.wild.example.", "A", wire.Secure, 0, NotDenied},
	{"a.b.c.wild.example.", "TXT", wire.Secure, 0, NotDenied},
	{"*.wild.example.", "A", wire.Secure, 0, NotDenied},
	{"*.wild.example.", "AAAA", wire.Secure, 0, NoData},
	{"a.wild.example.", "AAAA", wire.Secure, 0, NoData},
	{"there.wild.example.", "A", wire.Secure, 0, NoData},
	{"y.there.wild.example.", "A", wire.Secure, 3, NXDomain},
	{"a.cwild.example.", "A", wire.Secure, 0, NotDenied},
	{"a.cwild.example.", "CNAME", wire.Secure, 0, NotDenied},
	{"alias.example.", "A", wire.Secure, 0, NotDenied},
	{"alias.example.", "AAAA", wire.Secure, 0, NoData},
	{"lost.example.", "A", wire.Secure, 3, NXDomain},
	{"away.example.", "A", wire.Secure, 0, NotDenied},
	{"host.dname.example.", "A", wire.Secure, 0, NotDenied},
	{"dname.example.", "DNAME", wire.Secure, 0, NotDenied},
	{"dname.example.", "A", wire.Secure, 0, NoData},
	{"www.self.example.", "A", wire.Secure, 0, NotDenied},
	{"plain.", "A", wire.Insecure, 0, NoData},
	{"www.plain.", "A", wire.Insecure, 0, NotDenied},
	{"no.plain.", "A", wire.Insecure, 3, NXDomain},
	{"back.plain.", "A", wire.Insecure, 0, NotDenied},
	{"www.signed-only.", "A", wire.Insecure, 0, NotDenied},
	{"no.signed-only.", "A", wire.Insecure, 3, NXDomain},
	{"signed-only.", "DNSKEY", wire.Insecure, 0, NotDenied},
	{"www.bare.example.", "A", wire.Insecure, 0, NotDenied},
	{"no.bare.example.", "A", wire.Insecure, 3, NXDomain},
	{"www.bare.example.", "TXT", wire.Insecure, 0, NoData},
	{"bare.example.", "DS", wire.Secure, 0, NoData},
}

// optOutDiffers are those of expectations that an opt-out span makes insecure (RFC 5155 §9.2).
var optOutDiffers = map[string]bool{
	"no.example. A": true, "a.no.example. A": true, "zzz.example. DS": true, "a.www.example. A": true,
	"x.d.example. TXT": true, "a.wild.example. A": true, "a.b.c.wild.example. TXT": true,
	"a.wild.example. AAAA": true, "y.there.wild.example. A": true, "a.cwild.example. A": true,
	"a.cwild.example. CNAME": true, "lost.example. A": true, "bare.example. DS": true,
}

func TestJudge(t *testing.T) {
	for _, options := range []string{"", "nsec3", "nsec3 iterations=5 salt=aabb", "optout", "alg=8", "alg=14 digest=4", "alg=15 nsec3"} {
		w := newWorld(t, signedTexts(options)...)
		c := newClient(w, Config{})
		for _, e := range expectations {
			if options == "optout" && optOutDiffers[e.name+" "+e.qtype] {
				e.status = wire.Insecure
			}
			t.Run(options+"/"+e.name+" "+e.qtype, func(t *testing.T) {
				w.tb = t
				checkJudged(t, c.fresh().get(t, e.name, e.qtype), e)
			})
		}
	}
}

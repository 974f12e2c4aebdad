package resolver_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// record answers for an RRset of one record, in presentation format; with an alias for all types.
func record(rr, adjust string) string {
	w, match := strings.Fields(rr), "qname qtype"
	if w[2] == "CNAME" {
		match = "qname"
	}
	return entry(match, "copy_id copy_query "+adjust, "AA NOERROR", w[0]+" IN "+w[2], "SECTION ANSWER\n"+rr+"\n")
}

// denial answers NXDOMAIN for a name, with an SOA of this TTL.
func denial(name, zone string, ttl int) string {
	soa := fmt.Sprintf("SECTION AUTHORITY\n%s %d IN SOA ns.%[1]s host.%[1]s 1 2 3 4 %[2]d\n", zone, ttl)
	return entry("qname", "copy_id copy_query", "AA NXDOMAIN", name+" IN A", soa)
}

// silence answers nothing.
func silence() string { return everything(".", "do_not_answer", "") }

// asked returns how often servers were asked for a name, of any type, since the last time.
func (l *live) asked() (names []string) {
	for _, u := range l.network.Upstream()[l.counted:] {
		names = append(names, dns.CanonicalName(u.Query.Question[0].Name)+" "+dns.TypeToString[u.Query.Question[0].Qtype])
	}
	l.spent()
	return names
}

// gets asks and compares rcode, EDE (-1 for none), time and answer: RDATA in the order of the answer section.
func (l *live) gets(name string, rcode, code int, within time.Duration, rdata ...string) *dns.Msg {
	l.t.Helper()
	m, took := l.ask(name, dns.TypeA)
	var got []string
	for _, rr := range m.Answer {
		got = append(got, strings.TrimPrefix(rr.String(), rr.Header().String()))
		if code >= 0 && rr.Header().Ttl > 30 {
			l.t.Errorf("%s: stale, and lives on for more than 30 s: %v", name, rr)
		}
	}
	told := told(m)
	if m.Rcode != rcode || told != code || took > within || !slices.Equal(got, rdata) {
		l.t.Errorf("%s: %s, EDE %d, %q after %s; want %s, %d, %q within %s", name,
			dns.RcodeToString[m.Rcode], told, got, took, dns.RcodeToString[rcode], code, rdata, within)
	}
	return m
}

// told is the first extended error of a response, -1 where there is none.
func told(m *dns.Msg) int {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				return int(e.InfoCode)
			}
		}
	}
	return none
}

const (
	stale   = int(dns.ExtendedErrorCodeStaleAnswer)
	staleNX = int(dns.ExtendedErrorCodeStaleNXDOMAINAnswer)
	none    = -1

	patience = 1800 * time.Millisecond // RFC 8767 §5: a client waits so long for what is better than stale
	atOnce   = time.Millisecond
)

// TestPrefetch: of a name with a TTL of 10 s, asked for once a second for a minute, of a server 300 ms
// away, no client waits after the first, and no more than one query a TTL goes out.
func TestPrefetch(t *testing.T) {
	const far = "sleep=0.3"
	w := newWorld(referral("z.test.", 3600, "ns.z.test. "+zoneAddr))
	w.server(0, 1000, zoneAddr, record("hot.z.test. 10 A 192.0.2.80", far))
	w.run(t, func(l *live) {
		l.ask("hot.z.test.", dns.TypeA)
		l.spent()
		begin, last := time.Now(), time.Duration(0)
		for i := range 60 {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second)))
			if m, took := l.ask("hot.z.test.", dns.TypeA); took > 50*time.Millisecond || len(m.Answer) != 1 {
				t.Errorf("at %d s a client waited %s for %v", i, took, m.Answer)
			}
		}
		n := 0
		for _, u := range l.network.Upstream()[l.counted:] {
			if n++; last > 0 && u.At-last < 9*time.Second {
				t.Errorf("asked after %s again", u.At-last)
			}
			last = u.At
		}
		if n < 5 || n > 6 {
			t.Errorf("asked %d times in a minute", n)
		}
	})
}

// TestPrefetchDue: what is renewed before it ends, and what is not.
func TestPrefetchDue(t *testing.T) {
	w := newWorld(referral("z.test.", 3600, "ns.z.test. "+zoneAddr))
	w.server(0, 1000, zoneAddr, record("a.z.test. 100 A 192.0.2.80", "sleep=0.3"), denial("no.z.test.", "z.test.", 100))
	for _, c := range []struct {
		name, asked string
		times       []int // seconds after the first question
		clients     int   // at each of them
		want        int   // queries
	}{
		{"asked once", "a.z.test.", nil, 1, 0},
		{"asked again before the last tenth", "a.z.test.", []int{50, 88}, 1, 0},
		{"asked again in the last tenth", "a.z.test.", []int{91}, 1, 1},
		{"asked by many in the last tenth", "a.z.test.", []int{91}, 2000, 1},
		{"asked for long", "a.z.test.", []int{50, 91, 140, 183, 250}, 1, 2},
		{"a denial", "no.z.test.", []int{91}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.run(t, func(l *live) {
				l.ask(c.asked, dns.TypeA)
				l.spent()
				begin := time.Now()
				for _, at := range c.times {
					time.Sleep(time.Until(begin.Add(time.Duration(at) * time.Second)))
					for range c.clients {
						if m, took := l.ask(c.asked, dns.TypeA); took > atOnce || len(m.Answer)+len(m.Ns) != 1 {
							t.Errorf("at %d s a client waited %s for %v", at, took, m)
						}
					}
				}
				time.Sleep(5 * time.Second)
				if got := l.asked(); len(got) != c.want {
					t.Errorf("asked %q, want %d queries", got, c.want)
				}
			})
		})
	}
}

// TestPrefetchOfMany: a name that thousands ask for while it is renewed does not keep another from being so.
func TestPrefetchOfMany(t *testing.T) {
	w := newWorld(referral("z.test.", 3600, "ns.z.test. "+zoneAddr))
	w.server(0, 1000, zoneAddr, record("hot.z.test. 100 A 192.0.2.80", "sleep=0.3"), record("other.z.test. 100 A 192.0.2.81", ""))
	w.run(t, func(l *live) {
		l.ask("hot.z.test.", dns.TypeA)
		l.ask("other.z.test.", dns.TypeA)
		l.spent()
		time.Sleep(95 * time.Second)
		for range 2000 {
			l.ask("hot.z.test.", dns.TypeA)
		}
		synctest.Wait()
		l.ask("other.z.test.", dns.TypeA)
		time.Sleep(time.Second)
		if got := l.asked(); !slices.Equal(got, []string{"hot.z.test. A", "other.z.test. A"}) {
			t.Errorf("asked %q", got)
		}
	})
}

// TestPrefetchLink: of a chain that alone is asked again which ends.
func TestPrefetchLink(t *testing.T) {
	w := newWorld(referral("a.test.", 86400, "ns.a.test. "+zoneAddr), referral("b.test.", 86400, "ns.b.test. 192.0.2.4"))
	w.server(0, 1000, zoneAddr, record("www.a.test. 1000 CNAME cdn.b.test.", "sleep=0.3"))
	w.server(0, 1000, "192.0.2.4", record("cdn.b.test. 100 A 192.0.2.80", "sleep=0.3"))
	w.run(t, func(l *live) {
		l.ask("www.a.test.", dns.TypeA)
		l.spent()
		begin, asked := time.Now(), map[string]int{}
		for at := range 1000 {
			time.Sleep(time.Until(begin.Add(time.Duration(at) * time.Second)))
			if m, took := l.ask("www.a.test.", dns.TypeA); took > atOnce || len(m.Answer) != 2 {
				t.Errorf("at %d s a client waited %s for %v", at, took, m.Answer)
			}
			for _, name := range l.asked() {
				asked[name]++
			}
		}
		if n := asked["www.a.test. A"]; n != 1 {
			t.Errorf("the alias was asked for %d times, want once", n)
		}
		if n := asked["cdn.b.test. A"]; n < 10 || n > 11 {
			t.Errorf("its target was asked for %d times, want once in 90 s", n)
		}
		if len(asked) != 2 {
			t.Errorf("asked: %v", asked)
		}
	})
}

// outage is a world with a zone that falls silent with step 2, and comes back with step 3. Its records
// live a minute.
func outage(limit int, entries ...string) *world {
	w := newWorld(referral("z.test.", 86400*4, "ns.z.test. "+zoneAddr))
	w.header = fmt.Sprintf("stale-limit: %d\n", limit)
	w.server(0, 1, zoneAddr, entries...)
	w.server(2, 2, zoneAddr, silence())
	w.server(3, 1000, zoneAddr, entries...)
	return w
}

// TestStale: in an outage a client gets what has expired after its patience, marked and with a TTL of 30 s;
// once the attempt to renew it has failed, at once; and for 30 s there is no other attempt.
func TestStale(t *testing.T) {
	w := outage(86400, record("a.z.test. 60 A 192.0.2.80", ""), denial("no.z.test.", "z.test.", 60),
		record("alias.z.test. 60 CNAME a.z.test.", ""), record("dangling.z.test. 60 CNAME no.z.test.", ""))
	for _, c := range []struct {
		name  string
		rcode int
		code  int
		rdata []string
	}{
		{"a.z.test.", dns.RcodeSuccess, stale, []string{"192.0.2.80"}},
		{"no.z.test.", dns.RcodeNameError, staleNX, nil},
		{"alias.z.test.", dns.RcodeSuccess, stale, []string{"a.z.test.", "192.0.2.80"}},
		{"dangling.z.test.", dns.RcodeNameError, staleNX, []string{"no.z.test."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.run(t, func(l *live) {
				l.network.SetStep(1)
				l.gets(c.name, c.rcode, none, time.Second, c.rdata...)
				l.network.SetStep(2)
				time.Sleep(61 * time.Second)
				begin := time.Now()
				l.gets(c.name, c.rcode, c.code, patience, c.rdata...)
				if took := time.Since(begin); took < patience {
					t.Errorf("stale after %s, before the client's patience ended", took)
				}
				time.Sleep(20 * time.Second)
				l.attempts(c.name, 180)
				for range 60 {
					l.gets(c.name, c.rcode, c.code, patience, c.rdata...)
					time.Sleep(3 * time.Second)
				}
				l.network.SetStep(3)
				time.Sleep(35 * time.Second)
				l.ask(c.name, dns.TypeA)
				time.Sleep(3 * time.Second)
				l.gets(c.name, c.rcode, none, atOnce, c.rdata...)
			})
		})
	}
}

// attempts asks for a name once a second and holds that attempts to renew it, each of them some queries in
// a row, begin no sooner than 30 s after the last has ended.
func (l *live) attempts(name string, seconds int) {
	l.t.Helper()
	begin := time.Now()
	l.spent()
	var wait sync.WaitGroup
	for i := range seconds {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second)))
		wait.Go(func() {
			if _, took := l.ask(name, dns.TypeA); took > patience {
				l.t.Errorf("%s: a client waited %s", name, took)
			}
		})
	}
	wait.Wait()
	all := l.network.Upstream()[l.counted:]
	attempts := min(1, len(all))
	for i := 1; i < len(all); i++ {
		if pause := all[i].At - all[i-1].At; pause > 10*time.Second {
			attempts++
			if pause < 30*time.Second {
				l.t.Errorf("%s: asked again %s after an attempt that failed", name, pause)
			}
		}
	}
	if most := seconds/30 + 1; attempts < 2 || attempts > most {
		l.t.Errorf("%s: %d attempts in %d s, want 2 to %d", name, attempts, seconds, most)
	}
}

// TestStaleLimit: what is served stale, and until when.
func TestStaleLimit(t *testing.T) {
	const day = 86400
	for _, c := range []struct {
		limit, after int // seconds
		served       bool
	}{
		{day, day - 20, true}, {day, day + 20, false}, {3 * day, 2 * day, true}, {3 * day, 3*day - 20, true},
		{3 * day, 3*day + 20, false}, {0, 5, false},
	} {
		outage(c.limit, record("a.z.test. 60 A 192.0.2.80", "")).run(t, func(l *live) {
			l.network.SetStep(1)
			l.ask("a.z.test.", dns.TypeA)
			l.network.SetStep(2)
			time.Sleep(time.Duration(60+c.after) * time.Second)
			if c.served {
				l.gets("a.z.test.", dns.RcodeSuccess, stale, patience, "192.0.2.80")
			} else if m, _ := l.ask("a.z.test.", dns.TypeA); m.Rcode != dns.RcodeServerFailure || len(m.Answer) != 0 {
				t.Errorf("limit %d s, %d s after the end: %v", c.limit, c.after, m)
			}
		})
	}
}

// TestStaleNewest: a name that is an address, then an alias, then nothing, and an address again. In an
// outage after each of these what was last is served, and nothing older of any type.
func TestStaleNewest(t *testing.T) {
	w := newWorld(referral("z.test.", 86400, "ns.z.test. "+zoneAddr))
	w.header = "stale-limit: 86400\n"
	const aaaa = "flip.z.test. 60 AAAA 2001:db8::1"
	target := record("to.z.test. 60 A 192.0.2.20", "") + record("to.z.test. 60 AAAA 2001:db8::20", "")
	alias := record("flip.z.test. 60 CNAME to.z.test.", "")
	for i, entries := range []string{
		record("flip.z.test. 60 A 192.0.2.10", "") + record(aaaa, ""), alias + target,
		denial("flip.z.test.", "z.test.", 60), record("flip.z.test. 60 A 192.0.2.11", ""), alias + target,
		record("flip.z.test. 60 A 192.0.2.12", ""),
	} {
		w.server(2*i, 2*i, zoneAddr, entries)
		w.server(2*i+1, 2*i+1, zoneAddr, silence())
	}
	chain := []string{"to.z.test.", "192.0.2.20"}
	w.run(t, func(l *live) {
		for i, c := range []struct {
			rcode, code int
			rdata       []string
			other       int // records of type AAAA; -1: there were none, and so nothing is known
		}{
			{dns.RcodeSuccess, stale, []string{"192.0.2.10"}, 1}, {dns.RcodeSuccess, stale, chain, 2},
			{dns.RcodeNameError, staleNX, nil, 0}, {dns.RcodeSuccess, stale, []string{"192.0.2.11"}, -1},
			{dns.RcodeSuccess, stale, chain, 2}, {dns.RcodeSuccess, stale, []string{"192.0.2.12"}, -1},
		} {
			l.network.SetStep(2 * i)
			time.Sleep(100 * time.Second) // until what failed may be asked for again
			l.gets("flip.z.test.", c.rcode, none, patience, c.rdata...)
			if c.other > 0 {
				l.ask("flip.z.test.", dns.TypeAAAA)
			}
			l.network.SetStep(2*i + 1)
			time.Sleep(100 * time.Second)
			l.gets("flip.z.test.", c.rcode, c.code, patience, c.rdata...)
			m, _ := l.ask("flip.z.test.", dns.TypeAAAA)
			if want := max(0, c.other); len(m.Answer) != want || c.other < 0 && m.Rcode != dns.RcodeServerFailure {
				t.Errorf("step %d: AAAA: %v, want %d records", 2*i+1, m, want)
			}
		}
	})
}

// TestStaleLinks: a chain is stale as soon as one link is, and of the others the newest is served.
func TestStaleLinks(t *testing.T) {
	w := newWorld(referral("a.test.", 86400, "ns.a.test. "+zoneAddr), referral("b.test.", 86400, "ns.b.test. 192.0.2.4"))
	w.header = "stale-limit: 86400\n"
	w.server(0, 1, zoneAddr, record("www.a.test. 60 CNAME cdn.b.test.", ""), record("slow.a.test. 3600 CNAME old.b.test.", ""))
	w.server(2, 1000, zoneAddr, silence())
	old := record("old.b.test. 60 A 192.0.2.90", "")
	w.server(0, 1, "192.0.2.4", record("cdn.b.test. 60 A 192.0.2.80", ""), old)
	w.server(2, 2, "192.0.2.4", record("cdn.b.test. 600 A 192.0.2.81", ""), entry("qname", "copy_id copy_query", "SERVFAIL", "old.b.test. IN A"))
	w.run(t, func(l *live) {
		l.network.SetStep(1)
		l.gets("www.a.test.", dns.RcodeSuccess, none, patience, "cdn.b.test.", "192.0.2.80")
		l.gets("slow.a.test.", dns.RcodeSuccess, none, patience, "old.b.test.", "192.0.2.90")
		l.network.SetStep(2)
		time.Sleep(61 * time.Second)
		l.gets("cdn.b.test.", dns.RcodeSuccess, none, patience, "192.0.2.81")
		// The alias is stale, and its target is as fresh as can be.
		l.gets("www.a.test.", dns.RcodeSuccess, stale, patience, "cdn.b.test.", "192.0.2.81")
		time.Sleep(15 * time.Second)
		l.gets("www.a.test.", dns.RcodeSuccess, stale, atOnce, "cdn.b.test.", "192.0.2.81")
		// The alias is fresh, and its target is stale.
		l.gets("slow.a.test.", dns.RcodeSuccess, stale, patience, "old.b.test.", "192.0.2.90")
		l.gets("slow.a.test.", dns.RcodeSuccess, stale, atOnce, "old.b.test.", "192.0.2.90")
	})
}

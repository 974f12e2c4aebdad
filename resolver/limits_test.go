package resolver_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"bonsai/resolver/replay"
)

// world writes a scenario too large to be a file: a root and test. below it, and whatever else.
type world struct {
	ranges strings.Builder
	header string // lines of it beside where the root is
}

const (
	rootAddr = "192.0.2.1"
	tldAddr  = "192.0.2.2"
	zoneAddr = "192.0.2.3"
)

// newWorld returns a world where test. is delegated. More entries of test.'s server, referrals
// most often, are written by the caller.
func newWorld(tld ...string) *world {
	w := &world{}
	w.server(0, 1000, rootAddr, referral("test.", 3600, "ns.test. "+tldAddr))
	w.server(0, 1000, tldAddr, tld...)
	return w
}

// server gives addresses, separated by spaces, the entries to answer with in the given steps.
func (w *world) server(first, last int, addrs string, entries ...string) {
	fmt.Fprintf(&w.ranges, "RANGE_BEGIN %d %d\n", first, last)
	for _, a := range strings.Fields(addrs) {
		fmt.Fprintf(&w.ranges, "ADDRESS %s\n", a)
	}
	fmt.Fprintf(&w.ranges, "%sRANGE_END\n", strings.Join(entries, ""))
}

// entry writes an ENTRY that answers (or, with words in match, matches) a question.
func entry(match, adjust, reply, question string, sections ...string) string {
	return fmt.Sprintf("ENTRY_BEGIN\nMATCH opcode %s\nADJUST %s\nREPLY QR %s\nSECTION QUESTION\n%s\n%sENTRY_END\n",
		match, adjust, reply, question, strings.Join(sections, ""))
}

// referral delegates a zone to servers, each "name" or "name address".
func referral(zone string, ttl int, servers ...string) string {
	ns, glue := "SECTION AUTHORITY\n", "SECTION ADDITIONAL\n"
	for _, s := range servers {
		name, addr, _ := strings.Cut(s, " ")
		ns += fmt.Sprintf("%s %d IN NS %s\n", zone, ttl, name)
		if addr != "" {
			glue += fmt.Sprintf("%s %d IN A %s\n", name, ttl, addr)
		}
	}
	return entry("subdomain", "copy_id copy_query", "NOERROR", zone+" IN A", ns, glue)
}

// address answers for the address of one name.
func address(name, addr, adjust string) string {
	return entry("qname qtype", "copy_id "+adjust, "AA NOERROR", name+" IN A", "SECTION ANSWER\n"+name+" 300 IN A "+addr+"\n")
}

// everything answers for all names of a zone, without a record.
func everything(zone, adjust, reply string) string {
	return entry("subdomain", "copy_query "+adjust, reply, zone+" IN A")
}

func (w *world) scenario(t *testing.T) *replay.Scenario {
	t.Helper()
	text := "stub-addr: " + rootAddr + "\n" + w.header + "CONFIG_END\nSCENARIO_BEGIN generated\n" + w.ranges.String() + "STEP 1 NOTHING\nSCENARIO_END\n"
	s, err := replay.Parse(strings.NewReader(text), "generated.rpl")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var client = netip.MustParseAddrPort("127.0.0.1:4242")

// live is a resolver in a world, in fake time.
type live struct {
	t       *testing.T
	network *replay.Internet
	replay.Answerer
	counted int
	stale   atomic.Uint64 // responses so marked that ask has seen
}

// run runs f with a resolver in a world, in a bubble of its own.
func (w *world) run(t *testing.T, f func(*live)) {
	t.Helper()
	s := w.scenario(t)
	set, err := s.Settings()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		network := replay.NewInternet(s, set, false)
		a, err := start(set, network, func() uint32 { return uint32(time.Now().Unix()) })
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		l := &live{t: t, network: network, Answerer: a}
		f(l)
		if got, want := a.(*answerer).Stats().Stale, l.stale.Load(); got != want {
			t.Errorf("%d stale responses counted, want %d", got, want)
		}
	})
}

// ask asks as a client and returns the response and how long it took.
func (l *live) ask(name string, qtype uint16) (*dns.Msg, time.Duration) {
	l.t.Helper()
	q := new(dns.Msg).SetQuestion(name, qtype)
	q.SetEdns0(1232, false)
	packet, err := q.Pack()
	if err != nil {
		l.t.Fatal(err)
	}
	begin := time.Now()
	response := l.Answer(context.Background(), &replay.Query{Message: packet, Client: client, Server: client.Addr()})
	m := new(dns.Msg)
	if err := m.Unpack(response); err != nil {
		l.t.Errorf("%s: %v in %x", name, err, response)
	}
	if code := told(m); code == stale || code == staleNX {
		l.stale.Add(1)
	}
	return m, time.Since(begin)
}

// spent returns how many upstream queries there were since it was last called.
func (l *live) spent() int {
	n := len(l.network.Upstream())
	defer func() { l.counted = n }()
	return n - l.counted
}

func (l *live) want(name string, qtype uint16, rcode int, within time.Duration, atMost int) {
	l.t.Helper()
	m, took := l.ask(name, qtype)
	n := l.spent()
	if m.Rcode != rcode || took > within || n > atMost {
		l.t.Errorf("%s: %s after %s and %d upstream queries; want %s within %s and %d",
			name, dns.RcodeToString[m.Rcode], took, n, dns.RcodeToString[rcode], within, atMost)
		for i, u := range l.network.Upstream()[l.counted-n:] {
			if i < 60 {
				l.t.Log(u)
			}
		}
	}
}

// TestGluelessDelegation (NXNSAttack): hundreds of name servers without addresses, none of which exists or
// can be looked up; 500 are more than an RRset may have, 250 are not.
func TestGluelessDelegation(t *testing.T) {
	for _, zone := range []struct{ name, adjust, reply string }{
		{"absent", "copy_id", "AA NXDOMAIN"}, {"failing", "copy_id", "SERVFAIL"}, {"refusing", "copy_id", "REFUSED"}, {"silent", "do_not_answer", ""},
	} {
		for _, n := range []int{250, 500} {
			t.Run(fmt.Sprintf("%s/%d", zone.name, n), func(t *testing.T) {
				var servers []string
				for i := range n {
					servers = append(servers, fmt.Sprintf("ns%d.victim.test.", i))
				}
				w := newWorld(referral("evil.test.", 3600, servers...), referral("victim.test.", 3600, "ns.victim.test. 192.0.2.4"))
				w.server(0, 1000, "192.0.2.4", entry("subdomain", "copy_query "+zone.adjust, zone.reply, "victim.test. IN A",
					"SECTION AUTHORITY\nvictim.test. 300 IN SOA ns.victim.test. host.victim.test. 1 2 3 4 300\n"))
				w.run(t, func(l *live) {
					l.want("www.evil.test.", dns.TypeA, dns.RcodeServerFailure, 3*time.Second, 25)
					l.want("www.evil.test.", dns.TypeA, dns.RcodeServerFailure, time.Second, 0)
				})
			})
		}
	}
}

// TestGluelessDelegations: every one of the name servers' names leads to as many again.
func TestGluelessDelegations(t *testing.T) {
	const fan = 20
	names := func(level string) (list []string) {
		for i := range fan {
			list = append(list, fmt.Sprintf("ns.z%d-%s.test.", i, level))
		}
		return list
	}
	entries := []string{referral("evil.test.", 3600, names("a")...)}
	for i := range fan {
		for j, level := range []string{"a", "b", "c", "d"} {
			next := string("bcda"[j])
			entries = append(entries, referral(fmt.Sprintf("z%d-%s.test.", i, level), 3600, names(next)...))
		}
	}
	w := newWorld(entries...)
	w.run(t, func(l *live) { l.want("www.evil.test.", dns.TypeA, dns.RcodeServerFailure, 10*time.Second, 100) })
}

// TestManyServers: 1,500 name servers with addresses that all refuse.
func TestManyServers(t *testing.T) {
	var servers []string
	addrs := ""
	for i := range 1500 {
		a := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
		addrs += " " + a
		servers = append(servers, fmt.Sprintf("ns%d.big.test. %s", i, a))
	}
	w := newWorld(referral("big.test.", 3600, servers...))
	w.server(0, 1000, addrs, everything("big.test.", "copy_id", "REFUSED"))
	w.run(t, func(l *live) { l.want("www.big.test.", dns.TypeA, dns.RcodeServerFailure, 10*time.Second, 100) })
}

// TestFailingAliases: ten aliases, each zone of ten servers of which but the last asked answers.
func TestFailingAliases(t *testing.T) {
	var entries []string
	for i := range 10 {
		var servers []string
		for j := range 10 {
			servers = append(servers, fmt.Sprintf("ns%d.z%d.test. 10.2.%d.%d", j, i, i, j+1))
		}
		entries = append(entries, referral(fmt.Sprintf("z%d.test.", i), 3600, servers...))
	}
	w := newWorld(entries...)
	for i := range 10 {
		bad, good := "", fmt.Sprintf("10.2.%d.10", i)
		for j := range 9 {
			bad += fmt.Sprintf(" 10.2.%d.%d", i, j+1)
		}
		zone := fmt.Sprintf("z%d.test.", i)
		w.server(0, 1000, bad, everything(zone, "copy_id", "SERVFAIL"))
		if i < 9 {
			w.server(0, 1000, good, entry("qname", "copy_id", "AA NOERROR", "www."+zone+" IN A",
				fmt.Sprintf("SECTION ANSWER\nwww.%s 300 IN CNAME www.z%d.test.\n", zone, i+1)))
		} else {
			w.server(0, 1000, good, everything(zone, "copy_id", "SERVFAIL"))
		}
	}
	w.run(t, func(l *live) { l.want("www.z0.test.", dns.TypeA, dns.RcodeServerFailure, 10*time.Second, 200) })
}

// TestLargeRRset: RFC 2181 §5 sets no limit to the records of an RRset; we do, at 256.
func TestLargeRRset(t *testing.T) {
	records := func(name string, n int) string {
		s := "SECTION ANSWER\n"
		for i := range n {
			s += fmt.Sprintf("%s 300 IN A 10.3.%d.%d\n", name, i/256, i%256)
		}
		return s
	}
	w := newWorld(referral("big.test.", 3600, "ns.big.test. "+zoneAddr))
	w.server(0, 1000, zoneAddr,
		entry("subdomain UDP", "copy_id copy_query", "AA TC NOERROR", "big.test. IN A"),
		entry("qname qtype", "copy_id", "AA NOERROR", "at.big.test. IN A", records("at.big.test.", 256)),
		entry("qname qtype", "copy_id", "AA NOERROR", "over.big.test. IN A", records("over.big.test.", 257)))
	w.run(t, func(l *live) {
		if m, _ := l.ask("at.big.test.", dns.TypeA); m.Rcode != dns.RcodeSuccess || !m.Truncated {
			t.Errorf("256 records: %v", m)
		}
		l.spent()
		l.want("over.big.test.", dns.TypeA, dns.RcodeServerFailure, 10*time.Second, 20)
	})
}

// TestManyClients: a thousand clients with one question, to a server 100 ms away, are one upstream
// query.
func TestManyClients(t *testing.T) {
	w := newWorld(referral("busy.test.", 3600, "ns.busy.test. "+zoneAddr))
	w.server(0, 1000, zoneAddr, address("first.busy.test.", "198.51.100.1", ""), address("www.busy.test.", "198.51.100.1", "sleep=0.1"))
	w.run(t, func(l *live) {
		l.ask("first.busy.test.", dns.TypeA)
		l.spent()
		var wait sync.WaitGroup
		var mu sync.Mutex
		answered := 0
		for range 1000 {
			wait.Go(func() {
				m, took := l.ask("www.busy.test.", dns.TypeA)
				mu.Lock()
				defer mu.Unlock()
				if m.Rcode == dns.RcodeSuccess && len(m.Answer) == 1 && took <= 200*time.Millisecond {
					answered++
				}
			})
		}
		wait.Wait()
		if n := l.spent(); answered != 1000 || n != 1 {
			t.Errorf("%d of 1000 answered with %d upstream queries", answered, n)
		}
	})
}

// TestFailingZone: RFC 9520 §3.2: ten client queries a second to a failing zone cost little upstream,
// be they for one name or for as many names, and whatever way its servers fail.
func TestFailingZone(t *testing.T) {
	const clients = 200
	for _, failing := range []struct{ how, adjust, reply string }{
		{"refusing", "copy_id", "REFUSED"},
		{"failing", "copy_id", "SERVFAIL"},
		{"silent", "do_not_answer", ""},
		{"unreachable", "", ""},
		{"without address", "", ""},
	} {
		for _, names := range []int{1, clients} {
			for _, servers := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s/names=%d/servers=%d", failing.how, names, servers), func(t *testing.T) {
					var delegation []string
					addrs := ""
					for i := range servers {
						server := fmt.Sprintf("ns%d.down.test.", i)
						if failing.how == "without address" {
							server = fmt.Sprintf("ns%d.gone.test.", i)
						} else {
							server += fmt.Sprintf(" 10.4.0.%d", i+1)
						}
						addrs += fmt.Sprintf(" 10.4.0.%d", i+1)
						delegation = append(delegation, server)
					}
					w := newWorld(referral("down.test.", 3600, delegation...), entry("subdomain", "copy_id copy_query", "AA NXDOMAIN", "gone.test. IN A",
						"SECTION AUTHORITY\ntest. 300 IN SOA ns.test. host.test. 1 2 3 4 300\n"))
					if failing.adjust != "" {
						w.server(0, 1000, addrs, everything("down.test.", failing.adjust, failing.reply))
					}
					w.run(t, func(l *live) {
						var wait sync.WaitGroup
						for i := range clients {
							wait.Go(func() {
								if m, took := l.ask(fmt.Sprintf("n%d.down.test.", i%names), dns.TypeA); m.Rcode != dns.RcodeServerFailure || took > 10*time.Second {
									t.Errorf("query %d: %s after %s", i, dns.RcodeToString[m.Rcode], took)
								}
							})
							time.Sleep(100 * time.Millisecond)
						}
						own, way := 0, 0 // to the zone's servers, and to find and know them
						for _, u := range l.network.Upstream() {
							if strings.HasPrefix(u.To.String(), "10.4.") {
								own++
							} else {
								way++
							}
						}
						wait.Wait()
						limit := 10
						if failing.how == "silent" && names > 1 && servers > 1 {
							limit = 14 * servers // each is looked at often enough to be of use 5 s after it came back
						}
						if own > limit || way > 10 {
							t.Errorf("%d upstream queries to the zone, want at most %d, and %d to others", own, limit, way)
							for _, u := range l.network.Upstream()[:min(own+way, 40)] {
								t.Log(u)
							}
						}
					})
				})
			}
		}
	}
}

// TestFlood: two thousand misses a second to a silent zone, behind the thousand places that the front
// end has. Other zones are resolved all the same, and what is cached is answered.
func TestFlood(t *testing.T) {
	const places, rate, seconds = 1024, 2000, 4
	w := newWorld(referral("silent.test.", 3600, "ns1.silent.test. 10.5.0.1", "ns2.silent.test. 10.5.0.2"), referral("good.test.", 3600, "ns.good.test. "+zoneAddr))
	w.server(0, 1000, "10.5.0.1 10.5.0.2", everything("silent.test.", "do_not_answer", ""))
	var entries []string
	for i := range 10 * seconds {
		entries = append(entries, address(fmt.Sprintf("n%d.good.test.", i), "198.51.100.1", "sleep=0.02"))
	}
	w.server(0, 1000, zoneAddr, entries...)
	w.run(t, func(l *live) {
		l.want("n0.good.test.", dns.TypeA, dns.RcodeSuccess, time.Second, 10)
		var wait sync.WaitGroup
		var free = make(chan struct{}, places)
		var good, shed, most atomic.Int64
		ask := func(name string, counter *atomic.Int64) {
			select {
			case free <- struct{}{}:
				most.Store(max(most.Load(), int64(len(free))))
				wait.Go(func() {
					if m, _ := l.ask(name, dns.TypeA); m.Rcode == dns.RcodeSuccess {
						counter.Add(1)
					}
					<-free
				})
			default:
				shed.Add(1)
			}
		}
		var none atomic.Int64
		for i := range rate * seconds {
			ask(fmt.Sprintf("x%d.silent.test.", i), &none)
			if i%(rate/10) == 0 {
				ask(fmt.Sprintf("n%d.good.test.", i/(rate/10)), &good)
				l.want("n0.good.test.", dns.TypeA, dns.RcodeSuccess, 0, 1<<20)
			}
			time.Sleep(time.Second / rate)
		}
		wait.Wait()
		if g := good.Load(); g < 95*seconds/10 {
			t.Errorf("%d of %d names of another zone were resolved; at most %d places taken, %d queries shed, %d upstream",
				g, 10*seconds, most.Load(), shed.Load(), len(l.network.Upstream()))
		}
		t.Logf("at most %d places taken, %d queries shed, %d upstream", most.Load(), shed.Load(), len(l.network.Upstream()))
	})
}

// TestOutage: servers that were silent for ten minutes under traffic. When they come back, the first
// new name is answered within 5 s, and within a minute each of them has been asked again.
func TestOutage(t *testing.T) {
	const servers = 4
	addrs, delegation := "", []string{}
	for i := range servers {
		a := fmt.Sprintf("10.4.0.%d", i+1)
		addrs += " " + a
		delegation = append(delegation, fmt.Sprintf("ns%d.out.test. %s", i, a))
	}
	w := newWorld(referral("out.test.", 86400, delegation...))
	var entries []string
	for i := range 80 {
		entries = append(entries, address(fmt.Sprintf("back%d.out.test.", i), "198.51.100.1", ""))
	}
	w.server(0, 1, addrs, everything("out.test.", "do_not_answer", ""))
	w.server(2, 1000, addrs, entries...)
	w.run(t, func(l *live) {
		l.network.SetStep(1)
		var wait sync.WaitGroup
		for i := range 600 {
			wait.Go(func() { l.ask(fmt.Sprintf("gone%d.out.test.", i), dns.TypeA) })
			time.Sleep(time.Second)
		}
		wait.Wait()
		l.network.SetStep(2)
		l.spent()
		l.want("back0.out.test.", dns.TypeA, dns.RcodeSuccess, 5*time.Second, 20)
		since := l.counted
		for i := range 60 {
			l.ask(fmt.Sprintf("back%d.out.test.", i+1), dns.TypeA)
			time.Sleep(time.Second)
		}
		asked := map[string]int{}
		for _, u := range l.network.Upstream()[since:] {
			asked[u.To.String()]++
		}
		if len(asked) != servers {
			t.Errorf("a minute later these have been asked: %v", asked)
		}
	})
}

// TestOneOfManyComesBack: of six servers silent under traffic one comes back. The first new name does not
// wait for its turn at each of the others, one after another.
func TestOneOfManyComesBack(t *testing.T) {
	const servers = 6
	addrs, delegation := []string{}, []string{}
	for i := range servers {
		a := fmt.Sprintf("10.4.0.%d", i+1)
		addrs = append(addrs, a)
		delegation = append(delegation, fmt.Sprintf("ns%d.out.test. %s", i, a))
	}
	w := newWorld(referral("out.test.", 86400, delegation...))
	silent := everything("out.test.", "do_not_answer", "")
	w.server(0, 1, strings.Join(addrs, " "), silent)
	w.server(2, 1000, strings.Join(addrs[1:], " "), silent)
	w.server(2, 1000, addrs[0], address("back.out.test.", "198.51.100.1", ""))
	for outage := 40; outage < 70; outage++ {
		w.run(t, func(l *live) {
			l.network.SetStep(1)
			var wait sync.WaitGroup
			for i := range 2 * outage {
				wait.Go(func() { l.ask(fmt.Sprintf("gone%d.out.test.", i), dns.TypeA) })
				time.Sleep(time.Second / 2)
			}
			l.network.SetStep(2)
			_, took := l.ask("back.out.test.", dns.TypeA)
			if took > 5*time.Second {
				t.Errorf("after %d s of silence a new name took %s", outage, took)
			}
			wait.Wait()
		})
	}
}

// TestFastestServer: RFC 1035 §7.2: a server that answers soon is asked more often than a slow one.
func TestFastestServer(t *testing.T) {
	const names, slow = 200, "192.0.2.4"
	w := newWorld(referral("two.test.", 3600, "ns1.two.test. "+zoneAddr, "ns2.two.test. "+slow))
	var soon, late []string
	for i := range names {
		name := fmt.Sprintf("n%d.two.test.", i)
		soon = append(soon, address(name, "198.51.100.1", ""))
		late = append(late, address(name, "198.51.100.1", "sleep=0.3"))
	}
	w.server(0, 1000, zoneAddr, soon...)
	w.server(0, 1000, slow, late...)
	w.run(t, func(l *live) {
		for i := range names {
			l.ask(fmt.Sprintf("n%d.two.test.", i), dns.TypeA)
		}
		asked := 0
		for _, u := range l.network.Upstream() {
			if u.To.String() == slow {
				asked++
			}
		}
		// The other server may come into play late, by the odds with which unknown ones are tried.
		if asked > names*2/5 {
			t.Errorf("the slow server was asked %d times of %d", asked, names)
		}
	})
}

// TestMismatches: RFC 5452 §9.1, §9.2: a response that does not match turns the query to TCP; after
// three of them the server is asked over TCP first, for a minute.
func TestMismatches(t *testing.T) {
	w := newWorld(referral("forged.test.", 86400, "ns.forged.test. "+zoneAddr))
	var entries []string
	for i := range 10 {
		name := fmt.Sprintf("n%d.forged.test.", i)
		if i < 3 {
			entries = append(entries, entry("qname qtype UDP", "raw_id", "AA NOERROR", name+" IN A")) // another ID
		}
		entries = append(entries, address(name, "198.51.100.1", ""))
	}
	w.server(0, 1000, zoneAddr, entries...)
	w.run(t, func(l *live) {
		overUDP := func(i int) (n int) {
			l.spent()
			since := l.counted
			l.want(fmt.Sprintf("n%d.forged.test.", i), dns.TypeA, dns.RcodeSuccess, 2*time.Second, 10)
			for _, u := range l.network.Upstream()[since:] {
				if !u.TCP && u.To.String() == zoneAddr {
					n++
				}
			}
			return n
		}
		for i := range 3 {
			if overUDP(i) == 0 {
				t.Errorf("query %d was not sent over UDP first", i)
			}
		}
		if n := overUDP(3); n != 0 {
			t.Errorf("after three mismatches %d queries over UDP", n)
		}
		time.Sleep(61 * time.Second)
		if overUDP(4) == 0 {
			t.Error("a minute later the server is still asked over TCP first")
		}
	})
}

// TestRenewal: a delegation in use is renewed in the last quarter of its life, by its parent, while
// no client waits for that; one out of use is not.
func TestRenewal(t *testing.T) {
	w := newWorld(referral("used.test.", 100, "ns.used.test. "+zoneAddr), referral("unused.test.", 100, "ns.unused.test. "+zoneAddr))
	var entries []string
	for i := range 4 {
		entries = append(entries, address(fmt.Sprintf("n%d.used.test.", i), "198.51.100.1", ""))
	}
	entries = append(entries, address("n0.unused.test.", "198.51.100.1", ""))
	w.server(0, 1000, zoneAddr, entries...)
	w.run(t, func(l *live) {
		asked := func(zone string) (n int) { // of its parent, since the last time
			for _, u := range l.network.Upstream()[l.counted:] {
				if u.To.String() == tldAddr && dns.IsSubDomain(zone, dns.CanonicalName(u.Query.Question[0].Name)) {
					n++
				}
			}
			return n
		}
		l.ask("n0.used.test.", dns.TypeA)
		l.ask("n0.unused.test.", dns.TypeA)
		l.spent()
		time.Sleep(50 * time.Second)
		l.ask("n1.used.test.", dns.TypeA)
		time.Sleep(time.Second)
		if n := asked("used.test."); n != 0 {
			t.Errorf("halfway the parent was asked %d times", n)
		}
		l.spent()
		time.Sleep(30 * time.Second)
		if _, took := l.ask("n2.used.test.", dns.TypeA); took > 2*time.Millisecond {
			t.Errorf("in the last quarter a client waited %s", took)
		}
		time.Sleep(time.Second)
		if n := asked("used.test."); n != 1 {
			t.Errorf("in the last quarter the parent was asked %d times, not once", n)
		}
		l.spent()
		time.Sleep(28 * time.Second) // 110 s after it was first granted
		l.ask("n3.used.test.", dns.TypeA)
		if n := asked("used.test."); n != 0 {
			t.Errorf("the renewed delegation was asked for %d times", n)
		}
		l.spent()
		l.ask("n0.unused.test.", dns.TypeMX)
		if n := asked("unused.test."); n == 0 {
			t.Error("the unused delegation was renewed")
		}
	})
}

// TestGrantsEndOneByOne: two zones of a TLD, granted at different times, need the TLD's
// grant only; when one ends the other stays.
func TestGrantsEndOneByOne(t *testing.T) {
	w := newWorld(referral("a.test.", 100, "ns.a.test. "+zoneAddr), referral("b.test.", 100, "ns.b.test. 192.0.2.4"))
	var a, b []string
	for i := range 3 {
		a = append(a, address(fmt.Sprintf("n%d.a.test.", i), "198.51.100.1", ""))
		b = append(b, address(fmt.Sprintf("n%d.b.test.", i), "198.51.100.1", ""))
	}
	w.server(0, 1000, zoneAddr, a...)
	w.server(0, 1000, "192.0.2.4", b...)
	w.run(t, func(l *live) {
		l.want("n0.a.test.", dns.TypeA, dns.RcodeSuccess, time.Second, 6)
		time.Sleep(60 * time.Second)
		l.want("n0.b.test.", dns.TypeA, dns.RcodeSuccess, time.Second, 3)
		time.Sleep(50 * time.Second) // a.test. has ended, b.test. has 50 s to go
		l.spent()
		l.want("n1.b.test.", dns.TypeA, dns.RcodeSuccess, time.Second, 1)
		l.want("n1.a.test.", dns.TypeA, dns.RcodeSuccess, time.Second, 2)
	})
}

package lab

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// dump writes the zone as a signed zone file.
func (z *zone) dump() []byte {
	var b bytes.Buffer
	line := func(rrs ...dns.RR) {
		for _, rr := range rrs {
			fmt.Fprintln(&b, rr)
		}
	}
	line(z.apex().sets[dns.TypeSOA]...)
	for _, name := range sortedNames(z) {
		n := z.nodes[name]
		for t, set := range n.sets {
			if t != dns.TypeSOA {
				line(set...)
			}
		}
		for _, sigs := range n.sigs {
			line(sigs...)
		}
	}
	for _, h := range z.hashes {
		line(h.record, h.sig)
	}
	return b.Bytes()
}

// Chains and signatures are whole in the eyes of another implementation.
func TestZonesVerifyByLDNS(t *testing.T) {
	tool, err := exec.LookPath("ldns-verify-zone")
	if err != nil {
		t.Skip("ldns-verify-zone (package ldnsutils) is not here")
	}
	w := world(t)
	unsound := map[string]bool{"bogus.lab.": true, "expired.lab.": true, "future.lab.": true}
	for _, z := range w.zones {
		if len(z.keys) == 0 || z.synth {
			continue
		}
		t.Run(z.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "zone")
			if err := os.WriteFile(file, z.dump(), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(tool, "-V", "2", file).CombinedOutput()
			if (err != nil) != unsound[z.name] {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// What the lab's servers say is what NSD says that serves the same signed zones.
func TestAnswersEqualNSD(t *testing.T) {
	tool, err := exec.LookPath("nsd")
	if err != nil {
		t.Skip("nsd is not here")
	}
	w := world(t)
	groups := map[string][]*zone{}
	for _, z := range w.zones {
		switch {
		case z.synth:
		case z.name == "." || z.name == "lab." || z.name == "optout.":
			groups[z.name] = []*zone{z}
		default:
			groups["leaves"] = append(groups["leaves"], z)
		}
	}
	for name, zones := range groups {
		t.Run(name, func(t *testing.T) {
			at := startNSD(t, tool, zones)
			c := &dns.Client{Net: "tcp", Timeout: 5 * time.Second}
			compared := 0
			for _, z := range zones {
				for _, q := range questions(z) {
					want, _, err := c.Exchange(q, at)
					if err != nil {
						t.Fatal(err)
					}
					compare(t, q, answer(zones, q, soundWindow(w.now)), want)
					compared++
				}
			}
			t.Logf("%d questions", compared)
		})
	}
}

// questions of every kind about a zone: each of its names, something below and beside it, and types
// that are there and that are not, with and without DO.
func questions(z *zone) []*dns.Msg {
	var list []*dns.Msg
	for name := range z.nodes {
		text := strings.ReplaceAll(name.String(), "*", "star")
		names := []string{name.String(), "nothing." + strings.TrimPrefix(text, "."), text}
		if name != z.origin {
			names = append(names, "a"+text, "z"+text, "x.y.z."+text)
		}
		for _, n := range names {
			if _, ok := dns.IsDomainName(n); !ok {
				continue
			}
			for _, qtype := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeDS, dns.TypeNS, dns.TypeCNAME, dns.TypeMX} {
				list = append(list, question(n, qtype, true))
			}
			list = append(list, question(n, dns.TypeA, false))
		}
	}
	for _, qtype := range []uint16{dns.TypeSOA, dns.TypeDNSKEY, dns.TypeNSEC3PARAM} {
		list = append(list, question(z.name, qtype, true))
	}
	return list
}

// compare looks at RCODE, AA, answer and authority. NSD adds the zone's NS to an answer's authority,
// and the closest encloser to the NODATA of a name that is itself a wildcard, which RFC 5155 §7.2.3
// does not ask for. Where a DNAME led to a name that is not there, NSD leaves out the NSEC that covers it.
func compare(t *testing.T, q, got, want *dns.Msg) {
	t.Helper()
	problem := ""
	switch {
	case got.Rcode != want.Rcode:
		problem = "RCODE"
	case got.Authoritative != want.Authoritative:
		problem = "AA"
	case lines(got.Answer, false) != lines(want.Answer, false):
		problem = "answer"
	case strings.HasPrefix(q.Question[0].Name, "*.") && subset(got.Ns, want.Ns):
	case strings.HasSuffix(q.Question[0].Name, ".old.ed25519.lab.") && subset(want.Ns, got.Ns):
	case lines(got.Ns, want.Authoritative) != lines(want.Ns, want.Authoritative):
		problem = "authority"
	}
	if problem != "" {
		t.Errorf("%s differs for %v\ngot %v\nwant %v", problem, q.Question[0], got, want)
	}
}

func subset(a, b []dns.RR) bool {
	return !slices.ContainsFunc(a, func(rr dns.RR) bool {
		return !slices.ContainsFunc(b, func(other dns.RR) bool {
			return strings.EqualFold(rr.String(), other.String())
		})
	})
}

// lines returns a section as sorted text; without leaves out NS and its signature.
func lines(section []dns.RR, withoutNS bool) string {
	var list []string
	for _, rr := range section {
		sig, isSig := rr.(*dns.RRSIG)
		if withoutNS && (rr.Header().Rrtype == dns.TypeNS || isSig && sig.TypeCovered == dns.TypeNS) {
			continue
		}
		list = append(list, strings.ToLower(rr.String()))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// startNSD serves zones on a free port until the test ends.
func startNSD(t *testing.T, tool string, zones []*zone) (at string) {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at = l.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	l.Close()
	var conf strings.Builder
	fmt.Fprintf(&conf, "server:\n ip-address: 127.0.0.1@%s\n username: \"\"\n chroot: \"\"\n zonesdir: %q\n", port, dir)
	fmt.Fprintf(&conf, " pidfile: \"\"\n database: \"\"\n xfrdir: %q\n xfrdfile: \"\"\n zonelistfile: %q\n server-count: 1\n",
		dir, dir+"/zone.list")
	fmt.Fprint(&conf, "remote-control:\n control-enable: no\n")
	for i, z := range zones {
		file := fmt.Sprintf("%s/%d.zone", dir, i)
		if err := os.WriteFile(file, z.dump(), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&conf, "zone:\n name: %q\n zonefile: %q\n", z.name, file)
	}
	if err := os.WriteFile(dir+"/nsd.conf", []byte(conf.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "-d", "-c", dir+"/nsd.conf")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	for range 100 {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			return at
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Skipf("nsd did not start: %s", log.String())
	return ""
}

func sortedNames(z *zone) []wire.Name {
	var names []wire.Name
	for name := range z.nodes {
		names = append(names, name)
	}
	slices.SortFunc(names, wire.Compare)
	return names
}

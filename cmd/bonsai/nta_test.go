package main

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// hastenRecheck has a daemon look often whether negative trust anchors are needed.
func (d *daemon) hastenRecheck() {
	d.reloader.mu.Lock()
	defer d.reloader.mu.Unlock()
	d.reloader.recheck = 20 * time.Millisecond
}

// awaitNTAs waits until so many negative trust anchors that end are left.
func awaitNTAs(t *testing.T, d *daemon, want int) {
	t.Helper()
	for try := 0; ; try++ {
		d.reloader.mu.Lock()
		got := len(d.reloader.ntas)
		d.reloader.mu.Unlock()
		if got == want {
			return
		}
		if try == 3000 {
			t.Fatalf("%d negative trust anchors, want %d", got, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestNTARecheck: RFC 7646 §4: what validates again, or is insecure by its parent's word, needs no negative trust
// anchor; what does not validate keeps it, and so does what was forced.
func TestNTARecheck(t *testing.T) {
	d, path := startControlled(t, nil)
	d.hastenRecheck()
	ask := func(name string) *dns.Msg { return query(t, d.addr(), "udp", name, dns.TypeA, nil) }
	mustCtl(t, path, nil, "nta", "add", "expired.lab", "2h")
	mustCtl(t, path, nil, "nta", "add", "rsa.lab", "2h", "force")
	mustCtl(t, path, nil, "nta", "add", "ecdsa.lab", "2h")
	mustCtl(t, path, nil, "nta", "add", "unsigned.lab", "2h")
	awaitNTAs(t, d, 2)
	out := mustCtl(t, path, []string{"expired.lab.", "rsa.lab."}, "nta", "list")
	if strings.Contains(out, "ecdsa.lab.") {
		t.Errorf("kept: %s", out)
	}
	if got := ask("www.ecdsa.lab."); got.Rcode != dns.RcodeSuccess || !got.AuthenticatedData {
		t.Errorf("it is not validated: %v", got)
	}
	if got := ask("www.expired.lab."); got.Rcode != dns.RcodeSuccess || got.AuthenticatedData {
		t.Errorf("without its negative trust anchor, that it needs: %v", got)
	}
	if got := ask("www.rsa.lab."); got.AuthenticatedData {
		t.Errorf("it was not kept by force: %v", got)
	}
	mustCtl(t, path, nil, "nta", "remove", "expired.lab")
	if got := ask("www.expired.lab."); got.Rcode != dns.RcodeServerFailure {
		t.Errorf("after its removal: %v", got)
	}
}

// TestConfiguredNTA: a negative trust anchor of the configuration ends by its date, is not taken up again once it
// was not needed, and goes with its line.
func TestConfiguredNTA(t *testing.T) {
	later, ago := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	lines := []timedNTA{{wire.MustName("expired.lab."), later}, {wire.MustName("bogus.lab."), ago}}
	d, path := startControlled(t, func(c *Config) { c.Negative = lines })
	ask := func(name string) int { return query(t, d.addr(), "udp", name, dns.TypeA, nil).Rcode }
	if ask("www.expired.lab.") != dns.RcodeSuccess || ask("www.bogus.lab.") != dns.RcodeServerFailure {
		t.Error("not by their dates")
	}
	mustCtl(t, path, []string{"expired.lab.\tfor "}, "nta", "list")
	d.hastenRecheck()
	with := append(lines, timedNTA{wire.MustName("ecdsa.lab."), later})
	for range 2 { // the second time it is known that it is not needed
		d.again(func(c *Config) { c.Insecure, c.Negative = nil, with })
		if _, _, err := d.reload(); err != nil {
			t.Fatal(err)
		}
		awaitNTAs(t, d, 1)
	}
	if len(d.reloader.recovered) != 1 {
		t.Errorf("recovered: %v", d.reloader.recovered)
	}
	d.again(func(c *Config) { c.Insecure, c.Negative = nil, nil })
	if _, _, err := d.reload(); err != nil || ask("www.expired.lab.") != dns.RcodeServerFailure {
		t.Errorf("a reload without it, %v", err)
	}
	awaitNTAs(t, d, 0)
	if len(d.reloader.recovered) != 0 {
		t.Errorf("recovered: %v", d.reloader.recovered)
	}
}

func TestSetInsecure(t *testing.T) {
	c := &Config{}
	if err := setInsecure(c, []string{"Example.org", "a.example until 2026-12-24", "b.example. until 2026-12-24T18:00:00+01:00"}, ""); err != nil {
		t.Fatal(err)
	}
	if len(c.Insecure) != 1 || c.Insecure[0] != wire.MustName("example.org.") || len(c.Negative) != 2 ||
		c.Negative[0] != (timedNTA{wire.MustName("a.example."), 1798070400}) || c.Negative[1].Until != 1798070400+17*3600 {
		t.Errorf("%v %v", c.Insecure, c.Negative)
	}
	for value, want := range map[string]string{"a.example til tomorrow": "write it as", "a.example until tomorrow": "is no date", "a..b": "domain name", "": "write it as"} {
		if err := setInsecure(c, []string{value}, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", value, err)
		}
	}
}

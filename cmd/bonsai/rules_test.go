package main

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"bonsai/resolver/policy"
)

// The rules are listed in the order in which they are asked, with what they decided.
func TestRulesListed(t *testing.T) {
	d, path := startControlled(t, func(c *Config) {
		c.BlockLists = []policy.List{{Names: nameSet("ads.example"), Label: "ads.txt"}}
		c.RateLimit = policy.RateLimit{QPS: 1000, Burst: 2000, Slip: 2}
		c.AS112 = true
		c.PrivateAddress = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		c.Views = views{{Name: "guests", Clients: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Chosen: []string{"SpecialUse"}, Own: &Config{}}}
	})
	for range 3 {
		if got := query(t, d.addr(), "udp", "www.ads.example.", dns.TypeA, nil); got.Rcode != dns.RcodeNameError {
			t.Fatalf("got %v", got)
		}
	}
	got := mustCtl(t, path, nil, "rules")
	at := 0
	for _, part := range []string{
		" 1  access       allow 127.0.0.0/8", " 2  rate-limit   1000 queries a second of a client, 2000 at once; every 2. over it gets TC\n",
		" 3  chaos ", " 4  class, type ", " 5  local-data   0 names", " 6  block        names at or below 1 blocked ones (ads.txt), but for 0 allowed; answer: 3\n",
		" 7  as112 ", " 8  special-use ", " 9  snoop        RD=0: nobody\n", "10  block        answers with an alias: ", "11  rebinding ",
		"view guests, counted with all others\n", " 1  access ", " 8  snoop ",
	} {
		i := strings.Index(got[at:], part)
		if i < 0 {
			t.Fatalf("no %q behind byte %d of\n%s", part, at, got)
		}
		at += i
	}
	if n := strings.Count(got, "answer: 3"); n != 2 {
		t.Errorf("the three blocked queries are told of %d times, want once in either list:\n%s", n, got)
	}
	var lists []ruleLines
	if err := json.Unmarshal([]byte(mustCtl(t, path, nil, "--json", "rules")), &lists); err != nil {
		t.Fatal(err)
	}
	if len(lists) != 2 || lists[1].View != "guests" || len(lists[0].Queries) != 9 || len(lists[0].Answers) != 2 ||
		lists[0].Queries[5].Decided["answer"] != 3 || strings.Join(lists[0].Queries[3].Rules, " ") != "class type" {
		t.Errorf("got %+v", lists)
	}
}

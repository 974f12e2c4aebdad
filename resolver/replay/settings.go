package replay

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings is a scenario's header in words that no resolver owns.
type Settings struct {
	QNAMEMinimisation string       // "relaxed", "strict" or "off"
	RootHints         string       // records in presentation format; empty: the header has none
	HintName          string       // name of the first root server in RootHints
	HintAddrs         []netip.Addr // addresses in RootHints
	TrustAnchors      string       // DS and DNSKEY records in presentation format; empty: nothing is validated
	ValidationTime    int64        // Unix seconds that signatures are checked at; 0: the clock's
	Clock             int64        // Unix seconds the clock starts at; 0: any time

	IPv4, IPv6     bool
	QueryLocalhost bool   // servers in 127/8 and ::1 may be asked
	EDNSBufferSize uint16 // octets
	SpecialUse     bool   // false: names of special use are resolved like others
	SHA1           bool   // algorithms 5 and 7 and DS digest 1 count, for most scenarios are older than RFC 9905
	HardenGlue     bool   // only glue for names below the zone counts

	DomainInsecure   []string
	Stubs, Forwards  []Zone
	CacheMinTTL      uint32 // seconds; 0: none
	CacheMaxTTL      uint32 // seconds; 0: the resolver's own
	StaleLimit       uint32 // seconds that expired data is served for in need; 0: it is not
	PrivateAddresses []string
	PrivateDomains   []string
	LocalData        []string // records in presentation format
	AllowSnoop       []string // prefixes that may read the cache with RD=0
	Refuse           []string // prefixes that get REFUSED
	MinimalResponses bool
	DNS64Prefix      string
	needs            map[string]bool
}

// Zone is a stub or forward zone.
type Zone struct {
	Name  string
	Addrs []string // ADDRESS or ADDRESS@PORT
	Hosts []string // names of servers
	First bool     // iterate where these servers fail
	Prime bool
	TCP   bool
}

// Needs lists what a resolver must have to play the scenario beyond iteration and validation,
// sorted: "stub-zone", "forward-zone", "local-data", "private-address", "ttl-limits",
// "access-control", "dns64", or the name of an option that Settings has no field for.
func (s *Settings) Needs() []string {
	var list []string
	for n := range s.needs {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// Settings reads the header. An option nobody knows is an error.
func (s *Scenario) Settings() (*Settings, error) {
	set := &Settings{
		QNAMEMinimisation: "relaxed", HintName: "root-server.test.", IPv4: true, IPv6: true,
		EDNSBufferSize: ednsSize, SHA1: true, HardenGlue: true, MinimalResponses: true,
		needs: map[string]bool{},
	}
	zones := map[int]*Zone{}
	var order []Option // the first option of each zone
	for _, o := range s.Options {
		var err error
		switch o.Clause {
		case "":
			err = set.flat(o)
		case "server":
			err = set.server(o.Key, unquote(o.Value))
		case "stub-zone", "forward-zone":
			if zones[o.Number] == nil {
				zones[o.Number] = &Zone{}
				order = append(order, o)
			}
			err = zones[o.Number].option(o.Key, unquote(o.Value))
		default:
			set.needs[o.Clause] = true
		}
		if err != nil {
			return nil, errorAt(s.File, o.Line, "%s: %v", o.Key, err)
		}
	}
	for _, o := range order {
		if err := set.zone(o.Clause, zones[o.Number]); err != nil {
			return nil, errorAt(s.File, o.Line, "%s: %v", o.Clause, err)
		}
	}
	set.finish(s)
	return set, nil
}

// finish draws what follows from the header as a whole.
func (set *Settings) finish(s *Scenario) {
	if s.Dialect == Deckard {
		set.AllowSnoop = []string{"0.0.0.0/0", "::/0"}
		set.Clock = set.ValidationTime
		if s.movesClock() {
			set.ValidationTime = 0
		}
	} else if !s.servesIPv6() {
		// The program these were written for does not ask for the AAAA of a name server.
		set.IPv6 = false
	}
	var hints strings.Builder
	for i, a := range set.HintAddrs {
		name, family := set.HintName, "A"
		if i > 0 {
			name = fmt.Sprintf("%c.%s", 'a'+i%26, name)
		}
		if a.Is6() {
			family = "AAAA"
		}
		fmt.Fprintf(&hints, ". 3600000 IN NS %s\n%s 3600000 IN %s %s\n", name, name, family, a)
	}
	set.RootHints = hints.String()
}

func (s *Scenario) movesClock() bool {
	return slices.ContainsFunc(s.Steps, func(st *Step) bool { return st.Type == "TIME_PASSES" })
}

func (s *Scenario) servesIPv6() bool {
	return slices.ContainsFunc(s.addresses(), func(a netip.Addr) bool { return a.Is6() })
}

// flat reads an option of a flat header; it has its own names for some, and the names of an
// unbound.conf's server clause for the rest.
func (set *Settings) flat(o Option) error {
	v := unquote(o.Value)
	switch o.Key {
	case "name", "force-ipv6":
	case "stub-name":
		set.HintName = strings.TrimSuffix(v, ".") + "."
	case "stub-addr":
		return set.hint(v)
	case "forward-addr":
		set.Forwards = append(set.Forwards, Zone{Name: ".", Addrs: []string{v}})
		set.needs["forward-zone"] = true
	case "query-minimization":
		return set.server("qname-minimisation", v)
	case "val-override-timestamp":
		return set.server("val-override-date", v)
	case "features":
		return set.features(o.Value)
	case "feature-list":
		set.needs["policy rules"] = true
	case "local-data":
		set.LocalData = append(set.LocalData, v)
		set.needs["local-data"] = true
	case "special-use":
		var err error
		set.SpecialUse, err = yes(v)
		return err
	case "stale-limit":
		var err error
		set.StaleLimit, err = ttl(v)
		return err
	case "forward", "stub":
		return set.flatZone(o.Key+"-zone", v)
	default:
		return set.server(o.Key, v)
	}
	return nil
}

// flatZone reads "forward: NAME ADDRESS …" and "stub: NAME ADDRESS …", which only our own scenarios
// have; the word first among the addresses is forward-first.
func (set *Settings) flatZone(clause, v string) error {
	w := strings.Fields(v)
	if len(w) < 2 {
		return fmt.Errorf("takes a name and addresses")
	}
	z := Zone{Name: w[0]}
	for _, a := range w[1:] {
		if a == "first" {
			z.First = true
		} else {
			z.Addrs = append(z.Addrs, a)
		}
	}
	return set.zone(clause, &z)
}

// features reads Deckard's "features: a = 1; b = 2".
func (set *Settings) features(list string) error {
	var name, addr string
	for _, f := range strings.Split(list, ";") {
		key, v, ok := strings.Cut(f, "=")
		if !ok { // the rest is a comment
			continue
		}
		key, v = strings.TrimSpace(key), strings.TrimSpace(v)
		var err error
		switch key {
		case "min_ttl":
			err = set.server("cache-min-ttl", v)
		case "max_ttl":
			err = set.server("cache-max-ttl", v)
		case "dns64_prefix":
			set.DNS64Prefix = strings.TrimSuffix(v, "/96") + "/96"
			set.needs["dns64"] = true
		case "static_hint_name":
			name = v
		case "static_hint_addr":
			addr = v
		default:
			set.needs["feature "+key] = true
		}
		if err != nil {
			return err
		}
	}
	if name != "" {
		set.LocalData = append(set.LocalData, name+" A "+addr)
		set.needs["local-data"] = true
	}
	return nil
}

// harmless options cannot change what a right answer is.
var harmless = words(`target-fetch-policy trust-anchor-signaling log-time-ascii log-servfail verbosity
	rrset-roundrobin fake-sha1 fake-dsa num-queries-per-thread msg-cache-size rrset-cache-size
	msg-cache-slabs val-log-level directory prefetch-key outbound-msg-retry tags use-syslog
	harden-referral-path discard-timeout max-global-quota max-query-restarts val-max-restart
	statistics-interval ede prefetch access-control-view iter-scrub-promiscuous aggressive-nsec`)

// foreign options belong to what the program has that Settings has no word for.
var foreign = words(`serve-expired serve-expired-ttl serve-expired-ttl-reset serve-expired-reply-ttl
	serve-expired-client-timeout ede-serve-expired rpz-signal-nxdomain-ra zonemd-permissive-mode
	zonemd-check zonemd-reject-absence dns64-prefix dns64-ignore-aaaa dns64-synthall do-nat64
	nat64-prefix response-ip response-ip-data response-ip-tag local-zone local-data local-data-ptr
	local-zone-override local-zone-tag define-tag access-control-tag access-control-tag-action
	access-control-tag-data view ratelimit ip-ratelimit use-caps-for-id edns-client-string
	edns-client-string-opcode answer-cookie cookie-secret cookie-secret-file nsid identity
	hide-identity version hide-version hide-trustanchor hide-http-user-agent dns-error-reporting
	tcp-upstream edns-tcp-keepalive edns-tcp-keepalive-timeout cache-min-negative-ttl
	cache-max-negative-ttl serve-original-ttl allow-notify disable-edns-do harden-unknown-additional
	harden-unverified-glue iter-scrub-ns iter-scrub-cname val-nsec3-keysize-iterations
	send-client-subnet client-subnet-zone client-subnet-always-forward max-client-subnet-ipv4
	max-client-subnet-ipv6 min-client-subnet-ipv4 min-client-subnet-ipv6 redis-server-host
	do-not-query-address root-hints interface interface-action interface-view interface-tag
	interface-tag-action interface-tag-data auto-trust-anchor-file trust-anchor-file
	trusted-keys-file root-key-sentinel dlv-anchor val-sig-skew-min val-sig-skew-max val-bogus-ttl
	val-clean-additional val-permissive-mode ignore-cd-flag infra-host-ttl infra-cache-min-rtt
	infra-keep-probing infra-cache-max-rtt unknown-server-time-limit harden-below-nxdomain
	harden-dnssec-stripped harden-algo-downgrade harden-large-queries harden-short-bufsize
	deny-any prefer-ip4 prefer-ip6 port edns-buffer-size max-udp-size val-override-time
	unblock-lan-zones insecure-lan-zones low-rtt fast-server-permil fast-server-num
	qname-minimisation-strict access-control-tag-data outgoing-interface wait-limit
	max-sent-count jostle-timeout key-cache-size neg-cache-size`)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// server reads an option of the server clause.
func (set *Settings) server(key, v string) (err error) {
	switch key {
	case "qname-minimisation":
		return set.minimisation(v)
	case "trust-anchor":
		set.TrustAnchors += strings.ReplaceAll(v, `"`, "") + "\n"
	case "val-override-date":
		set.ValidationTime, err = date(v)
	case "do-ip4":
		set.IPv4, err = yes(v)
	case "do-ip6":
		set.IPv6, err = yes(v)
	case "do-not-query-localhost":
		set.QueryLocalhost, err = yes(v)
		set.QueryLocalhost = !set.QueryLocalhost
	case "harden-glue":
		set.HardenGlue, err = yes(v)
	case "minimal-responses":
		set.MinimalResponses, err = yes(v)
	case "domain-insecure":
		set.DomainInsecure = append(set.DomainInsecure, v)
	case "cache-min-ttl":
		set.CacheMinTTL, err = ttl(v)
		set.needs["ttl-limits"] = true
	case "cache-max-ttl":
		set.CacheMaxTTL, err = ttl(v)
		set.needs["ttl-limits"] = true
	case "private-address":
		set.PrivateAddresses = append(set.PrivateAddresses, v)
		set.needs["private-address"] = true
	case "private-domain":
		set.PrivateDomains = append(set.PrivateDomains, v)
		set.needs["private-address"] = true
	case "access-control":
		return set.accessControl(v)
	case "module-config":
		for _, m := range strings.Fields(v) {
			if m != "validator" && m != "iterator" {
				set.needs["module "+m] = true
			}
		}
	default:
		off := v == "no" || v == "0"
		switch {
		case harmless[key], key == "local-zone" && strings.HasSuffix(v, "nodefault"), foreign[key] && off:
		case foreign[key]:
			set.needs[key] = true
		default:
			return fmt.Errorf("unknown option")
		}
	}
	return err
}

func (set *Settings) minimisation(v string) error {
	switch v {
	case "relaxed", "strict", "off":
		set.QNAMEMinimisation = v
		return nil
	}
	on, err := yes(v)
	if !on {
		set.QNAMEMinimisation = "off"
	}
	return err
}

func (set *Settings) accessControl(v string) error {
	w := strings.Fields(v)
	if len(w) != 2 {
		return fmt.Errorf("takes a prefix and an action")
	}
	switch w[1] {
	case "allow":
	case "allow_snoop":
		set.AllowSnoop = append(set.AllowSnoop, w[0])
	case "refuse":
		set.Refuse = append(set.Refuse, w[0])
		set.needs["access-control"] = true
	default:
		set.needs["access-control "+w[1]] = true
	}
	return nil
}

// option reads an option of a stub-zone or forward-zone clause.
func (z *Zone) option(key, v string) (err error) {
	switch key {
	case "":
	case "name":
		z.Name = v
	case "stub-addr", "forward-addr":
		z.Addrs = append(z.Addrs, v)
	case "stub-host", "forward-host":
		z.Hosts = append(z.Hosts, v)
	case "stub-prime":
		z.Prime, err = yes(v)
	case "stub-first", "forward-first":
		z.First, err = yes(v)
	case "stub-tcp-upstream", "forward-tcp-upstream":
		z.TCP, err = yes(v)
	default:
		err = fmt.Errorf("unknown option")
	}
	return err
}

// zone files a stub or forward zone. A stub for the root is where the root's servers are.
func (set *Settings) zone(clause string, z *Zone) error {
	if clause == "forward-zone" {
		set.Forwards = append(set.Forwards, *z)
		set.needs[clause] = true
		return nil
	}
	if z.Name != "." && z.Name != "" {
		set.Stubs = append(set.Stubs, *z)
		set.needs[clause] = true
		return nil
	}
	if len(z.Hosts) > 0 {
		set.needs["stub-host for the root"] = true
	}
	for _, a := range z.Addrs {
		if err := set.hint(a); err != nil {
			return err
		}
	}
	return nil
}

func (set *Settings) hint(v string) error {
	a, err := netip.ParseAddr(v)
	if err == nil {
		set.HintAddrs = append(set.HintAddrs, a)
	}
	return err
}

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }

func yes(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "yes", "true", "on", "1":
		return true, nil
	case "no", "false", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither yes nor no", v)
}

func ttl(v string) (uint32, error) {
	n, err := strconv.ParseUint(v, 10, 32)
	return uint32(n), err
}

// date reads 14 digits of a UTC date or Unix seconds.
func date(v string) (int64, error) {
	if len(v) == 14 {
		t, err := time.Parse("20060102150405", v)
		return t.Unix(), err
	}
	return strconv.ParseInt(v, 10, 64)
}

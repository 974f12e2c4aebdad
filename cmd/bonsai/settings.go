package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"

	"bonsai/cache"
	"bonsai/resolver/denial"
	"bonsai/resolver/iterate"
	"bonsai/resolver/policy"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// settings is every setting there is, in the order that --help shows. A new one is a field of Config
// with its default, and a row here.
var settings = []setting{
	{key: "listen", value: "ADDR:PORT", flag: true, list: true, set: each(addrPort, func(c *Config) *[]netip.AddrPort { return &c.Listen }),
		help: "take queries there, over UDP and TCP; repeatable; default 127.0.0.1:53 and [::1]:53"},
	{key: "root-hints", value: "FILE", flag: true, set: setHints,
		help: "root servers in the format of named.root; default: IANA's, built in"},
	{key: "trust-anchor", value: "FILE", flag: true, list: true, set: setAnchors,
		help: "DS or DNSKEY records in zone format; repeatable; default: the root's, key tags 20326 and 38696, built in"},
	{key: "trust-anchor-state", value: "FILE", set: setAnchorState,
		help: "where the root's anchors, kept up to date by RFC 5011, are saved; default: in memory alone"},
	{key: "dnssec", value: "validate|off", flag: true,
		set:  choose(map[string]bool{"validate": true, "off": false}, func(c *Config) *bool { return &c.Validate }),
		help: "whether answers are validated; default validate"},
	{key: "qname-minimisation", value: "relaxed|strict|off", flag: true,
		set: choose(map[string]iterate.Minimisation{"relaxed": iterate.Relaxed, "strict": iterate.Strict, "off": iterate.Off},
			func(c *Config) *iterate.Minimisation { return &c.Minimisation }),
		help: "how little of a name servers on the way are told (RFC 9156); default relaxed"},
	{key: "allow", value: "CIDR", flag: true, list: true, set: each(prefix, func(c *Config) *[]netip.Prefix { return &c.Allow }),
		help: "who may query, others get REFUSED; repeatable; default loopback only"},
	{key: "allow-snoop", value: "CIDR", flag: true, list: true, set: each(prefix, func(c *Config) *[]netip.Prefix { return &c.AllowSnoop }),
		help: "who may read the cache with RD=0; repeatable; default nobody"},
	{key: "cache-size", value: "SIZE", flag: true, set: one(cacheSize, func(c *Config) *int64 { return &c.CacheSize }),
		help: "bytes, or with KiB, MiB or GiB; default 256MiB"},
	{key: "threads", value: "N", flag: true, set: one(between[int](1, 1024), func(c *Config) *int { return &c.Threads }),
		help: "front-end workers; default: the CPUs of the machine or its cgroup"},
	{key: "metrics", value: "ADDR:PORT", flag: true, set: one(addrPort, func(c *Config) *netip.AddrPort { return &c.Metrics }),
		help: "serve Prometheus metrics at /metrics and readiness at /ready; default off"},
	{key: "log-level", value: "debug|info|warn|error", flag: true,
		set: choose(map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
			"error": slog.LevelError}, func(c *Config) *slog.Level { return &c.LogLevel }),
		help: "the least that is logged; default info"},
	{key: "validation-time", value: "SECONDS", flag: true, set: one(between[int64](1, 1<<32-1), func(c *Config) *int64 { return &c.ValidationTime }),
		help: "testing: signatures are judged at this Unix time"},
	{key: "clock-file", value: "FILE", flag: true, set: setClockFile,
		help: "testing: TTLs, expiry and signatures go by the Unix time in this file, read again as it changes"},

	{key: "refuse", value: "CIDR", list: true, set: each(prefix, func(c *Config) *[]netip.Prefix { return &c.Refuse }),
		help: "who gets REFUSED though allow has them"},
	{key: "special-use", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.SpecialUse }),
		help: "answer for the zones of RFC 6303 and RFC 6761 here; default true"},
	{key: "as112", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.AS112 }),
		help: "be a node of AS112 (RFC 7534, RFC 7535): authoritative for private reverse zones and empty.as112.arpa, named by identity; default false"},
	{key: "sha1", value: "insecure|validate",
		set:  choose(map[string]bool{"validate": true, "insecure": false}, func(c *Config) *bool { return &c.SHA1 }),
		help: "what signatures and digests by SHA-1 count for (RFC 9905); default insecure"},
	{key: "domain-insecure", value: "NAME [until DATE]", list: true, set: setInsecure,
		help: "negative trust anchors (RFC 7646): not validated, nor what lies below; with a date until then, or until the zone validates again"},
	{key: "ipv4", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.IPv4 }),
		help: "ask servers over IPv4; default true"},
	{key: "ipv6", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.IPv6 }),
		help: "ask servers over IPv6; default true"},
	{key: "query-localhost", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.QueryLocalhost }),
		help: "ask servers at loopback addresses; default false"},
	{key: "do-not-query", value: "CIDR", list: true, set: each(prefix, func(c *Config) *[]netip.Prefix { return &c.DoNotQuery }),
		help: "servers that are never asked"},
	{key: "outgoing-address", value: "ADDR", list: true, set: each(address, func(c *Config) *[]netip.Addr { return &c.Outgoing }),
		help: "addresses to ask from; default: the system's choice"},
	{key: "exclude-port", value: "PORT|FIRST-LAST", list: true, set: each(portRange, func(c *Config) *[]PortRange { return &c.ExcludedPorts }),
		help: "ports that are never asked from"},
	{key: "edns-buffer-size", value: "BYTES", set: one(between[uint16](512, 4096), func(c *Config) *uint16 { return &c.EDNSSize }),
		help: "the UDP response that servers are offered room for; default 1232"},
	{key: "cookies", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.Cookies }),
		help: "send DNS cookies to servers (RFC 7873); default true"},
	{key: "harden-glue", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.HardenGlue }),
		help: "use glue only for names within the zone that gives it; default true"},
	{key: "rotate", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.Rotate }),
		help: "begin an RRset with another of its records from answer to answer; default true"},
	{key: "failure-ttl", value: "SECONDS", set: one(between[uint32](5, 300), func(c *Config) *uint32 { return &c.FailureTTL }),
		help: "how long what does not validate is remembered as failed, and four times as long as what servers refuse; default 60"},
	{key: "aggressive-nsec", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.AggressiveNSEC }),
		help: "answer from proofs of other names what they prove (RFC 8198); default true"},
	{key: "forward-zones", value: "ZONES", list: true, forward: true, setZones: addZones,
		help: "zones asked of resolvers: a list of name, addrs, hosts, first, tcp, tls"},
	{key: "stub-zones", value: "ZONES", list: true, setZones: addZones,
		help: "zones asked of their own servers: a list of name, addrs, hosts, first, prime, tcp, tls"},
	{key: "tls-ca", value: "FILE", set: setTLSCA,
		help: "PEM certificates of who vouches for servers asked over TLS; default those that the system trusts"},
	{key: "local-data", value: "RECORD", list: true, set: setLocalData,
		help: "records answered here"},
	{key: "private-address", value: "CIDR", list: true, set: each(prefix, func(c *Config) *[]netip.Prefix { return &c.PrivateAddress }),
		help: "addresses that no answer from outside may hold"},
	{key: "private-domain", value: "NAME", list: true, set: each(domain, func(c *Config) *[]wire.Name { return &c.PrivateDomain }),
		help: "domains whose answers may hold a private-address all the same"},
	{key: "minimal-responses", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.MinimalResponses }),
		help: "leave out of answers what was not asked for; default true"},
	{key: "cache-min-ttl", value: "SECONDS", set: one(between[uint32](0, 86400), func(c *Config) *uint32 { return &c.MinTTL }),
		help: "keep answers at least so long; default 0"},
	// RFC 8767 §4: a week is as much as anything is worth.
	{key: "cache-max-ttl", value: "SECONDS", set: one(between[uint32](1, 7*86400), func(c *Config) *uint32 { return &c.MaxTTL }),
		help: "keep answers at most so long, a week at the most; default 86400"},
	{key: "identity", value: "TEXT", set: one(text, func(c *Config) *string { return &c.Identity }),
		help: "what id.server and NSID (RFC 5001) tell; default nothing"},
	{key: "max-inflight", value: "N", set: one(between[int](1, 1<<20), func(c *Config) *int { return &c.MaxInflight }),
		help: "client queries being resolved at once; default 1024"},
	{key: "max-tcp", value: "N", set: one(between[int](1, 1<<20), func(c *Config) *int { return &c.MaxTCP }),
		help: "TCP connections of clients at once; default 1000"},
	{key: "max-tcp-per-client", value: "N", set: one(between[int](1, 1<<20), func(c *Config) *int { return &c.MaxTCPPerClient }),
		help: "TCP connections of one client at once; default 200"},
	{key: "dns64-prefix", value: "CIDR", set: func(*Config, []string, string) error {
		return errors.New("DNS64 is not supported; remove this key")
	}, help: "refused: there is no DNS64"},

	{key: "cache-file", value: "FILE", set: setCacheFile,
		help: "where the cache is kept over a restart; default off"},
	{key: "control", value: "PATH", flag: true, set: setControl,
		help: "the Unix socket that bonsai ctl talks to; default off"},
	{key: "user", value: "USER[:GROUP]", set: setUser,
		help: "whom to become, by name or number, once the sockets are bound; default: stay who it is"},
	{key: "lockdown", value: "auto|off",
		set:  choose(map[string]bool{"auto": true, "off": false}, func(c *Config) *bool { return &c.Lockdown }),
		help: "give up capabilities, files outside the folders named here and system calls, as far as the kernel can (Landlock, seccomp); default auto"},
	{key: "query-log", value: "FILE|stderr", set: setQueryLog,
		help: "where each query of a client is logged; the file is opened anew by every reload; default off"},
	{key: "query-log-format", value: "json|text",
		set:  choose(map[string]bool{"json": false, "text": true}, func(c *Config) *bool { return &c.QueryLog.Text }),
		help: "a line of JSON a query, or of key=value; default json"},
	{key: "query-log-clients", value: "truncated|whole|keyed",
		set: choose(map[string]clientForm{"truncated": clientTruncated, "whole": clientWhole, "keyed": clientKeyed},
			func(c *Config) *clientForm { return &c.QueryLog.Clients }),
		help: "clients by network (IPv4 /24, IPv6 /48), by address, or by a hash under a key that each start draws; default truncated"},
	{key: "query-log-fields", value: "FIELD", list: true, set: each(queryLogField, func(c *Config) *[]string { return &c.QueryLog.Fields }),
		help: "what a line has besides its time: client, port, transport, name, type, flags, rcode, answers, size, path, took; default client, transport, name, type, rcode, path, took"},
	{key: "hosts-files", value: "FILE", list: true, set: setHosts,
		help: "hosts files, whose names and addresses are answered here; default none"},
	{key: "block-lists", value: "LISTS", list: true, fields: []string{"file", "action", "addrs", "ede"}, setItems: setBlockLists,
		help: "names that are blocked with all below them: a list of file, action (nxdomain, nodata, refuse, address), addrs, ede (blocked, censored, filtered)"},
	{key: "allow-lists", value: "FILE", list: true, set: setAllowLists,
		help: "names that no block list blocks, with all below them; default none"},
	{key: "views", value: "VIEWS", list: true, views: true,
		help: "what clients of some prefixes get by settings of their own: a list of name, clients, and those settings"},
	{key: "rate-limit", value: "N", set: one(between[int](0, 1<<20), func(c *Config) *int { return &c.RateLimit.QPS }),
		help: "queries a second over UDP that one client may send; default 0, no limit"},
	{key: "rate-limit-burst", value: "N", set: one(between[int](0, 1<<16-1), func(c *Config) *int { return &c.RateLimit.Burst }),
		help: "queries at once that rate-limit lets pass; default 0, as many as rate-limit"},
	{key: "rate-limit-slip", value: "N", set: one(between[int](0, 1<<10), func(c *Config) *int { return &c.RateLimit.Slip }),
		help: "every n-th limited query is sent over to TCP instead of dropped; default 2"},
	{key: "rate-limit-shadow", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.RateLimit.Only }),
		help: "count what rate-limit would stop, and let it pass; default false"},
	{key: "cache-max-negative-ttl", value: "SECONDS", set: one(between[uint32](1, 86400), func(c *Config) *uint32 { return &c.MaxNegativeTTL }),
		help: "keep denials at most so long; default 3600"},
	{key: "serve-stale", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.ServeStale }),
		help: "answer from expired data where servers fail (RFC 8767); default true"},
	{key: "stale-ttl", value: "SECONDS", set: one(between[uint32](1, 300), func(c *Config) *uint32 { return &c.StaleTTL }),
		help: "the TTL shown on expired data; default 30"},
	{key: "stale-limit", value: "SECONDS", set: one(between[uint32](0, 3*86400), func(c *Config) *uint32 { return &c.StaleLimit }),
		help: "how long data is kept after its end; default 86400"},
	{key: "stale-client-timeout", value: "MILLISECONDS", set: one(between[uint32](1, 10000), func(c *Config) *uint32 { return &c.StalePatience }),
		help: "how long a client waits before it gets expired data; default 1800"},
	{key: "prefetch", value: "BOOL", set: one(boolean, func(c *Config) *bool { return &c.Prefetch }),
		help: "renew what is in use before it expires; default true"},
}

// one makes a setter of a parser of one value.
func one[T any](parse func(string) (T, error), field func(*Config) *T) func(*Config, []string, string) error {
	return func(c *Config, values []string, _ string) error {
		v, err := parse(values[len(values)-1])
		if err == nil {
			*field(c) = v
		}
		return err
	}
}

// each makes a setter of a list, of a parser of one value.
func each[T any](parse func(string) (T, error), field func(*Config) *[]T) func(*Config, []string, string) error {
	return func(c *Config, values []string, _ string) error {
		list := make([]T, 0, len(values))
		err := eachValue(values, func(text string) error {
			v, err := parse(text)
			list = append(list, v)
			return err
		})
		if err == nil {
			*field(c) = list
		}
		return err
	}
}

// choose makes a setter of a value that is one of a few words.
func choose[T any](words map[string]T, field func(*Config) *T) func(*Config, []string, string) error {
	return one(func(text string) (T, error) { return word(text, words) }, field)
}

func setHints(c *Config, values []string, dir string) error {
	f, name, err := c.open(dir, values[len(values)-1])
	if err != nil {
		return err
	}
	defer f.Close()
	hints, err := zonecut.ParseHints(f, name)
	if err == nil {
		c.RootHints = hints
	}
	return err
}

// setAnchors reads the anchors. A file without records gives none, so that nothing is validated.
func setAnchors(c *Config, values []string, dir string) error {
	var anchors []validate.Anchor
	err := eachValue(values, func(name string) error {
		f, name, err := c.open(dir, name)
		if err != nil {
			return err
		}
		defer f.Close()
		more, err := validate.ParseAnchors(f, name)
		anchors = append(anchors, more...)
		return err
	})
	if err == nil {
		c.Anchors = anchors
	}
	return err
}

func setTLSCA(c *Config, values []string, dir string) error {
	name, err := c.reads(dir, values[len(values)-1])
	if err != nil {
		return err
	}
	if c.TLSCA, err = os.ReadFile(name); err == nil && !x509.NewCertPool().AppendCertsFromPEM(c.TLSCA) {
		err = fmt.Errorf("%s has no certificate; write PEM, that begins with -----BEGIN CERTIFICATE-----", name)
	}
	return err
}

func setLocalData(c *Config, values []string, _ string) error {
	c.LocalData = policy.LocalData{}
	return eachValue(values, func(line string) error {
		if err := c.LocalData.Add(line); err != nil {
			return fmt.Errorf("%q: %w; write it as \"host.example. 3600 A 192.0.2.1\"", line, err)
		}
		return nil
	})
}

// setAnchorState takes the name of a file that need not be there yet; its folder must be.
func setAnchorState(c *Config, values []string, dir string) (err error) {
	c.AnchorState, err = c.writes(dir, values[len(values)-1])
	return err
}

// setCacheFile takes the name of a file that need not be there yet; its folder must be.
func setCacheFile(c *Config, values []string, dir string) (err error) {
	c.CacheFile, err = c.writes(dir, values[len(values)-1])
	return err
}

// setControl takes the name of a socket; its folder must be there.
func setControl(c *Config, values []string, dir string) (err error) {
	c.Control, err = c.inFolder(dir, values[len(values)-1])
	return err
}

func setClockFile(c *Config, values []string, dir string) error {
	name, err := c.reads(dir, values[len(values)-1])
	if err != nil {
		return err
	}
	if _, err := readClock(name); err != nil {
		return err
	}
	c.ClockFile = name
	return nil
}

func addZones(c *Config, zones []zonecut.Configured) {
	c.Zones = slices.Concat(c.Zones, zones)
}

// cacheSize reads a budget that holds a cache and, beside it, proven denials.
func cacheSize(text string) (int64, error) {
	const least, most = cache.MinSize + denial.MinSize, cache.MaxSize
	n, err := size(text)
	switch {
	case err != nil:
		return 0, err
	case n < least:
		return 0, fmt.Errorf("%s is less than a cache needs; write at least %dKiB", text, least>>10)
	case n > most:
		return 0, fmt.Errorf("%s is more than a cache can have; write at most %dGiB", text, int64(most)>>30)
	}
	return n, nil
}

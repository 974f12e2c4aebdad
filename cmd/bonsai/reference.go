package main

import (
	"fmt"
	"io"
	"strings"
)

// note is what the reference tells of a setting beyond its row in the table of settings.
type note struct {
	key     string
	value   string // the default as it stands in a file; "" where leaving the key out can't be written
	example string // shown as a comment where value is ""
	unit    string // what a number counts
	why     string
}

// reference is every setting in the order of reading. The example file and the manual page are made
// of it and of the table of settings; a test holds that neither has more than the other.
var reference = []struct {
	title string
	notes []note
}{
	{"Listening", []note{
		{key: "listen", example: `[127.0.0.1:53, "[::1]:53"]`,
			why: "A resolver that listens on all addresses without being asked to serves strangers."},
		{key: "threads", example: "4", unit: "workers", why: "One UDP socket and one goroutine a CPU keep a hit on the CPU that received it."},
		{key: "max-inflight", value: "1024", unit: "client queries",
			why: "Each may wait for servers for seconds; beyond this, new misses are turned away at once rather than all of them late."},
		{key: "max-tcp", value: "1000", unit: "connections", why: "Bounds memory and file descriptors (RFC 7766 §6.2.3)."},
		{key: "max-tcp-per-client", value: "200", unit: "connections", why: "One client, an IPv4 address or an IPv6 /64, can't take them all."},
		{key: "edns-buffer-size", value: "1232", unit: "bytes", why: "What fits every path without fragments (RFC 9715 §3.1)."},
	}},
	{"Who may ask", []note{
		{key: "allow", value: `[127.0.0.0/8, "::1/128"]`, why: "An open resolver is an amplifier (RFC 5358 §4)."},
		{key: "refuse", value: "[]", why: "Takes a part out of what allow lets in; the more specific prefix wins."},
		{key: "allow-snoop", value: "[]", why: "With RD=0 the cache tells what others asked."},
		{key: "rate-limit", value: "0", unit: "queries a second for each client; 0: no limit",
			why: "Sources of UDP queries may be forged. Those over TCP and those with a server cookie of ours are never limited."},
		{key: "rate-limit-burst", value: "0", unit: "queries at once; 0: as many as rate-limit",
			why: "A browser that starts asks for dozens of names at once."},
		{key: "rate-limit-slip", value: "2", unit: "every n-th limited query is answered with TC; 0: none",
			why: "The real client behind a forged address comes back over TCP."},
		{key: "rate-limit-shadow", value: "false", why: "Shows in the metrics what a limit would do before it does it."},
	}},
	{"Cache and freshness", []note{
		{key: "cache-size", value: "256MiB", unit: "bytes", why: "The whole memory of the cache. It is taken as it fills; a restart is needed to change it."},
		{key: "cache-file", example: "cache.bonsai", why: "Written on stop and by bonsai ctl save, read at start: a restart then asks no server for what it knew. What no longer holds is left out."},
		{key: "cache-min-ttl", value: "0", unit: "seconds", why: "Owners of zones choose TTLs for reasons; raise it only for zones that choose badly."},
		{key: "cache-max-ttl", value: "86400", unit: "seconds", why: "RFC 8767 §4 advises a bound of days; a day keeps mistakes of others short."},
		{key: "cache-max-negative-ttl", value: "3600", unit: "seconds", why: "RFC 2308 §5: one to three hours work well; a name that appears is seen the same hour."},
		{key: "serve-stale", value: "true", why: "While a zone's servers are down, old data is better than none (RFC 8767)."},
		{key: "stale-ttl", value: "30", unit: "seconds", why: "RFC 8767 §5.2: what clients are told for stale data, so that they ask again soon."},
		{key: "stale-limit", value: "86400", unit: "seconds", why: "RFC 8767 §5: one to three days; 0, like serve-stale: false, keeps nothing that is expired."},
		{key: "stale-client-timeout", value: "1800", unit: "milliseconds", why: "RFC 8767 §5: clients give up after two seconds or so."},
		{key: "failure-ttl", value: "60", unit: "seconds",
			why: "Spares servers that fail from being asked by every client (RFC 9520 §3.2: 300 at most). What servers refuse is remembered a quarter of it, silence 5 s."},
		{key: "rotate", value: "true", why: "Clients that take the first address spread over all of them."},
		{key: "prefetch", value: "true", why: "Names in use are renewed in the last tenth of their TTL, so that no client waits for them."},
	}},
	{"DNSSEC", []note{
		{key: "dnssec", value: "validate", why: "Without it whoever sits on the path decides what a name means."},
		{key: "trust-anchor", example: "[root.key]", why: "The built-in ones are IANA's of the root, key tags 20326 and 38696."},
		{key: "trust-anchor-state", example: "root.anchors",
			why: "The root's keys change (RFC 5011); without the file a restart begins with the built-in ones again."},
		{key: "domain-insecure", value: "[]", why: "For a zone signed inside and not outside; or with a date, as \"example.org until 2026-12-24\", for one whose owner broke its signatures: every 5 minutes it is looked whether it validates again."},
		{key: "sha1", value: "insecure", why: "RFC 9905: forged SHA-1 signatures are within reach, so that they prove nothing."},
	}},
	{"Resolution", []note{
		{key: "root-hints", example: "named.root", why: "The built-in ones are asked for the current root servers at start (RFC 9609)."},
		{key: "qname-minimisation", value: "relaxed", why: "Servers on the way need not know the whole name; relaxed still works with servers that are broken."},
		{key: "ipv4", value: "true", why: "Turn it off where IPv4 leads nowhere; a family that fails is avoided by itself."},
		{key: "ipv6", value: "true", why: "Turn it off where IPv6 leads nowhere; a family that fails is avoided by itself."},
		{key: "harden-glue", value: "true", why: "Addresses from outside a zone are how caches were poisoned."},
		{key: "aggressive-nsec", value: "true", why: "Spares servers, and clients time, for names that are known not to exist."},
		{key: "cookies", value: "true", why: "A spoofer would have to guess 64 bits more (RFC 7873)."},
		{key: "query-localhost", value: "false", why: "A zone that names loopback as its server would make this machine ask itself."},
		{key: "do-not-query", value: "[]", why: "Networks that no name server is in, so that zones can't make this machine send there."},
		{key: "outgoing-address", value: "[]", why: "Where only some addresses of this machine are let out."},
		{key: "exclude-port", example: "[5353, 6000-6010]", why: "Below 1024 by default; add ports that a firewall treats as a service."},
	}},
	{"Zones and policy", []note{
		{key: "forward-zones", value: "[]", example: "\n  - name: corp.example\n    addrs: [192.0.2.1, 192.0.2.2@5353]\n  - name: .\n    tls: true\n    addrs: [\"192.0.2.3#dns.example\"]", why: "Zones that only a resolver elsewhere can see; with tls: true over TLS, which shows nobody on the way what is asked. Behind # stands the name that the certificate must be for: without it any is taken."},
		{key: "stub-zones", value: "[]", example: "\n  - name: lan.example\n    addrs: [192.0.2.53]", why: "Zones whose servers no delegation leads to."},
		{key: "tls-ca", example: "corp.pem", why: "A resolver of one's own has a certificate that no public authority signed."},
		{key: "local-data", value: "[]", example: "[\"printer.lan. 300 A 192.0.2.9\"]", why: "A few names that need no zone of their own."},
		{key: "hosts-files", value: "[]", example: "[/etc/hosts]", why: "Names and addresses that are kept in that form already, both ways."},
		{key: "block-lists", value: "[]", example: "\n  - file: ads.txt\n    action: nxdomain\n    ede: blocked",
			why: "Names that are not to be reached, with all below them: ten to eleven bytes a name, bad lines skipped and counted."},
		{key: "allow-lists", value: "[]", example: "[good.txt]", why: "Takes names out of all block lists."},
		{key: "views", value: "[]", example: "\n  - name: guests\n    clients: [192.0.2.128/25]\n    forward-zones: []\n    block-lists: [ads.txt]",
			why: "The most specific prefix that holds a client decides; what a view does not say is as for all others. With zones of its own it shares nothing that is cached."},
		{key: "special-use", value: "true", why: "Queries for private reverse zones and the like are nobody's business outside (RFC 6303, RFC 6761)."},
		{key: "as112", value: "false", why: "For a node that the Internet's queries for private addresses are to end at: it announces AS112's addresses and allows everybody. Zones of forward-zones and stub-zones come first."},
		{key: "private-address", value: "[]", example: "[10.0.0.0/8, 192.168.0.0/16]", why: "A page from outside could else reach inside through the client's own browser (rebinding)."},
		{key: "private-domain", value: "[]", why: "One's own domains, which have such addresses with good reason."},
		{key: "minimal-responses", value: "true", why: "Smaller responses, and less for an attacker to work with."},
		{key: "identity", example: "resolver-1", why: "Tells which of several resolvers answered."},
		{key: "dns64-prefix", example: "64:ff9b::/96", why: "Here so that a file that has it is told, and not silently ignored."},
	}},
	{"Operation", []note{
		{key: "log-level", value: "info", why: "debug names every failed resolution and its reason."},
		{key: "query-log", example: "queries.json", why: "Off: what clients ask is theirs. Logging never holds up an answer: lines that the disk can't take in time are lost, and counted in bonsai_query_log_lines_total."},
		{key: "query-log-format", value: "json", why: "One object a line, for programs; text has the same as key=value."},
		{key: "query-log-clients", value: "truncated", why: "An IPv4 /24 or IPv6 /48 tells networks apart and not people; keyed tells clients apart until the next start, and not who they are."},
		{key: "query-log-fields", value: "[client, transport, name, type, rcode, path, took]", why: "Less is smaller and tells less. There are port, flags, answers and size, too; path is hit, miss, shed or dropped, and took is for misses."},
		{key: "control", example: "/run/bonsai/control", why: "Only the user that bonsai runs as, and root, may connect (mode 0600). It can do all that a restart can, and tell what is cached."},
		{key: "user", example: "65532:65532", why: "Port 53 is bound by root, and answers need no such rights. Files must be within reach of the user, which is checked at start and by bonsai check."},
		{key: "lockdown", value: "auto", why: "Whoever finds a fault in bonsai is to find nothing else of the machine behind it. What is in force stands in the log at start. A file in a folder that was not named at start needs a restart."},
		{key: "metrics", example: "127.0.0.1:9153", why: "Off: what nobody scrapes need not listen."},
	}},
	{"Testing", []note{
		{key: "validation-time", example: "1700000000", unit: "Unix seconds", why: "For signatures that were made once. Protects nobody."},
		{key: "clock-file", example: "clock", why: "For tests that move the time. Protects nobody."},
	}},
}

// lineWidth is how wide comments of the example file are, in columns.
const lineWidth = 100

// writeExample writes a configuration file with every key: what has a default that can be written
// stands with it, all else as a comment.
func writeExample(w io.Writer) {
	fmt.Fprintln(w, "# Every key of bonsai with its default: this file as it is changes nothing. Relative file names are")
	fmt.Fprintln(w, "# relative to its folder. Check a change with: bonsai check --config FILE")
	fmt.Fprintln(w, "# Made by: bonsai example")
	for _, group := range reference {
		fmt.Fprintf(w, "\n## %s\n", group.title)
		for i := range group.notes {
			group.notes[i].write(w)
		}
	}
}

func (n *note) write(w io.Writer) {
	s := findSetting(n.key)
	fmt.Fprintln(w)
	writeComment(w, sentence(s.help)+".")
	writeComment(w, n.kind(s))
	writeComment(w, n.why)
	if n.value != "" {
		fmt.Fprintf(w, "%s: %s\n", n.key, n.value)
	}
	if n.example != "" {
		separator := " "
		if strings.HasPrefix(n.example, "\n") {
			separator = ""
		}
		for line := range strings.Lines(n.key + ":" + separator + n.example + "\n") {
			fmt.Fprint(w, "# "+line)
		}
	}
}

// kind tells type and unit.
func (n *note) kind(s *setting) string {
	text := "Value: " + s.value
	if s.list {
		text += ", or a list of these"
	}
	fields := s.fields
	switch {
	case s.setZones != nil:
		fields = zoneKeys
	case s.views:
		fields = viewKeys()
	}
	if len(fields) > 0 {
		text = "Value: a list of mappings with the keys " + strings.Join(fields, ", ")
	}
	if n.unit != "" {
		text += " (" + n.unit + ")"
	}
	return text + "."
}

// sentence begins with a capital.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func writeComment(w io.Writer, text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > lineWidth {
			fmt.Fprintln(w, line)
			line = "#"
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}

// writeManual writes the manual page in the form of man(7).
func writeManual(w io.Writer) {
	fmt.Fprintf(w, ".TH BONSAI 8 \"\" \"bonsai %s\"\n.SH NAME\nbonsai \\- recursive DNS resolver\n", versionNumber())
	fmt.Fprint(w, ".SH SYNOPSIS\n")
	for _, c := range synopses {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(c.form), roff(sentence(c.does))+".")
	}
	fmt.Fprint(w, ".SH CONTROL\nWhat bonsai ctl sends to a running bonsai.\n")
	for _, c := range controlCommands {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(c.name+" "+c.args)), roff(sentence(c.does))+".")
	}
	fmt.Fprint(w, ".SH SETTINGS\nKeys of the configuration file, which is YAML. Those with two dashes are flags as well.\n")
	for _, group := range reference {
		fmt.Fprintf(w, ".SS %s\n", roff(group.title))
		for i := range group.notes {
			n := &group.notes[i]
			s := findSetting(n.key)
			name := n.key
			if s.flag {
				name = "--" + name
			}
			fmt.Fprintf(w, ".TP\n.B %s\n%s.\n%s\n%s\n", roff(name), roff(sentence(s.help)), roff(n.kind(s)), roff(n.why))
		}
	}
}

// roff escapes what man(7) would take for its own, and what is not ASCII.
func roff(s string) string {
	var b strings.Builder
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		b.WriteString(`\&`)
	}
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r > 0x7E:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

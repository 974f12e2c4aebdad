package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"bonsai/cmd/bonsai/confine"
	"bonsai/resolver/iterate"
	"bonsai/resolver/policy"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// Config is everything the daemon can be told. Files that settings name have been read.
type Config struct {
	Listen      []netip.AddrPort // none: 127.0.0.1:53 and [::1]:53, as far as the machine has them
	RootHints   []zonecut.Server
	Anchors     []validate.Anchor // none: nothing is validated
	AnchorState string            // file of the root's anchors as RFC 5011 keeps them; "": memory alone
	Validate    bool
	Metrics     netip.AddrPort // invalid: off
	Threads     int            // 0: as many as there are CPUs
	CacheSize   int64          // bytes
	LogLevel    slog.Level

	Allow, Refuse, AllowSnoop []netip.Prefix

	Minimisation   iterate.Minimisation
	IPv4, IPv6     bool
	QueryLocalhost bool
	DoNotQuery     []netip.Prefix
	Outgoing       []netip.Addr
	ExcludedPorts  []PortRange
	EDNSSize       uint16
	Cookies        bool
	Rotate         bool
	FailureTTL     uint32 // seconds
	HardenGlue     bool
	AggressiveNSEC bool

	SHA1     bool
	Insecure []wire.Name // negative trust anchors
	Negative []timedNTA  // and those that end; while the daemon runs Insecure has them, too

	SpecialUse       bool
	AS112            bool
	MinimalResponses bool
	Zones            []zonecut.Configured
	TLSCA            []byte         // PEM: who vouches for servers asked over TLS; nil: whom the system trusts
	TLSRoots         *x509.CertPool // these, where a zone is asked over TLS
	LocalData        policy.LocalData
	PrivateAddress   []netip.Prefix
	PrivateDomain    []wire.Name
	MinTTL, MaxTTL   uint32 // seconds
	Identity         string // for id.server and NSID; "" gives none

	MaxInflight, MaxTCP, MaxTCPPerClient int

	CacheFile string // "": a restart begins cold
	Control   string // path of the control socket; "": none
	QueryLog  queryLogSettings

	User     string        // whom to become once the sockets are bound; "": stay who it is
	Account  *confine.User // who that is; nil where User is "", and in a process that became it
	Lockdown bool
	Files    []namedFile // all that settings name, and the configuration itself

	// folders are those that the process is locked in already; nil: it is not.
	folders confine.Folders

	BlockLists     []policy.List
	ListSums       [2]uint64 // tell contents and settings of block and allow lists apart from others
	AllowLists     []*policy.NameSet
	RateLimit      policy.RateLimit
	MaxNegativeTTL uint32 // seconds
	ServeStale     bool
	StaleTTL       uint32 // seconds
	StaleLimit     uint32 // seconds
	StalePatience  uint32 // milliseconds
	Prefetch       bool

	Views    views
	ViewSums []viewSum // of the lists that views have of their own

	// Lists tells of the files of names that were read, in the order of the file.
	Lists []listInfo
	// Notices are what is to be logged of files that were read.
	Notices []string

	ValidationTime int64  // Unix seconds; 0: the clock's
	ClockFile      string // "": the system's clock
}

// PortRange is a range of ports, both ends in it.
type PortRange struct{ First, Last uint16 }

// defaults returns what holds where nothing is said.
func defaults() *Config {
	return &Config{
		RootHints:      zonecut.BuiltinHints(),
		Anchors:        validate.BuiltinAnchors(),
		Validate:       true,
		CacheSize:      256 << 20,
		LogLevel:       slog.LevelInfo,
		Allow:          []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Minimisation:   iterate.Relaxed,
		IPv4:           true,
		IPv6:           true,
		EDNSSize:       1232,
		Cookies:        true,
		HardenGlue:     true,
		Rotate:         true,
		FailureTTL:     60,
		AggressiveNSEC: true,
		SpecialUse:     true,
		// A response with only what was asked for is smaller and gives an attacker less to work with.
		MinimalResponses: true,
		MaxTTL:           86400,
		MaxInflight:      1024,
		MaxTCP:           1000,
		MaxTCPPerClient:  200,
		RateLimit:        policy.RateLimit{Slip: 2},
		MaxNegativeTTL:   3600,
		ServeStale:       true,
		StaleTTL:         30,
		StaleLimit:       86400,
		StalePatience:    1800,
		Prefetch:         true,
		Lockdown:         true,
		QueryLog:         queryLogSettings{Fields: []string{"client", "transport", "name", "type", "rcode", "path", "took"}},
	}
}

// setting is one thing that can be set: a key of the file and, for some, a flag of the same name.
type setting struct {
	key   string
	value string // what its value is called, as in "ADDR:PORT"
	help  string
	flag  bool
	list  bool
	// set takes the whole list of values, which for one that is no list is one value, and replaces
	// what was there. Relative file names are relative to dir.
	set func(c *Config, values []string, dir string) error
	// setZones takes its place for keys that hold mappings.
	setZones func(c *Config, zones []zonecut.Configured)
	views    bool // its values are views; Config.setViews has its place
	forward  bool
	// setItems takes its place for other keys that hold mappings, with these fields.
	setItems func(c *Config, items []item, dir string) error
	fields   []string
}

// item is one mapping of a list. An item that is a plain value is the first of its fields.
type item struct {
	fields map[string][]string
}

// one returns the value of a field, a default where it is not given.
func (i *item) one(field, missing string) string {
	if v := i.fields[field]; len(v) > 0 {
		return v[len(v)-1]
	}
	return missing
}

// problem is one thing wrong with the configuration.
type problem struct {
	file string // "" for a flag
	line int
	key  string
	text string
}

// Error names where, what, and what would be right.
func (p *problem) Error() string {
	var b strings.Builder
	if p.file != "" {
		b.WriteString(p.file + ":")
		if p.line > 0 {
			fmt.Fprintf(&b, "%d:", p.line)
		}
		b.WriteString(" ")
	}
	if p.key != "" {
		if p.file == "" {
			b.WriteString("--")
		}
		b.WriteString(p.key + ": ")
	}
	b.WriteString(p.text)
	return b.String()
}

// given are the values of one setting, from one place. lines has the line of each value, zone or item
// where it is known.
type given struct {
	values []string
	zones  []zonecut.Configured
	items  []item
	views  []givenView
	line   int
	lines  []int
}

// givenView is what one view says.
type givenView struct {
	said map[string]given
	line int
}

// lineOf returns the line of a key, or of the view if it has none.
func (g *givenView) lineOf(key string) int {
	if said, ok := g.said[key]; ok {
		return said.line
	}
	return g.line
}

// at returns the line of what err is about: of one value of a list, or of the key.
func (g *given) at(err error) int {
	var of *valueError
	if errors.As(err, &of) && of.index < len(g.lines) {
		return g.lines[of.index]
	}
	return g.line
}

// valueError is what is wrong with one of a setting's values.
type valueError struct {
	index int
	error
}

func (e *valueError) Unwrap() error { return e.error }

// eachValue calls f for the values of a list; its error is of the value that it met.
func eachValue(values []string, f func(value string) error) error {
	for i, value := range values {
		if err := f(value); err != nil {
			return &valueError{i, err}
		}
	}
	return nil
}

// configure makes a Config of what the file says and, above it, what the flags say. The error joins
// a problem for each thing that is wrong.
func configure(flags map[string]given, file string) (*Config, error) {
	return configureWithin(nil, flags, file)
}

// configureWithin is configure in a process that can reach no files but those in these folders; nil is
// one that can reach all.
func configureWithin(folders confine.Folders, flags map[string]given, file string) (*Config, error) {
	c := defaults()
	c.folders = folders
	var errs []error
	var said map[string]given
	var dir string
	if file != "" {
		c.Files = append(c.Files, namedFile{key: "config", path: file})
		var err error
		if said, dir, err = readFile(file); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, c.apply(said, file, dir)...)
	}
	errs = append(errs, c.apply(flags, "", "")...)
	if len(errs) == 0 {
		errs = c.together(file, said)
		errs = append(errs, c.setViews(said["views"].views, file, dir)...)
	}
	return c, errors.Join(errs...)
}

// apply sets what is given, in the order of the table.
func (c *Config) apply(said map[string]given, file, dir string) (errs []error) {
	for i := range settings {
		s := &settings[i]
		g, ok := said[s.key]
		if !ok || s.views {
			continue
		}
		if s.setZones != nil {
			s.setZones(c, g.zones)
			continue
		}
		var err error
		known := len(c.Files)
		if s.setItems != nil {
			err = s.setItems(c, g.items, dir)
		} else {
			err = s.set(c, g.values, dir)
		}
		for i := range c.Files[known:] {
			n := &c.Files[known+i]
			n.file, n.key, n.line = file, s.key, g.at(&valueError{index: i})
		}
		if err != nil {
			errs = append(errs, &problem{file: file, line: g.at(err), key: s.key, text: err.Error()})
		}
	}
	return errs
}

// together checks what only several settings together can have wrong. None of them has a flag.
func (c *Config) together(file string, said map[string]given) (errs []error) {
	complain := func(line int, key, format string, args ...any) {
		errs = append(errs, &problem{file: file, line: line, key: key, text: fmt.Sprintf(format, args...)})
	}
	if !c.IPv4 && !c.IPv6 {
		complain(said["ipv6"].line, "ipv6",
			"ipv4 and ipv6 are both off, so that no server can be asked; leave one of them on")
	}
	if c.MinTTL > c.MaxTTL {
		complain(said["cache-min-ttl"].line, "cache-min-ttl",
			"%d is above cache-max-ttl, %d; make it at most that", c.MinTTL, c.MaxTTL)
	}
	if err := c.trust(); err != nil {
		complain(max(said["forward-zones"].line, said["stub-zones"].line), "tls-ca", "%v; name a file of certificates", err)
	}
	seen := map[wire.Name]int{}
	for _, key := range []string{"forward-zones", "stub-zones"} {
		g := said[key]
		for i, z := range g.zones {
			if first, ok := seen[z.Zone]; ok {
				complain(max(first, g.lines[i]), key, "%s is configured twice, and was in line %d; keep one",
					z.Zone, min(first, g.lines[i]))
				continue
			}
			seen[z.Zone] = g.lines[i]
		}
	}
	return errs
}

// trust gathers who may vouch for servers asked over TLS. What the system trusts is read while its files
// can be reached.
func (c *Config) trust() (err error) {
	overTLS := slices.ContainsFunc(c.Zones, func(z zonecut.Configured) bool { return z.TLS != nil })
	switch {
	case !overTLS:
	case c.TLSCA == nil:
		c.TLSRoots, err = x509.SystemCertPool()
	default:
		c.TLSRoots = x509.NewCertPool()
		c.TLSRoots.AppendCertsFromPEM(c.TLSCA)
	}
	return err
}

// findSetting returns the setting of this key.
func findSetting(key string) *setting {
	for i := range settings {
		if settings[i].key == key {
			return &settings[i]
		}
	}
	return nil
}

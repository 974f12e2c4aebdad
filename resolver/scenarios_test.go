//go:debug rsa1024min=0

package resolver_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"bonsai/cache"
	"bonsai/resolver"
	"bonsai/resolver/exchange"
	"bonsai/resolver/iterate"
	"bonsai/resolver/policy"
	"bonsai/resolver/replay"
	"bonsai/resolver/serve"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// go test ./resolver/... hands the flags to every package's tests, which therefore all declare them
// (TestFlagsEverywhere).
var (
	scenariosFlag = flag.String("scenarios", "", "folder of scenarios to play besides the project's own")
	topicsFlag    = flag.String("topics", "", "file that lists which of them to play, each with its topic")
)

// lacks is what scenarios may need that the resolver has not.
var lacks = []string{"dns64"}

// TestScenarios plays the project's scenarios, named topic/file.
func TestScenarios(t *testing.T) {
	const own = "../testdata/scenarios"
	for _, file := range find(t, own) {
		name, err := filepath.Rel(own, file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".rpl"), func(t *testing.T) {
			playFile(t, file, replay.Options{EDE: true, Loose: true})
		})
	}
}

// TestGivenScenarios plays the scenarios of the folder that -scenarios names, as far as the file
// that -topics names lists them. Their names are topic/collection/file.
func TestGivenScenarios(t *testing.T) {
	if *scenariosFlag == "" {
		t.Skip("no -scenarios")
	}
	topics := readTopics(t)
	for _, file := range find(t, fromRoot(*scenariosFlag)) {
		s, err := replay.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		topic, listed := s.Topic(topics)
		if topics != nil && !listed {
			continue
		}
		t.Run(filepath.Join(topic, strings.TrimSuffix(s.Name(), ".rpl")), func(t *testing.T) {
			playFile(t, file, replay.Options{Loose: true, Infer: true})
		})
	}
}

// fromRoot makes of a relative path one from the module's root, where go test is run.
func fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join("..", path)
}

func find(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".rpl" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readTopics(t *testing.T) map[string]string {
	t.Helper()
	if *topicsFlag == "" {
		return nil
	}
	f, err := os.Open(fromRoot(*topicsFlag))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	topics, err := replay.ReadList(f)
	if err != nil {
		t.Fatal(err)
	}
	return topics
}

func playFile(t *testing.T, file string, o replay.Options) {
	s, err := replay.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	playScenario(t, s, o)
}

// playScenario plays a scenario through a whole Resolver in fake time.
func playScenario(t *testing.T, s *replay.Scenario, o replay.Options) *replay.Result {
	t.Helper()
	o.Start, o.Lacks, o.Bubble = start, lacks, true
	var r *replay.Result
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = replay.Play(s, &o); err != nil {
			t.Fatal(err)
		}
	})
	switch {
	case r.Skipped != "":
		t.Skip(r.Skipped)
	case r.Failure != nil:
		t.Errorf("%s\n%v", s.Title, r.Failure)
	}
	return r
}

// answerer is a Resolver as scenarios see it: the way a query takes behind the sockets.
type answerer struct {
	*resolver.Resolver
	store *cache.Cache
}

func (a *answerer) Answer(ctx context.Context, q *replay.Query) []byte {
	x := serve.Exchange{Query: q.Message, Client: q.Client, Local: q.Server, Response: make([]byte, 0, 65535)}
	if q.TCP {
		x.Transport = serve.TCP
	}
	batch, results := []serve.Exchange{x}, make([]serve.Result, 1)
	a.NewWorker().Hit(batch, results)
	switch results[0] {
	case serve.Dropped:
		return nil
	case serve.Missed:
		batch[0].Response = batch[0].Response[:0]
		a.Miss(ctx, &batch[0])
	}
	return batch[0].Response
}

func (a *answerer) Close() {
	a.Resolver.Close()
	a.Exchange().Close()
	a.store.Close()
}

// denialSize is room for the proofs of any scenario, in bytes.
const denialSize = 1 << 20

// start assembles a Resolver with a scenario's settings.
func start(set *replay.Settings, network *replay.Internet, now func() uint32) (replay.Answerer, error) {
	store, err := cache.New(cache.Config{Size: 8 << 20, StaleLimit: set.StaleLimit})
	if err != nil {
		return nil, err
	}
	config := resolver.Config{
		Cache: store, Now: now, MinTTL: set.CacheMinTTL, MaxTTL: set.CacheMaxTTL,
		NoRotation: true, FullResponses: !set.MinimalResponses,
		Exchange: exchange.Config{
			Transport: network, IPv4: set.IPv4, IPv6: set.IPv6, QueryLocalhost: set.QueryLocalhost,
			EDNSSize: set.EDNSBufferSize, Cookies: true,
		},
		UDPSize: int(set.EDNSBufferSize), DenialSize: denialSize, NoStale: set.StaleLimit == 0,
	}
	// Without hints there are the built-in ones, none of which can be reached.
	if set.RootHints != "" {
		if config.Cuts.Hints, err = zonecut.ParseHints(strings.NewReader(set.RootHints), "hints"); err != nil {
			return nil, err
		}
	}
	if config.Policy, err = policies(set); err != nil {
		return nil, err
	}
	if config.Validate, err = validation(set, now); err != nil {
		return nil, err
	}
	config.Iterate = iterate.Config{IPv4: set.IPv4, IPv6: set.IPv6, LaxGlue: !set.HardenGlue, ForwardCD: config.Validate != nil}
	if config.Iterate.Minimisation, err = iterate.ParseMinimisation(set.QNAMEMinimisation); err != nil {
		return nil, err
	}
	if config.Cuts.Configured, err = configured(set); err != nil {
		return nil, err
	}
	r, err := resolver.New(config)
	return &answerer{r, store}, err
}

// configured makes zones of stubs and forwards.
func configured(set *replay.Settings) (zones []zonecut.Configured, err error) {
	for i, z := range append(slices.Clone(set.Stubs), set.Forwards...) {
		c := zonecut.Configured{Forward: i >= len(set.Stubs), Prime: z.Prime, First: z.First, TCP: z.TCP}
		if c.Zone, err = wire.ParseName(z.Name); err != nil {
			return nil, err
		}
		c.Zone = c.Zone.Canonical()
		for _, host := range z.Hosts {
			name, err := wire.ParseName(host)
			if err != nil {
				return nil, err
			}
			c.Servers = append(c.Servers, zonecut.Server{Name: name.Canonical()})
		}
		for _, addr := range z.Addrs {
			a, err := netip.ParseAddrPort(strings.Replace(addr, "@", ":", 1))
			if err != nil {
				var ip netip.Addr
				if ip, err = netip.ParseAddr(addr); err != nil {
					return nil, err
				}
				a = netip.AddrPortFrom(ip, zonecut.Port)
			}
			c.Servers = append(c.Servers, zonecut.Server{Addrs: []netip.AddrPort{a}})
		}
		zones = append(zones, c)
	}
	return zones, nil
}

func policies(set *replay.Settings) (c policy.Config, err error) {
	c.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	if c.AllowSnoop, err = prefixes(set.AllowSnoop); err != nil {
		return c, err
	}
	if c.Refuse, err = prefixes(set.Refuse); err != nil {
		return c, err
	}
	if c.PrivateAddress, err = prefixes(set.PrivateAddresses); err != nil {
		return c, err
	}
	for _, d := range set.PrivateDomains {
		name, err := wire.ParseName(d)
		if err != nil {
			return c, err
		}
		c.PrivateDomain = append(c.PrivateDomain, name.Canonical())
	}
	c.LocalData = policy.LocalData{}
	for _, record := range set.LocalData {
		if err := c.LocalData.Add(record); err != nil {
			return c, err
		}
	}
	c.SpecialUse = set.SpecialUse
	return c, nil
}

// prefixes reads prefixes and addresses.
func prefixes(list []string) (out []netip.Prefix, err error) {
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, err := netip.ParseAddr(s)
			if err != nil {
				return nil, err
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p)
	}
	return out, nil
}

func validation(set *replay.Settings, now func() uint32) (*validate.Config, error) {
	if set.TrustAnchors == "" {
		return nil, nil
	}
	anchors, err := validate.ParseAnchors(strings.NewReader(set.TrustAnchors), "anchors")
	if err != nil {
		return nil, err
	}
	c := &validate.Config{Anchors: anchors, SHA1: set.SHA1, Now: func() int64 { return int64(now()) }}
	if set.ValidationTime != 0 {
		c.Now = func() int64 { return set.ValidationTime }
	}
	for _, name := range set.DomainInsecure {
		n, err := wire.ParseName(name)
		if err != nil {
			return nil, fmt.Errorf("domain-insecure: %w", err)
		}
		c.Insecure = append(c.Insecure, n.Canonical())
	}
	return c, nil
}

// TestFlagsEverywhere holds that every package below with tests declares the flags, so that
// go test ./resolver/... takes them.
func TestFlagsEverywhere(t *testing.T) {
	dirs, err := filepath.Glob("*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		tests, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
		declared := slices.ContainsFunc(tests, func(file string) bool {
			b, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(b), `flag.String("scenarios"`) && strings.Contains(string(b), `flag.String("topics"`)
		})
		if len(tests) > 0 && !declared {
			t.Errorf("package %s: its tests do not declare -scenarios and -topics", dir)
		}
	}
}

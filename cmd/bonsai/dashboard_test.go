package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/resolver/policy"
)

var picture = flag.String("picture", "", "write what the dashboard shows of two minutes to this SVG file")

// dashboard is what a test needs of dist/dashboard.json, with Grafana's variables as it would fill them in.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct{ Name, Query string }
	}
}

type panel struct {
	Title       string
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []target
}

type target struct{ Expr, LegendFormat string }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("dist", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("$instance", ".*", "$__rate_interval", "15s").Replace(string(content))
	if err := json.Unmarshal([]byte(filled), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// readmeQueries are the queries of README's part on watching.
func readmeQueries(t *testing.T) (queries []target) {
	t.Helper()
	_, part, _ := strings.Cut(readme(t), "\n## Watch it\n")
	m := regexp.MustCompile("(?s)```\n(.*?)```").FindStringSubmatch(part)
	if m == nil {
		t.Fatal("no queries")
	}
	for _, q := range strings.Split(m[1], "\n\n") {
		_, q, _ = strings.Cut(q, "\n") // a comment stands above each
		queries = append(queries, target{Expr: strings.ReplaceAll(q, "5m", "15s")})
	}
	return queries
}

// scraper is a real Prometheus that scrapes a daemon once a second.
type scraper struct{ at string }

func startPrometheus(t *testing.T, target string) *scraper {
	t.Helper()
	need(t, "prometheus")
	if testing.Short() {
		t.Skip("the run is to be short")
	}
	p := &scraper{at: freeAddress(t)}
	config := write(t, "prometheus.yaml", fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: bonsai, static_configs: [{targets: ['%s']}]}]\n", target))
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+p.at, "--log.level=warn")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return p
}

// series is one of a result: its labels, and its values by time in Unix seconds.
type series struct {
	Metric map[string]string
	Value  point
	Values []point
}

type point struct{ at, value float64 }

// UnmarshalJSON reads [seconds, "value"].
func (p *point) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &[]any{&p.at, &value}); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(value, 64)
	p.value = v
	return err
}

func (p *scraper) get(path string, arguments url.Values, into any) error {
	r, err := http.Get("http://" + p.at + "/api/v1/" + path + "?" + arguments.Encode())
	if err != nil {
		return err
	}
	defer r.Body.Close()
	var got struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		return err
	}
	if got.Status != "success" {
		return fmt.Errorf("%s: %s", arguments, got.Error)
	}
	return json.Unmarshal(got.Data, into)
}

// has says whether a query has a result now that is a number, with the labels that the legend names.
func (p *scraper) has(q target) bool {
	var data struct{ Result []series }
	if p.get("query", url.Values{"query": {q.Expr}}, &data) != nil {
		return false
	}
	number := false
	for _, s := range data.Result {
		number = number || !math.IsNaN(s.Value.value)
		for _, label := range legendLabel.FindAllStringSubmatch(q.LegendFormat, -1) {
			if s.Metric[label[1]] == "" {
				return false
			}
		}
	}
	return number
}

// visitors ask for what there is in the lab as clients do until ctx ends: few names often, many seldom, some
// that do not exist or do not validate.
func visitors(ctx context.Context, at netip.AddrPort) {
	var wait sync.WaitGroup
	for id := range uint64(4) {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(1, id))
			often := rand.NewZipf(random, 1.2, 1, 1<<20)
			odd := []string{"www.ecdsa.lab.", "www.bogus.lab.", "nothing.rsa.lab.", "www.unsigned.lab.", "big.ecdsa.lab.", "x.blocked.example.", "printer.lan."}
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("n%d.%s.", often.Uint64(), []string{"bench", "signed-bench"}[random.IntN(2)])
				if i%10 == 0 {
					name = odd[random.IntN(len(odd))]
				}
				m := new(dns.Msg)
				m.SetQuestion(name, dns.TypeA)
				c := &dns.Client{Net: "udp", Timeout: 5 * time.Second}
				if i%20 == 0 {
					c.Net = "tcp"
				}
				_, _, _ = c.ExchangeContext(ctx, m, at.String())
				// More by day than by night, of a minute each.
				busy := 1 + 0.8*math.Sin(float64(time.Now().UnixMilli())/60000*2*math.Pi)
				time.Sleep(time.Duration(4 / busy * float64(time.Millisecond)))
			}
		})
	}
	wait.Wait()
}

// startWatched runs a daemon on the lab with some rules, and visitors.
func startWatched(t *testing.T) *daemon {
	t.Helper()
	d := start(t, func(c *Config) {
		b := policy.NewNameSetBuilder()
		if _, err := b.ReadList(strings.NewReader("blocked.example\n")); err != nil {
			t.Fatal(err)
		}
		c.BlockLists = []policy.List{{Label: "ads", Names: b.Build()}}
		if err := setLocalData(c, []string{"printer.lan. 60 A 192.0.2.200"}, ""); err != nil {
			t.Fatal(err)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); visitors(ctx, d.addr()) }()
	t.Cleanup(func() { cancel(); <-done })
	return d
}

// A real Prometheus scrapes a running daemon: every query of the dashboard and of README has a result, and
// the dashboard's variable has its values.
func TestDashboardOnPrometheus(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil || testing.Short() {
		t.Skip("prometheus is not here, or the run is to be short")
	}
	d := startWatched(t)
	p := startPrometheus(t, d.metrics.Addr().String())
	board := readDashboard(t)
	missing := readmeQueries(t)
	for _, panel := range board.Panels {
		missing = append(missing, panel.Targets...)
	}
	if len(missing) < 25 {
		t.Fatalf("only %d queries", len(missing))
	}
	for try := 0; len(missing) > 0; try++ {
		if try == 240 {
			t.Fatalf("without a result that is a number, or without the labels of the legend: %q", missing)
		}
		time.Sleep(250 * time.Millisecond)
		var still []target
		for _, q := range missing {
			if !p.has(q) {
				still = append(still, q)
			}
		}
		missing = still
	}
	for _, v := range board.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*), (.*)\)$`).FindStringSubmatch(v.Query); m != nil {
			var values []string
			if err := p.get("label/"+m[2]+"/values", url.Values{"match[]": {m[1]}}, &values); err != nil || len(values) != 1 || values[0] != d.metrics.Addr().String() {
				t.Errorf("%s: %q, %v", v.Query, values, err)
			}
		}
	}
	if *picture != "" {
		const shown = 2 * time.Minute
		time.Sleep(shown + 15*time.Second)
		if err := os.WriteFile(*picture, p.draw(t, &board, shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

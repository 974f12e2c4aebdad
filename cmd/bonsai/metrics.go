package main

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"bonsai/cache"
	"bonsai/resolver"
	"bonsai/resolver/exchange"
	"bonsai/resolver/policy"
	"bonsai/resolver/serve"
)

// snapshot is what the packages have counted, read for one scrape.
type snapshot struct {
	resolver resolver.Stats
	exchange exchange.Stats
	cache    cache.Stats
	serve    serve.Stats
	parts    resolver.Parts
	rates    *policy.RateTable
	lists    []listInfo

	reloads, reloadsFailed uint64
	logged, unlogged       uint64 // lines of the query log
}

// emit gives one value of a metric, with the values of its labels.
type emit func(value float64, labels ...string)

// metric is one row: what it is called, what it tells, and where the snapshot has it.
type metric struct {
	name   string
	help   string
	kind   prometheus.ValueType
	labels []string
	values func(s *snapshot, emit emit)
}

const (
	counterKind = prometheus.CounterValue
	gaugeKind   = prometheus.GaugeValue
)

// byLabel emits a map's values under its keys.
func byLabel(of func(*snapshot) map[string]uint64) func(*snapshot, emit) {
	return func(s *snapshot, emit emit) {
		for label, n := range of(s) {
			emit(float64(n), label)
		}
	}
}

// plain emits one value without labels.
func plain[T uint64 | int | int64 | float64](of func(*snapshot) T) func(*snapshot, emit) {
	return func(s *snapshot, emit emit) { emit(float64(of(s))) }
}

// listLabels tell lists apart: as many as the configuration has.
var listLabels = []string{"kind", "list"}

// ofLists emits a value of each list, of sets of names alone if those are meant.
func ofLists(sets bool, value func(*listInfo) float64) func(*snapshot, emit) {
	return func(s *snapshot, emit emit) {
		for i := range s.lists {
			if l := &s.lists[i]; !sets || l.set != nil {
				emit(value(l), l.kind, l.label)
			}
		}
	}
}

var metrics = slices.Concat([]metric{
	{"bonsai_queries_total", "Client queries, by transport.", counterKind, []string{"transport"},
		byLabel(func(s *snapshot) map[string]uint64 { return s.resolver.Queries })},
	{"bonsai_query_types_total", "Client queries, by QTYPE.", counterKind, []string{"type"},
		byLabel(func(s *snapshot) map[string]uint64 { return s.resolver.QueryTypes })},
	{"bonsai_responses_total", "Responses to clients, by RCODE.", counterKind, []string{"rcode"},
		byLabel(func(s *snapshot) map[string]uint64 { return s.resolver.Responses })},
	{"bonsai_queries_dropped_total", "Client messages that got no response.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.resolver.Dropped })},
	{"bonsai_queries_shed_total", "Client queries turned away because too many were being resolved.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.resolver.Shed })},
	{"bonsai_query_log_lines_total", "Lines of the query log, written or lost because it could not follow.", counterKind,
		[]string{"result"}, func(s *snapshot, emit emit) {
			emit(float64(s.logged), "written")
			emit(float64(s.unlogged), "lost")
		}},
	{"bonsai_rate_limited_total", "Client queries over the rate limit: dropped, slipped to TCP, or only counted.", counterKind,
		[]string{"action"}, func(s *snapshot, emit emit) {
			emit(float64(s.rates.Dropped.Load()), "dropped")
			emit(float64(s.rates.Slipped.Load()), "slipped")
			emit(float64(s.rates.WouldLimit.Load()), "counted")
		}},
	{"bonsai_policy_decisions_total", "Queries and answers that a rule decided on, by rule and what it did.", counterKind,
		[]string{"rule", "action"}, func(s *snapshot, emit emit) {
			for _, d := range s.resolver.Decisions {
				emit(float64(d.Count), d.Rule, d.Action.String())
			}
		}},
	{"bonsai_view_queries_total", "Client queries of those that have a view, by view.", counterKind, []string{"view"},
		func(s *snapshot, emit emit) {
			for view, n := range s.resolver.Views {
				if view != "" {
					emit(float64(n), view)
				}
			}
		}},
	{"bonsai_list_names", "Names in a block or allow list.", gaugeKind, listLabels,
		ofLists(true, func(l *listInfo) float64 { return float64(l.names) })},
	{"bonsai_list_bytes", "Memory that a list takes.", gaugeKind, listLabels,
		ofLists(true, func(l *listInfo) float64 { return float64(l.bytes) })},
	{"bonsai_list_hits_total", "Queries and answers that a list decided on.", counterKind, listLabels,
		ofLists(true, func(l *listInfo) float64 { return float64(l.hits.Load()) })},
	{"bonsai_list_bad_lines", "Lines of a list or hosts file that were skipped.", gaugeKind, listLabels,
		ofLists(false, func(l *listInfo) float64 { return float64(l.bad) })},
	{"bonsai_list_loaded_timestamp_seconds", "When a list or hosts file was last read, in Unix time.", gaugeKind, listLabels,
		ofLists(false, func(l *listInfo) float64 { return float64(l.loaded.UnixMilli()) / 1000 })},
	{"bonsai_cache_lookups_total", "Cache lookups for clients, by result: hit, stale or miss.", counterKind,
		[]string{"result"}, byLabel(func(s *snapshot) map[string]uint64 { return s.resolver.Lookups })},
	{"bonsai_cache_entries", "Entries in the cache.", gaugeKind, nil,
		plain(func(s *snapshot) uint64 { return s.cache.Entries })},
	{"bonsai_cache_used_bytes", "Memory that the cache's entries and index take.", gaugeKind, nil,
		plain(func(s *snapshot) uint64 { return s.cache.Used })},
	{"bonsai_cache_capacity_bytes", "Memory that the cache may take.", gaugeKind, nil,
		plain(func(s *snapshot) uint64 { return s.cache.Capacity })},
	{"bonsai_cache_entry_bytes", "Mean size of an entry with its share of the index.", gaugeKind, nil,
		plain(func(s *snapshot) float64 { return float64(s.cache.Used) / float64(max(1, s.cache.Entries)) })},
	{"bonsai_cache_resident_bytes", "Memory of the cache that has been written to.", gaugeKind, nil,
		plain(func(s *snapshot) uint64 { return s.cache.Touched })},
	{"bonsai_cache_inserts_total", "Entries stored, by whether their key had one already.", counterKind,
		[]string{"key"}, func(s *snapshot, emit emit) {
			emit(float64(s.cache.Inserted), "new")
			emit(float64(s.cache.Refreshed), "known")
		}},
	{"bonsai_cache_evictions_total", "Entries forgotten, by reason.", counterKind, []string{"reason"},
		func(s *snapshot, emit emit) {
			emit(float64(s.cache.Expired), "expired")
			emit(float64(s.cache.Unused), "unused")
			emit(float64(s.cache.Hurried), "hurried")
			emit(float64(s.cache.Crowded), "crowded")
			emit(float64(s.cache.Flushed), "flushed")
		}},
	{"bonsai_cache_refused_total", "Entries not stored, by reason.", counterKind, []string{"reason"},
		func(s *snapshot, emit emit) {
			emit(float64(s.cache.TooLarge), "too_large")
			emit(float64(s.cache.Outdated), "outdated")
		}},
	{"bonsai_resolutions_inflight", "Questions being resolved.", gaugeKind, nil,
		plain(func(s *snapshot) int { return s.resolver.InFlight })},
	{"bonsai_resolution_failures_total", "Resolutions that failed, by extended error (RFC 8914).", counterKind,
		[]string{"ede"}, func(s *snapshot, emit emit) {
			for code, n := range s.resolver.Failures {
				emit(float64(n), strconv.Itoa(int(code)))
			}
		}},
	{"bonsai_clock_doubts_total", "Verdicts put aside because all signatures of the root are out of their time, by what the clock would be.",
		counterKind, []string{"clock"}, func(s *snapshot, emit emit) {
			emit(float64(s.resolver.ClockBehind), "behind")
			emit(float64(s.resolver.ClockAhead), "ahead")
		}},
	{"bonsai_stale_answers_total", "Answers served after their end (RFC 8767).", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.resolver.Stale })},
	{"bonsai_refreshes_total", "Answers renewed before their end.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.resolver.Refreshes })},
	{"bonsai_refreshes_lost_total", "Renewals left out because too many waited.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.resolver.RefreshesLost })},
	{"bonsai_reloads_total", "Configurations read again, by outcome.", counterKind, []string{"outcome"},
		func(s *snapshot, emit emit) {
			emit(float64(s.reloads), "applied")
			emit(float64(s.reloadsFailed), "refused")
		}},
	{"bonsai_internal_errors_total", "Queries that met a fault of bonsai's own.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.resolver.Panics })},
	{"bonsai_misses_inflight", "Client queries that wait for a resolution.", gaugeKind, nil,
		plain(func(s *snapshot) int { return s.serve.Inflight })},
	{"bonsai_misses_inflight_limit", "How many of these there may be.", gaugeKind, nil,
		plain(func(s *snapshot) int { return s.serve.MaxInflight })},
	{"bonsai_receive_batches_total", "Calls on UDP sockets that returned queries.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.serve.Batches })},
	{"bonsai_datagrams_dropped_total", "Datagrams of clients that were not looked at, by reason.", counterKind,
		[]string{"reason"}, func(s *snapshot, emit emit) {
			emit(float64(s.serve.BadSource), "bad_source")
			emit(float64(s.serve.Oversized), "oversized")
			emit(float64(s.serve.KernelDrops), "kernel")
		}},
	{"bonsai_send_errors_total", "Responses over UDP that the system refused to send.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.serve.SendErrors })},
	{"bonsai_tcp_connections", "TCP connections of clients.", gaugeKind, nil,
		plain(func(s *snapshot) int { return s.serve.Connections.Open })},
	{"bonsai_tcp_connections_accepted_total", "TCP connections of clients that were served.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.serve.Connections.Accepted })},
	{"bonsai_tcp_connections_closed_total", "TCP connections of clients that bonsai closed, by reason.", counterKind,
		[]string{"reason"}, func(s *snapshot, emit emit) {
			c := &s.serve.Connections
			emit(float64(c.Refused), "limit")
			emit(float64(c.RefusedClient), "client_limit")
			emit(float64(c.Evicted), "evicted")
			emit(float64(c.Idle), "idle")
			emit(float64(c.Slow), "slow")
			emit(float64(c.Unread), "unread")
			emit(float64(c.Malformed), "malformed")
		}},
	{"bonsai_upstream_queries_total", "Queries to servers, by transport and address family.", counterKind,
		[]string{"transport", "family"}, func(s *snapshot, emit emit) {
			emit(float64(s.exchange.UDPv4), "udp", "ipv4")
			emit(float64(s.exchange.UDPv6), "udp", "ipv6")
			emit(float64(s.exchange.TCPv4), "tcp", "ipv4")
			emit(float64(s.exchange.TCPv6), "tcp", "ipv6")
			emit(float64(s.exchange.TLSv4), "tls", "ipv4")
			emit(float64(s.exchange.TLSv6), "tls", "ipv6")
		}},
	{"bonsai_upstream_responses_total", "Responses of servers that were believed, by transport.", counterKind,
		[]string{"transport"}, func(s *snapshot, emit emit) {
			emit(float64(s.exchange.UDPReplies), "udp")
			emit(float64(s.exchange.TCPReplies), "tcp")
			emit(float64(s.exchange.TLSReplies), "tls")
		}},
	{"bonsai_upstream_tcp_connections_total", "TCP connections opened to servers.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.exchange.TCPConnections })},
	{"bonsai_upstream_udp_sockets_total", "UDP sockets opened to servers.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.exchange.UDPSockets })},
	{"bonsai_upstream_cookies_total", "Server cookies learned (RFC 7873).", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.exchange.Cookies })},
	{"bonsai_upstream_busy_total", "Questions not sent because too many waited for the server.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.exchange.Busy })},
	{"bonsai_upstream_timeouts_total", "Queries to servers that were not answered in time.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.exchange.Timeouts })},
	{"bonsai_upstream_mismatches_total", "Datagrams from servers' addresses that were not believed.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.exchange.Mismatches })},
	{"bonsai_upstream_tcp_fallbacks_total", "Questions to servers that went over from UDP to TCP.", counterKind, nil,
		plain(func(s *snapshot) uint64 { return s.exchange.TCPFallbacks })},
}, frontEndMetrics, partMetrics)

const durationName = "bonsai_response_duration_seconds"

var (
	buildInfo = prometheus.NewDesc("bonsai_build_info", "The version that runs; always 1.", []string{"version"}, nil)
	durations = prometheus.NewDesc(durationName,
		"Time from a query to its response, by whether the cache had it.", []string{"path"}, nil)
	rtts = prometheus.NewDesc("bonsai_upstream_rtt_seconds", "Round-trip time of servers over UDP.", nil, nil)
)

// collector reads the packages' counters when it is scraped: nothing is counted twice.
type collector struct {
	d     *daemon
	descs []*prometheus.Desc
}

func newCollector(d *daemon) *collector {
	c := &collector{d: d}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe is part of prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
	out <- buildInfo
	out <- durations
	out <- rtts
}

// snapshot reads all counters.
func (d *daemon) snapshot() *snapshot {
	return &snapshot{
		resolver: d.resolver.Current().Stats(),
		exchange: d.resolver.Current().Exchange().Stats(),
		cache:    d.cache.Stats(),
		serve:    d.server.Stats(),
		parts:    d.resolver.Current().Parts(),
		rates:    d.reloader.rates,
		lists:    *d.lists.Load(),
		logged:   d.queries.written.Load(), unlogged: d.queries.dropped.Load(),
		reloads: d.reloader.applied.Load(), reloadsFailed: d.reloader.refused.Load(),
	}
}

// Collect is part of prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.d.snapshot()
	for i, m := range metrics {
		m.values(s, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(c.descs[i], m.kind, value, labels...)
		})
	}
	out <- prometheus.MustNewConstMetric(buildInfo, gaugeKind, 1, versionNumber())
	out <- residence(&s.serve.HitTime, "hit")
	out <- residence(&s.serve.MissTime, "miss")
	out <- roundTrips(&s.exchange)
}

// perDoubling is how many of the front end's buckets become one: those of Prometheus then double.
const perDoubling = 4

// residence makes cumulated buckets of the front end's plain ones.
func residence(h *serve.Histogram, path string) prometheus.Metric {
	buckets := make(map[float64]uint64, serve.HistogramBuckets/perDoubling)
	var count uint64
	for i, n := range h.Counts {
		count += n
		if i%perDoubling == 0 && i < serve.HistogramBuckets-1 {
			buckets[serve.HistogramBound(i).Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(durations, count, h.Sum.Seconds(), buckets, path)
}

// roundTrips does the same for servers.
func roundTrips(s *exchange.Stats) prometheus.Metric {
	buckets := make(map[float64]uint64, len(exchange.RTTBounds))
	var count uint64
	for i, n := range s.RTT {
		count += n
		if i < len(exchange.RTTBounds) {
			buckets[exchange.RTTBounds[i].Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(rtts, count, s.RTTSum.Seconds(), buckets)
}

// newRegistry holds bonsai's metrics with those of the process and of the Go runtime.
func newRegistry(d *daemon) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(newCollector(d), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Limits of the metrics endpoint. Few ask, and none needs long.
const (
	webTimeout  = 10 * time.Second
	webHeader   = 8 << 10
	webInFlight = 4
	readyPath   = "/ready"
	metricsPath = "/metrics"
)

// newWeb serves metrics and readiness.
func newWeb(d *daemon) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(newRegistry(d), promhttp.HandlerOpts{
		MaxRequestsInFlight: webInFlight, Timeout: webTimeout,
	}))
	mux.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) {
		if !d.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	return &http.Server{
		Handler: mux, ReadTimeout: webTimeout, WriteTimeout: 2 * webTimeout, IdleTimeout: 6 * webTimeout,
		MaxHeaderBytes: webHeader,
	}
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"bonsai/cache/entry"
	"bonsai/resolver/serve"
	"bonsai/wire"
)

// runStatus tells what runs.
func runStatus(_ context.Context, d *daemon, _ []string) (reply, error) {
	s := d.snapshot()
	d.reloader.mu.Lock()
	ntas := len(d.reloader.ntas)
	d.reloader.mu.Unlock()
	data := map[string]any{
		"version": versionNumber(), "pid": os.Getpid(), "uptime_seconds": int(time.Since(d.started).Seconds()),
		"listen": fmt.Sprint(d.server.Addrs()), "ready": d.ready.Load(), "log_level": d.level.Level().String(),
		"cache_entries": s.cache.Entries, "cache_used_bytes": s.cache.Used, "cache_capacity_bytes": s.cache.Capacity,
		"resolutions_inflight": s.resolver.InFlight, "reloads": s.reloads, "reloads_refused": s.reloadsFailed,
		"negative_trust_anchors": ntas,
	}
	if d.folders != nil {
		data["readable"], data["writable"] = d.folders.Paths(false), d.folders.Paths(true)
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(&text, "%-24s %v\n", strings.ReplaceAll(key, "_", " "), data[key])
	}
	return reply{Text: text.String(), Data: data}, nil
}

// runStats tells all counters by the names that the metrics have, and how long queries stayed since the
// start, in seconds, by quantiles.
func runStats(_ context.Context, d *daemon, _ []string) (reply, error) {
	s := d.snapshot()
	data := map[string]float64{}
	for _, m := range metrics {
		m.values(s, func(value float64, labels ...string) {
			name := m.name
			for i, l := range labels {
				name += fmt.Sprintf("%s%s=%q", [...]string{"{", ","}[min(i, 1)], m.labels[i], l)
			}
			if len(labels) > 0 {
				name += "}"
			}
			data[name] = value
		})
	}
	for path, h := range map[string]*serve.Histogram{"hit": &s.serve.HitTime, "miss": &s.serve.MissTime} {
		for _, q := range [...]float64{0.5, 0.9, 0.99, 0.999} {
			data[fmt.Sprintf("%s{path=%q,quantile=\"%v\"}", durationName, path, q)] = h.Quantile(q).Seconds()
		}
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(&text, "%s %v\n", key, data[key])
	}
	return reply{Text: text.String(), Data: data}, nil
}

func runReload(_ context.Context, d *daemon, _ []string) (reply, error) {
	changed, waiting, err := d.reload()
	if err != nil {
		return reply{}, fmt.Errorf("nothing was changed: %w", err)
	}
	text := "changed: " + orNothing(changed)
	if len(waiting) > 0 {
		text += "\nat the next restart: " + strings.Join(waiting, ", ")
	}
	return reply{Text: text + "\n", Data: map[string]any{"changed": changed, "at_restart": waiting}}, nil
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

func runFlush(_ context.Context, d *daemon, args []string) (reply, error) {
	name, err := nameArg(args[0])
	if err != nil {
		return reply{}, err
	}
	t := wire.TypeNone
	if len(args) > 1 {
		if t, err = typeArg(args[1]); err != nil {
			return reply{}, err
		}
	}
	return d.flushed(func() { d.resolver.Current().FlushName(name, t) })
}

func runFlushTree(_ context.Context, d *daemon, args []string) (reply, error) {
	name, err := nameArg(args[0])
	if err != nil {
		return reply{}, err
	}
	return d.flushed(func() { d.resolver.Current().FlushTree(name) })
}

func runFlushNegative(_ context.Context, d *daemon, _ []string) (reply, error) {
	return d.flushed(func() {
		d.resolver.Current().Flush(func(e entry.Entry) bool { return e.Kind() == entry.KindFailure || isNegative(e) }, true)
	})
}

func runFlushBogus(_ context.Context, d *daemon, _ []string) (reply, error) {
	return d.flushed(func() {
		d.resolver.Current().Flush(func(e entry.Entry) bool {
			return e.Kind() == entry.KindUnvalidated || e.Kind() == entry.KindFailure
		}, false)
	})
}

// flushed tells how many entries went, which is rough where others come and go meanwhile.
func (d *daemon) flushed(flush func()) (reply, error) {
	before := d.cache.Stats().Entries
	flush()
	after := d.cache.Stats().Entries
	n := before - min(after, before)
	return reply{Text: fmt.Sprintf("%d entries forgotten, %d kept\n", n, after), Data: map[string]any{"forgotten": n, "kept": after}}, nil
}

// dumpBuffer is how many bytes of a dump are written at once.
const dumpBuffer = 64 << 10

func streamDump(d *daemon, w *streamWriter, args []string) (err error) {
	at := wire.Root
	if len(args) > 0 {
		if at, err = nameArg(args[0]); err != nil {
			return err
		}
	}
	now := d.clock.Now()
	out := bufio.NewWriterSize(w, dumpBuffer)
	fmt.Fprintf(out, "; bonsai %s, %d\n", versionNumber(), now)
	d.cache.Walk(func(e entry.Entry) bool {
		if wire.Name(e.QName()).IsSubdomainOf(at) {
			err = dumpEntry(out, e, now)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "; end")
	return out.Flush()
}

func runLogLevel(_ context.Context, d *daemon, args []string) (reply, error) {
	c := &Config{}
	if err := findSetting("log-level").set(c, args, ""); err != nil {
		return reply{}, err
	}
	d.level.Set(c.LogLevel)
	return reply{Text: "log level " + c.LogLevel.String() + "\n", Data: c.LogLevel.String()}, nil
}

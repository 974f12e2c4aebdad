package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bonsai/wire"
)

// ntaLifetime and maxNTALifetime are how long a negative trust anchor holds that is added while the daemon
// runs: RFC 7646 §2 has a week at most, so that what was meant for a day does not stay for ever.
const (
	ntaLifetime    = time.Hour
	maxNTALifetime = 7 * 24 * time.Hour
)

// ntaRecheck is how often it is looked whether a negative trust anchor is needed still, and ntaPatience how
// long that may take.
const (
	ntaRecheck  = 5 * time.Minute
	ntaPatience = 10 * time.Second
)

// timedNTA is a negative trust anchor of the configuration that ends. Others there are for zones that will
// never validate, and are neither ended nor looked at.
type timedNTA struct {
	Zone  wire.Name
	Until int64 // Unix second
}

// nta is a negative trust anchor that ends.
type nta struct {
	timedNTA
	configured bool // by the configuration, else by a command
	forced     bool // it stays to its end, though all may be well before
	end, look  *time.Timer
}

// setInsecure reads negative trust anchors: a name, or "NAME until DATE".
func setInsecure(c *Config, values []string, _ string) error {
	c.Insecure, c.Negative = nil, nil
	for _, value := range values {
		words := strings.Fields(value)
		if len(words) != 1 && (len(words) != 3 || words[1] != "until") {
			return fmt.Errorf("%q is no negative trust anchor; write it as example.org or \"example.org until 2026-12-24T18:00:00Z\"", value)
		}
		zone, err := domain(words[0])
		if err != nil {
			return err
		}
		if len(words) == 1 {
			c.Insecure = append(c.Insecure, zone)
			continue
		}
		until, err := moment(words[2])
		if err != nil {
			return err
		}
		c.Negative = append(c.Negative, timedNTA{zone, until.Unix()})
	}
	return nil
}

// moment takes a date, of which the first second counts in UTC, or a time.
func moment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date; write it as 2026-12-24 or 2026-12-24T18:00:00Z", text)
}

// negatives returns the negative trust anchors that hold now: those of a configuration that have no end, those
// of it that have not ended, and those that commands added.
func (l *reloader) negatives(c *Config) []wire.Name {
	zones := map[wire.Name]bool{}
	for _, n := range c.Negative {
		if time.Now().Unix() < n.Until && !l.recovered[n] {
			zones[n.Zone] = true
		}
	}
	for zone, n := range l.ntas {
		if !n.configured {
			zones[zone] = true
		}
	}
	for _, zone := range l.insecure {
		delete(zones, zone)
	}
	return slices.Concat(l.insecure, slices.Sorted(maps.Keys(zones)))
}

// followNTAs starts and stops the timers of the configuration's negative trust anchors after it was applied.
// The reloader is locked.
func (d *daemon) followNTAs(c *Config) {
	l := &d.reloader
	for zone, n := range l.ntas {
		if n.configured && !slices.Contains(c.Negative, n.timedNTA) {
			n.stop()
			delete(l.ntas, zone)
		}
	}
	for _, n := range c.Negative {
		if l.ntas[n.Zone] == nil && time.Now().Unix() < n.Until && !l.recovered[n] {
			d.startNTA(&nta{timedNTA: n, configured: true})
		}
	}
	maps.DeleteFunc(l.recovered, func(n timedNTA, _ bool) bool { return !slices.Contains(c.Negative, n) })
}

// startNTA starts the timers. The reloader is locked.
func (d *daemon) startNTA(n *nta) {
	l := &d.reloader
	if old := l.ntas[n.Zone]; old != nil {
		old.stop()
	}
	l.ntas[n.Zone] = n
	n.end = time.AfterFunc(time.Until(time.Unix(n.Until, 0)), func() { d.endNTA(n, "a negative trust anchor has ended") })
	if !n.forced {
		n.look = time.AfterFunc(l.recheck, func() { d.recheckNTA(n) })
	}
}

func (n *nta) stop() {
	n.end.Stop()
	if n.look != nil {
		n.look.Stop()
	}
}

// endNTA takes a negative trust anchor away, unless another took its place.
func (d *daemon) endNTA(n *nta, why string) {
	l := &d.reloader
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ntas[n.Zone] == n {
		d.log.Info(why, "name", n.Zone.String())
		_ = d.dropNTA(n) // it logs
	}
}

// recheckNTA looks whether the zone validates again. RFC 7646 §4: a negative trust anchor is to be removed as
// soon as it is not needed any more.
func (d *daemon) recheckNTA(n *nta) {
	l := &d.reloader
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.ntas[n.Zone] != n {
		return
	}
	l.ending.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, ntaPatience)
		defer cancel()
		if d.resolver.Current().Validates(ctx, n.Zone) {
			d.endNTA(n, "a negative trust anchor is not needed any more: the zone validates")
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.closed && l.ntas[n.Zone] == n {
			n.look.Reset(l.recheck)
		}
	})
}

// dropNTA is called with the reloader locked.
func (d *daemon) dropNTA(n *nta) error {
	l := &d.reloader
	n.stop()
	delete(l.ntas, n.Zone)
	if n.configured {
		l.recovered[n.timedNTA] = true
	}
	return d.applyAgain()
}

// applyAgain applies the configuration as it was read, with the negative trust anchors as they are now.
func (d *daemon) applyAgain() error {
	c := *d.reloader.config
	c.Insecure = d.reloader.insecure
	_, _, err := d.apply(&c)
	if err != nil {
		d.log.Error("negative trust anchors not applied", "error", err)
	}
	return err
}

var errNTA = errors.New("write nta add NAME [LIFETIME [force]], nta list or nta remove NAME")

func runNTA(_ context.Context, d *daemon, args []string) (reply, error) {
	if args[0] == "list" && len(args) == 1 {
		return d.listNTAs(), nil
	}
	if len(args) < 2 || args[0] != "add" && (args[0] != "remove" || len(args) > 2) || len(args) > 3 && args[3] != "force" {
		return reply{}, errNTA
	}
	name, err := nameArg(args[1])
	if err != nil {
		return reply{}, err
	}
	if args[0] == "remove" {
		return reply{Text: "removed\n"}, d.removeNTA(name)
	}
	life := ntaLifetime
	if len(args) > 2 {
		if life, err = time.ParseDuration(args[2]); err != nil || life < time.Second || life > maxNTALifetime {
			return reply{}, errNoLifetime
		}
	}
	return reply{Text: fmt.Sprintf("%s is not validated for %v\n", name, life)}, d.addNTA(name, life, len(args) > 3)
}

func (d *daemon) addNTA(name wire.Name, life time.Duration, forced bool) error {
	l := &d.reloader
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errStopping
	}
	old := l.ntas[name]
	added := &nta{timedNTA: timedNTA{name, time.Now().Add(life).Unix()}, forced: forced}
	d.startNTA(added)
	if err := d.applyAgain(); err != nil {
		added.stop()
		delete(l.ntas, name)
		if old != nil {
			d.startNTA(old)
		}
		return err
	}
	d.log.Info("a negative trust anchor was added", "name", name.String(), "lifetime", life)
	return nil
}

func (d *daemon) removeNTA(name wire.Name) error {
	l := &d.reloader
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ntas[name] == nil {
		return fmt.Errorf("%s is no negative trust anchor that ends; nta list has those that are, and domain-insecure those that don't end", name)
	}
	d.log.Info("a negative trust anchor was removed", "name", name.String())
	return d.dropNTA(l.ntas[name])
}

func (d *daemon) listNTAs() reply {
	l := &d.reloader
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	data := []map[string]any{}
	for _, name := range l.insecure {
		fmt.Fprintf(&text, "%s\tby the configuration\n", name)
		data = append(data, map[string]any{"name": name.String(), "configured": true})
	}
	for _, name := range slices.Sorted(maps.Keys(l.ntas)) {
		n := l.ntas[name]
		left := time.Until(time.Unix(n.Until, 0)).Round(time.Second)
		fmt.Fprintf(&text, "%s\tfor %v\n", name, left)
		data = append(data, map[string]any{"name": name.String(), "configured": n.configured, "seconds_left": int(left.Seconds())})
	}
	return reply{Text: text.String(), Data: data}
}

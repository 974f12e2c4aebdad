package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"

	"bonsai/resolver/lab"
	"bonsai/resolver/validate"
	"bonsai/resolver/zonecut"
)

// errRows says that the lab's table has a row that is not as it should be.
var errRows = errors.New("not every row is as it should be")

// labListen needs no privileges.
var labListen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:5300")}

// runLab is the command lab: the daemon, on an Internet of its own.
func runLab(ctx context.Context, cmd *command, c *Config, out, errOut io.Writer) error {
	w, err := lab.New(lab.Config{})
	if err != nil {
		return err
	}
	defer w.Close()
	if _, ok := cmd.flags["listen"]; !ok {
		c.Listen = labListen
	}
	if _, ok := cmd.flags["log-level"]; !ok {
		c.LogLevel = slog.LevelWarn // the table is what is to be read
	}
	if err := inLab(c, w); err != nil {
		return err
	}
	paceCollector()
	d, err := newDaemon(c, w, newLog(errOut, c.LogLevel))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	w.Describe(out, d.addr())
	if d.metrics != nil {
		fmt.Fprintf(out, "Metrics:\n  http://%s/metrics\n", d.metrics.Addr())
	}
	fmt.Fprintln(out)
	ok := w.Table(ctx, out, d.addr(), c.Validate)
	if !cmd.once && ctx.Err() == nil {
		fmt.Fprintf(out, "\nbonsai answers at %s until stopped.\n", d.addr())
		return <-served
	}
	cancel()
	if err := <-served; err != nil {
		return err
	}
	if !ok {
		return errRows
	}
	return nil
}

// inLab points the configuration at the lab's root.
func inLab(c *Config, w *lab.World) (err error) {
	if c.RootHints, err = zonecut.ParseHints(strings.NewReader(w.Hints()), "hints of the lab"); err != nil {
		return err
	}
	c.Anchors, err = validate.ParseAnchors(strings.NewReader(w.Anchors()), "anchor of the lab")
	return err
}

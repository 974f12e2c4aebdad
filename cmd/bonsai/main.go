// RSA keys of 512 bits and more are legal in DNSSEC (RFC 5702 §2.1); what they are worth is for
// validation to say and not for crypto/rsa.

//go:debug rsa1024min=0

// Command bonsai is a recursive DNS resolver. This package assembles it: flags and configuration,
// sockets, signals, the metrics endpoint. It has no DNS logic of its own.
//
//	flags.go     the command line, and nothing else of pflag
//	config.go    what can be set; settings.go the table of flags and keys, values.go their parsers
//	files.go     the files that settings name, and who can reach them; confine/ closes all others
//	check.go     bonsai check
//	yaml.go      the configuration file, with lines
//	lists.go     files of hosts and of names to block; reference.go the example file and the manual page
//	clock.go     the time that goes on and the wall clock, which tests may replace
//	cpus.go      how many CPUs the process may use
//	daemon.go    resolver, front end and metrics put together, started and stopped
//	reload.go    a changed configuration, without a query or the cache lost
//	control.go   the control socket, commands.go and explain.go what it offers; ctl.go its client
//	querylog.go  a line for each query
//	cachefile.go the cache on disk, for a restart
//	supervise.go sockets handed over, readiness and signs of life for systemd; dist/ has its files
//	records.go   records in presentation format
//	metrics.go   counters of all packages for Prometheus, and nothing else of it
//	labcmd.go    bonsai lab
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"bonsai/cmd/bonsai/confine"
)

// version is set by the linker for a release.
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for queries under way
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program but for the process; it returns the exit status.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	c, err := parseCommand(args)
	if err != nil {
		return fail(errOut, err)
	}
	switch {
	case c.help:
		c.usage(out)
		return 0
	case c.version:
		fmt.Fprintln(out, versionText())
		return 0
	case c.name == "example":
		writeExample(out)
		return 0
	case c.name == "manual":
		writeManual(out)
		return 0
	}
	if c.name == "ctl" {
		if err := runCtl(ctx, c, out); err != nil {
			return fail(errOut, err)
		}
		return 0
	}
	config, err := configure(c.flags, c.config)
	if err != nil {
		return fail(errOut, err)
	}
	switch c.name {
	case "check":
		err = runCheck(ctx, c, config, out)
	case "lab":
		err = runLab(ctx, c, config, out, errOut)
	default:
		read := func(within confine.Folders) (*Config, error) { return configureWithin(within, c.flags, c.config) }
		err = runDaemon(ctx, config, read, errOut)
	}
	if err != nil {
		return fail(errOut, err)
	}
	return 0
}

// fail prints one line for each error that was joined.
func fail(w io.Writer, err error) int {
	if errors.Is(err, errRows) {
		return 1 // the table has said it
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "bonsai: %s\n", strings.TrimRight(line, "\n"))
	}
	return 1
}

func newLog(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// versionText names the release or the commit that this was built from.
func versionText() string {
	return fmt.Sprintf("bonsai %s %s %s/%s", versionNumber(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionNumber() string {
	if version != "" {
		return version
	}
	const shortHash = 12
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= shortHash {
				return s.Value[:shortHash]
			}
		}
	}
	return "devel"
}

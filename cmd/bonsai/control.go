package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"bonsai/wire"
)

// Limits of the control socket. Only who owns the daemon may connect, but a mistake of theirs must
// not be the end of it.
const (
	controlBody        = 64 << 10         // bytes of a request
	controlTime        = 10 * time.Second // to send a request, or to take a part of a response
	controlWork        = 30 * time.Second // for a command
	controlConnections = 16
)

// request and reply are what goes over the socket, as JSON.
type request struct {
	Args []string `json:"args"`
}

type reply struct {
	Text  string `json:"text,omitempty"` // for people
	Data  any    `json:"data,omitempty"` // for machines
	Error string `json:"error,omitempty"`
}

// commandForm is one control command: its arguments as help shows them, and what it does.
type commandForm struct {
	name, args, does string
	least, most      int // arguments
	run              func(ctx context.Context, d *daemon, args []string) (reply, error)
	stream           func(d *daemon, w *streamWriter, args []string) error // instead of run
}

// controlCommands is what bonsai ctl offers, in the order of its help.
var controlCommands []commandForm

func init() { // a command lists the commands
	controlCommands = []commandForm{
		{"status", "", "what runs, since when, with what", 0, 0, runStatus, nil},
		{"stats", "", "all counters, as the metrics have them", 0, 0, runStats, nil},
		{"reload", "", "read the configuration again", 0, 0, runReload, nil},
		{"rules", "", "the rules that queries and answers go through, in order, and what they decided", 0, 0, runRules, nil},
		{"explain", "NAME TYPE [CLIENT]", "why this name gets what it gets, as a client at this machine or at an address", 2, 3, runExplain, nil},
		{"lookup", "NAME [CLIENT]", "zones and servers known for a name, with round-trip times", 1, 2, runLookup, nil},
		{"flush", "NAME [TYPE]", "forget a name, or one type of it", 1, 2, runFlush, nil},
		{"flush-tree", "NAME", "forget a name and all below it", 1, 1, runFlushTree, nil},
		{"flush-negative", "", "forget all denials and failures", 0, 0, runFlushNegative, nil},
		{"flush-bogus", "", "forget all that did not validate", 0, 0, runFlushBogus, nil},
		{"dump", "[NAME]", "print what is cached, at and below a name", 0, 1, nil, streamDump},
		{"save", "", "write the cache file, as dump --binary does", 0, 0, runSave, nil},
		{"load", "", "read the cache file", 0, 0, runLoad, nil},
		{"nta", "add NAME [LIFETIME [force]] | list | remove NAME", "negative trust anchors (RFC 7646), of an hour if not said; but for force they go once the zone validates", 1, 4, runNTA, nil},
		{"loglevel", "debug|info|warn|error", "change what is logged, until the next reload", 1, 1, runLogLevel, nil},
	}
}

// listenControl binds the socket so that nobody else can connect. One that a dead process left is
// replaced; one that answers is not.
func listenControl(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("control: %s is there and is no socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("control: another process answers at %s", path)
		}
		os.Remove(path)
	}
	l, err := listenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return &fewConnections{Listener: l}, nil
}

// fewConnections accepts no more than controlConnections at once; those above are closed.
type fewConnections struct {
	net.Listener
	open atomic.Int32
}

type countedConn struct {
	net.Conn
	closed atomic.Bool
	open   *atomic.Int32
}

func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

func (l *fewConnections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= controlConnections {
			return &countedConn{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		c.Close()
	}
}

// newControl serves the commands.
func newControl(d *daemon) *http.Server {
	mux := http.NewServeMux()
	for i := range controlCommands {
		c := &controlCommands[i]
		mux.HandleFunc("POST /"+c.name, func(w http.ResponseWriter, r *http.Request) { d.control(c, w, r) })
	}
	return &http.Server{
		Handler: mux, ReadTimeout: controlTime, IdleTimeout: controlTime, MaxHeaderBytes: webHeader,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
}

// control runs one command.
func (d *daemon) control(c *commandForm, w http.ResponseWriter, r *http.Request) {
	var in request
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, controlBody))
	if err := body.Decode(&in); err != nil {
		answer(w, http.StatusBadRequest, reply{Error: "the request is not as it should be: " + err.Error()})
		return
	}
	if len(in.Args) < c.least || len(in.Args) > c.most {
		answer(w, http.StatusBadRequest, reply{Error: "write: " + strings.TrimSpace(c.name+" "+c.args)})
		return
	}
	d.controlling.RLock()
	defer d.controlling.RUnlock()
	if d.stopped {
		answer(w, http.StatusServiceUnavailable, reply{Error: errStopping.Error()})
		return
	}
	if c.stream != nil {
		out := &streamWriter{w: w, control: http.NewResponseController(w), ctx: r.Context()}
		if err := c.stream(d, out, in.Args); err != nil && !out.begun {
			answer(w, http.StatusBadRequest, reply{Error: err.Error()})
		} else if err != nil {
			panic(http.ErrAbortHandler) // the client sees that it is not whole
		}
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlWork)
	defer cancel()
	out, err := c.run(ctx, d, in.Args)
	if err != nil {
		answer(w, http.StatusBadRequest, reply{Error: err.Error()})
		return
	}
	answer(w, http.StatusOK, out)
}

func answer(w http.ResponseWriter, status int, r reply) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(controlTime))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r)
}

// streamWriter writes a long response; a client that does not take it in time ends it.
type streamWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context
	begun   bool
}

func (s *streamWriter) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(controlTime))
	return s.w.Write(p)
}

// clientArg is who asks, by the argument at this place: an address, or this machine if there is none.
func clientArg(args []string, at int) (netip.Addr, error) {
	if at >= len(args) {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	a, err := netip.ParseAddr(args[at])
	if err != nil {
		return a, fmt.Errorf("%q is no address of a client; write one such as 192.0.2.1", args[at])
	}
	return a.Unmap(), nil
}

// nameArg parses a domain name, typeArg a type.
func nameArg(text string) (wire.Name, error) { return domain(text) }

func typeArg(text string) (wire.Type, error) {
	if t, ok := wire.ParseType(strings.ToUpper(text)); ok {
		return t, nil
	}
	return 0, fmt.Errorf("%q is no type; write one such as A, MX or TYPE65", text)
}

var errNoLifetime = errors.New("write the lifetime as 90s, 30m, 12h or 168h; a week is the most")

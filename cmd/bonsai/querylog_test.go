package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"bonsai/resolver/serve"
	"bonsai/wire"
)

// logLines returns the lines of a query log of JSON without their times, of which took_ms is only told
// whether it is there.
func logLines(t *testing.T, file string) (lines []map[string]any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(content)); s.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"])); err != nil || time.Since(at) > time.Hour {
			t.Errorf("%s: time %v", s.Text(), err)
		}
		delete(line, "time")
		if ms, ok := line["took_ms"].(float64); ok {
			line["took_ms"] = ms > 0
		}
		lines = append(lines, line)
	}
	return lines
}

// One line a query, over the running daemon: hits and misses, both transports, errors, and what got no
// response; a reload opens the file anew, and what waits is written before bonsai ends.
func TestQueryLog(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "queries")
	runOnce(t, func(c *Config) {
		c.QueryLog = queryLogSettings{To: file, Clients: clientWhole,
			Fields: []string{"client", "transport", "name", "type", "flags", "rcode", "answers", "path", "took"}}
	}, func(d *daemon) {
		query(t, d.addr(), "udp", "WWW.ecdsa.lab.", dns.TypeA, nil)
		query(t, d.addr(), "tcp", "www.ecdsa.lab.", dns.TypeA, nil)
		query(t, d.addr(), "udp", "nothing.unsigned.lab.", dns.TypeTXT, func(m *dns.Msg) { m.RecursionDesired = false })
		query(t, d.addr(), "udp", "www.unsigned.lab.", dns.TypeA, func(m *dns.Msg) { m.IsEdns0().SetVersion(1) })
		d.again(func(c *Config) { c.QueryLog.Fields = []string{"name"} })
		if err := os.Rename(file, file+".1"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.reload(); err != nil {
			t.Fatal(err)
		}
		query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil)
	})
	line := func(transport, name, qtype, flags, rcode string, answers float64, path string) map[string]any {
		return map[string]any{"client": "127.0.0.1", "transport": transport, "name": name, "type": qtype, "flags": flags,
			"rcode": rcode, "answers": answers, "path": path, "took_ms": path == "miss"}
	}
	want := []map[string]any{
		line("udp", "www.ecdsa.lab.", "A", "rd ad edns", "NOERROR", 2, "miss"),
		line("tcp", "www.ecdsa.lab.", "A", "rd ad edns", "NOERROR", 2, "hit"),
		line("udp", "nothing.unsigned.lab.", "TXT", "ad edns", "REFUSED", 0, "hit"),
		line("udp", "www.unsigned.lab.", "A", "rd ad edns", "BADVERS", 0, "hit"),
	}
	if got := logLines(t, file+".1"); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	if got := logLines(t, file); !reflect.DeepEqual(got, []map[string]any{{"name": "www.ecdsa.lab."}}) {
		t.Errorf("after the reload: %v", got)
	}
}

// A file that can't be opened is an error at start, and at a reload one that changes nothing.
func TestQueryLogFile(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone", "queries")
	c := defaults()
	if err := setQueryLog(c, []string{gone}, ""); err == nil || !strings.Contains(err.Error(), "make the folder") {
		t.Errorf("%v", err)
	}
	d := start(t, nil)
	d.again(func(c *Config) { c.QueryLog.To, c.MaxTTL = gone, 77 })
	if _, _, err := d.reload(); err == nil || !strings.Contains(err.Error(), "query-log: ") {
		t.Errorf("%v", err)
	}
	if d.reloader.config.MaxTTL == 77 {
		t.Error("a reload that failed changed something")
	}
	if got := query(t, d.addr(), "udp", "www.ecdsa.lab.", dns.TypeA, nil); got.Rcode != dns.RcodeSuccess {
		t.Errorf("%v", got)
	}
}

func TestQueryLogClients(t *testing.T) {
	l, other := newQueryLog(nil, slog.Default()), newQueryLog(nil, slog.Default())
	v4, v6 := netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("2001:db8:1:2::5")
	for _, row := range []struct {
		form clientForm
		addr netip.Addr
		want string
	}{{clientWhole, v4, "192.0.2.77"}, {clientWhole, v6, "2001:db8:1:2::5"}, {clientTruncated, v4, "192.0.2.0/24"}, {clientTruncated, v6, "2001:db8:1::/48"}} {
		if got := l.clientName(row.form, row.addr); got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
	}
	a := l.clientName(clientKeyed, v4)
	if len(a) != 16 || a != l.clientName(clientKeyed, v4) || a == l.clientName(clientKeyed, v4.Next()) || a == other.clientName(clientKeyed, v4) {
		t.Errorf("keyed: %s", a)
	}
}

func TestQueryLogText(t *testing.T) {
	l := newQueryLog(nil, slog.New(slog.DiscardHandler))
	var out bytes.Buffer
	k := &querySink{settings: queryLogSettings{Text: true, Fields: defaults().QueryLog.Fields}, file: keptOpen{&out}}
	k.prepare(&out)
	m := wire.AppendQuery(nil, 7, wire.FlagRD, []byte(wire.MustName(`a\ "b.example.`)), wire.TypeMX, 0, nil)
	r := queryRecord{Client: netip.MustParseAddrPort("192.0.2.1:5"), path: "dropped", at: time.Unix(1_700_000_000, 0).UTC()}
	r.length = copy(r.query[:], m)
	l.line(k, &r)
	l.flush(k)
	want := `time=2023-11-14T22:13:20.000Z client=192.0.2.0/24 transport=udp name="a\\032\\\"b.example." type=MX path=dropped took_ms=0` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	r.length = 3
	out.Reset()
	l.line(k, &r)
	l.flush(k)
	if want := "time=2023-11-14T22:13:20.000Z client=192.0.2.0/24 transport=udp path=dropped took_ms=0\n"; out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
}

// answering is a handler that answers all with a hit.
type answering struct{ serve.Handler }

func (answering) NewWorker() serve.Worker { return answering{} }

func (answering) Hit(batch []serve.Exchange, results []serve.Result) {
	for i := range batch {
		batch[i].Response, results[i] = append(batch[i].Response[:0], batch[i].Query...), serve.Answered
	}
}

// blocked is a file that takes nothing until it is closed.
type blocked struct{ open chan struct{} }

func (b blocked) Write(p []byte) (int, error) { <-b.open; return len(p), nil }
func (blocked) Close() error                  { return nil }

func logged(t testing.TB, file io.WriteCloser) (*queryLog, serve.Worker, []serve.Exchange) {
	t.Helper()
	l := newQueryLog(answering{}, slog.New(slog.DiscardHandler))
	if file != nil {
		k := &querySink{file: file, settings: defaults().QueryLog}
		k.prepare(file)
		l.use(k)
	}
	m := wire.AppendQuery(nil, 7, wire.FlagRD, []byte(wire.MustName("www.example.")), wire.TypeA, 0, nil)
	return l, l.NewWorker(), []serve.Exchange{{Query: m, Client: netip.MustParseAddrPort("192.0.2.1:5"), Response: make([]byte, 0, 512)}}
}

// A log that does not follow holds up nothing: what finds no place is counted, and the rest is written
// once it can be.
func TestQueryLogNeverWaits(t *testing.T) {
	file := blocked{make(chan struct{})}
	l, w, batch := logged(t, file)
	const queries = 3 * queryLogQueue
	for range queries {
		w.Hit(batch, make([]serve.Result, 1))
	}
	if lost := l.dropped.Load(); lost == 0 || lost > queries-queryLogQueue {
		t.Errorf("%d of %d lost with room for %d", lost, queries, queryLogQueue)
	}
	close(file.open)
	l.close()
	if n := l.dropped.Load() + l.written.Load(); n != queries {
		t.Errorf("%d lines counted of %d", n, queries)
	}
}

type failing struct{ keptOpen }

// A log that can't be written is told of once.
func TestQueryLogFails(t *testing.T) {
	var told bytes.Buffer
	l, w, batch := logged(t, failing{keptOpen{writerFunc(func([]byte) (int, error) { return 0, errors.New("no space left") })}})
	l.log = slog.New(slog.NewTextHandler(&told, nil))
	for range 2000 {
		w.Hit(batch, make([]serve.Result, 1))
	}
	l.close()
	if strings.Count(told.String(), "no space left") != 1 {
		t.Errorf("told: %s", told.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Neither with the log nor without it does a hit allocate.
func TestQueryLogAllocates(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	results := make([]serve.Result, 1)
	file := blocked{make(chan struct{})}
	for name, file := range map[string]io.WriteCloser{"off": nil, "on": file} {
		l, w, batch := logged(t, file)
		if n := testing.AllocsPerRun(1000, func() { w.Hit(batch, results) }); n != 0 {
			t.Errorf("%s: %v allocations a hit", name, n)
		}
		if b, ok := file.(blocked); ok {
			close(b.open)
		}
		l.close()
	}
}

package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/resolver/serve"
	"bonsai/wire"
)

// clientForm is how a query log names clients.
type clientForm uint8

const (
	clientTruncated clientForm = iota // as their network: an IPv4 /24, an IPv6 /48
	clientWhole
	clientKeyed // as a hash under a key of this process
)

// queryLogSettings is what the configuration says of the query log.
type queryLogSettings struct {
	To      string // a file, or standardError; "": there is none
	Text    bool   // as key=value and not as JSON
	Clients clientForm
	Fields  []string // by their names in queryLogFields
}

// standardError is what stands in place of a file.
const standardError = "stderr"

// queryLogFields is what a line may have besides its time, in the order that they stand in.
var queryLogFields = []struct {
	name   string
	append func(attrs []slog.Attr, l *queryLine) []slog.Attr
}{
	{"client", func(a []slog.Attr, l *queryLine) []slog.Attr { return append(a, slog.String("client", l.client)) }},
	{"port", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return append(a, slog.Int("port", int(l.Client.Port())))
	}},
	{"transport", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return append(a, slog.String("transport", l.Transport.String()))
	}},
	{"name", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return l.ifAsked(a, func() slog.Attr { return slog.String("name", wire.BorrowName(l.parsed.Name()).String()) })
	}},
	{"type", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return l.ifAsked(a, func() slog.Attr { return slog.String("type", l.parsed.QType.String()) })
	}},
	{"flags", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return l.ifAsked(a, func() slog.Attr { return slog.String("flags", l.flags()) })
	}},
	{"rcode", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return l.ifAnswered(a, func() slog.Attr { return slog.String("rcode", l.rcode.String()) })
	}},
	{"answers", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return l.ifAnswered(a, func() slog.Attr { return slog.Int("answers", int(binary.BigEndian.Uint16(l.head[6:]))) })
	}},
	{"size", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return l.ifAnswered(a, func() slog.Attr { return slog.Int("size", l.size) })
	}},
	{"path", func(a []slog.Attr, l *queryLine) []slog.Attr { return append(a, slog.String("path", l.path)) }},
	{"took", func(a []slog.Attr, l *queryLine) []slog.Attr {
		return append(a, slog.Float64("took_ms", milliseconds(l.took)))
	}},
}

const (
	queryLogQueue = 4096 // lines that may wait
	loggedQuery   = 512  // bytes of a query that are looked at: a question, and mostly all
)

// queryRecord is a query on its way to the log. It holds no pointer into a message.
type queryRecord struct {
	Client    netip.AddrPort
	Transport serve.Transport
	at        time.Time
	took      time.Duration
	path      string // hit, miss, shed or dropped
	size      int    // of the response, 0 where there is none
	head      [wire.HeaderSize]byte
	rcode     wire.RCODE
	length    int
	query     [loggedQuery]byte
}

// queryLine is a record with what is read out of it.
type queryLine struct {
	*queryRecord
	parsed wire.Query
	asked  bool // there is a question
	client string
}

func (l *queryLine) ifAsked(attrs []slog.Attr, attr func() slog.Attr) []slog.Attr {
	if l.asked {
		attrs = append(attrs, attr())
	}
	return attrs
}

func (l *queryLine) ifAnswered(attrs []slog.Attr, attr func() slog.Attr) []slog.Attr {
	if l.size > 0 {
		attrs = append(attrs, attr())
	}
	return attrs
}

// flags names what the client set.
func (l *queryLine) flags() string {
	var set []string
	for _, f := range []struct {
		name string
		on   bool
	}{{"rd", l.parsed.Flags&wire.FlagRD != 0}, {"ad", l.parsed.Flags&wire.FlagAD != 0}, {"cd", l.parsed.Flags&wire.FlagCD != 0},
		{"edns", l.parsed.EDNS.Present}, {"do", l.parsed.EDNS.DO}} {
		if f.on {
			set = append(set, f.name)
		}
	}
	return strings.Join(set, " ")
}

// queryLog is the front end's handler: it hands on all that comes to another, and tells a log of it.
// A query never waits for the log: where that can't follow, lines are lost and counted.
type queryLog struct {
	next serve.Handler
	log  *slog.Logger // of what goes wrong
	key  [sha256.Size]byte

	queue            atomic.Pointer[chan queryRecord] // nil: nothing is logged
	written, dropped atomic.Uint64

	mu     sync.Mutex
	lines  chan queryRecord
	change chan *querySink
	ended  chan struct{} // closed when the writer is done; nil where it never began
}

func newQueryLog(next serve.Handler, log *slog.Logger) *queryLog {
	l := &queryLog{next: next, log: log}
	rand.Read(l.key[:])
	return l
}

// NewWorker implements serve.Handler.
func (l *queryLog) NewWorker() serve.Worker { return &loggedWorker{l, l.next.NewWorker()} }

// Miss implements serve.Handler.
func (l *queryLog) Miss(ctx context.Context, x *serve.Exchange) {
	queue := l.queue.Load()
	if queue == nil {
		l.next.Miss(ctx, x)
		return
	}
	begin := time.Now()
	l.next.Miss(ctx, x)
	l.add(*queue, x, "miss", begin, time.Since(begin))
}

// Shed implements serve.Handler.
func (l *queryLog) Shed(x *serve.Exchange) {
	l.next.Shed(x)
	if queue := l.queue.Load(); queue != nil {
		l.add(*queue, x, "shed", time.Now(), 0)
	}
}

type loggedWorker struct {
	log  *queryLog
	next serve.Worker
}

// Hit implements serve.Worker.
func (w *loggedWorker) Hit(batch []serve.Exchange, results []serve.Result) {
	w.next.Hit(batch, results)
	queue := w.log.queue.Load()
	if queue == nil {
		return
	}
	now := time.Now()
	for i := range batch {
		switch results[i] {
		case serve.Answered:
			w.log.add(*queue, &batch[i], "hit", now, 0)
		case serve.Dropped:
			batch[i].Response = batch[i].Response[:0]
			w.log.add(*queue, &batch[i], "dropped", now, 0)
		}
	}
}

// add queues a line, or counts it as lost.
func (l *queryLog) add(queue chan queryRecord, x *serve.Exchange, path string, at time.Time, took time.Duration) {
	r := queryRecord{Client: x.Client, Transport: x.Transport, at: at, took: took, path: path}
	r.length = copy(r.query[:], x.Query)
	if len(x.Response) >= wire.HeaderSize {
		r.size = len(x.Response)
		copy(r.head[:], x.Response)
		r.rcode = responseRCODE(x.Response)
	}
	select {
	case queue <- r:
	default:
		l.dropped.Add(1)
	}
}

// responseRCODE returns the whole RCODE of a response. RFC 6891 §6.1.3: its upper bits are in the OPT
// record, which stands behind the question where they are not 0, for then there is no answer.
func responseRCODE(m []byte) wire.RCODE {
	code := wire.RCODE(m[3] & 0x0F)
	at := wire.HeaderSize
	if binary.BigEndian.Uint16(m[4:]) == 1 {
		at += wire.NameLen(m[at:]) + 4
	}
	if binary.BigEndian.Uint32(m[6:]) == 0 && len(m) >= at+6 && m[at] == 0 && wire.Type(binary.BigEndian.Uint16(m[at+1:])) == wire.TypeOPT {
		code |= wire.RCODE(m[at+5]) << 4
	}
	return code
}

// querySink is where lines go, and how.
type querySink struct {
	settings queryLogSettings
	file     io.WriteCloser // nil for none
	out      *bufio.Writer
	handler  slog.Handler
	wants    []func([]slog.Attr, *queryLine) []slog.Attr
	failed   bool
}

// openQuerySink opens the file of the settings; without one it returns a sink that takes nothing.
func openQuerySink(s queryLogSettings) (*querySink, error) {
	k := &querySink{settings: s}
	switch s.To {
	case "":
		return k, nil
	case standardError:
		k.file = keptOpen{os.Stderr}
	default:
		f, err := os.OpenFile(s.To, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
		if err != nil {
			return nil, err
		}
		k.file = f
	}
	k.prepare(k.file)
	return k, nil
}

// close closes the file.
func (k *querySink) close() {
	if k.file != nil {
		_ = k.file.Close()
	}
}

// prepare makes the sink write to w.
func (k *querySink) prepare(w io.Writer) {
	k.out = bufio.NewWriterSize(w, 64<<10)
	options := &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}}
	k.handler = slog.NewJSONHandler(k.out, options)
	if k.settings.Text {
		k.handler = slog.NewTextHandler(k.out, options)
	}
	wanted := make(map[string]bool)
	for _, name := range k.settings.Fields {
		wanted[name] = true
	}
	for _, f := range queryLogFields {
		if wanted[f.name] {
			k.wants = append(k.wants, f.append)
		}
	}
}

// keptOpen is a file that others write to as well.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// use lets lines go to a sink from now on. What was queued before goes to the sink before.
func (l *queryLog) use(k *querySink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		if k.file == nil {
			return
		}
		l.lines, l.change, l.ended = make(chan queryRecord, queryLogQueue), make(chan *querySink), make(chan struct{})
		go l.write(l.lines, l.change, l.ended)
	}
	if k.file == nil {
		l.queue.Store(nil)
	}
	l.change <- k
	if k.file != nil {
		l.queue.Store(&l.lines)
	}
}

// close writes what is queued and ends.
func (l *queryLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Store(nil)
	if l.ended != nil {
		close(l.change)
		<-l.ended
		l.ended = nil
	}
}

// write is the goroutine that writes lines, until change is closed.
func (l *queryLog) write(lines chan queryRecord, change chan *querySink, ended chan struct{}) {
	defer close(ended)
	k := &querySink{}
	for {
		select {
		case r := <-lines:
			l.line(k, &r)
			if len(lines) == 0 {
				l.flush(k)
			}
		case next, ok := <-change:
			for range len(lines) {
				r := <-lines
				l.line(k, &r)
			}
			l.flush(k)
			k.close()
			if !ok {
				return
			}
			k = next
		}
	}
}

// line writes one line.
func (l *queryLog) line(k *querySink, r *queryRecord) {
	if k.file == nil {
		return
	}
	q := queryLine{queryRecord: r, client: l.clientName(k.settings.Clients, r.Client.Addr())}
	q.asked = q.parsed.Parse(r.query[:r.length]) != wire.QueryDrop && q.parsed.HasQuestion()
	record := slog.NewRecord(r.at, slog.LevelInfo, "", 0)
	var attrs []slog.Attr
	for _, appendTo := range k.wants {
		attrs = appendTo(attrs, &q)
	}
	record.AddAttrs(attrs...)
	l.wrote(k, k.handler.Handle(context.Background(), record))
}

func (l *queryLog) flush(k *querySink) {
	if k.out != nil && k.out.Buffered() > 0 {
		l.failedOn(k, k.out.Flush())
	}
}

// wrote counts a line.
func (l *queryLog) wrote(k *querySink, err error) {
	if err != nil {
		l.dropped.Add(1)
	} else {
		l.written.Add(1)
	}
	l.failedOn(k, err)
}

// failedOn tells once of a log that can't be written, and tries again with the next line.
func (l *queryLog) failedOn(k *querySink, err error) {
	if err == nil {
		return
	}
	if !k.failed {
		k.failed = true
		l.log.Error("query log not written; lines are lost", "to", k.settings.To, "reason", err)
	}
	k.out.Reset(k.file)
}

// clientName returns a client's address in a form.
func (l *queryLog) clientName(form clientForm, a netip.Addr) string {
	switch form {
	case clientWhole:
		return a.String()
	case clientKeyed:
		mac := hmac.New(sha256.New, l.key[:])
		mac.Write(a.AsSlice())
		return hex.EncodeToString(mac.Sum(nil)[:8])
	}
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	return p.String()
}

// setQueryLog takes the name of a file that need not be there yet, or standardError.
func setQueryLog(c *Config, values []string, dir string) (err error) {
	name := values[len(values)-1]
	switch name {
	case "":
		return errors.New("write a file name, or stderr")
	case standardError:
		c.QueryLog.To = name
		return nil
	}
	c.QueryLog.To, err = c.writes(dir, name)
	return err
}

// queryLogField parses the name of a field.
func queryLogField(name string) (string, error) {
	known := make(map[string]string)
	for _, f := range queryLogFields {
		known[f.name] = f.name
	}
	return word(name, known)
}

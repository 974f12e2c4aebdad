package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Block lists: what a list of millions costs a running bonsai, and what the same costs unbound, which has it
// as local zones. Each runs in a process of its own, with a stub zone at a server of ours and no way out.

// blocking is the report's setting.
type blocking struct {
	dir     string // of all files
	names   int    // in the list
	reloads int
	rate    int           // queries a second
	calm    time.Duration // under queries before the first reload
	settle  time.Duration // for memory to be given back
	unbound string        // the program; "": it is left out
	origin  netip.AddrPort
}

// resolverKind is a resolver under measurement.
type resolverKind struct {
	name, how string
	program   string
	args      []string
	configure func(b *blocking, at netip.AddrPort, list bool) error
	list      func(w *bufio.Writer, name string) // writes one name of the list
}

// blocked are the figures of one resolver.
type blocked struct {
	kind              resolverKind
	size              int64 // bytes of the list as a file
	emptyStart, start time.Duration
	empty, full, peak footprint // peak is that of reloads
	calm, reloading   outcome
	fastest, slowest  time.Duration // of reloads
}

const (
	zone      = "bench."
	questions = 1 << 12
)

func reportBlockLists(s *settings) error {
	dir, err := os.MkdirTemp("", "blocklists")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &blocking{dir: dir, names: s.listed, reloads: 10, rate: 1000, calm: 20 * time.Second, settle: 3 * time.Second}
	b.unbound, _ = exec.LookPath("unbound")
	results, err := b.measure()
	if err != nil {
		return err
	}
	return s.write("blocklists.md", header("Block lists")+b.table(results))
}

// measure measures bonsai, as it is built from here, and unbound.
func (b *blocking) measure() (results []*blocked, err error) {
	origin, err := serveOrigin()
	if err != nil {
		return nil, err
	}
	defer origin.Shutdown()
	b.origin = origin.PacketConn.LocalAddr().(*net.UDPAddr).AddrPort()
	bonsai := filepath.Join(b.dir, "bonsai")
	if out, err := exec.Command("go", "build", "-o", bonsai, "bonsai/cmd/bonsai").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	if err := os.WriteFile(b.file("hints"), []byte(". 3600000 NS a.root.\na.root. 3600000 A 127.0.0.1\n"), 0o644); err != nil {
		return nil, err
	}
	kinds := []resolverKind{{
		name: "bonsai", how: "block-lists", program: bonsai, args: []string{"--config", b.file("bonsai.conf")}, configure: (*blocking).configureBonsai,
		list: func(w *bufio.Writer, name string) { fmt.Fprintf(w, "0.0.0.0 %s\n", name) },
	}}
	if b.unbound != "" {
		kinds = append(kinds, resolverKind{
			name: "unbound", how: "local-zone, always_nxdomain", program: b.unbound, args: []string{"-d", "-c", b.file("unbound.conf")}, configure: (*blocking).configureUnbound,
			list: func(w *bufio.Writer, name string) { fmt.Fprintf(w, "local-zone: \"%s.\" always_nxdomain\n", name) },
		})
	}
	for _, k := range kinds {
		r, err := b.measureOne(k)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func (b *blocking) file(name string) string { return filepath.Join(b.dir, name) }

// serveOrigin starts the server of the stub zone: every name has an address.
func serveOrigin() (*dns.Server, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	begun := make(chan struct{})
	s := &dns.Server{PacketConn: conn, NotifyStartedFunc: func() { close(begun) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 86400}, A: net.IPv4(192, 0, 2, 1)}}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	<-begun
	return s, nil
}

func (b *blocking) configureBonsai(at netip.AddrPort, list bool) error {
	text := fmt.Sprintf("listen: %s\ndnssec: off\nroot-hints: hints\nquery-localhost: true\ncache-size: 16MiB\nrotate: false\n"+
		"stub-zones: [{name: %s, addrs: \"%s@%d\"}]\n", at, strings.TrimSuffix(zone, "."), b.origin.Addr(), b.origin.Port())
	if list {
		text += "block-lists: [bonsai.list, bonsai.marker]\n"
	}
	return os.WriteFile(b.file("bonsai.conf"), []byte(text), 0o644)
}

func (b *blocking) configureUnbound(at netip.AddrPort, list bool) error {
	text := fmt.Sprintf("server:\n interface: %s@%d\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n directory: %q\n module-config: iterator\n use-syslog: no\n"+
		" do-not-query-localhost: no\n root-hints: hints\n msg-cache-size: 8m\n rrset-cache-size: 8m\n", at.Addr(), at.Port(), b.dir)
	if list {
		text += fmt.Sprintf(" include: %s\n include: %s\n", b.file("unbound.list"), b.file("unbound.marker"))
	}
	text += fmt.Sprintf("remote-control:\n control-enable: no\nstub-zone:\n name: %q\n stub-addr: %s@%d\n", zone, b.origin.Addr(), b.origin.Port())
	return os.WriteFile(b.file("unbound.conf"), []byte(text), 0o644)
}

// listedNames yields the list: of each place a name, one below it, and one below another that is not listed. Their
// lengths are those of trackers' names. They are the same each time.
func (b *blocking) listedNames(yield func(i int, name string) bool) {
	r := rand.New(rand.NewPCG(7, 53))
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	tlds := [...]string{"com", "net", "org", "info", "xyz", "top", "online", "co.uk"}
	word := func(least, more int) string {
		w := make([]byte, least+r.IntN(more))
		for i := range w {
			w[i] = letters[r.IntN(len(letters))]
		}
		return string(w)
	}
	place := ""
	for i := range b.names {
		name := ""
		switch i % 3 {
		case 0:
			place = fmt.Sprintf("%s%x.%s", word(3, 10), i, tlds[r.IntN(len(tlds))])
			name = place
		case 1:
			name = word(2, 8) + "." + place
		default:
			name = word(1, 4) + "." + word(4, 10) + fmt.Sprintf("%x.%s", i, tlds[r.IntN(len(tlds))])
		}
		if !yield(i, name) {
			return
		}
	}
}

// marker is the one name of a second list in one round alone, which tells when what was read anew holds.
func marker(round int) string { return fmt.Sprintf("round%d.marker.example", round) }

// writeList writes the list, and returns its size in bytes.
func (b *blocking) writeList(k *resolverKind) (size int64, err error) {
	f, err := os.Create(b.file(k.name + ".list"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	for _, name := range b.listedNames {
		k.list(w, name)
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// mark writes the list of the marker alone, and puts it in place at once.
func (b *blocking) mark(k *resolverKind, round int) error {
	var line strings.Builder
	w := bufio.NewWriter(&line)
	k.list(w, marker(round))
	w.Flush()
	file := b.file(k.name + ".marker")
	if err := os.WriteFile(file+".new", []byte(line.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// queries are as many names that are cached as such that are listed, half of these by a name below.
func (b *blocking) queries() (list []asked) {
	step := max(1, b.names/(questions/2))
	for i, name := range b.listedNames {
		if i%step != 0 || len(list) == questions {
			continue
		}
		if len(list)%4 == 0 {
			name = "www." + name
		}
		list = append(list, newAsked(name+".", dns.RcodeNameError), newAsked(fmt.Sprintf("name%d.%s", i, zone), dns.RcodeSuccess))
	}
	for i := 0; len(list) < questions; i++ { // of a short list
		list = append(list, list[i])
	}
	return list
}

func (b *blocking) measureOne(k resolverKind) (*blocked, error) {
	r := &blocked{kind: k}
	at, err := freeAddr()
	if err != nil {
		return nil, err
	}
	if r.size, err = b.writeList(&k); err != nil {
		return nil, err
	}
	if err := b.mark(&k, 0); err != nil {
		return nil, err
	}
	progress("%s: without a list", k.name)
	s, err := b.start(&k, at, false, &r.emptyStart)
	if err != nil {
		return nil, err
	}
	r.empty, err = s.settledMemory(b.settle)
	s.stop()
	if err != nil {
		return nil, err
	}
	progress("%s: with %d names", k.name, b.names)
	if s, err = b.start(&k, at, true, &r.start); err != nil {
		return nil, err
	}
	defer s.stop()
	if r.full, err = s.settledMemory(b.settle); err != nil {
		return nil, err
	}
	list := b.queries()
	for _, q := range list { // what is to be cached is
		if err := s.once(q); err != nil {
			return nil, err
		}
	}
	l, err := s.begin(list, b.rate)
	if err != nil {
		return nil, err
	}
	time.Sleep(b.calm)
	r.calm = l.end()
	return r, b.reloadUnderLoad(r, s, list)
}

// start starts a resolver with the list or without, and waits for its first right answer.
func (b *blocking) start(k *resolverKind, at netip.AddrPort, list bool, took *time.Duration) (s *server, err error) {
	if err := k.configure(b, at, list); err != nil {
		return nil, err
	}
	probe, rcode := "probe."+zone, dns.RcodeSuccess
	if list {
		probe, rcode = marker(0)+".", dns.RcodeNameError
	}
	s, *took, err = serveAt(at, probe, rcode, k.program, k.args...)
	return s, err
}

// reloadUnderLoad has the list read anew, each time with another name in it.
func (b *blocking) reloadUnderLoad(r *blocked, s *server, list []asked) error {
	if err := s.clearPeak(); err != nil {
		return err
	}
	l, err := s.begin(list, b.rate)
	if err != nil {
		return err
	}
	for round := 1; round <= b.reloads; round++ {
		var took time.Duration
		if took, err = b.readAnew(&r.kind, s, round); err != nil {
			break
		}
		progress("%s: read anew in %.1f s", r.kind.name, took.Seconds())
		if round == 1 || took < r.fastest {
			r.fastest = took
		}
		r.slowest = max(r.slowest, took)
	}
	r.reloading = l.end()
	if err == nil {
		r.peak, err = s.memory()
	}
	return err
}

// readAnew has the lists read anew and waits until they hold.
func (b *blocking) readAnew(k *resolverKind, s *server, round int) (time.Duration, error) {
	if err := b.mark(k, round); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := s.reload(); err != nil {
		return 0, err
	}
	return s.await(begin, marker(round)+".", dns.RcodeNameError)
}

const mib = 1 << 20

// table writes the figures side by side.
func (b *blocking) table(results []*blocked) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%d names, read anew %d times in a row under %d queries a second, half of them for listed names and half for cached\n"+
		"ones. Each resolver runs by itself, with its own number of threads as it comes.\n\n|", b.names, b.reloads, b.rate)
	for _, r := range results {
		fmt.Fprintf(&t, " | %s (%s)", r.kind.name, r.kind.how)
	}
	t.WriteString(" |\n|---" + strings.Repeat("|--:", len(results)) + "|\n")
	row := func(what string, of func(*blocked) string) {
		fmt.Fprintf(&t, "| %s", what)
		for _, r := range results {
			t.WriteString(" | " + of(r))
		}
		t.WriteString(" |\n")
	}
	size := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/mib) }
	row("the list as a file, MiB", func(r *blocked) string { return size(r.size) })
	row("resident without it, MiB", func(r *blocked) string { return size(r.empty.resident) })
	row("resident with it, MiB", func(r *blocked) string { return size(r.full.resident) })
	row("resident bytes a name", func(r *blocked) string {
		return fmt.Sprintf("%.1f", float64(r.full.resident-r.empty.resident)/float64(b.names))
	})
	row("most resident at the start, MiB", func(r *blocked) string { return size(r.full.peak) })
	row("most resident at a reload, MiB", func(r *blocked) string { return size(r.peak.peak) })
	row("start to the first answer without it, s", func(r *blocked) string { return fmt.Sprintf("%.2f", r.emptyStart.Seconds()) })
	row("the same with it, s", func(r *blocked) string { return fmt.Sprintf("%.2f", r.start.Seconds()) })
	row("until a reload holds, s", func(r *blocked) string {
		return fmt.Sprintf("%.2f to %.2f", r.fastest.Seconds(), r.slowest.Seconds())
	})
	phase := func(when string, of func(*blocked) *outcome) {
		row("queries "+when+"; lost; answered wrong", func(r *blocked) string { o := of(r); return fmt.Sprintf("%d; %d; %d", o.asked, o.lost, o.wrong) })
		row("response time "+when+", p50; p99; longest, ms", func(r *blocked) string {
			o := of(r)
			ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
			return fmt.Sprintf("%.2f; %.2f; %.1f", ms(o.p50), ms(o.p99), ms(o.longest))
		})
	}
	phase("before", func(r *blocked) *outcome { return &r.calm })
	phase("during reloads", func(r *blocked) *outcome { return &r.reloading })
	return t.String() + "\n"
}

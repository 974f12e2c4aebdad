package serve

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
)

var (
	reflectAddrs = flag.String("reflect", "", "serve a reflector on this comma-separated list of addresses, or default, until interrupted, in place of tests")
	portableFlag = flag.Bool("portable", false, "with -reflect: one datagram a call")
	workersFlag  = flag.Int("workers", 1, "with -reflect: UDP sockets for each address")
	missingFlag  = flag.Bool("missing", false, "with -reflect: every query is a miss")
	profileFlag  = flag.String("profile", "", "with -reflect: write a CPU profile here")
)

// reflector answers a query with itself and one A record: the least that a handler can do.
type reflector struct{}

var reflectedRecord = [16]byte{0xc0, 12, 0, 1, 0, 1, 0, 1, 0x51, 0x80, 0, 4, 198, 19, 0, 1}

func (reflector) NewWorker() Worker { return reflector{} }

func (reflector) Hit(batch []Exchange, results []Result) {
	for i := range batch {
		if batch[i].Response = reflect(batch[i].Response, batch[i].Query); len(batch[i].Response) > 0 {
			results[i] = Answered
		} else {
			results[i] = Dropped
		}
	}
}

func (reflector) Miss(_ context.Context, x *Exchange) { x.Response = reflect(x.Response, x.Query) }
func (reflector) Shed(x *Exchange)                    { x.Response = reflect(x.Response, x.Query) }

func reflect(dst, query []byte) []byte {
	if len(query) < 17 || query[2]&0x80 != 0 {
		return dst
	}
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	if end += 5; end > len(query) {
		return dst
	}
	start := len(dst)
	dst = append(dst, query[:end]...)
	h := dst[start : start+12]
	h[2] |= 0x80
	h[3] = 0x80
	clear(h[4:])
	h[5], h[7] = 1, 1
	return append(dst, reflectedRecord[:]...)
}

// TestMain turns the test binary into a reflector on request, to be measured from outside:
//
//	go test -c ./resolver/serve && ./serve.test -reflect 127.0.0.1:5300
func TestMain(m *testing.M) {
	flag.Parse()
	if *reflectAddrs == "" {
		os.Exit(m.Run())
	}
	if err := serveReflector(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveReflector() error {
	c := Config{Portable: *portableFlag, Workers: *workersFlag}
	for text := range strings.SplitSeq(*reflectAddrs, ",") {
		if text == "default" {
			break
		}
		a, err := netip.ParseAddrPort(text)
		if err != nil {
			return err
		}
		c.Listen = append(c.Listen, a)
	}
	var h Handler = reflector{}
	if *missingFlag {
		h = missing{}
	}
	s, err := New(c, h)
	if err != nil {
		return err
	}
	if *profileFlag != "" {
		f, err := os.Create(*profileFlag)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	fmt.Println("listening on", s.Addrs(), "without", s.Absent())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = s.Serve(ctx)
	st := s.Stats()
	fmt.Printf("udp %+v tcp %+v batches %d drops %d sockets %+v hit p50 %v p99.9 %v\n", st.UDP, st.TCP,
		st.Batches, st.KernelDrops, st.Sockets, st.HitTime.Quantile(0.5), st.HitTime.Quantile(0.999))
	return err
}

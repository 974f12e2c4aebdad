package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// relay is an Answerer that sends each query as it is to one server and hands its answer back: what
// the scripted Internet says reaches the client untouched.
type relay struct {
	network *Internet
	server  netip.AddrPort
	timeout time.Duration
	tries   int
}

func startRelay(set *Settings, network *Internet, _ func() uint32) (Answerer, error) {
	return &relay{network, netip.AddrPortFrom(set.HintAddrs[0], 53), 3 * time.Second, 3}, nil
}

func (r *relay) Close() {}

func (r *relay) Answer(ctx context.Context, q *Query) []byte {
	for range r.tries {
		b, err := r.ask(ctx, q)
		if err == nil {
			return b
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return nil
}

func (r *relay) ask(ctx context.Context, q *Query) ([]byte, error) {
	dial := r.network.DialUDP
	if q.TCP {
		dial = r.network.DialTCP
	}
	c, err := dial(ctx, netip.AddrPort{}, r.server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(r.timeout))
	b := make([]byte, 65535)
	if !q.TCP {
		c.Write(q.Message)
		n, err := c.Read(b)
		return b[:n], err
	}
	c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q.Message))), q.Message...))
	if _, err := io.ReadFull(c, b[:2]); err != nil {
		return nil, err
	}
	n, err := io.ReadFull(c, b[:binary.BigEndian.Uint16(b)])
	return b[:n], err
}

// play plays a scenario with a relay in fake time.
func play(t *testing.T, text string, o Options) (r *Result) {
	t.Helper()
	s := parse(t, text)
	if o.Start == nil {
		o.Start = startRelay
	}
	o.Bubble = true
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = Play(s, &o); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

const deckardHead = "stub-addr: 192.0.2.1\nval-override-timestamp: 1000000000\nCONFIG_END\nSCENARIO_BEGIN x\n"
const testboundHead = "stub-zone:\n name: \".\"\n stub-addr: 192.0.2.1\nCONFIG_END\nSCENARIO_BEGIN x\n"

// entry writes an ENTRY for a QNAME with one address record, if any.
func entry(lines, qname, address string) string {
	e := "ENTRY_BEGIN\n" + lines + "\nSECTION QUESTION\n" + qname + " IN A\n"
	if address != "" {
		e += "SECTION ANSWER\n" + qname + " 60 IN A " + address + "\n"
	}
	return e + "ENTRY_END\n"
}

func rangeOf(first, last int, entries ...string) string {
	return fmt.Sprintf("RANGE_BEGIN %d %d\nADDRESS 192.0.2.1\n%sRANGE_END\n", first, last, strings.Join(entries, ""))
}

const matchQ = "MATCH opcode qname qtype\nADJUST copy_id\nREPLY QR AA NOERROR"

func TestPlay(t *testing.T) {
	server := rangeOf(0, 100, entry(matchQ, "a.test.", "192.0.2.10"), entry(matchQ+"\nADJUST sleep=2", "slow.test.", "192.0.2.20"),
		entry("MATCH qname TCP\nADJUST copy_id\nREPLY QR", "tcp.test.", "192.0.2.30"),
		entry("MATCH qname\nADJUST do_not_answer\nREPLY QR", "silent.test.", ""),
		entry("MATCH qname\nREPLY QR", "forged.test.", "192.0.2.66"))
	ask := func(n int, qname string) string {
		return fmt.Sprintf("STEP %d QUERY\n", n) + entry("REPLY RD", qname, "")
	}
	check := func(n int, args, lines, qname, address string) string {
		return fmt.Sprintf("STEP %d CHECK_ANSWER %s\n", n, args) + entry(lines, qname, address)
	}
	const all = "MATCH all\nREPLY QR AA NOERROR"
	for _, c := range []struct {
		name, steps string
		fails       string // part of the failure's text; empty: it passes
	}{
		{"answer", ask(1, "a.test.") + check(2, "", all, "a.test.", "192.0.2.10"), ""},
		{"letter case", ask(1, "A.test.") + check(2, "", all, "a.TEST.", "192.0.2.10"), ""},
		{"another answer", ask(1, "a.test.") + check(2, "", all, "a.test.", "192.0.2.11"), "STEP 2 CHECK_ANSWER"},
		{"another flag", ask(1, "a.test.") + check(2, "", "MATCH flags\nREPLY QR", "a.test.", ""), "    - QR\n    + QR AA\n"},
		{"another RCODE", ask(1, "a.test.") + check(2, "", "MATCH rcode\nREPLY QR NXDOMAIN", "a.test.", ""), "- NXDOMAIN"},
		{"TTL", ask(1, "a.test.") + check(2, "", all+"\nMATCH ttl", "a.test.", "192.0.2.10"), ""},
		{"extended error", ask(1, "a.test.") + check(2, "", "MATCH ede=22\nREPLY QR", "a.test.", ""), "ede"},
		{"soon enough", ask(1, "slow.test.") + check(2, "within=6", all, "slow.test.", "192.0.2.20"), ""},
		{"too late", ask(1, "slow.test.") + check(2, "within=1.5", all, "slow.test.", "192.0.2.20"), "the answer took 2s, more than 1.5s"},
		{"TCP", "STEP 1 QUERY\n" + entry("MATCH TCP\nREPLY RD", "tcp.test.", "") + check(2, "", "MATCH answer TCP\nREPLY QR", "tcp.test.", "192.0.2.30"), ""},
		{"not by UDP", ask(1, "tcp.test.") + check(2, "", "MATCH rcode\nREPLY QR SERVFAIL", "tcp.test.", ""), ""},
		{"silence", ask(1, "silent.test.") + check(2, "", all, "silent.test.", ""), "the query was dropped"},
		{"forged ID", ask(1, "forged.test.") + check(2, "", all, "forged.test.", "192.0.2.66"), "another ID"},
		{"undefined", ask(1, "else.test.") + check(2, "", "MATCH rcode question\nREPLY QR SERVFAIL", "else.test.", ""), ""},
		{"count", ask(1, "a.test.") + "STEP 2 CHECK_UPSTREAM at_least=1 at_most=1\n" + entry("MATCH qname", "a.test.", "") +
			"STEP 3 CHECK_UPSTREAM at_most=0\n", ""},
		{"too many", ask(1, "silent.test.") + "STEP 2 CHECK_UPSTREAM ADDRESS 192.0.2.1 at_most=2\n", "3 such upstream queries, more than 2"},
		{"too few", ask(1, "a.test.") + "STEP 2 CHECK_UPSTREAM at_least=2\n", "1 such upstream queries, fewer than 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := play(t, deckardHead+server+c.steps, Options{EDE: true})
			switch {
			case c.fails == "" && r.Failure != nil:
				t.Errorf("failed:\n%v", r.Failure)
			case c.fails != "" && r.Failure == nil:
				t.Error("passed")
			case c.fails != "" && !strings.Contains(r.Failure.Error(), c.fails):
				t.Errorf("%q is not in\n%v", c.fails, r.Failure)
			}
		})
	}
}

func TestFailureTellsAll(t *testing.T) {
	r := play(t, deckardHead+rangeOf(0, 9, entry(matchQ, "a.test.", "192.0.2.10"))+
		"STEP 1 QUERY\n"+entry("REPLY RD DO", "a.test.", "")+
		"STEP 2 CHECK_ANSWER\n"+entry("MATCH all\nREPLY QR AA NOERROR", "a.test.", "192.0.2.11"), Options{})
	text := fmt.Sprint(r.Failure)
	for _, part := range []string{
		"test.rpl:23: STEP 2 CHECK_ANSWER: the answer differs",
		"    - a.test.\tIN\tA\t192.0.2.11\n    + a.test.\tIN\tA\t192.0.2.10\n",
		"expected (MATCH all):\n    ;; opcode: QUERY, status: NOERROR", "got:\n    ;; opcode: QUERY, status: NOERROR",
		"a.test.\t60\tIN\tA\t192.0.2.10", "upstream queries: 1\n",
		"step 1    192.0.2.1/udp  a.test. A +rd +edns=4096 +do  -> line 7: NOERROR AA an[A]",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// TestScriptedUpstream plays a scenario whose upstream queries are answered by steps.
func TestScriptedUpstream(t *testing.T) {
	steps := "STEP 1 QUERY\n" + entry("REPLY RD", "a.test.", "") +
		"STEP 2 QUERY\n" + entry("REPLY RD", "b.test.", "") +
		"STEP 3 CHECK_OUT_QUERY ADDRESS 192.0.2.1\n" + entry("MATCH qname qtype", "a.test.", "") +
		"STEP 4 NOTHING\n" +
		"STEP 5 TIMEOUT\n" +
		"STEP 6 REPLY\n" + entry(matchQ, "b.test.", "192.0.2.11") +
		"STEP 7 CHECK_ANSWER\n" + entry("MATCH all\nREPLY QR AA NOERROR", "b.test.", "192.0.2.11") +
		"STEP 8 CHECK_OUT_QUERY\n" + entry("MATCH qname\nADJUST copy_id\nREPLY QR", "a.test.", "192.0.2.12") +
		"STEP 9 CHECK_ANSWER\n" + entry("MATCH answer\nREPLY QR", "a.test.", "192.0.2.12")
	r := play(t, testboundHead+steps, Options{})
	if r.Failure != nil {
		t.Error(r.Failure)
	}
	wrong := strings.Replace(steps, "STEP 3 CHECK_OUT_QUERY ADDRESS 192.0.2.1", "STEP 3 CHECK_OUT_QUERY ADDRESS 192.0.2.2", 1)
	if r = play(t, testboundHead+wrong, Options{}); r.Failure == nil || r.Failure.Step.ID != 3 {
		t.Errorf("a query to another address: %v", r.Failure)
	}
}

// TestClock has TIME_PASSES move both clocks.
func TestClock(t *testing.T) {
	var seen []uint32
	var ticks []time.Duration
	text := deckardHead + rangeOf(0, 5, entry(matchQ, "a.test.", "192.0.2.10")) + rangeOf(6, 9, entry(matchQ, "a.test.", "192.0.2.99"))
	for i, address := range []string{"192.0.2.10", "192.0.2.99"} {
		text += fmt.Sprintf("STEP %d QUERY\n", 1+5*i) + entry("REPLY RD", "a.test.", "") +
			fmt.Sprintf("STEP %d CHECK_ANSWER\n", 2+5*i) + entry("MATCH answer\nREPLY QR", "a.test.", address) +
			fmt.Sprintf("STEP %d TIME_PASSES ELAPSE 86400\n", 3+5*i)
	}
	r := play(t, text, Options{Start: func(set *Settings, network *Internet, now func() uint32) (Answerer, error) {
		inner, err := startRelay(set, network, now)
		begin := time.Now()
		return answerFunc(func(ctx context.Context, q *Query) []byte {
			seen, ticks = append(seen, now()), append(ticks, time.Since(begin))
			return inner.Answer(ctx, q)
		}), err
	}})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if len(seen) != 2 || seen[0] != 1000000000 || seen[1] != 1000086400 {
		t.Errorf("clock read %d", seen)
	}
	if ticks[1]-ticks[0] != maxSleep+latency {
		t.Errorf("timers saw %s of a day pass", ticks[1]-ticks[0])
	}
}

type answerFunc func(context.Context, *Query) []byte

func (f answerFunc) Answer(ctx context.Context, q *Query) []byte { return f(ctx, q) }
func (f answerFunc) Close()                                      {}

func TestMandatoryAndWhole(t *testing.T) {
	ask := "STEP 1 QUERY\n" + entry("REPLY RD", "a.test.", "")
	for _, c := range []struct{ name, text, fails string }{
		{"asked for", rangeOf(0, 9, entry("MANDATORY\n"+matchQ, "a.test.", "")) + ask, ""},
		{"not asked for", rangeOf(0, 9, entry(matchQ, "a.test.", ""), entry("MANDATORY\n"+matchQ, "b.test.", "")) + ask, "mandatory"},
		{"undefined", rangeOf(0, 9) + ask, "no answer for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := play(t, deckardHead+c.text, Options{Whole: true})
			if (r.Failure == nil) != (c.fails == "") || r.Failure != nil && !strings.Contains(r.Failure.Why, c.fails) {
				t.Errorf("got %v", r.Failure)
			}
		})
	}
}

// TestInferred asks what a scenario leaves out.
func TestInferred(t *testing.T) {
	server := "RANGE_BEGIN 0 9\nADDRESS 192.0.2.1\n" +
		"ENTRY_BEGIN\nMATCH opcode qname qtype\nADJUST copy_id\nREPLY QR NOERROR\nSECTION QUESTION\nsub.test. IN A\n" +
		"SECTION AUTHORITY\nsub.test. IN NS ns.sub.test.\nsub.test. IN DS 1 8 2 00\nSECTION ADDITIONAL\nns.sub.test. IN A 192.0.2.2\nENTRY_END\n" +
		"ENTRY_BEGIN\nMATCH question\nADJUST copy_id\nREPLY QR AA NXDOMAIN\nSECTION QUESTION\nno.test. IN A\n" +
		"SECTION AUTHORITY\ntest. IN SOA m. r. 1 2 3 4 5\nENTRY_END\n" +
		"ENTRY_BEGIN\nMATCH opcode qname qtype\nADJUST copy_id\nREPLY QR AA\nSECTION QUESTION\nwww.test. IN A\n" +
		"SECTION ANSWER\nwww.test. IN CNAME x.test.\nx.test. IN A 192.0.2.9\nENTRY_END\n" +
		"RANGE_END\n"
	for _, c := range []struct{ question, want string }{
		{". IN NS", "INFERRED NOERROR AA an[NS] ad[A]"},
		{"root-server.test. IN A", "INFERRED NOERROR AA an[A]"},
		{"sub.test. IN NS", "INFERRED NOERROR ns[DS NS] ad[A]"},
		{"sub.test. IN DS", "INFERRED NOERROR AA an[DS]"},
		{"no.test. IN MX", "INFERRED NXDOMAIN AA ns[SOA]"},
		{"x.test. IN A", "INFERRED NOERROR AA an[A]"},
		{"x.test. IN AAAA", "UNDEFINED SERVFAIL"},
		{"no.test. CH MX", "UNDEFINED SERVFAIL"},
	} {
		t.Run(c.question, func(t *testing.T) {
			steps := "STEP 1 QUERY\nENTRY_BEGIN\nREPLY RD\nSECTION QUESTION\n" + c.question + "\nENTRY_END\n"
			if r := play(t, deckardHead+server+steps, Options{Infer: true}); len(r.Upstream) != 1 || r.Upstream[0].Note != c.want {
				t.Errorf("upstream %v, want %s", r.Upstream, c.want)
			}
			if r := play(t, deckardHead+server+steps, Options{}); r.Upstream[0].Note != "UNDEFINED SERVFAIL" {
				t.Errorf("without inference %v", r.Upstream)
			}
		})
	}
}

// TestNetwork looks at the sockets as package exchange sees them.
func TestNetwork(t *testing.T) {
	s := parse(t, deckardHead+rangeOf(0, 9, entry("MATCH qname\nADJUST copy_id close\nREPLY QR", "a.test.", "192.0.2.10"),
		entry("MATCH qname\nADJUST copy_id sleep=5\nREPLY QR", "slow.test.", ""))+
		"RANGE_BEGIN 0 9\nADDRESS 192.0.2.2\nREFUSE_TCP\nRANGE_END\nSTEP 1 NOTHING\n")
	set, err := s.Settings()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := NewInternet(s, set, false)
		ctx := context.Background()
		server := netip.MustParseAddrPort("192.0.2.1:53")
		_, err := n.DialUDP(ctx, netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.3:53"))
		if !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("an address without a server: %v", err)
		}
		_, err = n.DialTCP(ctx, netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.2:53"))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a server that refuses TCP: %v", err)
		}
		udp, err := n.DialUDP(ctx, netip.AddrPort{}, server)
		if err != nil {
			t.Fatal(err)
		}
		slow, _ := pack(parse(t, deckardHead+"STEP 1 QUERY\n"+entry("REPLY RD", "slow.test.", "")).Steps[0].Entry.template())
		udp.Write(slow)
		begin := time.Now()
		udp.SetReadDeadline(begin.Add(time.Second))
		b := make([]byte, 20)
		if _, err := udp.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("read before the answer: %v after %s", err, time.Since(begin))
		}
		go func() {
			time.Sleep(time.Second)
			udp.SetReadDeadline(time.Time{})
		}()
		udp.SetReadDeadline(begin.Add(time.Hour))
		if n, err := udp.Read(b); n != 20 || err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("read %d octets, %v, after %s: a datagram is cut to the buffer", n, err, time.Since(begin))
		}
		go func() {
			time.Sleep(time.Second)
			udp.Close()
		}()
		if _, err := udp.Read(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read of a closed socket: %v", err)
		}
		tcp, err := n.DialTCP(ctx, netip.AddrPort{}, server)
		if err != nil {
			t.Fatal(err)
		}
		defer tcp.Close()
		query := bytes.Replace(slow, []byte("\x04slow"), []byte("\x01a"), 1)
		frame := append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
		tcp.Write(frame)
		if all, err := io.ReadAll(tcp); err != nil || len(all) < 20 {
			t.Errorf("answer and end of connection: %x, %v", all, err)
		}
	})
}

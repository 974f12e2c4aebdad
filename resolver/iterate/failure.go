package iterate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"bonsai/resolver/exchange"
	"bonsai/wire"
)

// troubleKind says what sort of trouble a server gave.
type troubleKind uint8

const (
	troubleTimeout troubleKind = iota // silence
	troubleNetwork                    // out of reach
	troubleLame                       // it does not serve the zone
	troubleServer                     // it does, and cannot answer
	troubleKinds
)

// trouble is what went wrong at a cut.
type trouble struct {
	count   [troubleKinds]int
	last    netip.AddrPort
	err     error // of the last lookup of an address
	held    bool  // nobody was asked, for all failed lately
	limited bool  // a limit kept addresses from being looked up
	told    []string
}

// maxTold bounds the servers that a failure's text tells of.
const maxTold = 4

func (t *trouble) add(server netip.AddrPort, what string, kind troubleKind) {
	t.count[kind]++
	t.last = server
	addr := server.Addr().String()
	if server.Port() != 53 {
		addr = server.String()
	}
	t.tell(addr + " " + what)
}

func (t *trouble) lookupFailed(name wire.Name, err error) {
	t.err = err
	what := "cannot be looked up"
	if errors.Is(err, errNoName) || errors.Is(err, errNoAddress) {
		what = err.Error()
	}
	t.tell(name.String() + " " + what)
}

func (t *trouble) tell(what string) {
	for _, told := range t.told {
		if told == what {
			return
		}
	}
	if len(t.told) < maxTold {
		t.told = append(t.told, what)
	}
}

// maxText bounds the text of a failure, in bytes.
const maxText = 200

// fail ends a resolution. err is what ended it, nil where no server was left.
func (r *resolution) fail(err error) step {
	t := &r.trouble
	f := &Failure{Code: wire.EDENoReachable, Err: err, Server: t.last}
	if f.Err == nil {
		f.Err = t.err
	}
	why := ""
	heard := t.count[troubleLame] + t.count[troubleServer]
	switch {
	case errors.Is(err, exchange.ErrBudget), errors.Is(err, ErrBudget):
		f.Budget = true
		why = ErrBudget.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Timeout = true
		why = "time is up"
	case heard+t.count[troubleNetwork]+t.count[troubleTimeout] == 0:
		// Without any server asked, what the lookup of their addresses met is the reason.
		var under *Failure
		if errors.As(t.err, &under) {
			f.Timeout, f.Budget, f.Server = under.Timeout, under.Budget, under.Server
		}
		why = "no name server with a usable address"
		if t.limited {
			why += " within the limits"
		}
	case heard == 0 && t.count[troubleTimeout] > 0:
		f.Timeout = true
	case t.held:
		// What holds the zone back lasts no longer than that of silence does.
		f.Timeout = true
		if t.count[troubleServer] > 0 {
			f.Code = wire.EDENetworkError
		}
	case t.count[troubleServer] > 0 || t.count[troubleTimeout] == 0 && t.count[troubleLame] == 0:
		// RFC 8914 §4.24: an error in talking to a server, other than that none was to be reached.
		f.Code = wire.EDENetworkError
	}
	if r.cut != nil {
		f.Zone = r.cut.Zone
		if !f.Budget {
			r.rememberFailure()
		}
	}
	f.Text = failureText(f.Zone, why, t.told)
	r.failure = f
	return nil
}

// rememberFailure tells the zones what the whole resolution met.
func (r *resolution) rememberFailure() {
	n := &r.trouble.count
	switch {
	case r.trouble.held:
	case n[troubleServer] > 0:
		r.zones.failed(r.cut.Zone, question{r.name, r.qtype}, troubleServer)
	case n[troubleLame] > 0:
		r.zones.failed(r.cut.Zone, question{r.name, r.qtype}, troubleLame)
	case n[troubleTimeout]+n[troubleNetwork] > 0:
		r.zones.failed(r.cut.Zone, question{r.name, r.qtype}, troubleTimeout)
	}
}

// failureText says what was tried, at most maxText bytes of it.
func failureText(zone wire.Name, why string, told []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "zone %s: ", zone)
	if why != "" {
		b.WriteString(why)
		if len(told) > 0 {
			b.WriteString("; ")
		}
	}
	b.WriteString(strings.Join(told, ", "))
	text := b.String()
	if len(text) > maxText {
		text = text[:maxText-3] + "..."
	}
	return text
}

package iterate

import (
	"context"
	"errors"
	"net/netip"

	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// step is one step of a resolution. It returns the next, nil at the end:
//
//	begin → enterCut → chooseServer → ask → classify ─→ followReferral → enterCut
//	           ↑            ↑   ↑                    ├→ widen: more labels, or the whole name
//	   goOrdinary           │   findAddresses        ├→ tryNext → chooseServer
//	  askAgain ↑            │   ↓                    └→ finish
//	           └────── exhausted ← nextRound
type step func(*resolution) step

// question is what one query asks.
type question struct {
	name wire.Name
	t    wire.Type
}

// resolution is the state of one link. One goroutine has it.
type resolution struct {
	*Iterator
	ctx   context.Context
	task  Task
	name  wire.Name
	qtype wire.Type
	avoid []netip.AddrPort
	renew wire.Name // the zone whose delegation alone is wanted; "" for an ordinary resolution

	renewed    bool // it was given
	ordinary   bool // configured zones that are First have failed
	askedAgain bool // the parent was, for a delegation that was no use
	minimise   minimiser
	asked      question

	cut    *zonecut.Cut
	pool   pool // of the cut's servers
	server netip.AddrPort
	query  exchange.Ask
	traced func(exchange.Event) // nil until it is needed
	reply  *exchange.Reply
	said   said

	spare     *Result // what is better than nothing
	spareRank rank
	empties   int     // responses that said nothing at all
	outlook   outlook // of the cut
	trouble   trouble

	result  *Result
	failure *Failure
}

// run takes steps until there is none, and spends the budget for them.
func (r *resolution) run(s step) (*Result, error) {
	r.stats.resolutions.Add(1)
	for s != nil {
		err := r.ctx.Err()
		if err == nil {
			err = r.task.Budget.Step()
		}
		if err != nil {
			r.fail(err)
			break
		}
		s = s(r)
	}
	if r.failure != nil {
		r.stats.failures.Add(1)
		r.note(r.failure.Text)
		return nil, r.failure
	}
	return r.result, nil
}

// begin finds the deepest cut to ask.
func (r *resolution) begin() step {
	name, now := r.name, r.config.Now()
	if r.parentSide() && name != wire.Root {
		name = name.Parent()
	}
	cuts := r.config.Cuts
	if r.ordinary {
		r.cut = cuts.Ordinary(name, now)
	} else {
		r.cut = cuts.Deepest(name, now)
	}
	if r.cut.Prime {
		r.primed(now)
	}
	return (*resolution).enterCut
}

// parentSide says whether the parent of the zone at QNAME is to be asked. RFC 4035 §3.1.4.1: the DS
// RRset lies there.
func (r *resolution) parentSide() bool { return r.qtype == wire.TypeDS || r.renew != "" }

// enterCut turns to the servers of r.cut.
func (r *resolution) enterCut() step {
	r.pool.fill(r.cut, r.avoid, r.config.Exchange)
	r.spare, r.spareRank, r.empties, r.trouble = nil, 0, 0, trouble{}
	r.outlook = r.zones.look(r.cut.Zone, r.qtype)
	if r.outlook.held && !r.cut.First {
		r.trouble.told = []string{"all of its servers have failed lately"}
		r.trouble.count[r.outlook.kind]++
		r.trouble.held = true
		return r.fail(nil)
	}
	if isConfigured(r.cut) {
		return (*resolution).findConfigured
	}
	return (*resolution).nextQuestion
}

// isConfigured says whether the servers are those of the configuration, as they stand there.
func isConfigured(c *zonecut.Cut) bool { return c.Parent == c.Zone && c.Granted == 0 }

// findConfigured looks up servers that are configured by name alone before any is asked: later they
// might be needed because those with an address, which know theirs, have failed.
func (r *resolution) findConfigured() step {
	for i := range r.pool.servers {
		s := &r.pool.servers[i]
		if s.known[family4] || s.known[family6] || s.gone {
			continue
		}
		if l, ok := r.nextWay(i, fromSource); ok {
			s.done[l.family][l.way] = true
			r.lookUp(l)
			return (*resolution).findConfigured
		}
	}
	return (*resolution).nextQuestion
}

// nextQuestion decides how much of the name to ask.
func (r *resolution) nextQuestion() step {
	r.asked = question{r.name, r.qtype}
	if !r.cut.Forward {
		r.asked = r.minimise.next(r.name, r.qtype, r.cut.Zone)
	}
	return (*resolution).chooseServer
}

// isMinimised says whether less than the whole question is asked.
func (r *resolution) isMinimised() bool { return len(r.asked.name) != len(r.name) }

// chooseServer picks who to ask.
func (r *resolution) chooseServer() step {
	if r.pool.failed >= r.maxFailed() {
		return (*resolution).exhausted
	}
	server, ok := r.config.Exchange.Choose(r.cut.Zone, r.pool.addrs, r.pool.tried)
	if !ok {
		return (*resolution).findAddresses
	}
	r.server = server
	return (*resolution).ask
}

// ask puts the question to the chosen server.
func (r *resolution) ask() step {
	p := &r.pool
	p.tried = append(p.tried, r.server)
	if r.isMinimised() {
		r.stats.minimised.Add(1)
	}
	reply, err := r.send(r.cut, r.server, r.asked, p.silences(r.server), len(p.addrs) > len(p.tried))
	switch {
	case err == nil:
		p.heard = true
		r.reply = reply
		return (*resolution).classify
	case r.ctx.Err() != nil || errors.Is(err, exchange.ErrBudget):
		return r.fail(err)
	case errors.Is(err, exchange.ErrWaited):
		p.tried = p.tried[:len(p.tried)-1]
		return (*resolution).chooseServer
	}
	p.failed++
	switch {
	case errors.Is(err, exchange.ErrTimeout):
		p.silent = append(p.silent, r.server)
		r.trouble.add(r.server, "timeout", troubleTimeout)
	case errors.Is(err, exchange.ErrUntrusted):
		r.trouble.add(r.server, "certificate not trusted", troubleNetwork)
	case errors.Is(err, exchange.ErrUnreachable):
		r.trouble.add(r.server, "unreachable", troubleNetwork)
	case errors.Is(err, exchange.ErrBusy):
		r.trouble.add(r.server, "too busy", troubleTimeout)
	default:
		p.heard = true
		r.trouble.add(r.server, "malformed response", troubleServer)
	}
	return (*resolution).chooseServer
}

// send asks one server one question. others says that there are more to choose from.
func (r *resolution) send(cut *zonecut.Cut, server netip.AddrPort, q question, retry int, others bool) (*exchange.Reply, error) {
	r.query = exchange.Ask{
		Server: server, Zone: cut.Zone, Name: q.name, Type: q.t,
		RD: cut.Forward, CD: cut.Forward && r.config.ForwardCD, TCP: cut.TCP, TLS: cut.TLS != nil, TLSName: cut.TLS[server],
		Retry: retry, Since: r.task.Budget.begin, Budget: r.task.Budget, Others: others,
	}
	if r.task.Trace != nil {
		if r.traced == nil {
			r.traced = func(e exchange.Event) { r.task.Trace.exchanged(r.task.Depth, r.query.Zone, &e) }
		}
		r.query.Trace = r.traced
	}
	return r.config.Exchange.Do(r.ctx, &r.query)
}

// classify names the response and goes on accordingly.
func (r *resolution) classify() step {
	err := r.said.scrub(&r.reply.Message, r.cut.Zone, r.asked)
	r.config.Exchange.Release(r.reply)
	r.reply = nil
	if err != nil {
		r.trouble.add(r.server, err.Error(), troubleServer)
		return (*resolution).tryNext
	}
	c := r.said.classify(r.cut.Zone, r.asked, r.cut.Forward)
	r.note(c.String())
	if !c.isUseless() {
		r.zones.answered(r.cut.Zone)
	}
	if c == isReferral {
		return (*resolution).followReferral
	}
	if r.isMinimised() {
		return r.classifyMinimised(c)
	}
	switch c {
	case isAnswer, isAlias, isNoData, isNXDomain:
		return (*resolution).finish
	case isEmpty:
		// RFC 2308 §2.2: a NODATA may come without SOA and NS. Some servers say that of everything,
		// so that others are heard first.
		if r.empties++; r.empties > maxEmpties {
			return (*resolution).finish
		}
		r.keepSpare(rankEmpty)
	case isRecursive:
		r.keepSpare(rankRecursive)
	case isForeign:
		r.keepSpare(rankForeign)
	}
	r.complain(c)
	return (*resolution).tryNext
}

// maxEmpties is after how many empty responses the next is believed.
const maxEmpties = 1

// classifyMinimised goes on after a query for less than the whole name (RFC 9156 §2.3).
func (r *resolution) classifyMinimised(c class) step {
	switch c {
	case isAnswer, isNoData, isEmpty:
		r.pool.forgive(r.server)
		return (*resolution).nextQuestion
	case isNXDomain:
		// RFC 8020 §2: nothing exists below. RFC 9156 §2.3: some servers say so of an empty
		// non-terminal, and then only the whole name tells.
		if r.minimise.mode == Strict {
			return (*resolution).finish
		}
	case isAlias, isRecursive:
	default:
		if r.minimise.mode == Strict {
			r.complain(c)
			return (*resolution).tryNext
		}
	}
	return (*resolution).widen
}

// widen goes on with the whole name, and gives every server another chance.
func (r *resolution) widen() step {
	r.stats.widened.Add(1)
	r.minimise.whole = true
	r.pool.again()
	return (*resolution).nextQuestion
}

// tryNext gives up on the server just asked.
func (r *resolution) tryNext() step {
	r.pool.failed++
	return (*resolution).chooseServer
}

// nextRound asks again those that were silent, for packets get lost.
func (r *resolution) nextRound() step {
	p := &r.pool
	if p.rounds+1 >= r.maxRounds() || len(p.silent) == 0 {
		return (*resolution).exhausted
	}
	p.nextRound()
	return (*resolution).chooseServer
}

// maxRounds and maxFailed bound how often one cut's servers are asked in vain. A name server's
// address is worth less than a client's answer, for there are other name servers.
func (r *resolution) maxRounds() int {
	if r.task.Depth > 0 || r.outlook.silent {
		return 2
	}
	return 3
}

func (r *resolution) maxFailed() int {
	if r.outlook.probe {
		return (len(r.pool.addrs) + 1) / 2
	}
	return max(4, 24>>(2*min(r.task.Depth, 3)))
}

// exhausted is where no server is left to ask.
func (r *resolution) exhausted() step {
	switch {
	case r.spare != nil:
		r.result = r.spare
		return nil
	case r.canAskAgain():
		return (*resolution).askAgain
	case r.cut.First && !r.ordinary:
		r.ordinary = true
		r.minimise.restart()
		return (*resolution).begin
	}
	return r.fail(nil)
}

// note keeps an event of a decision.
func (r *resolution) note(what string) {
	if r.task.Trace == nil {
		return
	}
	e := Event{Depth: r.task.Depth, Name: r.asked.name, Type: r.asked.t, What: what}
	if r.cut != nil {
		e.Zone = r.cut.Zone
	}
	r.task.Trace.Add(e)
}

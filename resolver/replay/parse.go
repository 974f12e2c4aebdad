package replay

import (
	"io"
	"math"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Load reads the scenario in a file.
func Load(file string) (*Scenario, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Parse(f, file)
}

// Parse reads a scenario. An error names file and line; what the grammar does not know is one.
func Parse(r io.Reader, file string) (*Scenario, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	p := &parser{
		lines:    lines{file: file, text: strings.Split(string(text), "\n")},
		scenario: &Scenario{File: file},
		origin:   ".",
		ttl:      defaultTTL,
	}
	if err := p.header(); err != nil {
		return nil, err
	}
	if err := p.body(); err != nil {
		return nil, err
	}
	p.scenario.plain = p.text
	return p.scenario, nil
}

// Plain returns the scenario's text with records in the place of the directives that made them, for programs
// that do not know these.
func (s *Scenario) Plain() string { return strings.Join(s.plain, "\n") }

// defaultTTL is the TTL, in seconds, of records written without one.
const defaultTTL = 3600

type parser struct {
	lines
	scenario *Scenario
	origin   string
	ttl      uint32

	clause string
	number int
}

// clauses of an unbound.conf. One in the header makes the scenario a Testbound one.
var clauses = map[string]bool{
	"server": true, "stub-zone": true, "forward-zone": true, "auth-zone": true, "rpz": true, "view": true,
	"remote-control": true, "python": true, "cachedb": true, "dnscrypt": true, "dynlib": true,
	"ipset": true, "dnstap": true,
}

// header reads the settings up to CONFIG_END, or up to SCENARIO_BEGIN where there are none.
func (p *parser) header() error {
	for {
		l, ok := p.raw()
		if !ok {
			return p.errorf("no CONFIG_END")
		}
		w := strings.Fields(l)
		switch {
		case len(w) == 0 || w[0][0] == ';' || w[0][0] == '#':
		case w[0] == "CONFIG_END", w[0] == "SCENARIO_BEGIN":
			if w[0] == "SCENARIO_BEGIN" {
				p.back()
			}
			// Deckard's files always say something.
			if len(p.scenario.Options) == 0 {
				p.scenario.Dialect = Testbound
			}
			return nil
		case w[0] == "COMMANDLINE":
			p.internal("command line options of the program")
		case w[0] == "AUTOTRUST_FILE", w[0] == "TEMPFILE_CONTENTS":
			p.internal("files beside the scenario")
			end := map[string]string{"AUTOTRUST_FILE": "AUTOTRUST_END", "TEMPFILE_CONTENTS": "TEMPFILE_END"}[w[0]]
			if _, err := p.until(end); err != nil {
				return err
			}
		case w[0] == "TEMPFILE_NAME":
		default:
			if err := p.option(strings.TrimSpace(l)); err != nil {
				return err
			}
		}
	}
}

func (p *parser) internal(why string) {
	if p.scenario.internal == "" {
		p.scenario.internal = why
	}
}

// keyword is a word of an unbound.conf that names an option or clause.
var keyword = regexp.MustCompile(`^[a-z0-9_-]+:$`)

// option reads one line of settings.
func (p *parser) option(l string) error {
	// features are separated by what begins a comment elsewhere
	if strings.HasPrefix(l, "features:") {
		l = cutComment(l, "#")
	} else {
		l = strings.TrimSpace(cutComment(l, ";#"))
	}
	key, value, ok := strings.Cut(l, ":")
	if p.clause == "" && key == "anchor" {
		anchor, err := p.anchor(value)
		p.add("trust-anchor", anchor)
		p.text[p.at-1] = `trust-anchor: "` + anchor + `"`
		return err
	}
	if p.clause == "" && ok && !clauses[key] {
		p.add(strings.TrimSpace(key), strings.TrimSpace(value))
		return nil
	}
	// An unbound.conf is words; any number of options may be on a line, and a value on the next.
	for _, w := range quotedFields(l) {
		name := strings.TrimSuffix(w, ":")
		last := len(p.scenario.Options) - 1
		switch {
		case keyword.MatchString(w) && clauses[name]:
			p.scenario.Dialect = Testbound
			p.clause = name
			p.number++
			if name != "server" { // even an empty one counts
				p.add("", "")
			}
		case keyword.MatchString(w):
			p.add(name, "")
		case last < 0 || p.scenario.Options[last].Number != p.number:
			return p.errorf("%q belongs to no option", w)
		default:
			o := &p.scenario.Options[last]
			o.Value = strings.TrimSpace(o.Value + " " + w)
		}
	}
	return nil
}

func (p *parser) add(key, value string) {
	p.scenario.Options = append(p.scenario.Options, Option{p.clause, p.number, key, value, p.at})
}

// body reads from SCENARIO_BEGIN to SCENARIO_END.
func (p *parser) body() error {
	l, ok := p.next()
	title, begins := strings.CutPrefix(l, "SCENARIO_BEGIN")
	if !ok || !begins {
		return p.errorf("%q where SCENARIO_BEGIN belongs", l)
	}
	p.scenario.Title = strings.TrimSpace(title)
	for {
		l, ok := p.next()
		if !ok { // some files lack SCENARIO_END
			return nil
		}
		var err error
		switch w := strings.Fields(l); w[0] {
		case "SCENARIO_END":
			return nil
		case "RANGE_BEGIN":
			err = p.rangeBlock(w)
		case "STEP":
			err = p.step(w)
		case "$ORIGIN", "$TTL":
			err = p.zoneDirective(w)
		default:
			err = p.errorf("unknown directive %q", l)
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) zoneDirective(w []string) error {
	if len(w) != 2 {
		return p.errorf("%s takes one value", w[0])
	}
	if w[0] == "$ORIGIN" {
		p.origin = dns.Fqdn(w[1])
		return nil
	}
	ttl, err := strconv.ParseUint(w[1], 10, 32)
	if err != nil {
		return p.errorf("$TTL: %v", err)
	}
	p.ttl = uint32(ttl)
	return nil
}

// rangeBlock reads RANGE_BEGIN first last [address] to RANGE_END.
func (p *parser) rangeBlock(w []string) error {
	r := &Range{Line: p.at}
	var err [2]error
	if len(w) < 3 {
		return p.errorf("RANGE_BEGIN takes two steps")
	}
	r.First, err[0] = strconv.Atoi(w[1])
	r.Last, err[1] = strconv.Atoi(w[2])
	if err[0] != nil || err[1] != nil {
		return p.errorf("RANGE_BEGIN takes two steps, has %q %q", w[1], w[2])
	}
	if err := p.addresses(r, w[3:]); err != nil {
		return err
	}
	for {
		l, ok := p.next()
		if !ok {
			return errorAt(p.file, r.Line, "RANGE_BEGIN without RANGE_END")
		}
		var err error
		switch w := strings.Fields(l); w[0] {
		case "RANGE_END", "END_RANGE":
			p.scenario.Ranges = append(p.scenario.Ranges, r)
			return nil
		case "ADDRESS":
			err = p.addresses(r, w[1:])
		case "REFUSE_TCP":
			r.RefuseTCP = true
		case "ENTRY_BEGIN":
			var e *Entry
			e, err = p.entry()
			r.Entries = append(r.Entries, e)
		case "$ORIGIN", "$TTL":
			err = p.zoneDirective(w)
		default:
			err = p.errorf("unknown directive %q in a RANGE", l)
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) addresses(r *Range, words []string) error {
	for _, w := range words {
		w, _, _ = strings.Cut(w, "@")
		a, err := netip.ParseAddr(w)
		if err != nil {
			return p.errorf("ADDRESS: %v", err)
		}
		r.Addrs = append(r.Addrs, a)
	}
	return nil
}

// step reads STEP n type [arguments] and the entry that belongs to it.
func (p *parser) step(w []string) error {
	if len(w) < 3 {
		return p.errorf("STEP takes a number and a type")
	}
	id, err := strconv.Atoi(w[1])
	if err != nil {
		return p.errorf("STEP: %v", err)
	}
	s := &Step{Line: p.at, ID: id, Type: stepAlias(w[2]), AtMost: -1}
	wantsEntry, known := stepTypes[s.Type]
	switch {
	case internalSteps[s.Type]:
		p.internal("step " + s.Type)
		return p.skipStep()
	case !known:
		return p.errorf("unknown type of STEP %q", s.Type)
	}
	if err := p.stepArguments(s, w[3:]); err != nil {
		return err
	}
	if l, ok := p.next(); ok && strings.HasPrefix(l, "ENTRY_BEGIN") {
		if s.Entry, err = p.entry(); err != nil {
			return err
		}
	} else if ok {
		p.back()
	}
	if wantsEntry && s.Entry == nil {
		return errorAt(p.file, s.Line, "STEP %s without an entry", s.Type)
	}
	p.scenario.Steps = append(p.scenario.Steps, s)
	return nil
}

// stepAlias takes the other names of two types of steps.
func stepAlias(name string) string {
	switch name {
	case "ANSWER":
		return "CHECK_ANSWER"
	case "MOCK":
		return "REPLY"
	}
	return name
}

// skipStep passes over what belongs to a step that is not played.
func (p *parser) skipStep() error {
	for {
		l, ok := p.next()
		if !ok {
			return nil
		}
		switch w := strings.Fields(l)[0]; w {
		case "STEP", "SCENARIO_END", "RANGE_BEGIN":
			p.back()
			return nil
		case "FILE_BEGIN":
			if _, err := p.until("FILE_END"); err != nil {
				return err
			}
		}
	}
}

func (p *parser) stepArguments(s *Step, args []string) error {
	for len(args) > 0 {
		var err error
		key, value, _ := strings.Cut(args[0], "=")
		switch {
		case key == "ADDRESS" && len(args) > 1:
			s.Addr, err = netip.ParseAddr(args[1])
			args = args[1:]
		case key == "ELAPSE" && s.Type == "TIME_PASSES" && len(args) > 1:
			s.Elapse, err = seconds(args[1])
			args = args[1:]
		case key == "EVAL" && s.Type == "TIME_PASSES":
			p.internal("TIME_PASSES EVAL")
			return nil
		case key == "within" && s.Type == "CHECK_ANSWER":
			s.Within, err = seconds(value)
		case key == "at_least" && s.Type == "CHECK_UPSTREAM":
			s.AtLeast, err = strconv.Atoi(value)
		case key == "at_most" && s.Type == "CHECK_UPSTREAM":
			s.AtMost, err = strconv.Atoi(value)
		default:
			return p.errorf("unknown argument %q of STEP %s", args[0], s.Type)
		}
		if err != nil {
			return p.errorf("STEP %s: %s: %v", s.Type, key, err)
		}
		args = args[1:]
	}
	return nil
}

// seconds reads a number of seconds, which may have a fraction.
func seconds(s string) (time.Duration, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err == nil && (f < 0 || f > math.MaxInt64/float64(time.Second)) {
		err = strconv.ErrRange
	}
	return time.Duration(f * float64(time.Second)), err
}

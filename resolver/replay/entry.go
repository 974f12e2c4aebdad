package replay

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// entry reads from the line behind ENTRY_BEGIN to ENTRY_END.
func (p *parser) entry() (*Entry, error) {
	e := newEntry(p.at)
	part := e // where sections go: the entry, or the last of its further packets
	section := ""
	for {
		l, ok := p.next()
		if !ok {
			return nil, errorAt(p.file, e.Line, "ENTRY_BEGIN without ENTRY_END")
		}
		var err error
		switch w := strings.Fields(l); w[0] {
		case "ENTRY_END":
			return e, nil
		case "MANDATORY":
			e.Mandatory = true
		case "TSIG":
			p.internal("TSIG")
		case "MATCH":
			err = p.match(e, w[1:])
		case "ADJUST":
			err = p.adjust(part, w[1:])
		case "REPLY", "FLAGS":
			err = p.reply(part, w[1:])
		case "EXTRA_PACKET":
			part = newEntry(p.at)
			part.Message.MsgHdr, part.RCODE = e.Message.MsgHdr, e.RCODE
			part.Message.Question, part.Adjust = e.Message.Question, e.Adjust
			e.More = append(e.More, part)
			section = ""
		case "SECTION":
			section, err = p.section(w)
		case "RAW", "HEX_ANSWER_BEGIN", "HEX_EDNSDATA_BEGIN":
			err = p.hexBlock(part, w[0])
		case "$ORIGIN", "$TTL":
			err = p.zoneDirective(w)
		default:
			err = p.content(part, section, l)
		}
		if err != nil {
			return nil, err
		}
	}
}

func newEntry(line int) *Entry {
	return &Entry{Line: line, Match: map[string]bool{}, Adjust: map[string]bool{}, Serial: -1}
}

func (p *parser) match(e *Entry, words []string) error {
	for _, w := range words {
		key, value, valued := strings.Cut(w, "=")
		switch {
		case valued && key == "ede":
			e.EDE = append(e.EDE, value)
		case valued && key == "serial":
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return p.errorf("MATCH serial: %v", err)
			}
			e.Serial = int64(n)
		case matchWords[w]:
			e.Match[w] = true
		default:
			return p.errorf("unknown word %q in MATCH", w)
		}
	}
	return nil
}

func (p *parser) adjust(e *Entry, words []string) error {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case key == "sleep", key == "packet_sleep":
			d, err := seconds(value)
			if err != nil {
				return p.errorf("ADJUST %s: %v", key, err)
			}
			e.Delay += d
		case adjustWords[w]:
			e.Adjust[w] = true
		default:
			return p.errorf("unknown word %q in ADJUST", w)
		}
	}
	return nil
}

func (p *parser) reply(e *Entry, words []string) error {
	h := &e.Message.MsgHdr
	flags := map[string]*bool{
		"QR": &h.Response, "AA": &h.Authoritative, "TC": &h.Truncated, "RD": &h.RecursionDesired,
		"RA": &h.RecursionAvailable, "AD": &h.AuthenticatedData, "CD": &h.CheckingDisabled, "DO": &e.DO,
	}
	for _, w := range words {
		if flag := flags[w]; flag != nil {
			*flag = true
		} else if n, ok := rcodes[w]; ok {
			e.RCODE, h.Rcode = n, n&0xF
		} else if n, ok := opcodes[w]; ok {
			h.Opcode = n
		} else {
			return p.errorf("unknown word %q in REPLY", w)
		}
	}
	return nil
}

func (p *parser) section(w []string) (string, error) {
	if len(w) == 2 {
		switch w[1] {
		case "QUESTION", "ANSWER", "AUTHORITY", "ADDITIONAL":
			return w[1], nil
		}
	}
	return "", p.errorf("unknown %q", strings.Join(w, " "))
}

// hexBlock reads octets in hexadecimal: one line of them behind RAW, else up to the END line.
func (p *parser) hexBlock(e *Entry, directive string) error {
	var block []string
	if directive == "RAW" {
		l, ok := p.next()
		if !ok {
			return p.errorf("RAW without a message")
		}
		block = []string{l}
	} else {
		var err error
		if block, err = p.until(strings.Replace(directive, "_BEGIN", "_END", 1)); err != nil {
			return err
		}
	}
	digits := ""
	for _, l := range block {
		digits += strings.Join(strings.Fields(cutComment(l, ";#")), "")
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return p.errorf("%s: %v", directive, err)
	}
	if directive == "HEX_EDNSDATA_BEGIN" {
		e.Options, e.HasOptions = b, true
	} else {
		e.Raw = b
	}
	return nil
}

// content reads a line of a section: a question or a record.
func (p *parser) content(e *Entry, section, l string) error {
	if section == "" {
		return p.errorf("unknown directive %q in an ENTRY", l)
	}
	if section == "QUESTION" {
		q, err := p.question(strings.Fields(l))
		e.Message.Question = append(e.Message.Question, q)
		return err
	}
	m := &e.Message
	records := map[string]*[]dns.RR{"ANSWER": &m.Answer, "AUTHORITY": &m.Ns, "ADDITIONAL": &m.Extra}[section]
	var rr dns.RR
	var err error
	if l[0] == '$' {
		rr, err = p.signedRecord(l, *records)
	} else if rr, err = p.record(l); err != nil {
		err = p.errorf("record %q: %v", l, err)
	}
	*records = append(*records, rr)
	return err
}

// question reads NAME [CLASS] TYPE.
func (p *parser) question(w []string) (dns.Question, error) {
	q := dns.Question{Qclass: dns.ClassINET}
	if len(w) != 2 && len(w) != 3 {
		return q, p.errorf("question of %d words", len(w))
	}
	q.Name = p.absolute(w[0])
	if _, ok := dns.IsDomainName(q.Name); !ok {
		return q, p.errorf("QNAME %q", q.Name)
	}
	var ok bool
	if q.Qtype, ok = number(dns.StringToType, w[len(w)-1], "TYPE"); !ok {
		return q, p.errorf("unknown type %q", w[len(w)-1])
	}
	if len(w) == 3 {
		if q.Qclass, ok = number(dns.StringToClass, w[1], "CLASS"); !ok {
			return q, p.errorf("unknown class %q", w[1])
		}
	}
	return q, nil
}

// number reads a mnemonic or its RFC 3597 form.
func number(table map[string]uint16, word, prefix string) (uint16, bool) {
	word = strings.ToUpper(word)
	if n, ok := table[word]; ok {
		return n, true
	}
	digits, ok := strings.CutPrefix(word, prefix)
	n, err := strconv.ParseUint(digits, 10, 16)
	return uint16(n), ok && err == nil
}

func (p *parser) absolute(name string) string {
	switch {
	case dns.IsFqdn(name):
		return name
	case p.origin == ".":
		return name + "."
	}
	return name + "." + p.origin
}

// has says whether MATCH names the word, or one that includes it.
func (e *Entry) has(word string) bool {
	if e.Match[word] {
		return true
	}
	switch word {
	case "qname", "qtype":
		return e.Match["question"] || e.Match["all"] || e.Match["all_noedns"]
	case "opcode", "flags", "rcode", "answer", "authority", "additional":
		return e.Match["all"] || e.Match["all_noedns"]
	}
	return false
}

// template returns the message as one that may be changed.
func (e *Entry) template() *dns.Msg {
	m := e.Message.Copy()
	m.Compress = true
	return m
}

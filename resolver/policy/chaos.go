package policy

import "bonsai/wire"

// chaos answers who we are (RFC 4892 §2, and the older names under bind).
type chaos struct {
	answers map[wire.Name]string
}

func newChaos(version, id string) *chaos {
	c := &chaos{answers: make(map[wire.Name]string)}
	for name, text := range map[string]string{
		"version.bind.": version, "version.server.": version, "id.server.": id, "hostname.bind.": id,
	} {
		if text != "" {
			c.answers[wire.MustName(name)] = text[:min(len(text), 255)]
		}
	}
	return c
}

func (c *chaos) Judge(r *Request) Outcome {
	q := r.Query
	if q.QClass != wire.ClassCH {
		return Outcome{}
	}
	text, ok := c.answers[wire.BorrowName(q.Name())]
	if ok && (q.QType == wire.TypeTXT || q.QType == wire.TypeANY) {
		return Outcome{Action: Text, Text: text, EDE: wire.NoEDE, Rule: "chaos"}
	}
	return fail("chaos", wire.RCODERefused, wire.EDEProhibited, "")
}

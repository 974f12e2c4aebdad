package iterate

import (
	"errors"

	"bonsai/wire"
)

// Minimisation says how much of a QNAME servers get to see (RFC 9156).
type Minimisation uint8

// Modes. Relaxed goes on with the whole name where a server stumbles over less of it; Strict
// believes what the server says.
const (
	Relaxed Minimisation = iota
	Strict
	Off
)

// String returns the mode as configuration spells it.
func (m Minimisation) String() string { return [...]string{"relaxed", "strict", "off"}[m] }

// ErrMinimisation says that a text names no mode.
var ErrMinimisation = errors.New("qname-minimisation is relaxed, strict or off")

// ParseMinimisation reads what String writes.
func ParseMinimisation(text string) (Minimisation, error) {
	for m := Relaxed; m <= Off; m++ {
		if m.String() == text {
			return m, nil
		}
	}
	return 0, ErrMinimisation
}

// Numbers of RFC 9156 §2.3: at most maxMinimise minimised queries for a name, of which the first
// minimiseOneLabel add one label each.
const (
	maxMinimise      = 10
	minimiseOneLabel = 4
)

// minimiser counts what of a name has been asked.
type minimiser struct {
	mode  Minimisation
	whole bool // for the rest of the resolution
	count int  // of minimised queries
	at    int  // labels of the deepest name asked or known to be a zone
}

// next returns the question to ask the servers of zone, for which the last one brought no referral.
func (m *minimiser) next(name wire.Name, t wire.Type, zone wire.Name) question {
	labels := name.Labels()
	m.at = max(m.at, zone.Labels())
	left := labels - m.at
	if m.mode == Off || m.whole || m.count >= maxMinimise || left <= 1 {
		m.at = labels
		return question{name, t}
	}
	add := 1
	if m.count >= minimiseOneLabel {
		// RFC 9156 §2.3: what is left is divided among the queries that are.
		add = max(1, left/(maxMinimise-m.count))
	}
	m.at += add
	if m.at >= labels {
		return question{name, t}
	}
	m.count++
	// RFC 9156 §2.1: the type hides what is asked for; A draws the least attention.
	return question{name.Suffix(m.at), wire.TypeA}
}

// restart begins at the top again, in the same count.
func (m *minimiser) restart() { m.at = 0 }

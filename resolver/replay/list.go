package replay

import (
	"bufio"
	"io"
	"path/filepath"
	"strings"
)

// ReadList reads a list of scenarios, one a line with its topic behind it: the file's name, or that
// and its collection ("deckard/NAME", "unbound/NAME"), for both have files of the same name. It
// maps name to topic.
func ReadList(r io.Reader) (map[string]string, error) {
	list := map[string]string{}
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		if w := strings.Fields(cutComment(sc.Text(), "#")); len(w) > 0 {
			list[w[0]] = strings.Join(w[1:], " ")
		}
	}
	return list, sc.Err()
}

// Name is what lists call the scenario: its collection and file.
func (s *Scenario) Name() string { return s.Dialect.String() + "/" + filepath.Base(s.File) }

// Topic looks a scenario up in a list.
func (s *Scenario) Topic(list map[string]string) (topic string, ok bool) {
	if topic, ok = list[s.Name()]; !ok {
		topic, ok = list[filepath.Base(s.File)]
	}
	return topic, ok
}

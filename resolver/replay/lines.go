package replay

import (
	"fmt"
	"path/filepath"
	"strings"
)

// lines reads a file line by line and knows where it is.
type lines struct {
	file string
	text []string
	at   int // number of the line last read, from 1
}

// raw returns the next line as it is.
func (l *lines) raw() (string, bool) {
	if l.at >= len(l.text) {
		return "", false
	}
	l.at++
	return l.text[l.at-1], true
}

// next returns the next line that says something, without its comment.
func (l *lines) next() (string, bool) {
	for {
		s, ok := l.raw()
		if !ok {
			return "", false
		}
		if s = strings.TrimSpace(cutComment(s, ";")); s != "" {
			return s, true
		}
	}
}

// back makes the line last read the next one again.
func (l *lines) back() { l.at-- }

// until returns the lines before the one that begins with end, which it consumes.
func (l *lines) until(end string) ([]string, error) {
	var block []string
	for begin := l.at; ; {
		s, ok := l.raw()
		if !ok {
			l.at = begin
			return nil, l.errorf("no %s", end)
		}
		if strings.HasPrefix(strings.TrimSpace(s), end) {
			return block, nil
		}
		block = append(block, s)
	}
}

func (l *lines) errorf(format string, a ...any) error { return errorAt(l.file, l.at, format, a...) }

func errorAt(file string, line int, format string, a ...any) error {
	return fmt.Errorf("%s:%d: %s", filepath.Base(file), line, fmt.Sprintf(format, a...))
}

// cutComment cuts a line at the first of the given characters that is neither quoted nor escaped.
func cutComment(s, start string) string {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(start, s[i]) >= 0:
			return s[:i]
		}
	}
	return s
}

// quotedFields splits at white space outside quotes, which it keeps.
func quotedFields(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t')
	})
}

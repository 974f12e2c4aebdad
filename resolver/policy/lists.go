package policy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"bonsai/wire"
)

// ListReport tells what reading a list met.
type ListReport struct {
	Names, Bad int
	Errors     []error // of the first bad lines, with their numbers; at most maxListErrors
}

const (
	maxListErrors = 3
	maxListLine   = 4096
	listBuffer    = 64 << 10
	linesAtOnce   = 512 // some 0.3 ms of work
)

// Errors of lists.
var (
	errNotName  = errors.New("neither a domain name nor a line of a hosts file")
	errLongLine = fmt.Errorf("longer than %d bytes", maxListLine)
	errNoList   = errors.New("no line of it is a name: not a list of names, one a line, nor a hosts file")
)

// ReadList adds the names of a list: one name a line, or lines of a hosts file, whose addresses are
// passed over; "#" and "!" begin a comment, "*." before a name is as good as the name. Bad lines are
// skipped and reported. The error is of reading, and of what has bad lines alone: that is another kind
// of file, such as the page of a server that no longer has the list.
func (b *NameSetBuilder) ReadList(r io.Reader) (report ListReport, err error) {
	lines, reading := bufio.NewReaderSize(r, listBuffer), listReader{builder: b}
	for n := 1; ; n++ {
		if n%linesAtOnce == 0 {
			b.pause.breathe()
		}
		line, err := readLine(lines)
		if err != nil && err != errLongLine {
			switch {
			case err != io.EOF:
				return report, fmt.Errorf("after %d names: %w", report.Names, err)
			case report.Names == 0 && report.Bad > 0:
				return report, fmt.Errorf("%w; %w", errNoList, report.Errors[0])
			}
			return report, nil
		}
		if err == nil {
			var added int
			added, err = reading.addLine(line)
			report.Names += added
		}
		if err != nil {
			report.Bad++
			if len(report.Errors) < maxListErrors {
				report.Errors = append(report.Errors, fmt.Errorf("line %d: %w", n, err))
			}
		}
	}
}

// readLine returns a line, borrowed from the reader, and io.EOF where there is none. Of one that is too
// long nothing is kept.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if len(line) <= maxListLine && (err == nil || err == io.EOF && len(line) > 0) {
		return line, nil
	}
	for err == bufio.ErrBufferFull {
		_, err = r.ReadSlice('\n')
	}
	if err == nil || err == io.EOF && len(line) > 0 {
		return nil, errLongLine
	}
	return nil, err
}

// listReader makes names of lines. It allocates for what is wrong alone: a list has millions.
type listReader struct {
	builder *NameSetBuilder
	name    []byte
	address []byte // the last one seen: lines of a hosts file mostly have the same
}

func (l *listReader) addLine(line []byte) (added int, err error) {
	if i := bytes.IndexAny(line, "#!"); i >= 0 {
		line = line[:i]
	}
	first, rest := nextWord(line)
	if len(first) == 0 {
		return 0, nil
	}
	if !l.isAddress(first) {
		if more, _ := nextWord(rest); len(more) > 0 {
			return 0, fmt.Errorf("%q: %w", bytes.TrimSpace(line), errNotName)
		}
		rest = first
	}
	for {
		var word []byte
		if word, rest = nextWord(rest); len(word) == 0 {
			return added, nil
		}
		name, ok := l.parse(bytes.TrimPrefix(word, []byte("*.")))
		if !ok {
			return added, fmt.Errorf("%q: %w", word, errNotName)
		}
		if !hostsOwn[name] {
			l.builder.Add(name)
			added++
		}
	}
}

// nextWord cuts the first word off a line.
func nextWord(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " \t\r\n\v\f")
	if i := bytes.IndexAny(line, " \t\r\n\v\f"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, nil
}

func (l *listReader) isAddress(word []byte) bool {
	if bytes.Equal(word, l.address) {
		return true
	}
	// Only an address has a colon, or ends in a digit after a dot: no top-level name does.
	if bytes.IndexByte(word, ':') < 0 && word[len(word)-1]-'0' >= 10 {
		return false
	}
	if _, err := netip.ParseAddr(string(word)); err != nil {
		return false
	}
	l.address = append(l.address[:0], word...)
	return true
}

// parse returns a name in canonical case, borrowed until the next.
func (l *listReader) parse(word []byte) (name wire.Name, ok bool) {
	for _, c := range word {
		if !isNameByte(c) {
			return "", false
		}
	}
	var err error
	l.name, err = wire.AppendParsed(l.name[:0], word)
	if err != nil || len(l.name) == 1 {
		return "", false
	}
	for i, c := range l.name { // lengths of labels lie below the letters
		if c-'A' < 26 {
			l.name[i] = c + 'a' - 'A'
		}
	}
	return wire.BorrowName(l.name), true
}

// isNameByte says whether names in lists are written with c: those of hosts (RFC 952, RFC 1123 §2.1)
// and "_" of services; others by an escape. What comes with anything else is a rule of another kind of
// list, or no list.
func isNameByte(c byte) bool {
	return c-'a' < 26 || c-'A' < 26 || c-'0' < 10 || c == '-' || c == '.' || c == '_' || c == '\\'
}

// hostsOwn are names that lists in hosts format carry for the machine itself.
var hostsOwn = map[wire.Name]bool{
	wire.MustName("localhost"): true, wire.MustName("localhost.localdomain"): true, wire.MustName("local"): true,
	wire.MustName("broadcasthost"): true, wire.MustName("ip6-localhost"): true, wire.MustName("ip6-loopback"): true,
	wire.MustName("ip6-localnet"): true, wire.MustName("ip6-mcastprefix"): true, wire.MustName("ip6-allnodes"): true,
	wire.MustName("ip6-allrouters"): true, wire.MustName("ip6-allhosts"): true,
}

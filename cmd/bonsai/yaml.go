package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"bonsai/resolver/zonecut"
	"bonsai/wire"
)

// maxFile bounds a configuration file in bytes: what is longer is none.
const maxFile = 64 << 20

// readFile reads a configuration file. What could be read is returned along with an error that joins
// a problem for each thing wrong.
func readFile(name string) (said map[string]given, dir string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, "", err
	}
	if len(content) > maxFile {
		return nil, "", &problem{file: name, text: "is longer than 64 MiB, hence no configuration"}
	}
	if dir, err = filepath.Abs(filepath.Dir(name)); err != nil {
		return nil, "", err
	}
	r := reader{file: name, said: map[string]given{}}
	r.read(content)
	return r.said, dir, errors.Join(r.errs...)
}

// reader walks the nodes of a file, which know their lines.
type reader struct {
	file string
	said map[string]given
	errs []error
}

func (r *reader) complain(n *yaml.Node, key, format string, args ...any) {
	r.errs = append(r.errs, &problem{file: r.file, line: n.Line, key: key, text: fmt.Sprintf(format, args...)})
}

func (r *reader) read(content []byte) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var document, more yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return // nothing but comments: the defaults hold
	case err != nil:
		r.errs = append(r.errs, r.syntax(content, err))
		return
	}
	if err := d.Decode(&more); err == nil {
		r.complain(&more, "", "a second document; keep one and remove the line ---")
	} else if !errors.Is(err, io.EOF) {
		r.errs = append(r.errs, r.syntax(content, err))
		return
	}
	r.keys(document.Content[0])
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlGrammar matches errors whose line the library counts from 0; it counts that of all others from 1.
var yamlGrammar = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or)`)

// syntax makes a problem of the parser's error, which begins with a line unless it is the first, or unless
// the text holds a byte that no YAML has.
func (r *reader) syntax(content []byte, err error) error {
	text := err.Error()
	p := &problem{file: r.file, line: noText(content)}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		line, _ := strconv.Atoi(m[1])
		if line > 0 && yamlGrammar.MatchString(text) {
			line++
		}
		if p.line == 0 {
			last := 1 + bytes.Count(bytes.TrimSpace(content), []byte{'\n'})
			p.line = min(max(line, 1), last)
		}
	}
	p.text = "is not YAML: " + text + "; write each setting as a line \"key: value\", indent by spaces, not tabs, " +
		"and put a value that holds or begins with a sign of YAML's in quotes, such as \"::1/128\""
	return p
}

// noText returns the first line that holds control characters or is not UTF-8, 0 for none.
func noText(content []byte) int {
	isControl := func(c rune) bool { return unicode.IsControl(c) && c != '\t' && c != '\r' }
	for i, line := range bytes.Split(content, []byte{'\n'}) {
		if !utf8.Valid(line) || bytes.ContainsFunc(line, isControl) {
			return i + 1
		}
	}
	return 0
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (r *reader) keys(n *yaml.Node) {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.complain(n, "", "is not a mapping; write each setting as a line \"key: value\"")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		s := findSetting(key.Value)
		if s == nil {
			r.complain(key, "", "%s", unknownKey(key.Value))
			continue
		}
		r.take(s, key, value)
	}
}

// take reads the value of one setting.
func (r *reader) take(s *setting, key, value *yaml.Node) {
	switch {
	case r.said[s.key].line != 0:
		r.complain(key, s.key, "is given twice, first in line %d; keep one", r.said[s.key].line)
	case s.setZones != nil:
		zones, lines := r.zones(s, value)
		r.said[s.key] = given{zones: zones, line: key.Line, lines: lines}
	case s.views:
		r.said[s.key] = given{views: r.views(s, value), line: key.Line}
	case s.setItems != nil:
		items, lines := r.items(s, value)
		r.said[s.key] = given{items: items, line: key.Line, lines: lines}
	default:
		if values, ok := r.values(s, key, value); ok {
			r.said[s.key] = given{values: values, line: key.Line, lines: linesOf(value)}
		}
	}
}

// views reads a list of mappings of settings.
func (r *reader) views(s *setting, value *yaml.Node) (views []givenView) {
	if value.Kind != yaml.SequenceNode {
		r.complain(value, s.key, "is not a list; write - name: NAME, and below it clients: [192.0.2.0/24]")
		return nil
	}
	for _, n := range value.Content {
		v := givenView{line: n.Line}
		if n = resolve(n); n.Kind != yaml.MappingNode {
			r.complain(n, s.key, "has an item that is no mapping; write - name: NAME, and below it clients: [192.0.2.0/24]")
			continue
		}
		inner := reader{file: r.file, said: map[string]given{}}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], resolve(n.Content[i+1])
			if field := viewSetting(key.Value); field != nil {
				inner.take(field, key, value)
			} else {
				r.complain(key, s.key, "a view has no key %q; write %s", key.Value, alternatives(viewKeys()))
			}
		}
		r.errs = append(r.errs, inner.errs...)
		v.said = inner.said
		views = append(views, v)
	}
	return views
}

// linesOf returns the lines of the values that a node holds.
func linesOf(value *yaml.Node) (lines []int) {
	if value.Kind != yaml.SequenceNode {
		return []int{value.Line}
	}
	for _, item := range value.Content {
		lines = append(lines, item.Line)
	}
	return lines
}

// unknownKey says what may have been meant.
func unknownKey(key string) string {
	var keys []string
	for _, s := range settings {
		keys = append(keys, s.key)
	}
	message := fmt.Sprintf("there is no key %q", key)
	if near := nearest(key, keys); near != "" {
		return message + fmt.Sprintf("; did you mean %q?", near)
	}
	return message + "; bonsai example prints all, and README.md has them"
}

// values returns the texts of a setting's value: scalars as they are written, so that off and 010 are
// what they look like and not what YAML makes of them.
func (r *reader) values(s *setting, key, value *yaml.Node) (values []string, ok bool) {
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		r.complain(key, s.key, "has no value; write %s: %s", s.key, s.value)
		return nil, false
	case value.Kind == yaml.ScalarNode:
		return []string{value.Value}, true
	case value.Kind != yaml.SequenceNode:
		r.complain(key, s.key, "holds a mapping; write %s: %s", s.key, s.value)
		return nil, false
	case !s.list:
		r.complain(key, s.key, "is a list, but takes one value; write %s: %s", s.key, s.value)
		return nil, false
	}
	for _, item := range value.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			r.complain(item, s.key, "has an item that is no plain value; write - %s", s.value)
			return nil, false
		}
		values = append(values, item.Value)
	}
	return values, true
}

// items reads a list of mappings.
func (r *reader) items(s *setting, value *yaml.Node) (items []item, lines []int) {
	if value.Kind != yaml.SequenceNode {
		r.complain(value, s.key, "is not a list; write - %s: VALUE", s.fields[0])
		return nil, nil
	}
	for _, n := range value.Content {
		line := n.Line
		n = resolve(n)
		it := item{fields: map[string][]string{}}
		switch {
		case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
			it.fields[s.fields[0]] = []string{n.Value}
		case n.Kind != yaml.MappingNode:
			r.complain(n, s.key, "has an item that is no mapping; write - %s: VALUE", s.fields[0])
			continue
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], resolve(n.Content[i+1])
			field := &setting{key: s.key + "." + key.Value, value: "VALUE", list: true}
			if !slices.Contains(s.fields, key.Value) {
				r.complain(key, s.key, "an item has no key %q; write %s", key.Value, alternatives(s.fields))
			} else if values, ok := r.values(field, key, value); ok {
				it.fields[key.Value] = values
			}
		}
		items, lines = append(items, it), append(lines, line)
	}
	return items, lines
}

// zones reads forward-zones or stub-zones.
func (r *reader) zones(s *setting, value *yaml.Node) (zones []zonecut.Configured, lines []int) {
	if value.Kind != yaml.SequenceNode {
		r.complain(value, s.key, "is not a list; write - name: example.org, and below it addrs: [192.0.2.1]")
		return nil, nil
	}
	for _, item := range value.Content {
		line := item.Line
		item = resolve(item)
		if item.Kind != yaml.MappingNode {
			r.complain(item, s.key, "has an item that is no mapping; write - name: example.org, and below it addrs: [192.0.2.1]")
			continue
		}
		if z, ok := r.zone(s, item); ok {
			zones, lines = append(zones, z), append(lines, line)
		}
	}
	return zones, lines
}

// zoneKeys are the keys of an item of forward-zones or stub-zones.
var zoneKeys = []string{"name", "addrs", "hosts", "first", "prime", "tcp", "tls"}

func (r *reader) zone(s *setting, n *yaml.Node) (z zonecut.Configured, ok bool) {
	z.Forward = s.forward
	problems := len(r.errs)
	r.zoneTLS(&z, n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		field := &setting{key: s.key + "." + key.Value, value: "VALUE", list: key.Value == "addrs" || key.Value == "hosts"}
		if !slices.Contains(zoneKeys, key.Value) {
			r.complain(key, s.key, "%s", unknownZoneKey(key.Value))
			continue
		}
		values, ok := r.values(field, key, value)
		if !ok {
			continue
		}
		if err := setZoneField(&z, key.Value, values); err != nil {
			r.complain(key, field.key, "%v", err)
		}
	}
	switch {
	case len(r.errs) > problems:
	case z.Zone == "":
		r.complain(n, s.key, "has an item without a name; write name: example.org")
	case len(z.Servers) == 0:
		r.complain(n, s.key, "has no servers for %s; write addrs: [192.0.2.1]", z.Zone)
	case z.TLS != nil && z.Prime:
		r.complain(n, s.key, "has both tls and prime for %s, and of servers found by priming no certificate is known; leave one out", z.Zone)
	}
	return z, len(r.errs) == problems
}

// zoneTLS reads the key tls of a zone, which says how others of its keys are to be read.
func (r *reader) zoneTLS(z *zonecut.Configured, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		// What is wrong with the value is said where all keys are read.
		if on, err := boolean(resolve(n.Content[i+1]).Value); n.Content[i].Value == "tls" && err == nil && on {
			z.TLS = map[netip.AddrPort]string{}
		}
	}
}

func setZoneField(z *zonecut.Configured, key string, values []string) (err error) {
	switch key {
	case "name":
		z.Zone, err = domain(values[0])
	case "addrs":
		unnamed := zonecut.Server{}
		for _, v := range values {
			ap, name, err := zoneServer(v, z.TLS != nil)
			if err != nil {
				return err
			}
			if unnamed.Addrs = append(unnamed.Addrs, ap); z.TLS != nil {
				z.TLS[ap] = name
			}
		}
		if len(unnamed.Addrs) > 0 {
			z.Servers = append(z.Servers, unnamed)
		}
	case "hosts":
		if z.TLS != nil && len(values) > 0 {
			return fmt.Errorf("servers asked over TLS are written with their addresses; write addrs: [192.0.2.1#%s]", values[0])
		}
		for _, v := range values {
			var name wire.Name
			if name, err = domain(v); err != nil {
				return err
			}
			z.Servers = append(z.Servers, zonecut.Server{Name: name})
		}
	case "first":
		z.First, err = boolean(values[0])
	case "prime":
		z.Prime, err = boolean(values[0])
	case "tcp":
		z.TCP, err = boolean(values[0])
	case "tls":
		_, err = boolean(values[0])
	}
	return err
}

func unknownZoneKey(key string) string {
	if near := nearest(key, zoneKeys); near != "" {
		return fmt.Sprintf("a zone has no key %q; did you mean %q?", key, near)
	}
	return fmt.Sprintf("a zone has no key %q; write %s", key, alternatives(zoneKeys))
}

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// command is what the command line asks for.
type command struct {
	name    string // "", lab or check
	flags   map[string]given
	config  string // the configuration file, "" for none
	once    bool
	args    []string // of ctl
	control string   // of ctl: the socket
	json    bool     // of ctl
	binary  bool     // of ctl dump
	help    bool
	version bool
}

// commands are what the first argument may name, each with the settings that have a flag there.
var commands = map[string]func(*setting) bool{
	"":        func(s *setting) bool { return s.flag },
	"check":   func(s *setting) bool { return s.flag },
	"example": func(*setting) bool { return false },
	"manual":  func(*setting) bool { return false },
	"ctl":     func(*setting) bool { return false },
	"lab": func(s *setting) bool {
		switch s.key {
		case "listen", "metrics", "dnssec", "qname-minimisation", "cache-size", "threads", "log-level":
			return true
		}
		return false
	},
}

// parseCommand reads the command line without the program's name.
func parseCommand(args []string) (*command, error) {
	c := &command{flags: map[string]given{}}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		c.name = args[0]
		args = args[1:]
		if _, ok := commands[c.name]; !ok || c.name == "" {
			return nil, unknown("command", "", c.name, slices.Sorted(maps.Keys(commands)))
		}
	}
	fs := c.flagSet()
	if err := fs.Parse(args); err != nil {
		return nil, explain(err, fs, c.name)
	}
	if c.args = fs.Args(); c.name == "ctl" {
		if c.binary && len(c.args) == 1 && c.args[0] == "dump" {
			c.args[0] = "save"
		}
		return c, nil
	}
	if rest := fs.Args(); len(rest) > 0 {
		if c.name == "check" && c.config == "" {
			return nil, fmt.Errorf("%q is neither a flag nor a flag's value; write bonsai check --config %s", rest[0], rest[0])
		}
		return nil, fmt.Errorf("%q is neither a flag nor a flag's value; bonsai --help lists the flags", rest[0])
	}
	fs.Visit(func(f *pflag.Flag) {
		if values, ok := f.Value.(*texts); ok {
			c.flags[f.Name] = given{values: values.list}
		}
	})
	if c.name == "check" && c.config == "" && !c.help && !c.version {
		return nil, errors.New("check needs --config FILE")
	}
	return c, nil
}

func (c *command) flagSet() *pflag.FlagSet {
	fs := pflag.NewFlagSet("bonsai", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	has := commands[c.name]
	for i := range settings {
		if s := &settings[i]; has(s) {
			help := s.help
			if c.name == "lab" && s.key == "listen" {
				help = "take queries there, over UDP and TCP; repeatable; default 127.0.0.1:5300"
			}
			fs.Var(&texts{list: nil, many: s.list, kind: s.value}, s.key, help)
		}
	}
	if c.name == "lab" {
		fs.BoolVar(&c.once, "once", false, "stop after the table; exit 0 if every row is as it should be")
	} else {
		fs.StringVar(&c.config, "config", "", "YAML; every flag is a key of the same name; a flag wins over the file")
	}
	if c.name == "ctl" {
		fs.StringVar(&c.control, "control", "", "the socket; default: of --config, else "+defaultControl)
		fs.BoolVar(&c.binary, "binary", false, "of dump: write the cache file instead")
		fs.BoolVar(&c.json, "json", false, "print JSON")
	}
	fs.BoolVar(&c.version, "version", false, "print the version")
	fs.BoolVarP(&c.help, "help", "h", false, "print this")
	return fs
}

// texts is a flag's value or values as they were written; the setting parses them.
type texts struct {
	list []string
	many bool
	kind string
}

func (t *texts) String() string { return strings.Join(t.list, " ") }
func (t *texts) Type() string   { return t.kind }

// Set takes another value. Of what takes one value the last counts.
func (t *texts) Set(s string) error {
	if !t.many {
		t.list = nil
	}
	t.list = append(t.list, s)
	return nil
}

// explain adds to an unknown flag of a command what may have been meant.
func explain(err error, fs *pflag.FlagSet, command string) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return err
	}
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := missing.GetSpecifiedName()
	if missing.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("there is no flag -%s; flags begin with --, and bonsai --help lists them", name)
	}
	if findSetting(name) != nil && !commands["check"](findSetting(name)) {
		return fmt.Errorf("--%s is no flag here, but a key of the configuration file", name)
	}
	if findSetting(name) != nil {
		return fmt.Errorf("--%s is no flag of bonsai %s; bonsai %s --help lists those", name, command, command)
	}
	return unknown("flag", "--", name, names)
}

func unknown(what, dashes, name string, names []string) error {
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("there is no %s %s%s; did you mean %s%s?", what, dashes, name, dashes, near)
	}
	return fmt.Errorf("there is no %s %s%s; bonsai --help lists what there is", what, dashes, name)
}

const (
	// nameWidth is what a flag and its value's name take of a line of help.
	nameWidth = 28
	// helpWidth is how long such a line may be.
	helpWidth = 100
)

// synopses are the commands as help and the manual show them.
var synopses = []struct{ name, form, does string }{
	{"", "bonsai [flags]", "run the resolver"},
	{"lab", "bonsai lab [flags]", "run a small signed Internet, and bonsai on it at 127.0.0.1:5300"},
	{"check", "bonsai check --config FILE", "exit 0, or name file, line and key that is wrong and what would be right"},
	{"ctl", "bonsai ctl COMMAND", "tell a running bonsai something; bonsai ctl --help lists the commands"},
	{"example", "bonsai example", "print a configuration file with every key, its default and its reason"},
	{"manual", "bonsai manual", "print the manual page, for man -l -"},
}

// usage writes the help of a command.
func (c *command) usage(w io.Writer) {
	for _, s := range synopses {
		if c.name == "" || c.name == s.name {
			fmt.Fprintf(w, "%-*s %s\n", nameWidth+2, s.form, s.does)
		}
	}
	if c.name == "ctl" {
		fmt.Fprintln(w)
		for _, known := range controlCommands {
			helpLine(w, strings.TrimSpace(known.name+" "+known.args), known.does)
		}
	}
	fmt.Fprintln(w)
	c.flagSet().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if _, ok := f.Value.(*texts); ok {
			name += " " + f.Value.Type()
		} else if f.Value.Type() == "string" {
			name += " FILE"
		}
		helpLine(w, name, f.Usage)
	})
}

// helpLine writes what a thing does beside its name, or below a long one, on as many lines as that takes.
func helpLine(w io.Writer, name, does string) {
	if len(name) > nameWidth {
		fmt.Fprintf(w, "  %s\n", name)
		name = ""
	}
	line := ""
	for _, word := range strings.Fields(does) {
		if line != "" && nameWidth+4+len(line)+len(word) > helpWidth {
			fmt.Fprintf(w, "  %-*s %s\n", nameWidth, name, line)
			name, line = "", ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	fmt.Fprintf(w, "  %-*s %s\n", nameWidth, name, line)
}

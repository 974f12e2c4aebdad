package main

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"bonsai/resolver/policy"
	"bonsai/wire"
)

// sumSeed makes sums of this process comparable with each other.
var sumSeed = maphash.MakeSeed()

// listInfo tells of one file of names, for the metrics.
type listInfo struct {
	kind   string // block, allow or hosts
	label  string // the file's name, without its folder; unlike those of others of its kind
	names  int    // 0 of hosts, whose lines become local data
	bad    int    // lines passed over
	bytes  int
	loaded time.Time
	set    *policy.NameSet // nil of hosts
	hits   *atomic.Uint64  // queries and answers that the list decided; nil of hosts
}

// addList takes a list into the account.
func (c *Config) addList(kind, file string, l listInfo) {
	l.kind, l.label, l.loaded = kind, filepath.Base(file), time.Now()
	// Labels of metrics tell things apart; two lists may have files of one name.
	same := func(o listInfo) bool { return o.kind == kind && o.label == l.label }
	for n := 2; slices.ContainsFunc(c.Lists, same); n++ {
		l.label = fmt.Sprintf("%s (%d)", filepath.Base(file), n)
	}
	if l.set != nil {
		l.names, l.bytes, l.hits = l.set.Len(), l.set.Bytes(), new(atomic.Uint64)
	}
	c.Lists = append(c.Lists, l)
}

// keepLists goes on with what old has counted and, where all lists are what they were, with the sets it
// has: the rules hold those, and none need be in memory twice.
func (c *Config) keepLists(old *Config) {
	same := c.ListSums == old.ListSums && slices.Equal(c.ViewSums, old.ViewSums)
	if same {
		c.BlockLists, c.AllowLists = old.BlockLists, old.AllowLists
		for _, sum := range c.ViewSums {
			own, was := c.Views.byName(sum.name).Own, old.Views.byName(sum.name).Own
			own.BlockLists, own.AllowLists = was.BlockLists, was.AllowLists
		}
	}
	c.Lists = slices.Clone(c.Lists) // it may be old's own, which is being read
	for i := range c.Lists {
		l := &c.Lists[i]
		for _, o := range old.Lists {
			if l.set != nil && o.kind == l.kind && o.label == l.label {
				l.hits = o.hits
				if same {
					l.set = o.set
				}
			}
		}
	}
	if !same {
		c.countLists()
	}
}

// countLists makes the lists count. It comes before the lists are given to rules.
func (c *Config) countLists() {
	for _, l := range c.Lists {
		if l.set != nil {
			l.set.CountIn(l.hits)
		}
	}
}

// setHosts adds hosts files to the local data, whose row in the table comes first. Bad lines are
// passed over and told.
func setHosts(c *Config, values []string, dir string) error {
	if c.LocalData == nil {
		c.LocalData = policy.LocalData{}
	}
	return eachValue(values, func(name string) error {
		name, err := c.reads(dir, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		errs := c.LocalData.AddHosts(string(content))
		c.noteBad(name, len(errs), errs)
		c.addList("hosts", name, listInfo{bad: len(errs)})
		return nil
	})
}

// noteBad tells of bad lines: how many, and the first few.
func (c *Config) noteBad(name string, count int, first []error) {
	if count == 0 {
		return
	}
	const shown = 3
	var texts []string
	for _, err := range first[:min(shown, len(first))] {
		texts = append(texts, err.Error())
	}
	c.Notices = append(c.Notices, fmt.Sprintf("%s: bad lines skipped: %d, such as %s", name, count, strings.Join(texts, "; ")))
}

// readNames reads a list of names, and tells of its bad lines.
func (c *Config) readNames(kind, dir, name string, sum io.Writer) (*policy.NameSet, error) {
	f, name, err := c.open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := policy.NewNameSetBuilder()
	defer b.Discard()
	report, err := b.ReadList(io.TeeReader(f, sum))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.noteBad(name, report.Bad, report.Errors)
	set := b.Build()
	c.addList(kind, name, listInfo{bad: report.Bad, set: set})
	return set, nil
}

// listSum is 0 where there are no lists.
func listSum(sum *maphash.Hash, lists int) uint64 {
	if lists == 0 {
		return 0
	}
	return sum.Sum64()
}

func setAllowLists(c *Config, values []string, dir string) error {
	c.AllowLists = nil
	var sum maphash.Hash
	sum.SetSeed(sumSeed)
	err := eachValue(values, func(name string) error {
		set, err := c.readNames("allow", dir, name, &sum)
		c.AllowLists = append(c.AllowLists, set)
		fmt.Fprint(&sum, name)
		return err
	})
	c.ListSums[1] = listSum(&sum, len(values))
	return err
}

var listActions = map[string]policy.ListAction{
	"nxdomain": policy.ListNXDomain, "nodata": policy.ListNoData, "refuse": policy.ListRefuse, "address": policy.ListAddress,
}

// listErrors are the extended errors for what a list stops (RFC 8914 §4.16 to §4.18).
var listErrors = map[string]wire.EDECode{
	"blocked": wire.EDEBlocked, "censored": wire.EDECensored, "filtered": wire.EDEFiltered,
}

func setBlockLists(c *Config, items []item, dir string) error {
	c.BlockLists = nil
	var sum maphash.Hash
	sum.SetSeed(sumSeed)
	for i := range items {
		list, err := c.blockList(&items[i], dir, &sum)
		if err != nil {
			return &valueError{i, err}
		}
		c.BlockLists = append(c.BlockLists, list)
		fmt.Fprint(&sum, list.Label, list.Action, list.EDE, list.Addrs)
	}
	c.ListSums[0] = listSum(&sum, len(items))
	return nil
}

func (c *Config) blockList(it *item, dir string, sum io.Writer) (list policy.List, err error) {
	file := it.one("file", "")
	if file == "" {
		return list, errors.New("no file; write file: NAME")
	}
	list.Label = filepath.Base(file)
	if list.Action, err = word(it.one("action", "nxdomain"), listActions); err != nil {
		return list, err
	}
	if list.EDE, err = word(it.one("ede", "blocked"), listErrors); err != nil {
		return list, err
	}
	for _, text := range it.fields["addrs"] {
		var addr netip.Addr
		if addr, err = address(text); err != nil {
			return list, err
		}
		list.Addrs = append(list.Addrs, addr)
	}
	if (list.Action == policy.ListAddress) != (len(list.Addrs) > 0) {
		return list, errors.New("action address and addrs go together; write both, or neither")
	}
	list.Names, err = c.readNames("block", dir, file, sum)
	return list, err
}

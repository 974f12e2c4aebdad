package main

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bonsai/resolver/policy"
	"bonsai/wire"
)

// rates counts what the rate limit did since the start, whatever was reloaded meanwhile.
var rates policy.RateStats

// sumSeed makes sums of this process comparable with each other.
var sumSeed = maphash.MakeSeed()

var processStart = time.Now()

// rateClock is monotonic, in 64ths of a second.
func rateClock() uint64 { return uint64(time.Since(processStart) / (time.Second / 64)) }

// setHosts adds hosts files to the local data, whose row in the table comes first. Bad lines are
// passed over and told.
func setHosts(c *Config, values []string, dir string) error {
	if c.LocalData == nil {
		c.LocalData = policy.LocalData{}
	}
	for _, name := range values {
		name = inDir(dir, name)
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		errs := c.LocalData.AddHosts(string(content))
		c.noteBad(name, len(errs), errs)
	}
	return nil
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
func (c *Config) readNames(name string, sum io.Writer) (*policy.NameSet, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := policy.NewNameSetBuilder()
	report, err := b.ReadList(io.TeeReader(f, sum))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.noteBad(name, report.Bad, report.Errors)
	return b.Build(), nil
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
	for _, name := range values {
		set, err := c.readNames(inDir(dir, name), &sum)
		if err != nil {
			return err
		}
		c.AllowLists = append(c.AllowLists, set)
	}
	c.ListSums[1] = listSum(&sum, len(values))
	return nil
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
			return fmt.Errorf("in the item of line %d: %w", items[i].line, err)
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
	list.Names, err = c.readNames(inDir(dir, file), sum)
	return list, err
}

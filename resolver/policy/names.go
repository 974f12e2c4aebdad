package policy

import (
	"bufio"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"bonsai/wire"
)

// NameSet is a set of names by their 64-bit hashes, at ten to eleven bytes a name: a list of
// millions fits where their spellings would not. A name that is not in the set is taken for one that
// is with a chance of its size in 2^64, under a hash seed drawn anew for each set. It is immutable.
type NameSet struct {
	seed  maphash.Seed
	table []uint64 // open addressing, 0 is free
	count int
}

// fill is how much of a table is used, in percent: probes stay short below it.
const fill = 75

// NameSetBuilder collects names.
type NameSetBuilder struct {
	seed   maphash.Seed
	hashes []uint64
}

// NewNameSetBuilder returns an empty builder.
func NewNameSetBuilder() *NameSetBuilder { return &NameSetBuilder{seed: maphash.MakeSeed()} }

// Add adds a name in canonical case, as Name or wire bytes.
func (b *NameSetBuilder) Add(name wire.Name) { b.hashes = append(b.hashes, hashName(b.seed, name)) }

// hashName never gives 0, which marks a free place.
func hashName(seed maphash.Seed, name wire.Name) uint64 {
	return maphash.String(seed, string(name)) | 1
}

// Build returns the set and empties the builder.
func (b *NameSetBuilder) Build() *NameSet {
	slices.Sort(b.hashes)
	b.hashes = slices.Compact(b.hashes)
	s := &NameSet{seed: b.seed, count: len(b.hashes), table: make([]uint64, len(b.hashes)*100/fill+1)}
	for _, h := range b.hashes {
		i := s.place(h)
		for s.table[i] != 0 {
			if i++; i == len(s.table) {
				i = 0
			}
		}
		s.table[i] = h
	}
	b.hashes = nil
	return s
}

// place spreads hashes over a table of any size, without a division.
func (s *NameSet) place(h uint64) int {
	hi, _ := bits.Mul64(h, uint64(len(s.table)))
	return int(hi)
}

// Len returns how many names there are.
func (s *NameSet) Len() int { return s.count }

// Bytes returns the memory of the table.
func (s *NameSet) Bytes() int { return 8 * len(s.table) }

// Has says whether name, in canonical case, is in the set.
func (s *NameSet) Has(name wire.Name) bool {
	h := hashName(s.seed, name)
	for i := s.place(h); s.table[i] != 0; {
		if s.table[i] == h {
			return true
		}
		if i++; i == len(s.table) {
			i = 0
		}
	}
	return false
}

// Covers says whether name or a name above it, but the root, is in the set.
func (s *NameSet) Covers(name wire.Name) bool {
	if s.count == 0 {
		return false
	}
	for ; len(name) > 1; name = name.Parent() {
		if s.Has(name) {
			return true
		}
	}
	return false
}

// ListReport tells what reading a list met.
type ListReport struct {
	Names, Bad int
	Errors     []error // of the first bad lines, with their numbers; at most maxListErrors
}

const (
	maxListErrors = 3
	maxListLine   = 4096
)

var errNotName = errors.New("neither a domain name nor a line of a hosts file")

// ReadList adds the names of a list: one name a line, or lines of a hosts file, whose addresses are
// passed over; "#" and "!" begin a comment, "*." before a name is as good as the name. Bad lines are
// skipped and reported; the error is of reading alone.
func (b *NameSetBuilder) ReadList(r io.Reader) (report ListReport, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, maxListLine), maxListLine)
	for n := 1; lines.Scan(); n++ {
		added, err := b.addLine(lines.Text())
		report.Names += added
		if err != nil {
			report.Bad++
			if len(report.Errors) < maxListErrors {
				report.Errors = append(report.Errors, fmt.Errorf("line %d: %w", n, err))
			}
		}
	}
	if err := lines.Err(); err != nil {
		return report, fmt.Errorf("after %d names: %w", report.Names, err)
	}
	return report, nil
}

func (b *NameSetBuilder) addLine(line string) (added int, err error) {
	if i := strings.IndexAny(line, "#!"); i >= 0 {
		line = line[:i]
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return 0, nil
	}
	if _, err := netip.ParseAddr(words[0]); err == nil {
		words = words[1:]
	} else if len(words) > 1 {
		return 0, fmt.Errorf("%q: %w", line, errNotName)
	}
	for _, word := range words {
		name, err := wire.ParseName(strings.TrimPrefix(word, "*."))
		if err != nil || name == wire.Root {
			return added, fmt.Errorf("%q: %w", word, errNotName)
		}
		if name = name.Canonical(); hostsOwn[name] {
			continue
		}
		b.Add(name)
		added++
	}
	return added, nil
}

// hostsOwn are names that lists in hosts format carry for the machine itself.
var hostsOwn = map[wire.Name]bool{
	wire.MustName("localhost"): true, wire.MustName("localhost.localdomain"): true, wire.MustName("local"): true,
	wire.MustName("broadcasthost"): true, wire.MustName("ip6-localhost"): true, wire.MustName("ip6-loopback"): true,
	wire.MustName("ip6-localnet"): true, wire.MustName("ip6-mcastprefix"): true, wire.MustName("ip6-allnodes"): true,
	wire.MustName("ip6-allrouters"): true, wire.MustName("ip6-allhosts"): true,
}

package bench

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"bonsai/cache/entry"
	"bonsai/wire"
)

const testNow = 1_800_000_000

// TestLayoutsAgree: every layout writes the same bytes, at once and after some time.
func TestLayoutsAgree(t *testing.T) {
	for _, mix := range []*Mix{{Seed: 1}, {Seed: 2, Signed: true}} {
		layouts := make([]Layout, len(Kinds))
		for i, k := range Kinds {
			l, err := k.New(100_000, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			layouts[i] = l
		}
		var m wire.Message
		const n = 3000
		for i := range n {
			if err := m.Parse(mix.Response(nil, i)); err != nil {
				t.Fatalf("response %d: %v", i, err)
			}
			for _, l := range layouts {
				l.Insert(&m, testNow)
			}
		}
		for i := range n {
			for _, later := range []uint32{0, 7} {
				agree(t, mix, layouts, i, testNow+later)
			}
		}
	}
}

func agree(t *testing.T, mix *Mix, layouts []Layout, i int, now uint32) {
	t.Helper()
	var q wire.Query
	if v := q.Parse(mix.Query(nil, i)); v != wire.QueryOK {
		t.Fatalf("query %d: %v", i, v)
	}
	first, ok := layouts[0].Lookup(nil, &q, now)
	if !ok {
		t.Fatalf("name %d is not in %s", i, Kinds[0].Name)
	}
	for j, l := range layouts {
		got, ok := l.Lookup(nil, &q, now)
		if !ok {
			t.Fatalf("name %d is not in %s", i, Kinds[j].Name)
		}
		same := bytes.Equal(got, first)
		if Kinds[j].Semantic {
			same = text(t, got) == text(t, first)
		}
		if !same {
			t.Fatalf("name %d: %s writes\n%s\n%x\nand %s\n%s\n%x", i, Kinds[j].Name, text(t, got), got, Kinds[0].Name, text(t, first), first)
		}
	}
}

func text(t *testing.T, b []byte) string {
	var m dns.Msg
	if err := m.Unpack(b); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return m.String()
}

// TestMix holds the shares of the mix to what it says.
func TestMix(t *testing.T) {
	mix := &Mix{Seed: 3}
	const n = 20_000
	types := map[wire.Type]int{}
	names := map[string]bool{}
	bytes := 0
	for i := range n {
		qname, qt := mix.Question(nil, i)
		types[qt]++
		names[string(qname)] = true
		bytes += len(qname)
	}
	if len(names) != n {
		t.Errorf("%d different names of %d", len(names), n)
	}
	for qt, want := range map[wire.Type]int{wire.TypeA: 56, wire.TypeAAAA: 25, wire.TypeTXT: 19} {
		if got := types[qt] * 100 / n; got < want-1 || got > want+1 {
			t.Errorf("%v: %d %%, want %d", qt, got, want)
		}
	}
	if mean := bytes / n; mean < 20 || mean > 40 {
		t.Errorf("names of %d bytes on average", mean)
	}
}

// TestGrouping: the arena's grouping, which allocates nothing, is the one that wire does.
func TestGrouping(t *testing.T) {
	var a arena
	for _, mix := range []*Mix{{Seed: 1}, {Seed: 2, Signed: true}} {
		for i := range 2000 {
			var m wire.Message
			if err := m.Parse(mix.Response(nil, i)); err != nil {
				t.Fatal(err)
			}
			var want wire.Response
			if err := m.Response(&want); err != nil {
				t.Fatal(err)
			}
			var got entry.Content
			a.group(&m, &got)
			for s, sets := range [...][2][]wire.RRset{{got.Answer, want.Answer}, {got.Authority, want.Authority}, {got.Additional, want.Additional}} {
				if fmt.Sprint(sets[0]) != fmt.Sprint(sets[1]) {
					t.Fatalf("response %d, section %d:\n%v, want\n%v", i, s, sets[0], sets[1])
				}
			}
		}
	}
}

// TestMixAllocs: what makes the input leaves no garbage that would be counted as a layout's.
func TestMixAllocs(t *testing.T) {
	mix, buf, i := &Mix{Seed: 4, Signed: true}, make([]byte, 0, 4096), 0
	if n := allocs(2000, func() {
		buf = mix.Response(buf[:0], i)
		buf = mix.Query(buf[:0], i)
		i++
	}); n > few {
		t.Errorf("%d allocations to make 2000 responses and queries", n)
	}
}

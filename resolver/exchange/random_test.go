package exchange

import (
	"bytes"
	"strings"
	"testing"

	"bonsai/wire"
)

// TestPorts: every allowed port is drawn about equally often, and no other.
func TestPorts(t *testing.T) {
	var p portSet
	p.exclude([]PortRange{{0, 2000}, {5353, 5353}, {60000, 65535}})
	var e entropy
	const rounds = 40
	allowed := 60000 - 2001 - 1
	var bins [58]int
	for range rounds * allowed {
		port := p.draw(&e)
		if port < 2001 || port == 5353 || port >= 60000 {
			t.Fatalf("drew port %d", port)
		}
		bins[(int(port)-2001)/1000]++
	}
	// 40000 draws fall into each bin of 1000 ports: the deviation is 200, six of them are 1200.
	for i, n := range bins[:57] {
		if want := rounds * 1000; n < want-1200 || n > want+1200 {
			t.Errorf("ports from %d on: got %d draws, want about %d", 2001+1000*i, n, want)
		}
	}
}

func TestPortsDefault(t *testing.T) {
	var p portSet
	p.exclude(nil)
	for _, tt := range []struct {
		port uint16
		want bool
	}{{0, false}, {53, false}, {1023, false}, {1024, true}, {65535, true}} {
		if got := p.allows(tt.port); got != tt.want {
			t.Errorf("port %d: got %v, want %v", tt.port, got, tt.want)
		}
	}
	var none portSet
	none.exclude([]PortRange{{0, 65535}})
	if got := none.draw(new(entropy)); got != 0 {
		t.Errorf("with all excluded: got %d, want the system's choice", got)
	}
}

// TestScramble: each letter's case is drawn, and nothing else is changed.
func TestScramble(t *testing.T) {
	name := wire.MustName(strings.Repeat("a", 63) + `.Az09-_\000\255@[` + "`{.EXAMPLE.")
	var e entropy
	upper := make([]int, len(name))
	const rounds = 2000
	for range rounds {
		b := []byte(name)
		e.scramble(b)
		if !wire.EqualFold(b, name) || !wire.Name(b).Valid() {
			t.Fatalf("got %q", b)
		}
		for i := range b {
			if b[i]-'A' < 26 {
				upper[i]++
			}
		}
	}
	for i := range upper {
		isLetter := name[i]|0x20-'a' < 26
		// The deviation is 22; seven of them are 154.
		if isLetter && (upper[i] < rounds/2-154 || upper[i] > rounds/2+154) {
			t.Errorf("letter %d: upper case in %d of %d", i, upper[i], rounds)
		}
		if !isLetter && upper[i] != 0 {
			t.Errorf("octet %d, %#x, became a letter", i, name[i])
		}
	}
}

// TestEntropy: bytes are used once, and wiped.
func TestEntropy(t *testing.T) {
	var e entropy
	seen := map[uint16]int{}
	for range 1 << 12 {
		seen[e.uint16()]++
	}
	// 4096 draws of 65536 meet about 128 times.
	if len(seen) < 1<<12-220 {
		t.Errorf("%d different of %d draws", len(seen), 1<<12)
	}
	if used := e.buf[e.left:]; !bytes.Equal(used, make([]byte, len(used))) {
		t.Errorf("used bytes are still there: % x", used)
	}
}

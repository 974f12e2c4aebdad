package policy

import (
	"fmt"
	"testing"

	"bonsai/wire"
)

// BenchmarkNameSetCovers looks up names in a list of two million: such as are not blocked, which most
// are, and such as are.
func BenchmarkNameSetCovers(b *testing.B) {
	builder := NewNameSetBuilder()
	for i := range 2_000_000 {
		builder.Add(wire.MustName(fmt.Sprintf("host%d.example%d.test", i, i%1000)))
	}
	s := builder.Build()
	for _, kind := range []struct {
		name, form string
		blocked    bool
	}{{"passing", "www.site%d.example.com", false}, {"blocked", "www.host%[1]d.example%[2]d.test", true}} {
		names := make([]wire.Name, 1<<16)
		for i := range names {
			n := i * 30 % 2_000_000
			names[i] = wire.MustName(fmt.Sprintf(kind.form, n, n%1000))
			if !kind.blocked {
				names[i] = wire.MustName(fmt.Sprintf(kind.form, n))
			}
		}
		b.Run(kind.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if s.Covers(names[i&(len(names)-1)]) != kind.blocked {
					b.Fatal("wrong")
				}
			}
			b.ReportMetric(float64(s.Bytes())/float64(s.Len()), "bytes/name")
		})
	}
}

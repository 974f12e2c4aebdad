package denial

import (
	"testing"

	"bonsai/wire"
)

// FuzzStore has the fuzzer add denials, ask and flush in a store that holds little: it holds together,
// and never answers what a zone contradicts.
func FuzzStore(f *testing.F) {
	models := []*model{
		newModel("example.", false, zoneLines...), newModel("example3.", true, zoneLines...),
		newModel("sub.example.", false, "www A", "*.w MX"), newModel(".", false, "example NS DS", "example3 NS DS"),
	}
	f.Add([]byte{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, now := newStore(MinSize), uint32(100)
		pick := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			v := int(data[0])
			data = data[1:]
			return v % n
		}
		name := func(m *model) wire.Name {
			n := m.zone
			for range pick(4) {
				if next, ok := n.Prepend(labels[pick(len(labels))]); ok {
					n = next
				}
			}
			return n
		}
		for len(data) > 0 {
			m := models[pick(len(models))]
			switch pick(8) {
			case 0:
				s.Flush(name(m), 0)
			case 1:
				now += uint32(pick(256))
			case 2:
				s.Add(m.wildcards(uint32(1+pick(255))), now, 0)
			case 3, 4:
				r := &wire.Response{Authority: []wire.RRset{m.soa(uint32(1 + pick(255)))}}
				for range pick(4) {
					r.Authority = append(r.Authority, m.denial(pick(len(m.names)), uint32(1+pick(255))))
				}
				s.Add(r, now, 0)
			default:
				q, qtype := name(m), someTypes[pick(len(someTypes))]
				if q == m.zone && qtype == wire.TypeDS || q.IsSubdomainOf(models[2].zone) && m != models[2] {
					continue // another model's
				}
				if got := said(s.Lookup(q, qtype, now)); got != "" && got != m.truth(q, qtype) {
					t.Fatalf("%s %s: got %q, the zone has %q", q, qtype, got, m.truth(q, qtype))
				}
			}
		}
		check(t, s)
	})
}

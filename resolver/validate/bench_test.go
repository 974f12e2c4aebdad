package validate

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"bonsai/wire"
)

// BenchmarkJudge judges what comes with the keys of its zone known already. Signatures are new to the
// Validator but for those of "again".
func BenchmarkJudge(b *testing.B) {
	for _, c := range []struct{ options, name, qtype string }{
		{"", "www.example.", "A"}, {"alg=8", "www.example.", "A"}, {"alg=15", "www.example.", "A"},
		{"", "no.example.", "A"}, {"nsec3", "no.example.", "A"}, {"nsec3", "www.example.", "A"}, {"", "www.plain.", "A"},
	} {
		for _, again := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/%s/again=%v", c.options, c.name, again), func(b *testing.B) {
				w := newWorld(b, signedTexts(c.options)...)
				client := newClient(w, Config{})
				first := client.judgedOf(b, c.name, c.qtype)
				zone := wire.MustName(w.zoneFor(c.name, 1).origin)
				b.ReportAllocs()
				for b.Loop() {
					r := *first
					r.Answer, r.Authority = slices.Clone(first.Answer), slices.Clone(first.Authority)
					if !again {
						client.v.signatures.young, client.v.signatures.old = nil, nil
					}
					var cost Cost
					client.v.Judge(context.Background(), &r, zone, client, &cost)
				}
			})
		}
	}
}

// judgedOf returns a response as it comes, and has the keys for it fetched.
func (c *client) judgedOf(tb testing.TB, name, qtype string) *wire.Response {
	t, _ := wire.ParseType(qtype)
	m, z := c.w.respond(name, uint16(t))
	r := parse(tb, m)
	var cost Cost
	again := parse(tb, m)
	c.v.Judge(context.Background(), again, wire.MustName(z.origin), c, &cost)
	return r
}

package resolver

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"bonsai/resolver/lab"
)

// TestRandomNames: RFC 8198 §6: of a flood of random names of a signed zone at most a twentieth leads to queries
// to its servers, and without the proofs each does.
func TestRandomNames(t *testing.T) {
	const names = 1000
	world, err := lab.New(lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	for _, zone := range []string{"ecdsa.lab.", "rsa.lab.", "lab."} {
		for size, most := range map[int64]uint64{0: 1 << 20, 1 << 20: names / 20} {
			t.Run(fmt.Sprintf("%s of %d", zone, size), func(t *testing.T) {
				r := newLabResolver(t, world)
				config := r.config
				config.DenialSize = size
				r.denials = newDenials(&config)
				w := r.NewWorker()
				for i := range names {
					m := msg(fmt.Sprintf("%x.%s", (i+1)*0x9E3779B1, zone), dns.TypeA)
					m.AuthenticatedData = true
					if got := askHandler(t, r, w, m); got == nil || got.Rcode != dns.RcodeNameError || !got.AuthenticatedData {
						t.Fatalf("%v", got)
					}
				}
				s := r.Exchange().Stats()
				asked := s.UDPv4 + s.UDPv6 + s.TCPv4 + s.TCPv6
				if asked > most || size == 0 && asked < names {
					t.Errorf("%d upstream queries for %d names, at most %d", asked, names, most)
				}
				t.Logf("%d upstream queries for %d names", asked, names)
			})
		}
	}
}

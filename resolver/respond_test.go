package resolver

import (
	"testing"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// RFC 9824 §5.1: only a proven compact denial is NOERROR to who sets DO and not CO.
func TestClientRCODE(t *testing.T) {
	name, err := wire.ParseName("x.invalid.")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind   entry.Kind
		status wire.Status
		do, co bool
		want   wire.RCODE
	}{
		{entry.KindAnswer, wire.Secure, true, false, wire.RCODENoError},
		{entry.KindAnswer, wire.Secure, true, true, wire.RCODENXDomain},
		{entry.KindAnswer, wire.Secure, false, false, wire.RCODENXDomain},
		{entry.KindAnswer, wire.Insecure, true, false, wire.RCODENXDomain},
		{entry.KindAnswer, wire.Unchecked, true, false, wire.RCODENXDomain},
		{entry.KindDenial, wire.Secure, true, false, wire.RCODENXDomain},
	} {
		e, err := entry.Pack(nil, &entry.Content{Kind: c.kind, QName: name, QType: wire.TypeA, RCODE: wire.RCODENXDomain, Status: c.status, Lifetime: 60}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		q := &wire.Query{}
		q.EDNS.DO, q.EDNS.CO = c.do, c.co
		if got := clientRCODE(e, q); got != c.want {
			t.Errorf("kind %v, status %v, DO %t, CO %t: %v, want %v", c.kind, c.status, c.do, c.co, got, c.want)
		}
	}
}

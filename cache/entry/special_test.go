package entry

import (
	"net/netip"
	"testing"

	"bonsai/wire"
)

func TestSpecialAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"0.0.0.0": true, "1.1.1.1": false, "10.1.2.3": true, "100.63.255.255": false, "100.64.0.1": true, "100.128.0.1": false,
		"127.0.0.1": true, "169.253.1.1": false, "169.254.1.1": true, "172.15.0.1": false, "172.16.0.1": true, "172.32.0.1": false,
		"192.0.0.1": true, "192.0.1.1": false, "192.0.2.1": false, "192.168.0.1": true, "192.167.0.1": false,
		"198.17.0.1": false, "198.18.0.1": true, "198.19.0.1": true, "198.20.0.1": false, "223.255.0.1": false, "224.0.0.1": true, "255.255.255.255": true,
		"::": true, "::1": true, "::ffff:1.1.1.1": true, "64:ff9b::a00:1": true, "fc00::1": true, "fe80::1": true, "ff02::1": true,
		"2001::1": true, "2001:1ff::1": true, "2001:200::1": false, "2001:db8::1": false, "2002:a00::1": true, "2003::1": false, "2a00::1": false, "3fff::1": false, "4000::1": true,
	} {
		addr := netip.MustParseAddr(text)
		set := wire.RRset{Owner: "\x01a\x00", Type: wire.TypeA, Class: wire.ClassIN, TTL: 60, RDATA: [][]byte{{1, 1, 1, 1}, addr.AsSlice()}}
		if addr.Is6() {
			set.Type, set.RDATA[0] = wire.TypeAAAA, netip.MustParseAddr("2a00::1").AsSlice()
		}
		plain := Content{QName: "\x01a\x00", QType: set.Type, Answer: []wire.RRset{set}}
		if e := mustPack(t, &plain, testNow); e.HasSpecialAddress() != want || e.QType() != set.Type {
			t.Errorf("%s: special %t", text, e.HasSpecialAddress())
		}
		set.Owner = "\x01b\x00"
		other := Content{QName: "\x01a\x00", QType: wire.TypeMX, Additional: []wire.RRset{set}}
		if e := mustPack(t, &other, testNow); e.HasSpecialAddress() != want {
			t.Errorf("%s in the additional section: special %t", text, e.HasSpecialAddress())
		}
		proof := Content{QName: "\x01a\x00", QType: wire.TypeMX, Authority: []wire.RRset{set}}
		if e := mustPack(t, &proof, testNow); e.HasSpecialAddress() {
			t.Errorf("%s in the authority section is looked at", text)
		}
	}
}

func TestSpecialHints(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{"1 . alpn=h2", false},
		{"1 . ipv4hint=192.0.2.1,10.0.0.1", true},
		{"1 svc.example. ipv4hint=192.0.2.1", false},
		{"1 svc.example. alpn=h2 ipv6hint=2001:db8::1,fe80::1", true},
		{"1 . ipv6hint=2001:db8::1", false},
		{"0 alias.example.", false},
	} {
		sets := rrsets(t, wire.Insecure, "a.example. 60 IN HTTPS "+test.text)
		c := Content{QName: sets[0].Owner, QType: wire.TypeHTTPS, Status: wire.Insecure, Answer: sets}
		if e := mustPack(t, &c, testNow); e.HasSpecialAddress() != test.want {
			t.Errorf("%s: special %t", test.text, !test.want)
		}
	}
	for _, broken := range []string{"", "\x00\x01", "\x00\x01\x05", "\x00\x01\x00\x00\x04\x00\x09abc"} {
		if hasSpecialHint([]byte(broken)) {
			t.Errorf("%q has a hint", broken)
		}
	}
}

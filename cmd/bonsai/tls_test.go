package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// selfSigned makes a certificate for dns.example, which vouches for itself, also as PEM.
func selfSigned(t *testing.T) (certificate tls.Certificate, text string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"dns.example"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	text = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, text
}

// overTLS starts a resolver on loopback that answers over TLS alone, and returns where, with a file of
// the certificate that it shows.
func overTLS(t *testing.T) (at netip.AddrPort, file string) {
	t.Helper()
	certificate, text := selfSigned(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{
		Listener: tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{certificate}}),
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
			m := new(dns.Msg)
			m.SetReply(q)
			m.RecursionAvailable = true
			if a, err := dns.NewRR(q.Question[0].Name + " 60 A 192.0.2.77"); err == nil && q.Question[0].Qtype == dns.TypeA {
				m.Answer = append(m.Answer, a)
			}
			_ = w.WriteMsg(m)
		}),
	}
	go server.ActivateAndServe()
	t.Cleanup(func() { server.Shutdown() })
	return netip.MustParseAddrPort(inner.Addr().String()), write(t, "ca.pem", text)
}

// A zone is forwarded over TLS to a server whose certificate is good; to one whose certificate is not,
// nothing is asked, and the failure tells why.
func TestForwardOverTLS(t *testing.T) {
	at, ca := overTLS(t)
	for name, test := range map[string]struct {
		host, ca string
		rcode    int
		why      string // in the extended error
	}{
		"trusted":                  {"#dns.example", ca, dns.RcodeSuccess, ""},
		"of another name":          {"#other.example", ca, dns.RcodeServerFailure, "certificate not trusted"},
		"not of the system's":      {"#dns.example", "", dns.RcodeServerFailure, "certificate not trusted"},
		"whatever it is of, taken": {"", "", dns.RcodeSuccess, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("query-localhost: true\ndnssec: \"off\"\nforward-zones:\n  - name: .\n    tls: true\n    addrs: [\"%s@%d%s\"]\n", at.Addr(), at.Port(), test.host)
			if test.ca != "" {
				text += "tls-ca: " + test.ca + "\n"
			}
			c, err := configure(nil, write(t, "bonsai.yaml", text))
			if err != nil {
				t.Fatal(err)
			}
			c.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
			d := startOn(t, c, nil)
			got := query(t, d.addr(), "udp", "www.example.", dns.TypeA, nil)
			if got.Rcode != test.rcode || test.rcode == dns.RcodeSuccess && len(got.Answer) != 1 {
				t.Errorf("got %v", got)
			}
			if test.why != "" && (!slices.Contains(ede(got), int(dns.ExtendedErrorCodeNetworkError)) || !strings.Contains(got.String(), test.why)) {
				t.Errorf("the extended errors do not tell of it: %v", got)
			}
		})
	}
}

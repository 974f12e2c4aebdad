package exchange

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// newAuthority makes an authority's certificate and, signed by it, one for a name, good in the bubble's
// year 2000.
func newAuthority(t *testing.T, name string, ends time.Time) (roots *x509.CertPool, server *tls.Config) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rootKey, key := newKey(), newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageCertSign,
	}
	root := sign(template, template, rootKey, rootKey)
	leaf := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: template.NotBefore, NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, root, key, rootKey)
	roots = x509.NewCertPool()
	roots.AddCert(root)
	return roots, &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}, NextProtos: []string{"dot"},
	}
}

var inTime = time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)

func askTLS(server, host, name string) *Ask {
	a := ask(server, name)
	a.Server = netip.AddrPortFrom(a.Server.Addr(), tlsTestPort)
	a.TLS, a.TLSName = true, host
	return a
}

// buffered is a connection whose writes do not wait for a reader, as the system's do not: of a handshake
// both ends may write at once.
type buffered struct {
	net.Conn
	queue chan []byte
	once  sync.Once
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{Conn: conn, queue: make(chan []byte, 64)}
	go func() {
		for p := range b.queue {
			_, _ = conn.Write(p)
		}
		conn.Close()
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	b.queue <- bytes.Clone(p)
	return len(p), nil
}

func (b *buffered) Close() error {
	b.once.Do(func() { close(b.queue) })
	return nil
}

const tlsTestPort = 853

func (n *fakeNet) addTLS(a string, config *tls.Config) *fakeServer {
	s := &fakeServer{net: n, tcp: reply(), tls: config}
	n.servers[netip.AddrPortFrom(netip.MustParseAddr(a), tlsTestPort)] = s
	return s
}

// TestTLS: queries over TLS share a connection, that stays open longer than one over TCP, and are padded
// to blocks of 128 bytes (RFC 8467 §4.1).
func TestTLS(t *testing.T) {
	roots, config := newAuthority(t, "dns.example", inTime)
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		s := n.addTLS("192.0.2.53", config)
		c := n.client(Config{TLSRoots: roots, Cookies: true})
		for i := range 5 {
			r := mustDo(t, c, askTLS("192.0.2.53", "dns.example", fmt.Sprintf("%0*d.example.", 1+i*12, i)))
			if !r.TCP {
				t.Error("not over a connection")
			}
			time.Sleep(streamIdle + time.Second)
		}
		udp, over := s.counts()
		if n.dials != 1 || udp != 0 || over != 5 {
			t.Errorf("got %d connections, %d datagrams and %d queries over TLS, want 1, 0 and 5", n.dials, udp, over)
		}
		for _, q := range s.tcpSeen {
			var m dns.Msg
			if err := m.Unpack(q); err != nil || len(q)%128 != 0 {
				t.Errorf("a query of %d bytes (%v)", len(q), err)
			}
		}
		if got := c.Stats(); got.TLSv4 != 5 || got.TLSReplies != 5 || got.TCPv4 != 0 || got.UDPv4 != 0 {
			t.Errorf("counted %+v", got)
		}
		time.Sleep(tlsIdle)
		synctest.Wait()
		if n.open != 0 {
			t.Errorf("%d connections are open after %v without a query", n.open, tlsIdle)
		}
	})
}

// TestTLSPeers: a connection that was opened for one name, or for none, is not used for another, and none
// of TCP is used for TLS.
func TestTLSPeers(t *testing.T) {
	roots, config := newAuthority(t, "dns.example", inTime)
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet(t)
		n.addTLS("192.0.2.53", config)
		c := n.client(Config{TLSRoots: roots})
		mustDo(t, c, askTLS("192.0.2.53", "", "a.example."))
		mustDo(t, c, askTLS("192.0.2.53", "dns.example", "b.example."))
		if _, err := c.Do(context.Background(), askTLS("192.0.2.53", "other.example", "c.example.")); !errors.Is(err, ErrUntrusted) {
			t.Errorf("asked under another name: %v", err)
		}
		if n.dials != 3 {
			t.Errorf("%d connections, want one for each", n.dials)
		}
	})
}

// TestTLSUntrusted: a certificate that does not hold ends it, and the question goes nowhere in the clear
// (RFC 8310 §5, strict privacy).
func TestTLSUntrusted(t *testing.T) {
	roots, good := newAuthority(t, "dns.example", inTime)
	_, foreign := newAuthority(t, "dns.example", inTime)
	lateRoots, late := newAuthority(t, "dns.example", time.Date(1999, 6, 1, 0, 0, 0, 0, time.UTC))
	for _, test := range []struct {
		name, host string
		roots      *x509.CertPool
		server     *tls.Config
		want       error
	}{
		{"as it should be", "dns.example", roots, good, nil},
		{"of another name", "dns2.example", roots, good, ErrUntrusted},
		{"of an authority not trusted", "dns.example", roots, foreign, ErrUntrusted},
		{"of an authority not trusted, and no name to hold it to", "", roots, foreign, nil},
		{"expired", "dns.example", lateRoots, late, ErrUntrusted},
		{"none: the server has no TLS", "dns.example", roots, nil, ErrTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				s := n.addTLS("192.0.2.53", test.server)
				plain := n.add("192.0.2.53", &fakeServer{udp: reply()})
				c := n.client(Config{TLSRoots: test.roots})
				_, err := c.Do(context.Background(), askTLS("192.0.2.53", test.host, "www.example."))
				if !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				udp, tcp := plain.counts()
				if _, over := s.counts(); udp+tcp != 0 || test.want != nil && over != 0 {
					t.Errorf("%d queries in the clear, %d over TLS", udp+tcp, over)
				}
			})
		})
	}
}

// TestTLSFails: a server that is down fails as over TCP.
func TestTLSFails(t *testing.T) {
	roots, config := newAuthority(t, "dns.example", inTime)
	for name, test := range map[string]struct {
		set  func(*fakeServer)
		want error
	}{
		"refuses": {func(s *fakeServer) { s.refuse = true }, ErrUnreachable},
		"hangs":   {func(s *fakeServer) { s.hang = true }, ErrTimeout},
		"silent":  {func(s *fakeServer) { s.tcp = func([]byte) [][]byte { return nil } }, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNet(t)
				n.addTLS("192.0.2.53", config).set(test.set)
				c := n.client(Config{TLSRoots: roots})
				begin := time.Now()
				_, err := c.Do(context.Background(), askTLS("192.0.2.53", "dns.example", "www.example."))
				if !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if took := time.Since(begin); took > maxTCPTimeout {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestPadding(t *testing.T) {
	for length := range 600 {
		if n := padding(length); (length+4+n)%128 != 0 || n >= 128 {
			t.Errorf("%d bytes are padded by %d", length, n)
		}
	}
}

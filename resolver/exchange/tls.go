package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"
)

const (
	// tlsIdle is how long a TLS connection is kept without a query on it: it costs more to open than a
	// bare one, and whoever is asked over TLS is asked often (RFC 7858 §3.4).
	tlsIdle = 30 * time.Second
	// tlsSessions is how many sessions are remembered, so that a connection opens in fewer round trips.
	tlsSessions = 64
	// paddedTo is the block that a query over TLS is padded to, in bytes (RFC 8467 §4.1).
	paddedTo = 128
)

// peer is whom connections lead to, and how: those over TLS to one name are for no other.
type peer struct {
	server netip.AddrPort
	tls    bool
	name   string
}

func (x *exchange) peer() peer { return peer{x.a.Server, x.a.TLS, x.a.TLSName} }

func newTLSConfig(c *Config) *tls.Config {
	return &tls.Config{
		RootCAs: c.TLSRoots, MinVersion: tls.VersionTLS12, NextProtos: []string{"dot"},
		ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
	}
}

// secure makes a TLS connection of a bare one, which it closes where that fails. The certificate has to
// be for the name that the server was configured with; without a name there is nothing to hold it to, and
// the connection keeps off those who only listen (RFC 8310 §5).
func (c *Client) secure(ctx context.Context, bare net.Conn, name string) (net.Conn, error) {
	config := c.tls.Clone()
	config.ServerName, config.InsecureSkipVerify = name, name == ""
	conn := tls.Client(bare, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = bare.Close()
		return nil, err
	}
	return secured{conn, bare}, nil
}

// secured is a TLS connection that closes at once: the alert that TLS ends with may have to wait for a
// peer that does not read, and messages that tell their length need none.
type secured struct {
	net.Conn
	bare net.Conn
}

func (s secured) Close() error { return s.bare.Close() }

// isUntrusted says whether a server's certificate was not what it should be.
func isUntrusted(err error) bool {
	var bad *tls.CertificateVerificationError
	return errors.As(err, &bad)
}

// padding returns how many bytes of padding a query has that is so long without the option.
func padding(length int) int {
	const optionHead = 4
	return (paddedTo - (length+optionHead)%paddedTo) % paddedTo
}

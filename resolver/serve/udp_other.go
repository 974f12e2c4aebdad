//go:build !linux

package serve

import "net/netip"

// ancillarySize is the room for ancillary data, of which this system's is not used: a wildcard
// address is bound as the addresses that it stands for.
const ancillarySize = 0

func destination([]byte) netip.Addr { return netip.Addr{} }

func appendSource(oob []byte, _ netip.Addr, _ bool) []byte { return oob }

// serveBatches leaves the socket to serveSingly.
func (u *udpSocket) serveBatches() (done bool, err error) { return false, nil }

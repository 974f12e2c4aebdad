package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"bonsai/wire"
)

// Parsers of values. Each error says what is wrong and what would be right.

func text(s string) (string, error) {
	if s == "" {
		return "", errors.New("is empty; give it a value or remove it")
	}
	return s, nil
}

func addrPort(s string) (netip.AddrPort, error) {
	ap, err := netip.ParseAddrPort(s)
	if err == nil {
		return ap, nil
	}
	right := "127.0.0.1:53 or [::1]:53"
	if addr, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		right = netip.AddrPortFrom(addr, 53).String()
	} else if port, ok := strings.CutPrefix(s, ":"); ok && isNumber(port) {
		right = "0.0.0.0:" + port + " or [::]:" + port
	} else if isNumber(s) {
		right = "127.0.0.1:" + s + " or [::1]:" + s
	}
	return ap, fmt.Errorf("%q is not an address with a port; write it as %s", s, right)
}

func address(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return addr, fmt.Errorf("%q is not an IP address; write it as 192.0.2.1 or 2001:db8::1", s)
	}
	return addr.Unmap(), nil
}

// prefix takes an address, too, as a prefix of itself.
func prefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("%q is not a prefix; write it as 192.0.2.0/24 or 2001:db8::/32", s)
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// server takes an address with or without a port, 53 where there is none, and the form ADDR@PORT.
// Ports of servers: RFC 1035 §4.2, and over TLS RFC 7858 §3.1.
const (
	dnsPort = 53
	tlsPort = 853
)

// zoneServer reads a server of a zone; over TLS with the name that its certificate is to be for, or "".
func zoneServer(s string, overTLS bool) (ap netip.AddrPort, name string, err error) {
	addr, name, named := strings.Cut(s, "#")
	if !overTLS {
		if named {
			return ap, "", fmt.Errorf("%q has a name for a certificate, and is not asked over TLS; write tls: true beside it, or leave #%s out", s, name)
		}
		ap, err = server(s, dnsPort)
		return ap, "", err
	}
	if ap, err = server(addr, tlsPort); err != nil || !named {
		return ap, "", err
	}
	n, err := domain(name)
	if err != nil || n == wire.Root {
		return ap, "", fmt.Errorf("%q has no name behind #; write it as 192.0.2.1#dns.example", s)
	}
	return ap, strings.TrimSuffix(n.Canonical().String(), "."), nil
}

// server reads an address with the port it has, or the one that goes without saying.
func server(s string, usual uint16) (netip.AddrPort, error) {
	host, port, hasPort := strings.Cut(s, "@")
	if addr, err := netip.ParseAddr(host); err == nil {
		if !hasPort {
			return netip.AddrPortFrom(addr.Unmap(), usual), nil
		}
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
			return netip.AddrPortFrom(addr.Unmap(), uint16(n)), nil
		}
	}
	if ap, err := netip.ParseAddrPort(s); err == nil && ap.Port() > 0 {
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
	}
	return netip.AddrPort{}, fmt.Errorf("%q is not a server's address; write it as 192.0.2.1, 192.0.2.1@5353 or [2001:db8::1]:5353", s)
}

func portRange(s string) (PortRange, error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a > b {
		return PortRange{}, fmt.Errorf("%q is not a port or a range of ports; write it as 5353 or 6000-6010", s)
	}
	return PortRange{uint16(a), uint16(b)}, nil
}

func domain(s string) (wire.Name, error) {
	n, err := wire.ParseName(s)
	if err != nil {
		return n, fmt.Errorf("%q is not a domain name: %v; write it as example.org", s, err)
	}
	return n.Canonical(), nil
}

// boolean takes the words that YAML has taken for truth values at one time or other.
func boolean(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false; write one of these", s)
}

var units = map[string]int64{"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}

// size takes bytes with an optional binary unit.
func size(s string) (int64, error) {
	digits := strings.TrimRight(s, "BIKMGibkmg ")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit, ok := units[strings.ToUpper(strings.TrimSpace(s[len(digits):]))]
	if err != nil || !ok || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size; write bytes, or a number with KiB, MiB or GiB, such as 256MiB", s)
	}
	return n * unit, nil
}

// between makes a parser of whole numbers with bounds.
func between[T int | int64 | uint16 | uint32](least, most T) func(string) (T, error) {
	return func(s string) (T, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return 0, fmt.Errorf("%q is not a whole number from %d to %d; write one", s, least, most)
		}
		return T(n), nil
	}
}

// word takes one of a few words.
func word[T any](s string, words map[string]T) (T, error) {
	if v, ok := words[strings.ToLower(s)]; ok {
		return v, nil
	}
	names := make([]string, 0, len(words))
	for w := range words {
		names = append(names, w)
	}
	slices.Sort(names)
	var none T
	return none, fmt.Errorf("%q is none of its values; write %s", s, alternatives(names))
}

// alternatives writes "a, b or c".
func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// nearest returns the word that was probably meant, "" where none is near.
func nearest(s string, words []string) string {
	s = strings.ReplaceAll(strings.ToLower(s), "_", "-")
	best, least := "", 1+max(1, len(s)/3)
	for _, w := range words {
		d := distance(s, w)
		// Part of a key, or a key and more, is as good as two slips.
		if len(s) >= 4 && (strings.Contains(w, s) || strings.Contains(s, w)) {
			d = min(d, 2)
		}
		if d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with the next to make b of a. Both
// are short: flags and keys.
func distance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return most
	}
	var rows [3][most + 1]int
	before, last, now := rows[0][:], rows[1][:], rows[2][:]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}

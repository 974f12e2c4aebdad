package zonecut

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"bonsai/wire"
)

// maxHints bounds the servers of a hints file.
const maxHints = 256

// ParseHints reads root hints in the form of IANA's named.root: NS records of the root and the
// addresses of the servers they name. Errors name the file and the line. A server without an
// address is dropped, for nobody could look one up; a file without any address is an error.
func ParseHints(r io.Reader, filename string) ([]Server, error) {
	p := dns.NewZoneParser(r, ".", filename)
	p.SetDefaultTTL(MaxLease)
	p.SetIncludeAllowed(false)
	h := hints{addrs: make(map[wire.Name][]netip.AddrPort)}
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		if err := h.add(rr); err != nil {
			return nil, fmt.Errorf("%s: %w", filename, err)
		}
	}
	if err := p.Err(); err != nil {
		// The parser's error begins with the file's name and ends with "at line: N:C".
		return nil, fmt.Errorf("root hints: %w", err)
	}
	servers := h.servers()
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s: no NS record of the root with an A or AAAA record of its server", filename)
	}
	return servers, nil
}

// hints collects the records of a file.
type hints struct {
	names []wire.Name // canonical, in the file's order
	addrs map[wire.Name][]netip.AddrPort
}

func (h *hints) add(rr dns.RR) error {
	switch rr := rr.(type) {
	case *dns.NS:
		if rr.Hdr.Name != "." {
			return fmt.Errorf("NS record of %s: hints are for the root only", rr.Hdr.Name)
		}
		name, err := wire.ParseName(rr.Ns)
		if err != nil {
			return fmt.Errorf("NS record with bad name %q", rr.Ns)
		}
		if len(h.names) >= maxHints {
			return fmt.Errorf("more than %d name servers", maxHints)
		}
		h.names = append(h.names, name.Canonical())
	case *dns.A:
		return h.addAddr(rr.Hdr.Name, rr.A)
	case *dns.AAAA:
		return h.addAddr(rr.Hdr.Name, rr.AAAA)
	}
	return nil
}

func (h *hints) addAddr(owner string, ip []byte) error {
	name, err := wire.ParseName(owner)
	addr, ok := netip.AddrFromSlice(ip)
	if err != nil || !ok {
		return fmt.Errorf("bad address record of %s", owner)
	}
	name = name.Canonical()
	h.addrs[name] = append(h.addrs[name], netip.AddrPortFrom(addr.Unmap(), Port))
	return nil
}

func (h *hints) servers() []Server {
	var servers []Server
	seen := make(map[wire.Name]bool)
	for _, name := range h.names {
		if addrs := h.addrs[name]; len(addrs) > 0 && !seen[name] {
			seen[name] = true
			servers = append(servers, Server{Name: name, Addrs: addrs})
		}
	}
	return servers
}

// BuiltinHints returns the root servers as IANA publishes them (RFC 9609 §2.1;
// https://www.internic.net/domain/named.root, version 2024-04-11).
func BuiltinHints() []Server {
	servers, err := ParseHints(strings.NewReader(namedRoot), "built-in root hints")
	if err != nil {
		panic(err)
	}
	return servers
}

const namedRoot = `
. NS a.root-servers.net.
. NS b.root-servers.net.
. NS c.root-servers.net.
. NS d.root-servers.net.
. NS e.root-servers.net.
. NS f.root-servers.net.
. NS g.root-servers.net.
. NS h.root-servers.net.
. NS i.root-servers.net.
. NS j.root-servers.net.
. NS k.root-servers.net.
. NS l.root-servers.net.
. NS m.root-servers.net.
a.root-servers.net. A 198.41.0.4
a.root-servers.net. AAAA 2001:503:ba3e::2:30
b.root-servers.net. A 170.247.170.2
b.root-servers.net. AAAA 2801:1b8:10::b
c.root-servers.net. A 192.33.4.12
c.root-servers.net. AAAA 2001:500:2::c
d.root-servers.net. A 199.7.91.13
d.root-servers.net. AAAA 2001:500:2d::d
e.root-servers.net. A 192.203.230.10
e.root-servers.net. AAAA 2001:500:a8::e
f.root-servers.net. A 192.5.5.241
f.root-servers.net. AAAA 2001:500:2f::f
g.root-servers.net. A 192.112.36.4
g.root-servers.net. AAAA 2001:500:12::d0d
h.root-servers.net. A 198.97.190.53
h.root-servers.net. AAAA 2001:500:1::53
i.root-servers.net. A 192.36.148.17
i.root-servers.net. AAAA 2001:7fe::53
j.root-servers.net. A 192.58.128.30
j.root-servers.net. AAAA 2001:503:c27::2:30
k.root-servers.net. A 193.0.14.129
k.root-servers.net. AAAA 2001:7fd::1
l.root-servers.net. A 199.7.83.42
l.root-servers.net. AAAA 2001:500:9f::42
m.root-servers.net. A 202.12.27.33
m.root-servers.net. AAAA 2001:dc3::35
`

package lab

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// quirk is what is wrong with a server.
type quirk uint8

const (
	sound  quirk = iota
	silent       // takes queries and answers none
	lame         // answers REFUSED to all of them
	noEDNS       // answers FORMERR to a query with an OPT, as servers before EDNS did
)

const (
	maxConnections = 64               // TCP connections of one server at once
	idleTime       = 10 * time.Second // without a message (RFC 7766 §6.2.3: of the order of seconds)
	portTries      = 32               // for a port that is free over both UDP and TCP
)

// server is one authoritative server: one address of the lab, one port of the machine.
type server struct {
	addr    netip.Addr     // as the lab's zones give it
	real    netip.AddrPort // where it listens
	zones   []*zone
	quirk   quirk
	window  window // of signatures made while answering
	queries atomic.Uint64

	udp   *net.UDPConn
	tcp   *net.TCPListener
	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
}

// listen binds both sockets and starts to serve; wait counts the goroutines.
func (s *server) listen(wait *sync.WaitGroup) error {
	s.conns = map[net.Conn]bool{}
	var err error
	for range portTries {
		if s.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0))); err != nil {
			return err
		}
		s.real = s.udp.LocalAddr().(*net.UDPAddr).AddrPort()
		if s.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(s.real)); err == nil {
			break
		}
		s.udp.Close()
	}
	if err != nil {
		return err
	}
	wait.Go(s.serveUDP)
	wait.Go(func() { s.serveTCP(wait) })
	return nil
}

func (s *server) close() {
	if s.udp == nil || s.tcp == nil {
		return
	}
	s.udp.Close()
	s.tcp.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	for c := range s.conns {
		c.Close()
	}
}

func (s *server) serveUDP() {
	buf := make([]byte, 4096)
	for {
		n, client, err := s.udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error of an earlier response
		}
		if response := s.respond(buf[:n], true); response != nil {
			// A response that can't be sent is lost, as any datagram may be.
			_, _ = s.udp.WriteToUDPAddrPort(response, client)
		}
	}
}

func (s *server) serveTCP(wait *sync.WaitGroup) {
	slots := make(chan struct{}, maxConnections)
	for {
		c, err := s.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			c.Close()
			continue
		}
		if !s.keep(c) {
			c.Close()
			return
		}
		wait.Go(func() {
			s.serveConn(c)
			s.forget(c)
			<-slots
		})
	}
}

func (s *server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.conns[c] = true
	}
	return !s.done
}

func (s *server) forget(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	c.Close()
}

// serveConn answers one connection's messages in turn (RFC 1035 §4.2.2).
func (s *server) serveConn(c net.Conn) {
	var length [2]byte
	for {
		if c.SetDeadline(time.Now().Add(idleTime)) != nil {
			return
		}
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		response := s.respond(query, false)
		if response == nil {
			continue
		}
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(response)), uint16(len(response)))
		if _, err := c.Write(append(framed, response...)); err != nil {
			return
		}
	}
}

// respond returns the packed response to a packed query, nil for none.
func (s *server) respond(packet []byte, udp bool) []byte {
	s.queries.Add(1)
	query := new(dns.Msg)
	if err := query.Unpack(packet); err != nil || query.Response || s.quirk == silent {
		return nil
	}
	m := s.decide(query)
	if udp {
		size := dns.MinMsgSize
		if opt := query.IsEdns0(); opt != nil {
			size = max(size, min(int(opt.UDPSize()), ourUDPSize))
		}
		truncate(m, size)
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// decide answers what the header alone decides, and leaves the rest to the zones.
func (s *server) decide(query *dns.Msg) *dns.Msg {
	opt := query.IsEdns0()
	fail := func(rcode int) *dns.Msg {
		m := new(dns.Msg)
		m.SetRcode(query, rcode)
		m.RecursionAvailable = false
		return m
	}
	switch {
	case query.Opcode != dns.OpcodeQuery:
		return fail(dns.RcodeNotImplemented)
	case s.quirk == noEDNS && opt != nil, len(query.Question) != 1:
		return fail(dns.RcodeFormatError)
	case opt != nil && opt.Version() != 0:
		m := fail(dns.RcodeBadVers)
		m.SetEdns0(ourUDPSize, opt.Do())
		m.Rcode = dns.RcodeBadVers
		return m
	case s.quirk == lame, query.Question[0].Qclass != dns.ClassINET:
		return fail(dns.RcodeRefused)
	}
	return answer(s.zones, query, s.window)
}

// truncate makes a response fit: additional records go first and are not missed, but glue of a
// referral is (RFC 9471 §3); then all else goes, with TC.
func truncate(m *dns.Msg, size int) {
	if m.Len() <= size {
		return
	}
	opt := m.IsEdns0()
	extra := m.Extra
	m.Extra = nil
	if opt != nil {
		m.Extra = []dns.RR{opt}
	}
	referral := len(m.Answer) == 0 && !m.Authoritative && len(extra) > len(m.Extra)
	if !referral && m.Len() <= size {
		return
	}
	m.Answer, m.Ns, m.Truncated = nil, nil, true
}

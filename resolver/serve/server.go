package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Server serves the sockets of one Config.
type Server struct {
	handler Handler
	udp     []*net.UDPConn
	tcp     []net.Listener
	wg      sync.WaitGroup
	slots   chan struct{}
	conns   sync.Map
	done    chan struct{}
	once    sync.Once
	base    context.Context
	cancel  context.CancelFunc
}

// New binds the sockets. It binds all of them or none.
func New(c Config, h Handler) (*Server, error) {
	if len(c.Listen) == 0 {
		c.Listen = DefaultListen
	}
	if c.MaxInflight == 0 {
		c.MaxInflight = 1024
	}
	s := &Server{handler: h, slots: make(chan struct{}, c.MaxInflight), done: make(chan struct{})}
	s.base, s.cancel = context.WithCancel(context.Background())
	for _, a := range c.Listen {
		l, err := net.Listen("tcp", a.String())
		if err != nil {
			s.close()
			return nil, err
		}
		s.tcp = append(s.tcp, l)
		u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.Addr().(*net.TCPAddr).AddrPort()))
		if err != nil {
			s.close()
			return nil, err
		}
		s.udp = append(s.udp, u)
	}
	return s, nil
}

func (s *Server) close() {
	for _, l := range s.tcp {
		l.Close()
	}
	for _, u := range s.udp {
		u.Close()
	}
	s.conns.Range(func(k, _ any) bool { k.(net.Conn).Close(); return true })
}

// Addrs returns the bound addresses.
func (s *Server) Addrs() (addrs []netip.AddrPort) {
	for _, u := range s.udp {
		addrs = append(addrs, u.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	return addrs
}

// Stats is a snapshot of the server's counters.
type Stats struct{}

// Stats returns the counters.
func (s *Server) Stats() Stats { return Stats{} }

// Serve answers until ctx ends or Shutdown is called.
func (s *Server) Serve(ctx context.Context) error {
	for _, u := range s.udp {
		s.wg.Go(func() { s.serveUDP(u) })
	}
	for _, l := range s.tcp {
		s.wg.Go(func() { s.serveTCP(l) })
	}
	select {
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return s.Shutdown(stop)
	case <-s.done:
		return nil
	}
}

// Shutdown stops the server.
func (s *Server) Shutdown(context.Context) error {
	s.once.Do(func() { close(s.done); s.cancel(); s.close() })
	s.wg.Wait()
	return nil
}

// answer runs one exchange through the handler; reply is called once, with a response or nil.
func (s *Server) answer(w Worker, x Exchange, reply func([]byte)) {
	batch, results := []Exchange{x}, []Result{Dropped}
	w.Hit(batch, results)
	switch results[0] {
	case Answered:
		reply(batch[0].Response)
	case Missed:
		m := &Exchange{Query: append([]byte(nil), x.Query...), Client: x.Client, Local: x.Local, Transport: x.Transport, Keepalive: x.Keepalive}
		m.Response = make([]byte, 0, 4096)
		select {
		case s.slots <- struct{}{}:
			s.wg.Go(func() { s.handler.Miss(s.base, m); <-s.slots; reply(m.Response) })
		default:
			s.handler.Shed(m)
			reply(m.Response)
		}
	}
}

func (s *Server) serveUDP(u *net.UDPConn) {
	w, in := s.handler.NewWorker(), make([]byte, 4096)
	local := u.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	for {
		n, client, err := u.ReadFromUDPAddrPort(in)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || client.Port() == 0 {
			continue
		}
		x := Exchange{Query: in[:n], Local: local, Response: make([]byte, 0, 4096),
			Client: netip.AddrPortFrom(client.Addr().Unmap(), client.Port())}
		s.answer(w, x, func(b []byte) {
			if len(b) > 0 {
				u.WriteToUDPAddrPort(b, client)
			}
		})
	}
}

func (s *Server) serveTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.conns.Store(c, nil)
		s.wg.Go(func() { s.serveConn(c) })
	}
}

func (s *Server) serveConn(c net.Conn) {
	defer c.Close()
	defer s.conns.Delete(c)
	var mu sync.Mutex
	w := s.handler.NewWorker()
	for {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		var head [2]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		in := make([]byte, binary.BigEndian.Uint16(head[:]))
		if _, err := io.ReadFull(c, in); err != nil {
			return
		}
		x := Exchange{Query: in, Transport: TCP, Keepalive: 100, Response: make([]byte, 0, 4096)}
		x.Client = c.RemoteAddr().(*net.TCPAddr).AddrPort()
		x.Local = c.LocalAddr().(*net.TCPAddr).AddrPort().Addr()
		s.answer(w, x, func(b []byte) {
			if len(b) > 0 {
				mu.Lock()
				defer mu.Unlock()
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
			}
		})
	}
}

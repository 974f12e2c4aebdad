package serve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// drainTime is how long a shutdown waits for the queries in hand.
	drainTime = 4 * time.Second
	// abandonTime is how long it then waits for handlers that were told to give up.
	abandonTime = 500 * time.Millisecond
)

// longAgo is a deadline that has passed, which ends a read or a write at once.
var longAgo = time.Unix(1, 0)

// ErrAbandoned says that a shutdown ended with queries unanswered.
var ErrAbandoned = errors.New("serve: shut down with queries unanswered")

// ErrStopped says that Serve was called on a server that has been shut down, or twice.
var ErrStopped = errors.New("serve: server already started or stopped")

// Server serves the sockets of one Config.
type Server struct {
	config  Config
	handler Handler
	epoch   time.Time
	misses  misses
	cancel  context.CancelFunc // ends the context of misses

	sockets   []*udpSocket
	listeners []net.Listener
	addrs     []netip.AddrPort
	absent    []netip.AddrPort
	conns     connTable
	scratches scratchPool
	tcpCount  flow         // what scratches do not count
	buffers   sync.Pool    // *[readSize]byte
	outboxes  sync.Pool    // *outbox
	pending   atomic.Int64 // bytes waiting on all connections
	closings  closings

	draining atomic.Bool
	drain    chan struct{} // closed when draining begins
	failed   chan error    // the first reader that ended without being asked to
	readers  sync.WaitGroup

	mu      sync.Mutex
	started bool
	stopped chan struct{} // made by the first Shutdown, closed when it is done
	stopErr error
}

// New binds all sockets of the configuration, or none. The server keeps the handler.
func New(config Config, handler Handler) (*Server, error) {
	config.setDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{config: config, handler: handler, epoch: time.Now(), cancel: cancel,
		drain: make(chan struct{}), failed: make(chan error, 1)}
	s.misses = misses{handler: handler, ctx: ctx, now: s.now, max: int64(config.MaxInflight),
		room: max(config.UDPSize, missRoom)}
	s.conns.init(&s.config)
	s.scratches.init(s)
	s.buffers.New = func() any { return new([readSize]byte) }
	s.outboxes.New = func() any { return new(outbox) }
	s.listeners = append(s.listeners, config.Listeners...)
	for _, conn := range config.PacketConns {
		s.sockets = append(s.sockets, s.newUDPSocket(conn))
		s.addAddr(conn.LocalAddr())
	}
	for _, l := range config.Listeners {
		s.addAddr(l.Addr())
	}
	if err := s.bind(); err != nil {
		cancel()
		return nil, err
	}
	return s, nil
}

func (c *Config) setDefaults() {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.Workers, runtime.GOMAXPROCS(0)}, {&c.UDPSize, 1232},
		{&c.ReceiveBuffer, 4 << 20}, {&c.SendBuffer, 4 << 20},
		{&c.MaxInflight, 1024}, {&c.MaxTCP, 1000}, {&c.MaxTCPPerClient, 200}, {&c.MaxTCPInflight, 64},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.TCPIdle, 10 * time.Second}, {&c.TCPRead, 5 * time.Second}, {&c.TCPWrite, 5 * time.Second}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
}

// now is the time since the server was made.
func (s *Server) now() time.Duration { return time.Since(s.epoch) }

// addAddr adds the address of a socket that was given, if it is an address of IP and not there yet.
func (s *Server) addAddr(a net.Addr) {
	ap, err := netip.ParseAddrPort(a.String())
	if err == nil && !slices.Contains(s.addrs, ap) {
		s.addrs = append(s.addrs, ap)
	}
}

// Addrs returns the addresses that were bound, each for UDP and TCP, behind those of sockets that were given.
func (s *Server) Addrs() []netip.AddrPort { return append([]netip.AddrPort(nil), s.addrs...) }

// Absent returns the default addresses that were left out because the machine lacks them.
func (s *Server) Absent() []netip.AddrPort { return append([]netip.AddrPort(nil), s.absent...) }

// Serve answers until ctx ends or Shutdown is called, and then drains. It returns nil, or why it
// could not go on, or ErrAbandoned.
func (s *Server) Serve(ctx context.Context) error {
	s.mu.Lock()
	if s.started || s.stopped != nil {
		s.mu.Unlock()
		return ErrStopped
	}
	s.started = true
	for _, u := range s.sockets {
		s.readers.Go(func() { s.report(u.serve()) })
	}
	for _, l := range s.listeners {
		s.readers.Go(func() { s.report(s.accept(l)) })
	}
	s.mu.Unlock()

	var failure error
	select {
	case <-ctx.Done():
	case <-s.drain:
	case failure = <-s.failed:
	}
	err := s.Shutdown(context.Background())
	if failure != nil {
		return failure
	}
	return err
}

// report keeps the first failure of a reader.
func (s *Server) report(err error) {
	if err == nil {
		return
	}
	select {
	case s.failed <- err:
	default:
	}
}

// Shutdown stops reading, waits until the queries in hand are answered, at most until ctx ends and at
// most 4 s, and closes all sockets. Queries unanswered then get no response, and ErrAbandoned is
// returned. It may be called more than once; each call returns when the shutdown is done.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := s.stopped == nil
	if first {
		s.stopped = make(chan struct{})
	}
	s.mu.Unlock()
	if !first {
		<-s.stopped
		return s.stopErr
	}
	s.stopErr = s.shutdown(ctx)
	close(s.stopped)
	return s.stopErr
}

func (s *Server) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	s.draining.Store(true)
	close(s.drain)
	for _, u := range s.sockets {
		u.conn.SetReadDeadline(longAgo)
	}
	for _, l := range s.listeners {
		l.Close()
	}
	s.conns.each(func(c *conn) { c.nc.SetReadDeadline(longAgo) })

	drained := make(chan struct{})
	go func() {
		s.readers.Wait() // and with them the connections
		s.misses.close()
		s.misses.wg.Wait()
		close(drained)
	}()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ErrAbandoned
	}
	s.cancel()
	s.conns.each(func(c *conn) { c.fail(causeDrain) })
	if err != nil {
		select {
		case <-drained:
		case <-time.After(abandonTime):
		}
	}
	s.closeSockets()
	return err
}

func (s *Server) closeSockets() {
	for _, l := range s.listeners {
		l.Close()
	}
	for _, u := range s.sockets {
		u.conn.Close()
	}
}

// Stats returns a snapshot of the counters. It asks the system about each socket.
func (s *Server) Stats() Stats {
	st := Stats{Inflight: int(s.misses.inflight.Load()), MaxInflight: s.config.MaxInflight}
	for _, u := range s.sockets {
		u.count.addTo(&st, &st.UDP)
		socket := u.stats()
		st.KernelDrops += socket.KernelDrops
		st.Sockets = append(st.Sockets, socket)
	}
	s.tcpCount.addTo(&st, &st.TCP)
	s.scratches.addTo(&st)
	s.misses.took.addTo(&st.MissTime)
	st.Connections = s.conns.stats()
	c := &st.Connections
	for why, n := range map[cause]*uint64{causeIdle: &c.Idle, causeSlow: &c.Slow, causeUnread: &c.Unread,
		causeMalformed: &c.Malformed, causeEvicted: &c.Evicted} {
		*n = s.closings[why].Load()
	}
	return st
}

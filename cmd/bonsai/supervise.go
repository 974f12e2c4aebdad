package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// firstInherited is the first socket that a supervisor hands over (sd_listen_fds(3)).
const firstInherited = 3

// inherited returns the sockets that systemd handed over, none where it did not. The environment that
// told of them is taken away, so that no child takes them for its own.
func inherited() (packets []net.PacketConn, listeners []net.Listener, err error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	os.Unsetenv("LISTEN_PID")
	os.Unsetenv("LISTEN_FDS")
	os.Unsetenv("LISTEN_FDNAMES")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return nil, nil, fmt.Errorf("LISTEN_FDS is %q, which is no number", count)
	}
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		f := os.NewFile(uintptr(fd), "socket "+strconv.Itoa(fd))
		if p, err := net.FilePacketConn(f); err == nil {
			packets = append(packets, p)
		} else if l, err := net.FileListener(f); err == nil {
			listeners = append(listeners, l)
		} else {
			return nil, nil, fmt.Errorf("socket %d of the supervisor: %w", fd, err)
		}
		f.Close()
	}
	return packets, listeners, nil
}

// supervisor is who started bonsai, if it wants to be told how it goes (sd_notify(3)). The nil one is
// told nothing.
type supervisor struct {
	conn     net.Conn
	interval time.Duration // between signs of life; 0: none are wanted
}

// newSupervisor reads the environment.
func newSupervisor() *supervisor {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if path[0] == '@' {
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil
	}
	s := &supervisor{conn: conn}
	if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
			s.interval = time.Duration(us) * time.Microsecond / 2
		}
	}
	return s
}

func (s *supervisor) tell(state string) {
	if s != nil {
		_, _ = s.conn.Write([]byte(state))
	}
}

// watch gives signs of life while alive says so, until ctx ends.
func (s *supervisor) watch(ctx context.Context, alive func() bool) {
	if s == nil || s.interval == 0 {
		return
	}
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if alive() {
				s.tell("WATCHDOG=1")
			}
		}
	}
}

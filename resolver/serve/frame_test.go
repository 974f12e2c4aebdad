package serve

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"
)

// echo answers every query with itself.
type echo struct{ reflector }

func (echo) NewWorker() Worker { return echo{} }

func (echo) Hit(batch []Exchange, results []Result) {
	for i := range batch {
		batch[i].Response = append(batch[i].Response, batch[i].Query...)
		results[i] = Answered
	}
}

func (echo) Miss(context.Context, *Exchange) { panic("no query is missed") }

// sink is a connection that keeps what is written.
type sink struct{ bytes.Buffer }

func (*sink) Close() error                     { return nil }
func (*sink) LocalAddr() net.Addr              { return memoryAddr("192.0.2.53:53") }
func (*sink) RemoteAddr() net.Addr             { return memoryAddr(alice) }
func (*sink) SetDeadline(time.Time) error      { return nil }
func (*sink) SetReadDeadline(time.Time) error  { return nil }
func (*sink) SetWriteDeadline(time.Time) error { return nil }

// echoes returns what echo says to a stream: every complete message before the first that is not DNS.
func echoes(stream []byte) []byte {
	pos := 0
	for {
		size, whole := frameSize(stream[pos:])
		if !whole || size < 2+minMessage {
			return stream[:pos]
		}
		pos += size
	}
}

// FuzzFrames cuts a stream, which is a part repeated, into pieces: the answers must be the same however
// it is cut.
func FuzzFrames(f *testing.F) {
	one := frame(query(1, "hit"))
	f.Add(one, uint8(0), uint16(0))
	f.Add(one, uint8(99), uint16(7))
	f.Add(bytes.Repeat(one, 10), uint8(255), uint16(8000))
	f.Add([]byte{0x20, 0x01, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, uint8(255), uint16(5000))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint8(255), uint16(65535))
	f.Add(append(bytes.Repeat(one, 3), 0, 0), uint8(0), uint16(50))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(0), uint16(3))
	s, err := New(Config{Listeners: []net.Listener{newMemoryListener()}}, echo{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, part []byte, repeat uint8, step uint16) {
		stream := bytes.Repeat(part[:min(len(part), 1000)], int(repeat)+1)
		out := &sink{}
		c := newConn(s, out)
		for rest, ok := stream, true; ok && len(rest) > 0; {
			c.grab()
			if len(c.buf) == c.have {
				t.Fatal("no room to read more")
			}
			n := copy(c.buf[c.have:], rest[:min(len(rest), int(step)+1)])
			rest = rest[n:]
			_, ok = c.took(n)
		}
		c.ungrab()
		if want := echoes(stream); !bytes.Equal(out.Bytes(), want) {
			t.Errorf("got %d bytes, want %d", out.Len(), len(want))
		}
		if got := s.pending.Load(); got != 0 {
			t.Errorf("got %d bytes still charged", got)
		}
	})
}

package serve

import (
	"encoding/binary"
	"runtime"
	"sync"
	"time"
)

const (
	// tcpBatch is how many queries of a connection are given to a Worker at once.
	tcpBatch = 32
	// tcpRoom is the room for a response over TCP. A longer one costs an allocation.
	tcpRoom = 4 << 10
	// outSize is after how many bytes of responses a write is due.
	outSize = 32 << 10
)

// scratch is what answering queries over TCP needs while it computes. It is never held by a goroutine
// that waits, so that there need be few of them, however many connections there are.
type scratch struct {
	s       *Server
	worker  Worker
	view    [tcpBatch]Exchange
	results [tcpBatch]Result
	rooms   []byte // tcpBatch buffers
	out     []byte // responses, framed
	count   flow
}

// scratchPool holds at most cap(free) scratches.
type scratchPool struct {
	s    *Server
	free chan *scratch
	mu   sync.Mutex
	all  []*scratch
}

func (p *scratchPool) init(s *Server) {
	p.s = s
	p.free = make(chan *scratch, 2*runtime.GOMAXPROCS(0))
}

func (p *scratchPool) get() *scratch {
	select {
	case sc := <-p.free:
		return sc
	default:
	}
	if sc := p.make(); sc != nil {
		return sc
	}
	return <-p.free
}

// make returns a new scratch, nil where there are enough.
func (p *scratchPool) make() *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == cap(p.free) {
		return nil
	}
	sc := &scratch{s: p.s, worker: p.s.handler.NewWorker(), out: make([]byte, 0, outSize+maxFrame),
		rooms: make([]byte, tcpBatch*stride(tcpRoom))}
	p.all = append(p.all, sc)
	return sc
}

func (p *scratchPool) put(sc *scratch) { p.free <- sc }

func (p *scratchPool) addTo(s *Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sc := range p.all {
		sc.count.addTo(s, &s.TCP)
	}
}

// answer answers the messages at the beginning of b, of which the first is complete, until out is
// full or as many are missed as there is room for. It returns how many bytes it has dealt with, and
// how many hits there were.
func (sc *scratch) answer(c *conn, b []byte, room int, received time.Duration) (pos, hits int) {
	sc.out = sc.out[:0]
	for room > 0 && len(sc.out) < outSize {
		n, size := sc.frame(c, b[pos:], min(room, tcpBatch))
		if n == 0 {
			break
		}
		pos += size
		sc.worker.Hit(sc.view[:n], sc.results[:n])
		answered, missed := sc.collect(c, n, received)
		hits += answered
		room -= missed
	}
	return pos, hits
}

// frame makes the view of the first complete messages in b, at most limit.
func (sc *scratch) frame(c *conn, b []byte, limit int) (n, pos int) {
	keepalive := uint16(min(sc.s.conns.idle.Load()/int64(100*time.Millisecond), 1<<16-1))
	for n < limit {
		size, whole := frameSize(b[pos:])
		if !whole || size < 2+minMessage {
			break
		}
		x, at := &sc.view[n], n*stride(tcpRoom)
		x.Query = b[pos+2 : pos+size : pos+size]
		x.Client, x.Local, x.Transport, x.Keepalive = c.client, c.local, TCP, keepalive
		x.Response = sc.rooms[at : at : at+tcpRoom]
		sc.results[n] = Dropped
		pos += size
		n++
	}
	return n, pos
}

// collect puts the responses to n queries into out, and hands the missed ones over.
func (sc *scratch) collect(c *conn, n int, received time.Duration) (answered, missed int) {
	var shed, dropped int
	for i := range n {
		x := &sc.view[i]
		switch sc.results[i] {
		case Answered:
			answered++
			sc.append(x.Response)
			continue
		case Missed:
			x.Response = x.Response[:0]
			if c.miss(x, received) {
				missed++
				continue
			}
			shed++
			sc.s.handler.Shed(x)
			sc.append(x.Response)
		default:
			dropped++
		}
	}
	sc.count.queries.Add(uint64(n))
	sc.count.hits.Add(uint64(answered))
	if missed+shed+dropped > 0 {
		sc.count.misses.Add(uint64(missed))
		sc.count.shed.Add(uint64(shed))
		sc.count.dropped.Add(uint64(dropped))
	}
	return answered, missed
}

// append frames one response.
func (sc *scratch) append(response []byte) {
	if len(response) == 0 || len(response) > maxFrame-2 {
		return
	}
	sc.out = binary.BigEndian.AppendUint16(sc.out, uint16(len(response)))
	sc.out = append(sc.out, response...)
	sc.count.responses.Add(1)
}

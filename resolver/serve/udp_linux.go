package serve

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// batchSize is how many datagrams one system call moves at most. Twice as many gained nothing.
	batchSize = 64
	// yieldEvery is after how many full batches on end the goroutine lets others run. It never waits
	// while more keeps coming, and the scheduler would only step in after 10 ms.
	yieldEvery = 8
)

// mmsghdr is the kernel's struct mmsghdr: a message and how long it is.
type mmsghdr struct {
	unix.Msghdr
	length uint32
}

type sockaddr [unix.SizeofSockaddrInet6]byte // of either family

// batch is what one call receives and one sends, laid out once: in the k-th place of view, results
// and out lies what was received in the place at[k].
type batch struct {
	u      *udpSocket
	raw    syscall.RawConn
	worker Worker

	in      [batchSize]mmsghdr
	inVec   [batchSize]unix.Iovec
	names   [batchSize]sockaddr
	oob     [batchSize][ancillarySize]byte
	queries []byte // batchSize buffers
	inStep  int

	view      [batchSize]Exchange
	results   [batchSize]Result
	at        [batchSize]uint8
	responses []byte // batchSize buffers
	outStep   int

	out    [batchSize]mmsghdr
	outVec [batchSize]unix.Iovec
	from   [batchSize]uint8 // the place in view of each message in out
	queued int
	sent   int
	left   []mmsghdr // what flush has still to send

	full   int // full batches on end
	err    error
	resume func(fd uintptr) bool
}

func newBatch(u *udpSocket) *batch {
	b := &batch{u: u, worker: u.s.handler.NewWorker()}
	b.inStep, b.outStep = stride(maxUDPQuery), stride(u.s.config.UDPSize)
	b.queries, b.responses = make([]byte, batchSize*b.inStep), make([]byte, batchSize*b.outStep)
	for i := range b.in {
		b.inVec[i].Base = &b.queries[i*b.inStep]
		b.inVec[i].SetLen(maxUDPQuery)
		b.in[i].Iov, b.in[i].Name = &b.inVec[i], &b.names[i][0]
		b.in[i].SetIovlen(1)
		if u.wildcard {
			b.in[i].Control = &b.oob[i][0]
		}
		b.out[i].Iov = &b.outVec[i]
		b.out[i].SetIovlen(1)
	}
	b.arm(batchSize)
	b.resume = b.flushSome
	return b
}

// arm readies the first n places for receiving: the kernel writes what it found over what it may use.
func (b *batch) arm(n int) {
	for i := range b.in[:n] {
		b.in[i].Namelen = unix.SizeofSockaddrInet6
		if b.u.wildcard {
			b.in[i].SetControllen(ancillarySize)
		}
	}
}

// serveBatches reads the socket by batches. done is false where that cannot be done.
func (u *udpSocket) serveBatches() (done bool, err error) {
	raw, err := u.udp.SyscallConn()
	if err != nil {
		return true, u.fatal(err)
	}
	b := newBatch(u)
	b.raw = raw
	for !u.s.draining.Load() {
		b.err = nil
		err := raw.Read(b.readable)
		if err == nil {
			err = b.err
		}
		if err != nil && !u.goOn(err) {
			return true, u.fatal(err)
		}
	}
	return true, nil
}

// readable is called when the socket may be readable, and returns false to wait until it is again.
// A batch that is not full has emptied the socket, and what comes later wakes us: the wait is for a
// change, which cannot be missed, and not for a state.
func (b *batch) readable(fd uintptr) (done bool) {
	for {
		n, errno := receiveBatch(fd, b.in[:])
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		default:
			b.err = errno
			return true
		}
		b.u.errors = 0
		b.process(fd, n, b.u.s.now())
		b.arm(n)
		if n < batchSize {
			b.full = 0
			return b.u.s.draining.Load()
		}
		if b.full++; b.full%yieldEvery == 0 {
			runtime.Gosched()
			if b.u.s.draining.Load() {
				return true
			}
		}
	}
}

// process answers the n datagrams received. Hits are sent before any miss is looked at.
func (b *batch) process(fd uintptr, n int, received time.Duration) {
	c := &b.u.count
	c.batches.Add(1)
	k := b.parse(n)
	if k == 0 {
		return
	}
	view, results := b.view[:k], b.results[:k]
	b.worker.Hit(view, results)
	var hits, missed, dropped int
	for i := range results {
		switch results[i] {
		case Answered:
			hits++
			b.queue(i)
		case Missed:
			missed++
		default:
			dropped++
		}
	}
	c.queries.Add(uint64(k))
	c.hits.Add(uint64(hits))
	if b.flush(fd) {
		c.hitTime.add(b.u.s.now()-received, b.sent)
	}
	if dropped > 0 {
		c.dropped.Add(uint64(dropped))
	}
	if missed > 0 {
		b.miss(results, received)
		b.flush(fd)
	}
}

// parse makes the view of the n datagrams received, and returns how many may be answered.
func (b *batch) parse(n int) (k int) {
	local := b.u.local
	for i := range b.in[:n] {
		h := &b.in[i]
		client, ok := b.names[i].addrPort()
		if b.u.wildcard {
			oob := b.oob[i][:h.Controllen]
			if local = destination(oob); local.IsValid() {
				returnToSender(oob)
			}
		}
		if !ok || h.length > maxUDPQuery || !local.IsValid() || !b.u.answerable(client) {
			b.u.discard(int(h.length))
			continue
		}
		in, out := i*b.inStep, k*b.outStep
		x := &b.view[k]
		x.Query = b.queries[in : in+int(h.length) : in+int(h.length)]
		x.Client, x.Local = client, local
		x.Response = b.responses[out : out : out+b.u.s.config.UDPSize]
		b.results[k], b.at[k] = Dropped, uint8(i)
		k++
	}
	return k
}

// queue puts the response of view[i] among those to send.
func (b *batch) queue(i int) {
	response := b.view[i].Response
	if len(response) == 0 {
		return
	}
	in, out, vec := &b.in[b.at[i]], &b.out[b.queued], &b.outVec[b.queued]
	vec.Base = unsafe.SliceData(response)
	vec.SetLen(len(response))
	out.Name, out.Namelen = in.Name, in.Namelen
	out.Control, out.Controllen = in.Control, in.Controllen
	b.queued++
}

// flush sends what is queued, counts in sent what the system took, and waits only where the socket's
// send buffer is full. ok is false where nothing was sent.
func (b *batch) flush(fd uintptr) (ok bool) {
	b.sent = 0
	if b.queued == 0 {
		return false
	}
	b.left = b.out[:b.queued]
	b.queued = 0
	if !b.flushSome(fd) {
		b.raw.Write(b.resume) // an error says that the socket is closed
	}
	b.u.count.responses.Add(uint64(b.sent))
	return b.sent > 0
}

// flushSome sends until nothing is left, or until the send buffer is full: done is then false.
func (b *batch) flushSome(fd uintptr) (done bool) {
	for len(b.left) > 0 {
		n, errno := sendBatch(fd, b.left)
		switch errno {
		case 0:
			b.sent += n
			b.left = b.left[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			// The error is that of the first message: its destination cannot be reached, or a filter
			// forbids it.
			b.u.count.sendErrors.Add(1)
			b.left = b.left[1:]
		}
	}
	return true
}

// miss hands the missed queries over, and queues a response for those that find no room.
func (b *batch) miss(results []Result, received time.Duration) {
	var started, shed int
	for i := range results {
		if results[i] != Missed {
			continue
		}
		x := &b.view[i]
		x.Response = x.Response[:0]
		if b.u.s.misses.take() {
			started++
			b.u.s.misses.start(x, b.names[b.at[i]].zone(), b.u, received)
			continue
		}
		shed++
		b.u.s.handler.Shed(x)
		b.queue(i)
	}
	b.u.count.misses.Add(uint64(started))
	b.u.count.shed.Add(uint64(shed))
}

// addrPort reads a sockaddr_in or sockaddr_in6; an IPv4-mapped address is shown as the IPv4 address.
func (a *sockaddr) addrPort() (p netip.AddrPort, ok bool) {
	port := binary.BigEndian.Uint16(a[2:])
	switch binary.NativeEndian.Uint16(a[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), port), true
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a[8:24])).Unmap(), port), true
	}
	return p, false
}

// zone returns the IPv6 zone as a number; only a link-local address has one.
func (a *sockaddr) zone() string {
	if binary.NativeEndian.Uint16(a[:]) != unix.AF_INET6 {
		return ""
	}
	scope := binary.NativeEndian.Uint32(a[24:])
	if scope == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(scope), 10)
}

// The two calls below do not wait, and so are made without telling the scheduler, as RawSyscall does.
// Told of a call, it takes the processor from one that lasts 20 µs, as a full batch does, to find
// nothing else to run on it and give it back: that cost up to a quarter of all CPU with one processor.

// receiveBatch fills m. A datagram's length is its own, also where it was cut to fit.
func receiveBatch(fd uintptr, m []mmsghdr) (n int, errno syscall.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
	return int(r), errno
}

func sendBatch(fd uintptr, m []mmsghdr) (n int, errno syscall.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	return int(r), errno
}

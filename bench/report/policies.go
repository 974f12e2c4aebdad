package main

// policy is a cache of names by bytes. A name that is there and expired is stored again in its place.
type policy interface {
	// has says whether a name is there, and takes note that it was asked for.
	has(id uint32) bool
	// store takes a name that is not there.
	store(id uint32)
}

// sizes are the bytes that each name takes, times a factor.
type sizes struct {
	of     []uint16
	factor float64
}

func (s *sizes) size(id uint32) float64 { return float64(s.of[int(id)%len(s.of)]) * s.factor }

const none = ^uint32(0)

// list is a queue of names, the newest first, from which any can be taken.
type list struct {
	newer, older   []uint32
	newest, oldest uint32
	bytes          float64
}

func newList(names int) *list {
	return &list{newer: make([]uint32, names), older: make([]uint32, names), newest: none, oldest: none}
}

func (l *list) push(id uint32, size float64) {
	l.older[id], l.newer[id] = l.newest, none
	if l.newest != none {
		l.newer[l.newest] = id
	} else {
		l.oldest = id
	}
	l.newest = id
	l.bytes += size
}

func (l *list) take(id uint32, size float64) {
	newer, older := l.newer[id], l.older[id]
	if newer != none {
		l.older[newer] = older
	} else {
		l.newest = older
	}
	if older != none {
		l.newer[older] = newer
	} else {
		l.oldest = newer
	}
	l.bytes -= size
}

// queue is FIFO, and LRU where what is asked for goes to the front.
type queue struct {
	*sizes
	list   *list
	in     []bool
	room   float64
	recent bool
}

func newQueue(names int, s *sizes, room float64, recent bool) *queue {
	return &queue{sizes: s, list: newList(names), in: make([]bool, names), room: room, recent: recent}
}

func (q *queue) has(id uint32) bool {
	if q.in[id] && q.recent {
		q.list.take(id, q.size(id))
		q.list.push(id, q.size(id))
	}
	return q.in[id]
}

func (q *queue) store(id uint32) {
	for q.list.bytes+q.size(id) > q.room && q.list.oldest != none {
		out := q.list.oldest
		q.list.take(out, q.size(out))
		q.in[out] = false
	}
	q.in[id] = true
	q.list.push(id, q.size(id))
}

// sieve is SIEVE: a hand goes from the oldest to the newest, spares what was asked for and clears its
// mark, and takes the first that was not; nothing moves.
type sieve struct {
	*sizes
	list  *list
	state []uint8 // 0 absent, 1 there, 2 asked for
	hand  uint32
	room  float64
}

func newSieve(names int, s *sizes, room float64) *sieve {
	return &sieve{sizes: s, list: newList(names), state: make([]uint8, names), hand: none, room: room}
}

func (s *sieve) has(id uint32) bool {
	if s.state[id] > 0 {
		s.state[id] = 2
	}
	return s.state[id] > 0
}

func (s *sieve) store(id uint32) {
	for s.list.bytes+s.size(id) > s.room && s.list.oldest != none {
		s.evict()
	}
	s.state[id] = 1
	s.list.push(id, s.size(id))
}

func (s *sieve) evict() {
	for {
		if s.hand == none {
			s.hand = s.list.oldest
		}
		id := s.hand
		s.hand = s.list.newer[id]
		if s.state[id] == 1 {
			s.list.take(id, s.size(id))
			s.state[id] = 0
			return
		}
		s.state[id] = 1
	}
}

// s3fifo is S3-FIFO: a small queue (a tenth), a main queue, and a queue of names that left the small
// one unused, as many bytes as the main one. What was asked for more than once in the small queue goes
// to main, and so does what comes back while its name is remembered; main gives up to three more
// rounds.
type s3fifo struct {
	*sizes
	small, main, ghost *list
	where              []uint8 // 0 absent, 1 small, 2 main, 3 ghost
	used               []uint8
	room               float64
}

const smallShare = 0.1

func newS3FIFO(names int, s *sizes, room float64) *s3fifo {
	return &s3fifo{sizes: s, small: newList(names), main: newList(names), ghost: newList(names),
		where: make([]uint8, names), used: make([]uint8, names), room: room}
}

func (s *s3fifo) has(id uint32) bool {
	if s.where[id] != 1 && s.where[id] != 2 {
		return false
	}
	s.used[id] = min(3, s.used[id]+1)
	return true
}

func (s *s3fifo) store(id uint32) {
	size := s.size(id)
	for s.small.bytes+s.main.bytes+size > s.room && (s.small.oldest != none || s.main.oldest != none) {
		if s.small.oldest != none && (s.small.bytes >= smallShare*s.room || s.main.oldest == none) {
			s.leaveSmall()
		} else {
			s.leaveMain()
		}
	}
	s.used[id] = 0
	if s.where[id] == 3 {
		s.ghost.take(id, size)
		s.where[id] = 2
		s.main.push(id, size)
		return
	}
	s.where[id] = 1
	s.small.push(id, size)
}

func (s *s3fifo) leaveSmall() {
	id := s.small.oldest
	size := s.size(id)
	s.small.take(id, size)
	if s.used[id] > 1 {
		s.used[id], s.where[id] = 0, 2
		s.main.push(id, size)
		return
	}
	s.where[id] = 3
	s.ghost.push(id, size)
	for s.ghost.bytes > (1-smallShare)*s.room {
		out := s.ghost.oldest
		s.ghost.take(out, s.size(out))
		s.where[out] = 0
	}
}

func (s *s3fifo) leaveMain() {
	id := s.main.oldest
	size := s.size(id)
	s.main.take(id, size)
	if s.used[id] > 0 {
		s.used[id]--
		s.main.push(id, size)
		return
	}
	s.where[id] = 0
}

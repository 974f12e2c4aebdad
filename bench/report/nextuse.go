package main

import "container/heap"

// nextUse knows the future: where room is short it forgets the name whose next query is furthest
// away, the one that comes included; a query after the name's expiry counts as none. With sizes and
// TTLs that is no bound: to keep two small ones may be worth more than a large one asked sooner.
type nextUse struct {
	*sizes
	room, bytes float64
	next        []uint32 // of each name that is there, the place of its next query
	in          []bool
	queue       futures
}

// never is the place of a query that does not come.
const never = ^uint32(0)

// future is a name and the place of its next query, ordered by the latter. Those that are outdated
// by a query stay, and sink, for their place is past.
type future uint64

type futures []future

func (f futures) Len() int           { return len(f) }
func (f futures) Less(i, j int) bool { return f[i] > f[j] }
func (f futures) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *futures) Push(x any)        { *f = append(*f, x.(future)) }
func (f *futures) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

func newNextUse(names int, s *sizes, room float64) *nextUse {
	return &nextUse{sizes: s, room: room, next: make([]uint32, names), in: make([]bool, names)}
}

// expects says when a name that is there is asked for again.
func (n *nextUse) expects(id, place uint32) {
	n.next[id] = place
	heap.Push(&n.queue, future(place)<<32|future(id))
}

// keep stores a name that is not there.
func (n *nextUse) keep(id, place uint32) {
	n.in[id] = true
	n.bytes += n.size(id)
	n.expects(id, place)
	for n.bytes > n.room {
		f := heap.Pop(&n.queue).(future)
		out, at := uint32(f), uint32(f>>32)
		if n.in[out] && n.next[out] == at {
			n.in[out] = false
			n.bytes -= n.size(out)
		}
	}
}

// following returns for each query the place of the next of the same name, never where none comes.
func following(t *trace) []uint32 {
	next, last := make([]uint32, len(t.ids)), make([]uint32, t.names)
	for i := range last {
		last[i] = never
	}
	for i := len(t.ids) - 1; i >= 0; i-- {
		id := t.ids[i] &^ foreign
		next[i] = last[id]
		last[id] = uint32(i)
	}
	return next
}

package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"bonsai/bench"
	"bonsai/wire"
)

// batch is how many inputs are made at once, before the clock is read. They are as warm as what
// comes from a socket.
const batch = 256

// subject is a child's layout under measurement.
type subject struct {
	layout   bench.Layout
	mix      *bench.Mix
	held     []uint32 // what is there, by index
	inputs   [batch][]byte
	messages [batch]wire.Message
	base     figures // memory before there was a layout
}

func newSubject() *subject {
	s := &subject{}
	for i := range s.inputs {
		s.inputs[i] = make([]byte, 0, 2048)
	}
	return s
}

// begin makes an empty layout. What the process takes without it is subtracted from all that follows.
func (s *subject) begin(o *order) (figures, error) {
	k, err := bench.KindNamed(o.Layout)
	if err != nil {
		return figures{}, err
	}
	s.mix = newMix(o.Signed)
	s.draw(0) // all the memory of making inputs is there
	s.base = weigh()
	s.layout, err = k.New(o.Entries, o.Budget)
	return s.base, err
}

// draw makes a batch of responses.
func (s *subject) draw(from int) {
	for i := range s.inputs {
		s.inputs[i] = s.mix.Response(s.inputs[i][:0], from+i)
		if err := s.messages[i].Parse(s.inputs[i]); err != nil {
			panic(fmt.Sprintf("response %d: %v", from+i, err))
		}
	}
}

// insert inserts a range of responses. Its CPU is that of all threads, so that of the collector,
// too, less what it took to make the responses. Its GC is the share of other threads, which do
// nothing but collect; the runtime's own count of it grows with the time that they wait for a CPU.
func (s *subject) insert(o *order) (f figures) {
	runtime.GC() // garbage of before is not ours, and ends are counted at collections
	before, cpu, own, start := sample(), processCPU(), threadCPU(), time.Now()
	made, madeWall := int64(0), time.Duration(0)
	for i := o.From; i < o.To; i += batch {
		from, at := threadCPU(), time.Now()
		s.draw(i)
		made += threadCPU() - from
		madeWall += time.Since(at)
		for j := range min(batch, o.To-i) {
			s.layout.Insert(&s.messages[j], now)
		}
	}
	runtime.GC()
	wall := time.Since(start) - madeWall
	spent, inserting := processCPU()-cpu-made, threadCPU()-own-made
	after := sample()
	n := float64(o.To - o.From)
	return figures{
		CPU: float64(spent) / n, Wall: float64(wall) / n,
		Allocs: (after.allocs - before.allocs) / n,
		GC:     float64(spent-inserting) / float64(spent),
		Pause:  longest(before.pauses, after.pauses),
		Len:    s.layout.Len(),
	}
}

// fillTo inserts until the arena has used o.Budget bytes, or forgets.
func (s *subject) fillTo(o *order) (f figures, err error) {
	i := o.From
	for ; ; i += batch {
		st, ok := bench.ArenaStats(s.layout)
		if !ok {
			return f, errors.New("only of the arena")
		}
		if st.Used >= uint64(o.Budget) || st.Unused > 0 || o.To > 0 && i >= o.To {
			f.Len = i
			return f, nil
		}
		s.draw(i)
		for j := range s.messages {
			s.layout.Insert(&s.messages[j], now)
		}
	}
}

// memory weighs the layout.
func (s *subject) memory() figures {
	f := weigh()
	f.Kept -= s.base.Kept
	f.Returned -= s.base.Returned
	f.Heap -= s.base.Heap
	f.Len = s.layout.Len()
	if st, ok := bench.ArenaStats(s.layout); ok {
		f.Used, f.Capacity = float64(st.Used), float64(st.Capacity)
		f.Evictions = float64(st.Unused + st.Expired + st.Hurried + st.Crowded)
	}
	return f
}

func weigh() (f figures) {
	runtime.GC()
	f.Kept = float64(resident())
	debug.FreeOSMemory()
	f.Returned = float64(resident())
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	f.Heap = float64(st.HeapAlloc)
	return f
}

// present finds out which of the first o.To responses are there.
func (s *subject) present(o *order) figures {
	s.held = s.held[:0]
	var q wire.Query
	query, out := make([]byte, 0, 512), make([]byte, 0, 4096)
	for i := range o.To {
		query = s.mix.Query(query[:0], i)
		if q.Parse(query) != wire.QueryOK {
			continue
		}
		if _, ok := s.layout.Lookup(out, &q, later); ok {
			s.held = append(s.held, uint32(i))
		}
	}
	return figures{Len: len(s.held)}
}

// lookup looks up o.Count names by each of o.Threads threads, drawn from the first o.Hot that are
// there or from all. Its CPU is that of a thread.
func (s *subject) lookup(o *order) (figures, error) {
	from := s.held
	if o.Hot > 0 && o.Hot < len(from) {
		from = from[:o.Hot]
	}
	if len(from) == 0 {
		return figures{}, errors.New("nothing is there")
	}
	before := sample()
	start := time.Now()
	cpu, missed := make([]int64, o.Threads), make([]int, o.Threads)
	var wg sync.WaitGroup
	for t := range o.Threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			cpu[t], missed[t] = s.lookupOnce(bench.Thread(s.layout), from, o, uint64(t))
		})
	}
	wg.Wait()
	wall := time.Since(start)
	after := sample()
	f := figures{Wall: float64(wall) / float64(o.Count)}
	for t := range cpu {
		f.CPU += float64(cpu[t]) / float64(o.Count) / float64(o.Threads)
		if missed[t] > 0 {
			return f, fmt.Errorf("%d names that were there are not", missed[t])
		}
	}
	f.Allocs = (after.allocs - before.allocs) / float64(o.Count*o.Threads)
	return f, nil
}

// lookupOnce times parsing the query, lookup and writing the response. Making queries is not timed.
func (s *subject) lookupOnce(l bench.Layout, from []uint32, o *order, seed uint64) (cpu int64, missed int) {
	r := random(uint64(o.From)<<8 ^ seed)
	var queries [batch][]byte
	for i := range queries {
		queries[i] = make([]byte, 0, 320)
	}
	var q wire.Query
	out := make([]byte, 0, 4096)
	for done := 0; done < o.Count; done += batch {
		for i := range queries {
			queries[i] = s.mix.Query(queries[i][:0], int(from[r.below(len(from))]))
		}
		start := threadCPU()
		for i := range queries {
			if q.Parse(queries[i]) != wire.QueryOK {
				missed++
				continue
			}
			if _, ok := l.Lookup(out, &q, later); !ok {
				missed++
			}
		}
		cpu += threadCPU() - start
	}
	return cpu * int64(o.Count) / int64((o.Count+batch-1)/batch*batch), missed
}

// collections is how many are run to say what one takes.
const collections = 5

// collect says what a collection takes with the layout as it is.
func (s *subject) collect() figures {
	runtime.GC()
	before, cpu := sample(), processCPU()
	for range collections {
		runtime.GC()
	}
	spent, after := processCPU()-cpu, sample()
	return figures{GC: float64(spent) / 1e9 / collections, Pause: longest(before.pauses, after.pauses)}
}

// missRate is how many responses a second the daemon stores.
const missRate = 20_000

// miss stores for o.Seconds as the miss path of the daemon does at missRate: the response in a slice
// of its own, RRsets made anew, an entry of its own. Its GC is the share of one CPU that other threads
// take, which collect.
func (s *subject) miss(o *order) figures {
	const tick = 10 * time.Millisecond
	runtime.GC()
	before, cpu, own, start := sample(), processCPU(), threadCPU(), time.Now()
	stored := 0
	for i := o.From; ; {
		passed := time.Since(start)
		if passed >= time.Duration(o.Seconds)*time.Second {
			break
		}
		for due := int(passed.Seconds() * missRate); stored < due; stored++ {
			s.missOne(i)
			i++
		}
		time.Sleep(tick)
	}
	runtime.GC()
	collecting := (processCPU() - cpu) - (threadCPU() - own)
	after := sample()
	return figures{
		GC:   float64(collecting) / float64(time.Since(start)),
		Wall: float64(time.Since(start)) / float64(stored), Pause: longest(before.pauses, after.pauses),
		Len: s.layout.Len(),
	}
}

// missed keeps what a resolution has made alive for a moment, as flights do.
var missed [64]*wire.Response

func (s *subject) missOne(i int) {
	packet := append([]byte(nil), s.mix.Response(s.inputs[0][:0], i)...)
	m, r := new(wire.Message), new(wire.Response)
	if err := m.Parse(packet); err != nil {
		panic(err)
	}
	if err := m.Response(r); err != nil {
		panic(err)
	}
	missed[i%len(missed)] = r
	s.layout.Insert(m, now)
}

// sampled is what the runtime has counted.
type sampled struct {
	allocs float64 // objects
	pauses *metrics.Float64Histogram
}

func sample() sampled {
	all := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(all)
	h := all[1].Value.Float64Histogram()
	return sampled{float64(all[0].Value.Uint64()), &metrics.Float64Histogram{Counts: append([]uint64(nil), h.Counts...), Buckets: h.Buckets}}
}

// longest returns the lower bound of the last bucket that grew.
func longest(before, after *metrics.Float64Histogram) float64 {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if after.Counts[i] > before.Counts[i] {
			return max(after.Buckets[i], 0)
		}
	}
	return 0
}

// random is splitmix64.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (r *random) below(n int) int { return int(r.next() >> 33 % uint64(n)) }

// unit returns a number in [0, 1).
func (r *random) unit() float64 { return float64(r.next()>>11) / (1 << 53) }

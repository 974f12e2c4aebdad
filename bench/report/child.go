package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"

	"bonsai/bench"
)

// One process holds one layout, so that no layout's garbage is collected on another's account. It
// reads orders, one JSON value a line, and answers each.

// order is what the child is to do: one of the methods of subject.
type order struct {
	Do       string
	Layout   string `json:",omitempty"`
	Signed   bool   `json:",omitempty"`
	Entries  int    `json:",omitempty"` // that the layout holds
	Budget   int64  `json:",omitempty"` // bytes, for those that count them
	From, To int    `json:",omitempty"` // responses to insert
	Hot      int    `json:",omitempty"` // names that are asked for, 0 for all
	Threads  int    `json:",omitempty"`
	Count    int    `json:",omitempty"` // of lookups, by each thread
	Seconds  int    `json:",omitempty"`
}

// figures are what an order gives. Each order fills its own.
type figures struct {
	Error string `json:",omitempty"`

	Len       int     `json:",omitempty"`
	Kept      float64 `json:",omitempty"` // bytes resident after a collection
	Returned  float64 `json:",omitempty"` // bytes resident after free memory went back to the system
	Heap      float64 `json:",omitempty"` // bytes of live objects on the Go heap
	Used      float64 `json:",omitempty"` // bytes of entries and index, by the arena's own count
	Capacity  float64 `json:",omitempty"`
	Evictions float64 `json:",omitempty"`

	CPU    float64 `json:",omitempty"` // ns an operation
	Wall   float64 `json:",omitempty"` // ns an operation
	Allocs float64 `json:",omitempty"` // an operation
	GC     float64 `json:",omitempty"` // the collector: its share of the CPU, or seconds of CPU a collection
	Pause  float64 `json:",omitempty"` // longest stop, seconds
}

// child is the parent's end.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start runs this program again as a child.
func start() (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, "-child")}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// do has one order carried out.
func (c *child) do(o order) (f figures, err error) {
	line, err := json.Marshal(o)
	if err != nil {
		return f, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return f, fmt.Errorf("%s: %w", o.Do, err)
	}
	answer, err := c.out.ReadBytes('\n')
	if err != nil {
		return f, fmt.Errorf("%s: %w", o.Do, err)
	}
	if err := json.Unmarshal(answer, &f); err != nil {
		return f, err
	}
	if f.Error != "" {
		return f, fmt.Errorf("%s: %s", o.Do, f.Error)
	}
	return f, nil
}

func (c *child) stop() {
	c.in.Close()
	c.cmd.Wait()
}

// serveOrders is what a child does until its input ends.
func serveOrders() error {
	debug.SetGCPercent(gcPercent)
	runtime.LockOSThread()
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	s := newSubject()
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			return err
		}
		f, err := s.carryOut(&o)
		if err != nil {
			f.Error = err.Error()
		}
		if err := out.Encode(&f); err != nil {
			return err
		}
	}
}

// gcPercent is GOGC in every child: the default of Go programs.
const gcPercent = 100

func (s *subject) carryOut(o *order) (figures, error) {
	switch o.Do {
	case "begin":
		return s.begin(o)
	case "insert":
		return s.insert(o), nil
	case "fill":
		return s.fillTo(o)
	case "memory":
		return s.memory(), nil
	case "present":
		return s.present(o), nil
	case "lookup":
		return s.lookup(o)
	case "collect":
		return s.collect(), nil
	case "miss":
		return s.miss(o), nil
	}
	return figures{}, fmt.Errorf("no order %q", o.Do)
}

// now is when everything is stored. Entries live for 30 s and more, so that all that are there when
// bytes are counted are live.
const now = 1_800_000_000

// later is when things are looked up: TTLs are written less some age.
const later = now + 7

func newMix(signed bool) *bench.Mix { return &bench.Mix{Seed: 1, Signed: signed} }

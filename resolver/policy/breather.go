package policy

import (
	"runtime"
	"time"
)

// breather lets queries be answered while a list is read. That takes a second or more, and where all runs on
// one CPU the runtime would look at the network every 10 ms only: it does when nothing is to be done.
type breather struct {
	alone bool // on the only CPU
	last  time.Time
}

// breathEvery is how long a list is read at once, on the only CPU. A pause may take a millisecond.
const breathEvery = 3 * time.Millisecond

func newBreather() breather { return breather{alone: runtime.GOMAXPROCS(0) == 1, last: time.Now()} }

// breathe pauses where it is time to. It is called after some tenths of a millisecond of work.
func (b *breather) breathe() {
	if b.alone && time.Since(b.last) > breathEvery {
		time.Sleep(time.Microsecond)
		b.last = time.Now()
	}
}

package netpath

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// lane is one direction of a path. It does no I/O and has no clock: now is the
// time since some beginning, and does not go back.
type lane struct {
	side   uint64 // 0 or 1: equal seeds decide otherwise in the other direction
	path   Path
	counts Counts
	free   time.Duration // when the transmitter has sent all that waits for the rate
	due    flights
	spare  [][]byte // buffers to be used again
	random rand.PCG
}

// flight is a frame on its way.
type flight struct {
	at    time.Duration // of its arrival
	order uint64        // among those that arrive at the same time
	frame []byte
}

// flights is a heap by arrival.
type flights []flight

func (f flights) Len() int      { return len(f) }
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f flights) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].order < f[j].order
}
func (f *flights) Push(x any) { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	(*f)[last] = flight{}
	*f = (*f)[:last]
	return x
}

// set changes the path for packets to come. Packets on their way are not
// affected.
func (l *lane) set(p Path) {
	if p.MTU == 0 {
		p.MTU = DefaultMTU
	}
	if p.Queue == 0 {
		p.Queue = DefaultQueue
	}
	if p.ReorderBy == 0 {
		p.ReorderBy = DefaultReorderBy
	}
	l.path = p
}

// admit decides the fate of a frame, which it copies.
func (l *lane) admit(now time.Duration, frame []byte) {
	p, c := &l.path, &l.counts
	l.random.Seed(p.Seed, c.Packets<<1|l.side)
	c.Packets++
	r := rand.New(&l.random)
	// All dice are thrown for every packet: no fault moves another.
	lost, corrupt, double := r.Float64() < p.Loss, r.Float64() < p.Corrupt, r.Float64() < p.Duplicate
	held, bit := r.Float64() < p.Reorder, r.Uint64()
	switch {
	case len(frame)-ethernetLen > p.MTU:
		c.TooLong++
		return
	case lost:
		c.Lost++
		return
	}
	f := append(l.buffer(), frame...)
	if corrupt {
		if flip(f, bit) {
			c.Disguised++
		} else {
			c.Corrupted++
		}
	}
	var again []byte
	if double {
		c.Duplicated++
		again = append(l.buffer(), f...)
	}
	if held {
		c.Reordered++
	}
	l.schedule(now, f, held)
	if double {
		l.schedule(now, again, false)
	}
}

// schedule lets a frame wait for the rate and the delay, or drops it.
func (l *lane) schedule(now time.Duration, frame []byte, held bool) {
	p := &l.path
	at := now
	if p.Rate > 0 {
		free := max(l.free, now)
		if waiting := int64(free-now) * p.Rate / int64(8*time.Second); waiting+int64(len(frame)) > int64(p.Queue) {
			l.counts.Overflowed++
			l.spare = append(l.spare, frame[:0])
			return
		}
		l.free = free + time.Duration(int64(len(frame))*int64(8*time.Second)/p.Rate)
		at = l.free
	}
	at += p.Delay
	if held {
		at += p.ReorderBy
	}
	l.counts.Waiting++
	heap.Push(&l.due, flight{at, l.counts.Packets + l.counts.Duplicated, frame})
}

// next is when the next frame arrives; ok is false when none is on its way.
func (l *lane) next() (at time.Duration, ok bool) {
	if len(l.due) == 0 {
		return 0, false
	}
	return l.due[0].at, true
}

// take returns a frame that has arrived by now, or nil. It is the caller's
// until it calls done.
func (l *lane) take(now time.Duration) []byte {
	if len(l.due) == 0 || l.due[0].at > now {
		return nil
	}
	return heap.Pop(&l.due).(flight).frame
}

// done gives a frame back and counts it.
func (l *lane) done(frame []byte, delivered bool) {
	l.counts.Waiting--
	if delivered {
		l.counts.Delivered++
	} else {
		l.counts.Refused++
	}
	l.spare = append(l.spare, frame[:0])
}

func (l *lane) buffer() []byte {
	n := len(l.spare)
	if n == 0 {
		return make([]byte, 0, ethernetLen+l.path.MTU)
	}
	b := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return b
}

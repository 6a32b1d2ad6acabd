package bump

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// lane is one direction of a path. It does no I/O and has no clock: now is the
// time since some beginning, and does not go back.
type lane struct {
	side   uint64 // 0 or 1: equal seeds decide otherwise in the other direction
	path   Path
	counts Counts
	free   time.Duration // when the transmitter has sent all that waits for the rate
	due    flights
	order  uint64   // of the last flight
	spare  [][]byte // buffers to be used again
	random rand.PCG
}

// flight is a frame on its way.
type flight struct {
	at     time.Duration // of its arrival
	order  uint64        // among those that arrive at the same time
	behind int           // of one that others shall overtake: so many more
	frame  []byte
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
	place, fate, roce := l.judge(now, frame)
	r := rand.New(&l.random)
	// All dice are thrown for every packet: no fault moves another.
	lost, corrupt, double := r.Float64() < p.Loss, r.Float64() < p.Corrupt, r.Float64() < p.Duplicate
	held, bit := r.Float64() < p.Reorder, r.Uint64()
	switch {
	case len(frame)-ethernetLen > p.MTU:
		c.TooLong++
		return
	case lost || fate.Drop:
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
	if double = double || fate.Dup; double {
		c.Duplicated++
		again = append(l.buffer(), f...)
	}
	late := fate.Delay
	if held {
		c.Reordered++
		late = max(late, p.ReorderBy)
	}
	if fate.Behind > 0 {
		late = max(late, behindTime)
	}
	if roce {
		f = place.obey(f, &fate, bit)
	}
	l.schedule(now, f, late, fate.Behind)
	if double {
		l.schedule(now, again, 0, 0)
	}
	if roce && (late == 0 || double) {
		l.overtake(now)
	}
}

// behindTime is how long a packet that a rule holds back waits for others to
// overtake it.
const behindTime = 500 * time.Microsecond

// epoch is when the rules' time begins, to which the zero Time is none.
var epoch = time.Time{}.Add(time.Hour)

// judge asks the path's rules about a frame, if it is a RoCEv2 packet.
func (l *lane) judge(now time.Duration, frame []byte) (p packet, fate rules.Fate, roce bool) {
	if l.path.Rules == nil {
		return p, fate, false
	}
	if p, roce = find(frame); !roce {
		return p, fate, false
	}
	l.counts.RoCE++
	from, to := p.addresses(frame)
	return p, l.path.Rules.See(epoch.Add(now), from, to, frame[p.body():p.end-wire.ICRCLen], nil), true
}

// overtake counts a packet for those that wait for others, and lets go behind
// it those that have waited for enough.
func (l *lane) overtake(now time.Duration) {
	moved := false
	for i := range l.due {
		if f := &l.due[i]; f.behind > 0 {
			if f.behind--; f.behind == 0 {
				l.order++
				f.at, f.order, moved = min(f.at, now+l.path.Delay), l.order, true
			}
		}
	}
	if moved {
		heap.Init(&l.due)
	}
}

// schedule lets a frame wait for the rate and the delay, or drops it.
func (l *lane) schedule(now time.Duration, frame []byte, late time.Duration, behind int) {
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
	at += p.Delay + late
	l.counts.Waiting++
	l.order++
	heap.Push(&l.due, flight{at, l.order, behind, frame})
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
	if frame != nil {
		l.spare = append(l.spare, frame[:0])
	}
}

func (l *lane) buffer() []byte {
	n := len(l.spare)
	if n == 0 {
		return make([]byte, 0, ethernetLen+min(l.path.MTU, DefaultMTU))
	}
	b := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return b
}

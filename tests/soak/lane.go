package soak

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// lane is one direction of a connection: the requests of one end, the memory at
// the other end that no other lane targets, and the model of the requests'
// effects on it.
//
// The model has executed ops[:head] and the first chunk bytes of ops[head]; its
// result is target.want.
type lane struct {
	run      *run
	name     string
	mtu      int
	from, to *end

	ops       []*op
	posted    int // ops[:posted] were posted
	completed int // ops[:completed] have completed
	wanted    int // ops[:wanted] are to be posted as soon as there is room
	knocked   bool
	resuming  bool
	closing   bool   // nothing more is posted
	next      uint64 // the number of the first packet of the next request
	failed    bool
	barred    int // when not 0: ops[barred:] can have no effect

	target   *arena // at the other end
	mainKey  uint32 // of the region that most requests target
	mainAddr uint64
	source   *arena // here: what is sent
	sink     *arena // here: what comes back
	head     int
	chunk    int

	messages   []*op // those that take a receive
	receives   []*receive
	recvReady  int // receives[:recvReady] were posted
	recvDone   int // receives[:recvDone] have completed
	recvFailed bool
	inbox      *arena
}

// settle moves the model forward: at least over ops[:least], which are known to
// have happened, and then as far as it takes to explain what lies in memory.
func (l *lane) settle(least int) error {
	for l.head < least {
		if err := l.step(); err != nil {
			return err
		}
	}
	size := len(l.target.mem)
	first := l.target.diff(0, size)
	if first < 0 {
		return nil
	}
	wrong := l.target.differing(first, size)
	for wrong > 0 {
		if l.head == l.posted {
			at := l.target.diff(0, size)
			return fmt.Errorf("%s: memory is not what any prefix of the %d posted requests makes of it: byte %d of the target is %#02x, "+
				"would be %#02x after all of them", l.name, l.posted, at, l.target.mem[at], l.target.want[at])
		}
		touched := l.touches()
		wrong -= l.target.differing(touched.at, touched.end())
		if err := l.step(); err != nil {
			return fmt.Errorf("%w; byte %d of the target is %#02x", err, first, l.target.mem[first])
		}
		wrong += l.target.differing(touched.at, touched.end())
	}
	return nil
}

// touches is the part of the target that the next step may change.
func (l *lane) touches() span {
	o := l.ops[l.head]
	switch {
	case o.counter != nil:
		return span{}
	case o.isWrite():
		return span{o.target.at + l.chunk, min(o.mtu, o.length-l.chunk)}
	case o.isAtomic():
		return o.target
	}
	return span{}
}

// step executes the next packet of a request in the model.
func (l *lane) step() error {
	o := l.ops[l.head]
	part := l.touches()
	switch {
	case o.bug != fine && l.chunk+part.n > o.limit, o.bug != fine && part.n == 0:
		return fmt.Errorf("%s: %s, or one after it, was executed", l.name, o)
	case l.barred > 0 && l.head >= l.barred:
		return fmt.Errorf("%s: %s was executed after request %d had failed", l.name, o, l.barred-1)
	}
	want := l.target.want[part.at:part.end()]
	changed := false
	switch {
	case o.isWrite():
		from := o.data[l.chunk : l.chunk+part.n]
		changed = string(want) != string(from)
		copy(want, from)
	case o.isAtomic() && o.counter == nil:
		o.before = binary.NativeEndian.Uint64(want)
		o.after = o.result(o.before)
		changed = o.after != o.before
		binary.NativeEndian.PutUint64(want, o.after)
	case o.isRead():
		o.snapshot = append([]byte(nil), l.target.want[o.target.at:o.target.end()]...)
	}
	if changed && o.region.gone {
		return fmt.Errorf("%s: %s reached memory that was deregistered at %d ns", l.name, o, o.region.goneAt)
	}
	if l.chunk += o.mtu; l.chunk >= o.length || !o.isWrite() {
		l.head, l.chunk = l.head+1, 0
		o.executed = true
	}
	return nil
}

// result returns the value that an atomic leaves where v was.
func (o *op) result(v uint64) uint64 {
	if o.code == abi.WRAtomicFetchAndAdd {
		return v + o.compare
	}
	if v == o.compare {
		return o.swap
	}
	return v
}

// reuse is the program at the other end writing to memory that a completed
// request targeted, and that no outstanding one looks at or may still change.
func (l *lane) reuse(o *op) {
	if o.counter != nil || !o.isWrite() && !o.isAtomic() {
		return
	}
	for _, later := range l.ops[l.completed:l.posted] {
		if later.target.overlaps(o.target) {
			return
		}
	}
	l.target.scribble(&l.run.rand, o.target.at, o.target.n)
}

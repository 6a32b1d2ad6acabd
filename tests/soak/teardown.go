package soak

import (
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// finish checks the end of a run: receives that are left are flushed, packets
// that are still under way hit nothing, all memory is what it must be, and
// nothing is kept.
func (r *run) finish() error {
	for _, l := range r.lanes {
		if err := l.settle(0); err != nil {
			return err
		}
		if n := l.succeededMessages(); l.from.failedAt < 0 && l.to.failedAt < 0 && l.recvDone != n {
			return fmt.Errorf("%s: %d receives completed, %d messages were sent", l.name, l.recvDone, n)
		}
	}
	for _, c := range r.conns {
		for _, e := range c.ends {
			r.breakEnd(e)
		}
	}
	for _, l := range r.retired {
		r.fail(l.checkRetired())
	}
	w := r.world
	if err := w.Run(w.Now()+1000*ms, maxEvents); err != nil {
		return err
	}
	for _, l := range r.lanes {
		if l.recvDone != len(l.receives) {
			return fmt.Errorf("%s: %d of %d receives completed after the queue pair had failed", l.name, l.recvDone, len(l.receives))
		}
		if err := l.checkMemory(); err != nil {
			return err
		}
	}
	for _, l := range r.retired {
		if err := l.checkRetired(); err != nil {
			return err
		}
	}
	for _, c := range r.counters {
		if err := c.finish(); err != nil {
			return err
		}
	}
	if err := r.checkWaste(); err != nil {
		return err
	}
	if err := w.Account(); err != nil {
		return err
	}
	if err := r.checkQuiet(); err != nil {
		return err
	}
	return r.release()
}

// checkQuiet: where the network did nothing wrong, no responder saw a gap.
func (r *run) checkQuiet() error {
	for _, n := range r.world.Hit {
		if n > 0 {
			return nil
		}
	}
	forgery := r.tally[forgedPackets] > 0 || slices.ContainsFunc(restartNames[:], func(name string) bool { return r.tally["restart: "+name] > 0 })
	if n := r.tally["NAK: "+wire.NAKPSNSequence.String()]; n > 0 && !forgery {
		return fmt.Errorf("%d NAKs for gaps on a network without faults", n)
	}
	return nil
}

// checkWaste: a way with a small buffer drops what a large window throws at it,
// but not most of what is ever sent: windows shrink.
func (r *run) checkWaste() error {
	const many = 2000
	sent, dropped := uint64(r.tally[packetsSent]), r.world.Hit[virtual.Overflowed]
	if sent > many && 2*dropped > sent {
		return fmt.Errorf("%d of %d packets did not fit the buffers on their way: the windows do not adapt", dropped, sent)
	}
	return nil
}

// succeededMessages counts the messages that succeeded.
func (l *lane) succeededMessages() int {
	n := 0
	for _, o := range l.messages {
		if o.done && o.status == abi.WCSuccess {
			n++
		}
	}
	return n
}

// checkMemory looks at all of a lane's memory.
func (l *lane) checkMemory() error {
	if err := l.settle(0); err != nil {
		return err
	}
	if at := l.source.diff(0, len(l.source.mem)); at >= 0 {
		return fmt.Errorf("%s: byte %d of what is sent was written", l.name, at)
	}
	if at := l.sink.diff(0, len(l.sink.mem)); at >= 0 {
		return fmt.Errorf("%s: byte %d of the sink was written by no READ or atomic that may", l.name, at)
	}
	return l.checkInbox()
}

// release gives everything back and looks for what is kept.
func (r *run) release() error {
	for _, c := range r.conns {
		for _, e := range c.ends {
			if at, ok := e.qp.NextTimeout(); ok {
				return fmt.Errorf("%s in the error state has a timeout at %d", e, at)
			}
			if n := e.qp.Outstanding(); n != 0 {
				return fmt.Errorf("%s has %d requests outstanding after all completed", e, n)
			}
			if err := e.checkCounters(); err != nil {
				return err
			}
			if err := e.qp.Modify(abi.QPSReset, &engine.Attr{}, 0); err != nil {
				return err
			}
		}
	}
	for _, g := range r.regions {
		if g.handle == nil || g.gone {
			continue
		}
		if err := g.deregister(r.world.Now()); err != nil {
			return err
		}
	}
	for _, n := range r.nodes {
		for _, qp := range n.QPs {
			if n := qp.Receives.Len(); n != 0 {
				return fmt.Errorf("%s leaves %d receives in the ring", qp, n)
			}
		}
		if k := n.Paths.Len(); k != 0 {
			return fmt.Errorf("node %s keeps %d paths", n.Name, k)
		}
		if n.Stash != nil && n.Stash.Len() != 0 {
			return fmt.Errorf("node %s keeps %d packets", n.Name, n.Stash.Len())
		}
		if k := n.Regions.Len(); k != 0 {
			return fmt.Errorf("node %s keeps %d regions", n.Name, k)
		}
	}
	return nil
}

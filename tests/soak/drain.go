package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// pause moves a queue pair to SQD: requests that were begun are finished, the
// rest waits (IBA 10.3.1.5).
func (r *run) pause(e *end) {
	if e.gone || e.qp.State() != abi.QPSRTS {
		return
	}
	r.tally["disturbance: send queue paused"]++
	e.begun, e.held = 0, e.mon.first
	for _, o := range e.out.ops[:e.out.posted] {
		if o.first >= e.mon.next {
			break
		}
		e.begun, e.held = o.index+1, o.first+uint64(o.packets)
	}
	r.fail(e.qp.Modify(abi.QPSSQD, &engine.Attr{}, 0))
	hasty := r.rand.Hit(0.2)
	r.resume(e, hasty)
}

// resume takes a queue pair back to RTS when its send queue has drained; a
// hasty program does not wait for that.
func (r *run) resume(e *end, hasty bool) {
	r.world.At(r.world.Now()+200*us, func() {
		if r.world.Failure() != nil || e.gone || e.qp.State() != abi.QPSSQD {
			return
		}
		drained := e.qp.Drained()
		switch want := e.out.completed >= e.begun; {
		case drained != want:
			r.fail(fmt.Errorf("%s: drained=%v with %d requests completed of %d begun", e, drained, e.out.completed, e.begun))
			return
		case !drained && !hasty:
			r.resume(e, false)
			return
		case drained:
			r.tally["disturbance: send queue drained"]++
			r.resize(e)
		}
		r.fail(e.qp.Modify(abi.QPSRTS, &engine.Attr{}, 0))
	})
}

// resize changes, now and then, how many READs and atomics may be outstanding.
func (r *run) resize(e *end) {
	if !r.rand.Hit(0.5) {
		return
	}
	n := uint8(1 + r.rand.Intn(int(e.peer.plan.destRdAtomic)))
	e.plan.rdAtomic = n
	r.fail(e.qp.Modify(abi.QPSSQD, &engine.Attr{MaxRdAtomic: n}, abi.QPMaskMaxQPRdAtomic))
}

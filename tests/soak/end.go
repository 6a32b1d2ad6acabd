package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// end is one end of a connection.
type end struct {
	run   *run
	index int // in the connection
	node  *virtual.Node
	qp    *virtual.QP
	plan  *endPlan
	peer  *end
	conn  *conn
	out   *lane // its requests
	in    *lane // its receives, and the memory that its peer targets

	regions []*region

	broken   bool        // the program moved it to the error state
	gone     bool        // the queue pair is no more, or no more in this connection
	slept    engine.Time // its node slept until then
	failedAt engine.Time // when it was first seen in the error state; -1: never
	begun    int         // in SQD: so many requests were begun before
	held     uint64      // and packets from this number on wait
	flow     flow
	mon      monitor
	before   engine.Counters // of the queue pair when the connection began
	seen     engine.Counters // that it is to have counted since
}

// conn is a reliable connection.
type conn struct {
	index int // in the plan
	plan  *connPlan
	ends  [2]*end

	leaving bool // it is being given up
}

func (e *end) String() string { return e.qp.String() }

// look notices when the queue pair has entered the error state.
func (e *end) look() {
	if e.failedAt < 0 && e.qp.State() == abi.QPSErr {
		e.failedAt = e.run.world.Now()
	}
}

// mayFlush reports whether there is a reason for this end to be in the error
// state.
func (e *end) mayFlush() bool {
	return e.broken || e.out.failed || e.out.offended() || e.in.recvFailed || e.in.offended()
}

// explain returns err unless something took this end to the error state. The
// queues have no order between them, so what did may show only after a flush of
// the other queue, but not later than that.
func (e *end) explain(err error) error {
	if e.qp.State() != abi.QPSErr {
		return err
	}
	if !e.mayFlush() {
		e.run.world.At(e.run.world.Now(), func() {
			if !e.mayFlush() {
				e.run.fail(err)
			}
		})
	}
	return nil
}

// offended reports whether a request of the lane may have taken the ends to the
// error state. It need not be the next to complete: the requester learns of a
// refusal at once, and READs before it whose answers are missing are flushed.
func (l *lane) offended() bool {
	for _, o := range l.ops[:l.posted] {
		if o.bug != fine || o.localRegion.gone || o.region.dropped() {
			return true
		}
	}
	return false
}

func (e *end) describe() string {
	return fmt.Sprintf("%s %s, posted %d completed %d of %d, receives %d of %d", e, e.qp.State(),
		e.out.posted, e.out.completed, len(e.out.ops), e.in.recvDone, len(e.in.receives))
}

package soak

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// pump lets the queue pair send, and holds packets and completions against what
// they must be.
func (e *silentEnd) pump() error {
	for more := true; more; {
		e.batch.Reset()
		more = e.Transmit(e.run.world.Now(), e.batch)
		if more && len(e.batch.Packets) == 0 {
			return errors.New("a Transmit promises more and writes nothing")
		}
		for i := range e.batch.Packets {
			if err := e.checkPacket(&e.batch.Packets[i]); err != nil {
				return err
			}
			e.node.Send(&e.batch.Packets[i])
		}
	}
	if m := e.nextPacket(); m != nil {
		return fmt.Errorf("request %d is not sent", m.wr.ID)
	}
	return e.settle()
}

// gather takes the payload of a message out of memory as it is now.
func (e *silentEnd) gather(m *message) {
	m.payload = slices.Clone(m.wr.Inline)
	if m.wr.Flags&abi.SendInline == 0 {
		m.payload = slices.Clone(gather(e.arena.want, m.spans))
	}
}

// sent counts a packet.
func (e *silentEnd) sent(payload []byte) {
	e.counters.SentPkts++
	e.counters.SentBytes += uint64(len(payload))
	e.run.reached["sent"]++
}

// completed expects the success of the oldest send.
func (e *silentEnd) completed(m *message) {
	e.posted, e.begun = e.posted[1:], 0
	if m.isWrite() {
		e.counters.Writes++
	} else {
		e.counters.Sends++
	}
	e.expect = append(e.expect, engine.Completion{
		ID: m.wr.ID, Opcode: wcOpcode(m.wr.Opcode), Silent: !e.sigAll && m.wr.Flags&abi.SendSignaled == 0,
	})
}

// failSend expects the failure of the oldest send.
func (e *silentEnd) failSend(m *message) {
	e.counters.LocalErrors++
	e.run.reached[fmt.Sprintf("send with status %v", m.status)]++
	e.fail(m)
}

// fail expects the move to ERR, for a send or for another cause. The receive
// that is held is flushed first.
func (e *silentEnd) fail(m *message) {
	e.state, e.failed = abi.QPSErr, m
	if e.held != nil {
		e.flushed("flushed receive of half a message")
		e.expect = append(e.expect, receiveFailed(e.held, abi.WCWRFlushErr))
		e.held = nil
	}
}

func (e *silentEnd) flushed(what string) {
	e.counters.Flushed++
	e.run.reached[what]++
}

// drop expects that a packet has no effect but on a counter.
func (e *silentEnd) drop(n *uint64, why string) {
	*n++
	e.run.reached["dropped "+why]++
}

// failReceive expects the failure of a receive, and with it the move to ERR.
func (e *silentEnd) failReceive(v *silentReceive, s abi.WCStatus) {
	e.run.reached[fmt.Sprintf("receive with status %v", s)]++
	e.expect = append(e.expect, receiveFailed(v, s))
	e.fail(nil)
}

// settle takes the completions, in ERR those of all that is outstanding: sends,
// then receives (IBA 10.3.1.7).
func (e *silentEnd) settle() error {
	if e.state != abi.QPSErr {
		return e.check()
	}
	for _, m := range e.posted {
		c := engine.Completion{ID: m.wr.ID, Status: abi.WCWRFlushErr, Opcode: wcOpcode(m.wr.Opcode), Solicited: true}
		if m == e.failed {
			c.Status = m.status
		} else {
			e.flushed("flushed send")
		}
		e.expect = append(e.expect, c)
	}
	for _, v := range e.waiting {
		e.flushed("flushed receive")
		e.expect = append(e.expect, receiveFailed(v, abi.WCWRFlushErr))
	}
	e.posted, e.begun, e.waiting = nil, 0, nil
	return e.check()
}

// check takes the completions, which must be the expected ones, and holds
// state, memory and counters against what they must be.
func (e *silentEnd) check() error {
	var buf [1]engine.Completion
	for _, want := range e.expect {
		if n := e.Completions(buf[:]); n != 1 || buf[0] != want {
			return fmt.Errorf("%d completions %+v, the next must be %+v", n, buf[0], want)
		}
	}
	e.expect = e.expect[:0]
	if n := e.Completions(buf[:]); n != 0 {
		return fmt.Errorf("a completion too many: %+v", buf[0])
	}
	if e.State() != e.state {
		return fmt.Errorf("in state %v, must be in %v", e.State(), e.state)
	}
	if at := e.arena.diff(0, len(e.arena.mem)); at >= 0 {
		return fmt.Errorf("byte %d of memory is not what the packets that arrived make of it", at)
	}
	if *e.Counters() != e.counters {
		return fmt.Errorf("counters %+v, must be %+v", *e.Counters(), e.counters)
	}
	return nil
}

// checkEnd holds that nothing is outstanding in the end but what waits for a
// message or for RTS.
func (e *silentEnd) checkEnd() error {
	if e.Outstanding() != len(e.posted) || e.receives.Len() != len(e.waiting) {
		return fmt.Errorf("%d sends and %d receives are left, must be %d and %d",
			e.Outstanding(), e.receives.Len(), len(e.posted), len(e.waiting))
	}
	return nil
}

func receiveFailed(v *silentReceive, s abi.WCStatus) engine.Completion {
	return engine.Completion{ID: v.wr.ID, Status: s, Opcode: abi.WCRecv, Recv: true, Solicited: true}
}

package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// sent checks the completion of a request.
func (l *lane) sent(c *engine.Completion) error {
	if l.completed == l.posted {
		return fmt.Errorf("%s: completion %d (%s), but nothing is outstanding", l.name, c.ID, c.Status)
	}
	o := l.ops[l.completed]
	if c.ID != o.id {
		return fmt.Errorf("%s: completion of %d (%s) out of order or twice: %s (id %d) is next", l.name, c.ID, c.Status, o, o.id)
	}
	o.done, o.status = true, c.Status
	l.completed++
	signaled := l.from.plan.sigAll || o.flags&abi.SendSignaled != 0
	if want := !signaled && c.Status == abi.WCSuccess; c.Silent != want {
		return fmt.Errorf("%s: %s completed with %s, silent=%v", l.name, o, c.Status, c.Silent)
	}
	var err error
	switch {
	case c.Status == abi.WCSuccess:
		err = l.succeeded(o, c)
	case c.Status == abi.WCWRFlushErr:
		err = l.from.explain(fmt.Errorf("%s: %s flushed, but nothing failed (%s)", l.name, o, l.from.qp.State()))
	default:
		err = l.broke(o, c.Status)
	}
	if err == nil && c.Status != abi.WCSuccess && o.answered() {
		err = l.checkPartialAnswer(o)
	}
	if err == nil {
		err = l.settle(0)
	}
	return err
}

// succeeded checks that a successful request took effect.
func (l *lane) succeeded(o *op, c *engine.Completion) error {
	switch {
	case l.failed || l.from.broken:
		return fmt.Errorf("%s: %s succeeded after the queue pair had failed", l.name, o)
	case o.bug != fine:
		return fmt.Errorf("%s: %s succeeded", l.name, o)
	case c.Opcode != wcOpcode(o.code):
		return fmt.Errorf("%s: %s completed as %s", l.name, o, c.Opcode)
	case o.isRead() && int(c.ByteLen) != o.length:
		return fmt.Errorf("%s: %s completed with %d bytes", l.name, o, c.ByteLen)
	}
	if err := l.settle(o.index + 1); err != nil {
		return err
	}
	if o.takesReceive() && l.recvDone <= o.message {
		return fmt.Errorf("%s: %s completed before its receive did", l.name, o)
	}
	if o.answered() {
		if err := l.checkAnswer(o); err != nil {
			return err
		}
	}
	l.reuse(o)
	return nil
}

// broke checks the first error of the queue. It is the request's own, or the
// network's.
func (l *lane) broke(o *op, status abi.WCStatus) error {
	if l.failed || l.from.broken {
		return fmt.Errorf("%s: %s completed with %s after the queue pair had failed: it should be flushed", l.name, o, status)
	}
	l.failed = true
	l.from.look()
	if l.from.qp.State() != abi.QPSErr {
		return fmt.Errorf("%s: %s completed with %s and the queue pair is in %s", l.name, o, status, l.from.qp.State())
	}
	switch {
	case status == abi.WCRetryExcErr:
		return l.checkRetryExceeded(o)
	case status == abi.WCRNRRetryExcErr:
		return l.checkRNRExceeded(o)
	}
	// An earlier packet may still arrive, but not if the responder refused this
	// one, or if this one never was sent; a READ's answer may fail late.
	if !o.isRead() && (status != abi.WCLocProtErr || o.bug != fine) {
		l.barred = o.index + 1
	}
	switch {
	case o.bug != fine && status == outcomes[o.bug].send:
	case o.bug == fine && status == abi.WCRemOpErr && o.isRead() && o.region.dropped(): // while it was answered
	case o.bug == fine && status == abi.WCRemAccessErr && o.region.dropped():
	case status == abi.WCLocProtErr && o.localRegion.gone:
	default:
		return fmt.Errorf("%s: %s completed with %s", l.name, o, status)
	}
	return nil
}

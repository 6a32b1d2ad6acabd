package soak

import (
	"bytes"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// received checks the completion of a receive of the lane.
func (l *lane) received(c *engine.Completion) error {
	if l.recvDone == l.recvReady {
		return fmt.Errorf("%s: receive completion %d (%s), but no receive is posted", l.name, c.ID, c.Status)
	}
	v := l.receives[l.recvDone]
	if c.ID != v.id {
		return fmt.Errorf("%s: completion of receive %d (%s) out of order or twice: receive number %d (id %d) is next",
			l.name, c.ID, c.Status, v.index, v.id)
	}
	if c.Silent {
		return fmt.Errorf("%s: receive %d completed silently", l.name, v.index)
	}
	v.status = c.Status
	o := l.messageOf(v)
	var err error
	switch {
	case c.Status == abi.WCSuccess:
		err = l.took(v, o, c)
	case c.Status == abi.WCWRFlushErr:
		err = l.to.explain(fmt.Errorf("%s: receive %d flushed, but nothing failed (%s)", l.name, v.index, l.to.qp.State()))
	default:
		err = l.refused(v, o, c.Status)
	}
	if err == nil && c.Status != abi.WCSuccess {
		err = l.checkPartialReceive(v)
	}
	l.recvDone++
	l.drained()
	if err == nil {
		err = l.settle(0)
	}
	return err
}

// took checks that a receive got its message.
func (l *lane) took(v *receive, o *op, c *engine.Completion) error {
	switch {
	case l.recvFailed || l.to.broken:
		return fmt.Errorf("%s: receive %d succeeded after the queue pair had failed", l.name, v.index)
	case o == nil || o.index >= l.posted:
		return fmt.Errorf("%s: receive %d succeeded, but only %d messages were sent", l.name, v.index, v.index)
	case o.bug != fine:
		return fmt.Errorf("%s: receive %d took %s", l.name, v.index, o)
	}
	if err := l.settle(o.index + 1); err != nil {
		return err
	}
	if err := checkReceiveFields(o, c); err != nil {
		return fmt.Errorf("%s: receive %d: %w", l.name, v.index, err)
	}
	if o.revokes != nil {
		o.revokes.gone, o.revokes.invalid, o.revokes.goneAt = true, true, l.run.world.Now()
	}
	data := o.data
	if !o.isSend() {
		data = nil
	}
	off := 0
	for _, s := range v.spans {
		n := min(s.n, len(data)-off)
		if !bytes.Equal(l.inbox.mem[s.at:s.at+n], data[off:off+n]) {
			return fmt.Errorf("%s: receive %d does not hold %s", l.name, v.index, o)
		}
		if l.inbox.diff(s.at+n, s.end()) >= 0 {
			return fmt.Errorf("%s: receive %d was written behind the %d bytes of %s", l.name, v.index, o.length, o)
		}
		off += n
	}
	for _, s := range v.spans {
		l.inbox.scribble(&l.run.rand, s.at, s.n) // the program uses it again
	}
	return nil
}

// checkReceiveFields compares what a receive's completion says with the
// message.
func checkReceiveFields(o *op, c *engine.Completion) error {
	opcode, flags := abi.WCRecv, abi.WCFlags(0)
	switch o.code {
	case abi.WRRDMAWriteWithImm:
		opcode, flags = abi.WCRecvRDMAWithImm, abi.WCWithImm
	case abi.WRSendWithImm:
		flags = abi.WCWithImm
	case abi.WRSendWithInv:
		flags = abi.WCWithInvalidate
	}
	switch {
	case c.Opcode != opcode || c.Flags != flags:
		return fmt.Errorf("%s arrived as %s with flags %s", o, c.Opcode, c.Flags)
	case int(c.ByteLen) != o.length:
		return fmt.Errorf("%s arrived with %d bytes", o, c.ByteLen)
	case flags&abi.WCWithImm != 0 && c.Imm != o.imm:
		return fmt.Errorf("%s arrived with immediate %x, sent was %x", o, c.Imm, o.imm)
	case flags&abi.WCWithInvalidate != 0 && c.Invalidate != o.revokes.key:
		return fmt.Errorf("%s arrived with key %#x, sent was %#x", o, c.Invalidate, o.revokes.key)
	case c.Solicited != (o.flags&abi.SendSolicited != 0):
		return fmt.Errorf("%s arrived with solicited=%v", o, c.Solicited)
	}
	return nil
}

// refused checks the error of a receive.
func (l *lane) refused(v *receive, o *op, status abi.WCStatus) error {
	if l.recvFailed || l.to.broken {
		return fmt.Errorf("%s: receive %d completed with %s after the queue pair had failed: it should be flushed", l.name, v.index, status)
	}
	l.recvFailed = true
	if o == nil || o.index >= l.posted || outcomes[o.bug].recv != status || o.bug == fine {
		return fmt.Errorf("%s: receive %d completed with %s (message: %v)", l.name, v.index, status, o)
	}
	return nil
}

// checkPartialReceive checks the buffers of a receive that failed: they hold a
// beginning of its message, or nothing.
func (l *lane) checkPartialReceive(v *receive) error {
	var data []byte
	if o := l.messageOf(v); o != nil && o.isSend() {
		data = o.data
	}
	off, ended := 0, false
	for _, s := range v.spans {
		for at := s.at; at < s.end(); at, off = at+1, off+1 {
			got := l.inbox.mem[at]
			isOld := got == l.inbox.want[at]
			isNew := !ended && off < len(data) && got == data[off]
			if !isNew && !isOld {
				return fmt.Errorf("%s: receive %d failed with %s, but byte %d of it is %#02x: neither untouched nor of a beginning of its message",
					l.name, v.index, v.status, off, got)
			}
			ended = ended || !isNew
		}
		l.inbox.accept(s.at, s.n)
	}
	return nil
}

// checkInbox checks the receives' memory outside of the one receive that may be
// half filled.
func (l *lane) checkInbox() error {
	var busy []span
	if l.recvDone < len(l.receives) {
		busy = l.receives[l.recvDone].spans
	}
	at := 0
	for _, s := range append(busy, span{len(l.inbox.mem), 0}) {
		if d := l.inbox.diff(at, s.at); d >= 0 {
			return fmt.Errorf("%s: byte %d of the receives' memory was written; receive %d is next", l.name, d, l.recvDone)
		}
		at = s.end()
	}
	return nil
}

package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// Receive takes bytes of the peer's stream, cut anywhere. It copies the bytes
// that it keeps. The error is the Cause, from the call that finds or receives
// it on; Transmit then says what the peer must still hear.
func (c *Conn) Receive(now Time, p []byte) error {
	for len(p) > 0 && !c.over && !c.deaf {
		switch {
		case c.tail.left > 0:
			p = p[c.receiveTail(now, p):]
			continue
		case len(c.part) > 0:
			p = c.complete(p)
			if c.receiveFirst(now, c.part) > 0 {
				c.part = c.part[:0]
			}
			continue
		}
		n := c.receiveFirst(now, p)
		if n == 0 && !c.deaf {
			c.part = append(c.part, p...)
			break
		}
		p = p[n:]
	}
	return c.failed()
}

// receiveFirst handles the record at the start of b and returns how many bytes
// of it there are, 0 if it must be complete and is not.
func (c *Conn) receiveFirst(now Time, b []byte) int {
	frames, n, err := wire.ParseRecord(b, c.cfg.MaxRecord)
	switch {
	case err != nil:
		c.deaf = true
		c.refuse(now, 0, err)
	case n > 0:
		c.receiveRecord(now, frames, n)
	default:
		n = c.receiveBeginning(now, b)
	}
	return n
}

// complete moves bytes from p to the incomplete record: one while its Size is
// incomplete, and then no more than the record lacks. It returns what is left
// of p.
func (c *Conn) complete(p []byte) []byte {
	size, n := wire.ParseVarint(c.part)
	lacks := 1
	if n > 0 {
		lacks = n + int(size) - len(c.part)
	}
	lacks = min(lacks, len(p))
	c.part = append(c.part, p[:lacks]...)
	return p[lacks:]
}

// receivedRecord notes that a record of n bytes is here completely.
func (c *Conn) receivedRecord(now Time, n int) {
	c.counters.RecordsReceived++
	c.counters.BytesReceived += uint64(n)
	c.timers.received(c, now)
}

// receiveRecord handles the frames of a record of n bytes.
func (c *Conn) receiveRecord(now Time, b []byte, n int) {
	c.receivedRecord(now, n)
	c.waste.start(now)
	f := &c.frame
	for len(b) > 0 {
		n, err := f.Parse(b)
		if !c.ready && !f.Type.IsParameters() && c.cause == nil {
			err = errFirst
		}
		c.counters.FramesReceived.Add(f.Type)
		if err == nil && c.cause == nil {
			err = c.receiveFrame(now, f)
		}
		if err != nil {
			c.refuse(now, f.Type, err)
			return
		}
		if f.Type == wire.TypeConnectionClose || f.Type == wire.TypeApplicationClose {
			c.receiveClose(f)
			return
		}
		b = b[n:]
		for f.Type == wire.TypePadding && len(b) > 0 && b[0] == byte(wire.TypePadding) {
			b = b[1:]
		}
	}
	if c.waste.count > maxWaste && c.cause == nil {
		c.refuse(now, f.Type, errWaste)
	}
}

// receiveFrame handles one frame of an open connection.
func (c *Conn) receiveFrame(now Time, f *wire.Frame) error {
	switch f.Type {
	case wire.TypePadding:
		c.wasted()
	case wire.TypeParameters, wire.TypeParameters3:
		return c.receiveParameters(now, f)
	case wire.TypeResetStream, wire.TypeResetStreamAt:
		return c.receiveReset(now, f)
	case wire.TypeStopSending:
		return c.receiveStop(now, f)
	case wire.TypeMaxData:
		if !c.credit.raise(f.Limit) {
			c.wasted()
		}
	case wire.TypeMaxStreamData:
		return c.receiveCredit(now, f)
	case wire.TypeMaxStreamsBidi, wire.TypeMaxStreamsUni:
		c.receiveMaxStreams(f)
	case wire.TypeDataBlocked, wire.TypeStreamsBlockedBidi, wire.TypeStreamsBlockedUni:
		c.wasted()
	case wire.TypeStreamDataBlocked:
		c.wasted()
		_, err := c.half(now, f.Stream, true)
		return err
	case wire.TypeDatagram, wire.TypeDatagramLen:
		return c.receiveDatagram(f)
	case wire.TypePing:
		return c.receivePing(f)
	case wire.TypePong:
		return c.receivePong(now, f)
	case wire.TypeConnectionClose, wire.TypeApplicationClose:
	default:
		return c.receiveStream(now, f)
	}
	return nil
}

// receiveParameters handles the frame that opens the peer's stream.
func (c *Conn) receiveParameters(now Time, f *wire.Frame) error {
	switch {
	case c.ready:
		return errTwice
	case len(f.Data) > maxParameters:
		return errLongParameters
	}
	if err := c.peer.Parse(f.Data); err != nil {
		return err
	}
	c.ready = true
	c.credit.limit = c.peer.InitialMaxData
	for i := range c.kinds {
		k := &c.kinds[i]
		switch {
		case !k.ours:
		case wire.StreamID(i).Uni():
			k.limit = c.peer.MaxStreamsUni
		default:
			k.limit = c.peer.MaxStreamsBidi
		}
		if k.ours && k.limit > 0 {
			c.granted(wire.StreamID(i))
		}
	}
	c.timers.ready(c, now)
	c.queueEvent(EventReady)
	return nil
}

// receiveMaxStreams handles MAX_STREAMS of either kind.
func (c *Conn) receiveMaxStreams(f *wire.Frame) {
	like := wire.MakeStreamID(0, c.cfg.Server, f.Type == wire.TypeMaxStreamsUni)
	k := &c.kinds[like]
	if f.Limit <= k.limit {
		c.wasted()
		return
	}
	k.limit = f.Limit
	c.granted(like)
}

// granted tells a program that waits for it of credit for streams.
func (c *Conn) granted(like wire.StreamID) {
	if k := &c.kinds[like]; k.wanted {
		k.wanted = false
		c.queueKindEvent(like, EventOpen)
	}
}

// waste bounds the frames that change nothing, maxWaste a second: the peer
// makes us work for nothing.
type waste struct {
	since Time
	count int
}

func (w *waste) start(now Time) {
	if Duration(now-w.since) >= Second {
		w.since, w.count = now, 0
	}
}

// wasted counts the frame being received as one that changed nothing.
func (c *Conn) wasted() { c.waste.count++ }

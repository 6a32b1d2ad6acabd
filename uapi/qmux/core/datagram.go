package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// datagrams are those that wait, in either direction. Of those received the
// oldest is dropped when a 129th comes; those to be sent are never dropped.
type datagrams struct {
	in     [][]byte
	out    [][]byte // out[:waits] wait, the rest is memory for later
	waits  int
	wanted bool // SendDatagram found no room
}

// MaxDatagram is the longest datagram that the peer takes, in bytes of payload;
// -1 if it takes none, and before its parameters are here.
func (c *Conn) MaxDatagram() int {
	frame := int(min(c.peer.MaxDatagramFrameSize, uint64(c.laid())))
	n := frame - 2 // the type, and a length of one byte
	if n >= 1<<6 {
		n = max(1<<6-1, frame-3)
	}
	if n >= 1<<14 {
		n = max(1<<14-1, frame-5)
	}
	return max(n, -1)
}

// SendDatagram copies p to be sent with the next record. The error is
// ErrNotReady, ErrNoDatagrams, ErrTooLong, ErrFull or the Cause; after ErrFull
// EventDatagramRoom says when to try again.
func (c *Conn) SendDatagram(p []byte) error {
	d := &c.datagrams
	switch {
	case c.cause != nil:
		return c.cause
	case !c.ready:
		return ErrNotReady
	case c.MaxDatagram() < 0:
		return ErrNoDatagrams
	case len(p) > c.MaxDatagram():
		return ErrTooLong
	case d.waits == maxDatagrams:
		d.wanted = true
		return ErrFull
	}
	if d.waits == len(d.out) {
		d.out = append(d.out, nil)
	}
	d.out[d.waits] = append(d.out[d.waits][:0], p...)
	d.waits++
	return nil
}

// ReceiveDatagram returns the oldest datagram that waits, which is the
// caller's, or false.
func (c *Conn) ReceiveDatagram() ([]byte, bool) {
	d := &c.datagrams
	if len(d.in) == 0 {
		return nil, false
	}
	p := d.in[0]
	n := copy(d.in, d.in[1:])
	d.in[n] = nil
	d.in = d.in[:n]
	return p, true
}

// fillDatagrams appends the datagrams for which there is room.
func (c *Conn) fillDatagrams(b []byte) []byte {
	d := &c.datagrams
	n := 0
	for ok := true; n < d.waits; n++ {
		if b, ok = c.put(b, wire.Frame{Type: wire.TypeDatagramLen, Data: d.out[n]}); !ok {
			break
		}
		c.counters.DatagramsSent++
	}
	c.out.Data = nil
	for i := range d.waits - n { // the sent buffers go behind those that wait
		d.out[i], d.out[i+n] = d.out[i+n], d.out[i]
	}
	d.waits -= n
	if n > 0 && d.wanted {
		d.wanted = false
		c.queueEvent(EventDatagramRoom)
	}
	return b
}

// receiveDatagram handles DATAGRAM of either form.
func (c *Conn) receiveDatagram(f *wire.Frame) error {
	if c.cfg.MaxDatagram == 0 || f.Length() > c.cfg.MaxDatagram {
		return errDatagram
	}
	d := &c.datagrams
	if len(d.in) == maxDatagrams {
		c.ReceiveDatagram()
		c.counters.DatagramsDropped++
	}
	d.in = append(d.in, append(make([]byte, 0, len(f.Data)), f.Data...))
	c.counters.DatagramsReceived++
	c.queueEvent(EventDatagram)
	return nil
}

package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// tail is the data of a record that has not arrived completely: of the STREAM
// frame that fills it. Its fields were taken in with its header, so that the
// data goes to the reader as it comes.
type tail struct {
	to   *stream // nil: the data is dropped
	left int     // bytes that have not arrived
	size int     // of the whole record
}

// receiveBeginning takes the beginning b of a record of which the rest has not
// arrived, if it is but one STREAM frame, whose header is here and in order. It
// returns len(b), or 0: the record must be complete.
func (c *Conn) receiveBeginning(now Time, b []byte) int {
	size, k := wire.ParseVarint(b)
	if k == 0 || !c.ready || c.cause != nil {
		return 0
	}
	f := &c.frame
	n, err := f.Parse(b[k:])
	if err != nil || !f.Type.FillsRecord() || len(f.Data) == 0 {
		return 0
	}
	whole := size - uint64(n-len(f.Data))
	if f.Offset > wire.MaxVarint-whole {
		return 0
	}
	c.waste.start(now)
	s, err := c.admit(now, f, whole)
	if err != nil {
		return 0
	}
	c.counters.FramesReceived.Add(f.Type)
	c.tail = tail{to: s, left: int(whole), size: k + int(size)}
	return k + n - len(f.Data) + c.receiveTail(now, f.Data)
}

// receiveTail takes the next bytes of the record that is arriving, and returns
// how many of b these are.
func (c *Conn) receiveTail(now Time, b []byte) int {
	t := &c.tail
	n := min(len(b), t.left)
	if t.left -= n; t.left == 0 {
		c.receivedRecord(now, t.size)
	}
	switch {
	case c.cause != nil:
	case t.to != nil:
		c.deliver(t.to, b[:n])
	case t.left == 0 && c.waste.count > maxWaste:
		c.refuse(now, c.frame.Type, errWaste)
	}
	return n
}

package qmux

import (
	"errors"
	"io"
	"time"
)

// receive is the reader. A stream over RDMA lends it what arrived.
func (c *Conn) receive() {
	defer close(c.readerEnded)
	if ring, ok := c.conn.(io.WriterTo); ok && overRDMA(c.conn) {
		_, err := ring.WriteTo(arrival{c})
		if err == nil {
			err = io.EOF
		}
		c.do(func() { c.broke(err) })
		return
	}
	buf := make([]byte, readSize)
	for {
		n, err := c.conn.Read(buf)
		c.do(func() {
			if n > 0 {
				c.core.Receive(c.now(), buf[:n])
			}
			c.broke(err)
		})
		if err != nil {
			return
		}
	}
}

// arrival takes what the byte stream brings.
type arrival struct{ c *Conn }

func (a arrival) Write(p []byte) (int, error) {
	a.c.do(func() { a.c.core.Receive(a.c.now(), p) })
	return len(p), nil
}

// broke notes an error of the byte stream.
func (c *Conn) broke(err error) {
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		c.core.ReceiveEnd()
	default:
		if c.writeErr != nil {
			err = c.writeErr
		}
		if c.broken == nil && !c.core.Over() {
			c.broken = err
		}
		c.core.Abort()
	}
}

// lastWords is how long the reader may go on after a Write has failed.
const lastWords = time.Second

// awaitReader breaks the connection off when the reader has read what the peer
// said before a Write failed with err: why it closes, perhaps.
func (c *Conn) awaitReader(err error) {
	c.do(func() { c.writeErr = err })
	if c.conn.SetReadDeadline(time.Now().Add(lastWords)) == nil {
		<-c.readerEnded
	}
	c.do(func() { c.broke(err) })
}

// transmit is the writer. It ends this side's direction of the byte stream
// behind the last record.
func (c *Conn) transmit() {
	defer close(c.written)
	o := &c.outgoing
	for {
		n, idle, ended := 0, false, false
		over := c.step(func() {
			if idle = o.by != nil; idle {
				return
			}
			o.taken = true
			o.allocate(c)
			for k := 1; k > 0 && o.err == nil && len(o.rest) == 0 && len(o.buf)-n >= c.core.Buffer(); n += k {
				k = c.core.Transmit(c.now(), o.buf[n:])
			}
			ended = c.core.OutputEnded()
			idle = !ended && n == 0 && o.err == nil && len(o.rest) == 0
			o.taken = !idle
		})
		if idle {
			<-c.wake
			continue
		}
		err, b := o.err, o.buf[:n]
		if len(o.rest) > 0 {
			b, o.rest = o.rest, nil
		}
		if err == nil && len(b) > 0 {
			_, err = c.conn.Write(b)
		}
		switch {
		case err != nil:
			c.awaitReader(err)
			return
		case over:
			c.close()
			return
		case ended:
			if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
			return
		}
	}
}

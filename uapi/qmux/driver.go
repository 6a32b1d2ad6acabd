package qmux

import (
	"errors"
	"io"
	"time"
)

// receive is the reader.
func (c *Conn) receive() {
	defer close(c.readerEnded)
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
	buf := make([]byte, max(writeSize, c.core.Buffer()))
	for {
		n, ended := 0, false
		over := c.step(func() {
			for k := 1; k > 0 && len(buf)-n >= c.core.Buffer(); n += k {
				k = c.core.Transmit(c.now(), buf[n:])
			}
			ended = c.core.OutputEnded()
		})
		if n > 0 {
			if _, err := c.conn.Write(buf[:n]); err != nil {
				c.awaitReader(err)
				return
			}
		}
		switch {
		case over:
			c.close()
			return
		case ended:
			if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
			return
		case n == 0:
			<-c.wake
		}
	}
}

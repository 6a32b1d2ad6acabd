package qmux

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
		switch {
		case err != nil || len(b) == 0:
		case o.gather == nil:
			_, err = c.conn.Write(b)
		default: // on RDMA as one chunk
			o.list = append(o.pieces[:0], b)
			_, err = o.gather(&o.list)
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

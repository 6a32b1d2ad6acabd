package qmux

// transmit is the writer. It ends this side's direction of the byte stream
// behind the last record.
func (c *Conn) transmit() {
	defer close(c.written)
	o := &c.outgoing
	var err error // of the last send
	for {
		idle, ended := false, false
		over := c.step(func() {
			if idle = o.by != nil; idle {
				return
			}
			if o.err == nil {
				c.sent(err)
				c.obey()
				err = nil // of an interrupt, perhaps
			}
			switch {
			case o.err != nil:
			case len(o.rest) > 0:
				o.list, o.rest = append(o.pieces[:0], o.rest), nil
			default:
				c.collect(nil)
			}
			ended = c.core.OutputEnded()
			idle = !ended && len(o.list) == 0 && o.err == nil
			o.taken = !idle
		})
		switch {
		case idle:
			<-c.wake
			continue
		case o.err != nil:
			c.awaitReader(o.err)
			return
		case len(o.list) == 0:
		case o.gather == nil:
			_, err = c.conn.Write(o.list[0])
		default: // on RDMA as one chunk
			err = o.send()
		}
		switch {
		case err != nil: // known to the others in the next round
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

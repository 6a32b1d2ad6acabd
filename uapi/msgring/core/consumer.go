package core

// Consumer keeps the receiver's account of its own ring.
//
// Invariants: credited <= consumed <= next <= credited + Size. All chunks
// before consumed were read whole; the others lie from there to next, in the
// order in which they arrived.
type Consumer struct {
	layout   Layout
	longest  uint64 // chunk in bytes
	next     uint64 // position behind the last chunk
	consumed uint64
	credited uint64 // position of the last credit to the peer
	bytes    uint64 // payload bytes arrived, for FIN

	chunks fifo[chunk] // that were not read whole
	read   uint64      // bytes of the first one that were read
}

type chunk struct {
	start  uint64 // position
	length uint64 // bytes
}

// Arrive takes in a chunk of n bytes that the peer's device has written.
func (c *Consumer) Arrive(n uint64) error {
	if n < 1 || n > c.longest {
		return breach("a chunk of %d bytes; it has 1 … %d", n, c.longest)
	}
	start, end := c.layout.Place(c.next, n)
	if end > c.credited+c.layout.Size {
		return breach("a chunk of %d bytes without credit: it was told of %d of %d bytes", n, c.layout.Size-(c.next-c.credited), c.layout.Size)
	}
	c.next = end
	c.bytes += n
	c.chunks.push(chunk{start: start, length: n})
	return nil
}

// Unread reports whether there is data that was not read.
func (c *Consumer) Unread() bool { return c.chunks.len() > 0 }

// Peek returns where in the ring the unread rest of the oldest chunk lies, in
// bytes; a length of 0 is none.
func (c *Consumer) Peek() (offset, length uint64) {
	if !c.Unread() {
		return 0, 0
	}
	k := c.chunks.at(0)
	return c.layout.Offset(k.start) + c.read, k.length - c.read
}

// Discard reads n bytes of the oldest chunk, at most what Peek returned. It
// gives the chunk's room back when nothing of it is left.
func (c *Consumer) Discard(n uint64) {
	_, left := c.Peek()
	switch {
	case left == 0:
	case n < left:
		c.read += n
	default:
		k := c.chunks.at(0)
		c.consumed = k.start + c.layout.Charge(k.length)
		c.chunks.pop(1)
		c.read = 0
	}
}

// Due reports whether credit must go to the peer: a quarter of the ring was
// consumed since the last went.
func (c *Consumer) Due() bool { return c.consumed-c.credited >= c.layout.Size/4 }

// Credit returns the position consumed, of which the peer gets credit now.
// Positions are posted in the order in which they were asked for here.
func (c *Consumer) Credit() uint64 {
	c.credited = c.consumed
	return c.credited
}

// Immediate is Credit as the immediate of a chunk.
func (c *Consumer) Immediate() uint32 {
	return uint32(c.Credit()/c.layout.Quantum) & immediateMask
}

package core

// Consumer keeps the receiver's account of its own ring.
//
// Invariants: credited <= consumed <= next <= credited + Size. All before
// consumed was released, without a gap; the chunks that were not lie from there
// to next, and arrive in order.
type Consumer struct {
	layout   Layout
	longest  uint64 // chunk in bytes
	next     uint64 // position behind the last chunk
	consumed uint64
	credited uint64 // position of the last credit to the peer
	bytes    uint64 // payload bytes arrived, for FIN

	chunks fifo[chunk] // not released, or behind one that is not
	first  uint64      // serial number of chunks' first
	taken  int         // chunks before this one are lent or read
	read   uint64      // bytes of chunk taken that are read
}

type chunk struct {
	start    uint64 // position
	length   uint64 // bytes
	released bool
}

// Chunk is a chunk in the ring, lent until it is released.
type Chunk struct {
	Serial uint64 // counts chunks from 0
	Offset uint64 // in the ring
	Length uint64 // bytes
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

// Unread reports whether there is data that was neither read nor taken.
func (c *Consumer) Unread() bool { return c.taken < c.chunks.len() }

// Peek returns the unread rest of the oldest chunk; Length 0 is none.
func (c *Consumer) Peek() Chunk {
	if !c.Unread() {
		return Chunk{}
	}
	k := c.chunks.at(c.taken)
	return Chunk{
		Serial: c.first + uint64(c.taken),
		Offset: c.layout.Offset(k.start) + c.read,
		Length: k.length - c.read,
	}
}

// Take lends the unread rest of the oldest chunk: the next Peek is of the chunk
// behind it. Release ends the loan; loans end in any order.
func (c *Consumer) Take() Chunk {
	k := c.Peek()
	if k.Length > 0 {
		c.taken++
		c.read = 0
	}
	return k
}

// Discard reads n bytes of the oldest chunk, at most what Peek returned, and
// releases it when nothing of it is left.
func (c *Consumer) Discard(n uint64) {
	switch k := c.Peek(); {
	case k.Length == 0:
	case n < k.Length:
		c.read += n
	default:
		c.Release(c.Take().Serial)
	}
}

// Release gives a taken chunk's room back. Credit covers chunks that are
// released without a gap only: a chunk that is lent holds those behind it.
// Releasing a chunk again, or one that was never taken, does nothing.
func (c *Consumer) Release(serial uint64) {
	i := serial - c.first
	if serial < c.first || i >= uint64(c.taken) {
		return
	}
	c.chunks.at(int(i)).released = true
	n := 0
	for ; n < c.taken && c.chunks.at(n).released; n++ {
		k := c.chunks.at(n)
		c.consumed = k.start + c.layout.Charge(k.length)
	}
	c.chunks.pop(n)
	c.first += uint64(n)
	c.taken -= n
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

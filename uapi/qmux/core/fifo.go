package core

const (
	blockSize = 4 << 10 // bytes; a stream with one unread byte costs as much
	// maxFree is how many blocks a connection keeps for later, 2 MiB: a reader
	// that falls behind for a moment and then reads all at once causes no
	// allocation when as much arrives again.
	maxFree = 512
)

// block is a piece of unread stream data.
type block struct {
	next     *block
	from, to int // the unread bytes
	data     [blockSize]byte
}

// blocks keeps free blocks, so that data in flight allocates nothing.
type blocks struct {
	free  *block
	count int
}

func (p *blocks) get() *block {
	b := p.free
	if b == nil {
		return new(block)
	}
	p.free = b.next
	p.count--
	b.next, b.from, b.to = nil, 0, 0
	return b
}

func (p *blocks) put(b *block) {
	if p.count < maxFree {
		b.next, p.free = p.free, b
		p.count++
	}
}

// fifo is the unread data of a stream.
type fifo struct {
	head, tail *block
	size       int // bytes
}

// write copies data to the end.
func (f *fifo) write(data []byte, pool *blocks) {
	f.size += len(data)
	for len(data) > 0 {
		if f.tail == nil || f.tail.to == blockSize {
			b := pool.get()
			if f.tail == nil {
				f.head = b
			} else {
				f.tail.next = b
			}
			f.tail = b
		}
		n := copy(f.tail.data[f.tail.to:], data)
		f.tail.to += n
		data = data[n:]
	}
}

// read moves bytes from the start to p.
func (f *fifo) read(p []byte, pool *blocks) int {
	total := 0
	for len(p) > 0 && f.head != nil {
		b := f.head
		n := copy(p, b.data[b.from:b.to])
		b.from += n
		p = p[n:]
		total += n
		if b.from == b.to {
			if f.head = b.next; f.head == nil {
				f.tail = nil
			}
			pool.put(b)
		}
	}
	f.size -= total
	return total
}

// clear drops everything and returns how many bytes that was.
func (f *fifo) clear(pool *blocks) int {
	n := f.size
	for b := f.head; b != nil; {
		next := b.next
		pool.put(b)
		b = next
	}
	*f = fifo{}
	return n
}

package rdmanet

import (
	"io"
	"net"
	"sync"
)

// copySize is the length of ReadFrom's reads, in bytes.
const copySize = 64 << 10

// buffers has the memory that ReadFrom reads into.
var buffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// onlyWriter hides ReadFrom.
type onlyWriter struct{ io.Writer }

// ReadFrom writes what r has until io.EOF, 64 KiB at a time. Other writers do
// not wait while r is read.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	buf := buffers.Get().(*[copySize]byte)
	defer buffers.Put(buf)
	return io.CopyBuffer(onlyWriter{c}, r, buf[:])
}

// WriteTo writes to w what the peer sends until io.EOF, out of the ring and
// without a copy. Other readers wait until it returns. The memory of the
// connection is not given back while w writes.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for !c.readClosed.Load() {
		p, err := c.ring.Peek()
		if err != nil {
			if err = c.readError(err); err == io.EOF {
				err = nil
			}
			return n, err
		}
		k, err := c.lend(w, p)
		n += int64(k)
		switch {
		case err != nil:
			return n, err
		case k < len(p):
			return n, io.ErrShortWrite
		}
	}
	return n, nil
}

// lend has w write what Peek returned and ends the loan, also when w panics.
func (c *Conn) lend(w io.Writer, p []byte) (n int, err error) {
	defer func() { c.ring.Discard(n) }()
	n, err = w.Write(p)
	n = min(max(n, 0), len(p))
	return n, err
}

// WriteBuffers sends the buffers as if they were one, small ones together in a
// chunk, and removes from v what was sent. No other writer's bytes come in
// between.
func (c *Conn) WriteBuffers(v *net.Buffers) (n int64, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	longest := c.ring.Info().Longest
	for {
		size := 0
		for _, b := range *v {
			size = min(size+len(b), longest)
		}
		if size == 0 {
			*v = nil
			return n, nil
		}
		room, err := c.ring.Reserve(size)
		if err == nil {
			fill := room
			for _, b := range *v {
				fill = fill[copy(fill, b):]
			}
			err = c.ring.Commit(size)
		}
		if err != nil {
			return n, c.failed("write", err)
		}
		n += int64(size)
		for size > 0 {
			k := min(size, len((*v)[0]))
			(*v)[0], size = (*v)[0][k:], size-k
			if len((*v)[0]) == 0 {
				*v = (*v)[1:]
			}
		}
	}
}

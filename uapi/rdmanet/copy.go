package rdmanet

import (
	"io"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// buffers are the memory that ReadFrom reads into.
var buffers = sync.Pool{New: func() any { return new([msgring.DefaultMaxChunk]byte) }}

// onlyWriter hides ReadFrom.
type onlyWriter struct{ io.Writer }

// ReadFrom writes what r has until io.EOF, a chunk at a time. Other writers do
// not wait while r is read.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	buf := buffers.Get().(*[msgring.DefaultMaxChunk]byte)
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

package peer

import (
	"io"
	"sync/atomic"
)

// Meter counts the bytes that a writer has taken.
type Meter struct {
	io.Writer
	N *atomic.Int64
}

// Write writes p, and adds to N what the writer took.
func (m Meter) Write(p []byte) (int, error) {
	n, err := m.Writer.Write(p)
	m.N.Add(int64(n))
	return n, err
}

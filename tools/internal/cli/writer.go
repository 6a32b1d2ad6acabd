package cli

import (
	"io"
	"sync"
)

// NewLockedWriter returns a writer that several goroutines may use: each Write
// reaches w whole.
func NewLockedWriter(w io.Writer) io.Writer { return &lockedWriter{w: w} }

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

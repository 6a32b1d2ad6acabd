package vm

import (
	"bytes"
	"io"
	"sync"
)

// prefixer puts a prefix before each line, so that the outputs of several
// nodes can be told apart; whole lines are written at once.
type prefixer struct {
	mu     *sync.Mutex // of all that write to the same place
	w      io.Writer
	prefix string
	part   []byte
}

func newPrefixer(mu *sync.Mutex, w io.Writer, prefix string) *prefixer {
	return &prefixer{mu: mu, w: w, prefix: prefix}
}

func (p *prefixer) Write(b []byte) (int, error) {
	p.part = append(p.part, b...)
	end := bytes.LastIndexByte(p.part, '\n') + 1
	if end == 0 && len(p.part) < maxLine {
		return len(b), nil
	}
	if end == 0 {
		p.flush()
		return len(b), nil
	}
	p.emit(p.part[:end])
	p.part = append([]byte(nil), p.part[end:]...)
	return len(b), nil
}

// flush writes a last line that had no end, and gives it one.
func (p *prefixer) flush() {
	if len(p.part) > 0 {
		p.emit(append(p.part, '\n'))
		p.part = nil
	}
}

func (p *prefixer) emit(lines []byte) {
	if p.w == nil {
		return
	}
	var out []byte
	for line := range bytes.Lines(lines) {
		out = append(append(out, p.prefix...), line...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.Write(out)
}

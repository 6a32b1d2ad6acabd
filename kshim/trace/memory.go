package trace

import (
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/kshim/fault"
)

// memory holds the ranges that a process announced with Pin, or all that it
// has.
type memory struct {
	all func(addr, n uint64) []byte

	mu   sync.RWMutex
	pins []*pin // guarded by mu
}

type pin struct {
	addr uint64
	buf  []byte
}

func (m *memory) add(addr uint64, buf []byte) *pin {
	p := &pin{addr, buf}
	m.mu.Lock()
	m.pins = append(m.pins, p)
	m.mu.Unlock()
	return p
}

func (m *memory) remove(p *pin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pins = slices.DeleteFunc(m.pins, func(q *pin) bool { return q == p })
}

// read copies the n bytes at addr; false when they do not lie in one announced
// range, or when they are not there any more.
func (m *memory) read(addr, n uint64) ([]byte, bool) {
	if n == 0 {
		return nil, true
	}
	src := m.find(addr, n)
	if src == nil {
		return nil, false
	}
	return copied(src)
}

func (m *memory) find(addr, n uint64) []byte {
	if m.all != nil {
		return m.all(addr, n)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, p := range m.pins {
		off, size := addr-p.addr, uint64(len(p.buf))
		if addr >= p.addr && off <= size && n <= size-off {
			return p.buf[off : off+n]
		}
	}
	return nil
}

// copied is a copy of memory that may change, or vanish, meanwhile: a call's
// arguments and response belong to the caller, which may share them among
// calls.
func copied(src []byte) ([]byte, bool) {
	dst := make([]byte, len(src))
	return dst, fault.Copy(dst, src) == nil
}

package emu

import (
	"sync"
	"syscall"
)

// mappings are the rings that a process has mapped. They belong to the process,
// not to the file they came from: they outlive it.
type mappings struct {
	mu  sync.Mutex
	all map[*byte]int // guarded by mu: first byte and length
}

func (m *mappings) add(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[*byte]int{}
	}
	m.all[&b[0]] = len(b)
}

func (m *mappings) remove(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(b) == 0 || m.all[&b[0]] != len(b) {
		return fail(syscall.EINVAL, "not a mapping, or not the whole of one")
	}
	delete(m.all, &b[0])
	return nil
}

func (m *mappings) drop() {
	m.mu.Lock()
	m.all = nil
	m.mu.Unlock()
}

// rings are the queues of a file that wait to be mapped
// (rxe_mmap.c: pending_mmaps).
type rings struct {
	mu      sync.Mutex
	pending map[uint64][]byte // guarded by mu, by offset
}

func (r *rings) add(offset uint64, ring []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[uint64][]byte{}
	}
	r.pending[offset] = ring
}

// take returns a ring, once.
func (r *rings) take(offset uint64, length int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ring, ok := r.pending[offset]
	if !ok {
		return nil, fail(syscall.EINVAL, "nothing waits to be mapped at offset %#x; a queue is mapped once, after its create", offset)
	}
	if length != len(ring) {
		return nil, fail(syscall.EINVAL, "the queue at offset %#x is %d bytes long, not %d", offset, len(ring), length)
	}
	delete(r.pending, offset)
	return ring[:length:length], nil
}

func (r *rings) forget(offsets []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range offsets {
		delete(r.pending, o)
	}
}

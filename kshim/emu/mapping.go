package emu

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/ring"
)

// mappings are the rings that a process has mapped. They belong to the process,
// not to the file they came from: they outlive it.
type mappings struct {
	mu  sync.Mutex
	all map[*byte]*ringMemory // guarded by mu, by the first byte
}

func (m *mappings) add(r *ringMemory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[*byte]*ringMemory{}
	}
	m.all[&r.bytes[0]] = r
}

func (m *mappings) remove(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var r *ringMemory
	if len(b) > 0 {
		r = m.all[&b[0]]
	}
	if r == nil || len(r.bytes) != len(b) {
		return fail(syscall.EINVAL, "not a mapping, or not the whole of one")
	}
	delete(m.all, &b[0])
	r.drop()
	return nil
}

func (m *mappings) drop() {
	m.mu.Lock()
	m.all = nil
	m.mu.Unlock()
}

// ringMemory is the memory of a ring. Its object and the program that has
// mapped it use it (rxe_mmap.c: rxe_mmap_info); behind both it becomes another
// ring's, where it is the garbage collector's: a program that makes connection
// after connection would keep that busy.
type ringMemory struct {
	bytes     []byte
	offset    uint64
	collected bool
	users     atomic.Int32
}

func (r *ringMemory) drop() {
	if r.users.Add(-1) == 0 && r.collected {
		ring.Reuse(r.bytes)
	}
}

// rings are the queues of a file that wait to be mapped
// (rxe_mmap.c: pending_mmaps).
type rings struct {
	mu      sync.Mutex
	pending map[uint64]*ringMemory // guarded by mu, by offset
}

func (r *rings) add(m *ringMemory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[uint64]*ringMemory{}
	}
	m.users.Add(1)
	r.pending[m.offset] = m
}

// take returns a ring, once.
func (r *rings) take(offset uint64, length int) (*ringMemory, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.pending[offset]
	if !ok {
		return nil, fail(syscall.EINVAL, "nothing waits to be mapped at offset %#x; a queue is mapped once, after its create", offset)
	}
	if length != len(m.bytes) {
		return nil, fail(syscall.EINVAL, "the queue at offset %#x is %d bytes long, not %d", offset, len(m.bytes), length)
	}
	delete(r.pending, offset)
	m.users.Add(1)
	return m, nil
}

// forget follows the end of the object that the rings belong to.
func (r *rings) forget(list []*ringMemory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range list {
		delete(r.pending, m.offset)
		m.drop()
	}
}

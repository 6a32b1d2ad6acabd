package emu

import (
	"math"
	"syscall"
)

// Unlimited is no limit of Process.SetMemlock.
const Unlimited = math.MaxUint64

// memlock counts the pages that a process's regions hold (mm->pinned_vm),
// against RLIMIT_MEMLOCK.
type memlock struct {
	limit uint64 // bytes
	pages uint64
}

// SetMemlock sets RLIMIT_MEMLOCK, in bytes, for a process without CAP_IPC_LOCK:
// registering beyond it is ENOMEM, and EPERM when it is 0. Every region counts
// all pages that it touches, also those that others have registered. Regions
// that exist stay.
func (p *Process) SetMemlock(bytes uint64) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	p.memory.locked.limit = bytes
}

// Memlock is how much memory the process's regions hold, in bytes, and the
// limit.
func (p *Process) Memlock() (locked, limit uint64) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	return p.memory.locked.pages * page, p.memory.locked.limit
}

// pinned is a region's share of memory: a range, and pages of the limit.
type pinned struct {
	*pinnedRange
	pages uint64
}

// add charges pages as ib_umem_get does, with its errors in its order.
func (l *memlock) add(pages uint64) error {
	switch limit := l.limit / page; {
	case l.limit == 0:
		return fail(syscall.EPERM, "the process may lock no memory (RLIMIT_MEMLOCK is 0)")
	case l.limit != Unlimited && pages > limit-min(limit, l.pages):
		return fail(syscall.ENOMEM, "%d pages more than the %d that the process has locked exceed its limit of %d KiB; raise it (RLIMIT_MEMLOCK, ulimit -l)",
			pages, l.pages, l.limit>>10)
	}
	l.pages += pages
	return nil
}

// hold returns announced memory for a region and charges its pages. The memory
// stays pinned until unhold, also when its announcement is withdrawn.
func (m *UserMemory) hold(addr, n uint64) ([]byte, *pinned, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pages := (addr+n-1)/page - addr/page + 1 // ib_umem_num_pages
	if err := m.locked.add(pages); err != nil {
		return nil, nil, err
	}
	p := m.ranges.Load().find(addr, n)
	if mem := m.anywhere(addr, n); p == nil && mem != nil {
		return mem, &pinned{&pinnedRange{users: 1}, pages}, nil
	}
	if p == nil {
		m.locked.pages -= pages
		return nil, nil, fail(syscall.EFAULT, "%d bytes at %#x are not in memory announced with Pin", n, addr)
	}
	p.users++
	off := addr - p.addr
	return p.mem[off : off+n : off+n], &pinned{p, pages}, nil
}

func (m *UserMemory) unhold(p *pinned) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locked.pages -= p.pages
	m.put(p.pinnedRange)
}

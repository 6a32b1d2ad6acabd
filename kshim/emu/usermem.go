package emu

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/fault"
)

// This is the only file of the package that knows where memory lies. Addresses
// leave it as numbers and come back as numbers; here a number only selects one
// of the slices that were announced, it is never made a pointer.

// UserMemory is a process's address space as far as the kernel was told of it:
// the ranges announced with Pin. Ranges may overlap and be announced several
// times. Lookups take no lock and allocate nothing; they and Pin cost O(log n)
// of the ranges that there are.
type UserMemory struct {
	mu     sync.Mutex                // serialises changes
	live   map[*pinnedRange]struct{} // guarded by mu: all that is pinned
	host   Host                      // nil: only announced memory
	gone   bool                      // guarded by mu: dropped; nothing is pinned any more
	ranges atomic.Pointer[rangeTree] // changed with mu held
}

// pinnedRange is one range, held against the garbage collector until the last
// announcement and the last region that uses it have gone.
type pinnedRange struct {
	addr, end uint64
	mem       []byte
	pinner    runtime.Pinner

	announced int // guarded by UserMemory.mu
	users     int // guarded by UserMemory.mu: announcements and regions
}

func newUserMemory() *UserMemory {
	m := &UserMemory{live: map[*pinnedRange]struct{}{}}
	// A process that is dropped without Exit, and its device with it, must not
	// leave pinned memory behind, which the runtime answers with a panic.
	runtime.AddCleanup(m, func(live map[*pinnedRange]struct{}) {
		for p := range live {
			p.pinner.Unpin()
		}
	}, m.live)
	return m
}

// address is where b begins.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// Pin announces buf. See kshim.File.
func (m *UserMemory) Pin(buf []byte) (addr uint64, release func()) {
	if len(buf) == 0 {
		return 0, func() {}
	}
	buf = buf[:len(buf):len(buf)]
	addr = address(buf)

	m.mu.Lock()
	if m.gone {
		m.mu.Unlock()
		return addr, func() {}
	}
	ranges, end := m.ranges.Load(), addr+uint64(len(buf))
	p := ranges.exact(addr, end)
	if p == nil {
		p = &pinnedRange{addr: addr, end: end, mem: buf}
		p.pinner.Pin(unsafe.SliceData(buf))
		m.live[p] = struct{}{}
		m.ranges.Store(ranges.insert(p))
	}
	p.announced++
	p.users++
	m.mu.Unlock()

	var once sync.Once
	return addr, func() {
		once.Do(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if p.announced == 0 {
				return // drop was quicker
			}
			if p.announced--; p.announced == 0 {
				m.ranges.Store(m.ranges.Load().remove(p))
			}
			m.put(p)
		})
	}
}

// Slice returns the n bytes at addr, or nil when they do not lie within one
// announced range. The bytes stay there as long as the slice is held, but their
// owner may change or unmap them: reach them with fault.Copy.
func (m *UserMemory) Slice(addr, n uint64) []byte {
	p := m.ranges.Load().find(addr, n)
	if p == nil {
		return m.anywhere(addr, n)
	}
	off := addr - p.addr
	return p.mem[off : off+n : off+n]
}

// hold returns announced memory for a region. It stays pinned until unhold,
// also when its announcement is withdrawn.
func (m *UserMemory) hold(addr, n uint64) (driver.Memory, *pinnedRange, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.ranges.Load().find(addr, n)
	if p == nil && m.host != nil {
		if mem := m.host.Region(addr, n); mem.Len > 0 {
			return mem, &pinnedRange{users: 1}, nil
		}
	}
	if p == nil {
		return driver.Memory{}, nil, fail(syscall.EFAULT, "%d bytes at %#x are not in memory announced with Pin", n, addr)
	}
	p.users++
	off := addr - p.addr
	return driver.Near(p.mem[off : off+n : off+n]), p, nil
}

func (m *UserMemory) unhold(p *pinnedRange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(p)
}

// anywhere is memory that was not announced, which only a host has.
func (m *UserMemory) anywhere(addr, n uint64) []byte {
	if m.host == nil || n == 0 {
		return nil
	}
	return m.host.Memory(addr, n)
}

// drop forgets all announcements, and those to come, as when a process ends.
func (m *UserMemory) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = true
	m.ranges.Swap(nil).each(func(p *pinnedRange) {
		p.users -= p.announced - 1
		p.announced = 0
		m.put(p)
	})
}

// put releases one use. Preconditions: mu is held.
func (m *UserMemory) put(p *pinnedRange) {
	if p.users--; p.users == 0 {
		p.pinner.Unpin()
		delete(m.live, p)
	}
}

// zeroOut clears user memory, clear_user.
//
//go:norace
func zeroOut(dst []byte) (err error) {
	defer fault.End(fault.Begin(), &err, syscall.EFAULT)
	for i := range dst {
		dst[i] = 0
	}
	return nil
}

var pageSize = uintptr(os.Getpagesize())

// probe touches every page of mem and says EFAULT where it cannot be read, or
// written if write is asked for, as get_user_pages finds out in the kernel. It
// writes by adding nothing, atomically, to a word, so that it loses no update
// of a program or device that is at work there. The word may begin before mem,
// within the page.
//
//go:norace
//go:noinline
func probe(mem []byte, write bool) (seen byte, err error) {
	defer fault.End(fault.Begin(), &err, syscall.EFAULT)
	base := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	for off := uintptr(0); off < uintptr(len(mem)); off += pageSize - (base+off)%pageSize {
		p := unsafe.Pointer(&mem[off])
		if write {
			touch((*uint32)(unsafe.Add(p, -int((base+off)%4))))
		} else {
			seen ^= *(*byte)(p)
		}
	}
	return seen, nil
}

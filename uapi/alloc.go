package uapi

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"sync"
	"syscall"
)

// Alloc gives n bytes of zeroed memory that begins at a page boundary and, on
// Unix systems, lies outside the Go heap: the garbage collector never scans or
// counts it. Give it back with Free. n that is not positive is EINVAL, more
// than the system has is ENOMEM.
//
// Any []byte can be registered; aligned memory spares the device's copies the
// crossing of page boundaries.
func Alloc(n int) ([]byte, error) {
	if n <= 0 || n > maxAlloc {
		return nil, opError("Alloc", "", explain(syscall.EINVAL, "%d bytes are not in 1 … %d", n, maxAlloc))
	}
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	mem, err := mapMemory(size)
	if err != nil {
		return nil, opError("Alloc", "", fmt.Errorf("%d bytes: %w", n, err))
	}
	allocations.add(mem)
	return mem[:n:n], nil
}

// maxAlloc keeps rounding up to a page from overflowing.
const maxAlloc = int(^uint(0)>>1) - 1<<20

// Free gives memory back that Alloc gave; the slice and all made of it must
// not be touched afterwards. While part of it is registered, Free answers
// EBUSY; for anything that is not the start of an allocation, EINVAL. Regions
// of a context that is being closed do not count: the memory goes with the last
// of them.
func Free(mem []byte) error {
	whole, err := allocations.take(mem)
	if whole != nil {
		err = unmapMemory(whole)
	}
	return opError("Free", "", err)
}

// allocations are the living results of Alloc in this process, so that Free can
// tell which are still registered.
var allocations allocTable

type allocTable struct {
	mu   sync.Mutex
	list []*allocation // guarded by mu; sorted by address
}

type allocation struct {
	start, size uintptr
	mem         []byte // whole pages, as mapped
	registered  int    // regions that lie in it; guarded by the table's mu
	ending      int    // those of contexts that are being closed; likewise
	freed       bool   // it goes with the last of them; likewise
}

// address is where a slice begins. It is compared, never turned back into a
// pointer.
func address(mem []byte) uintptr { return reflect.ValueOf(mem).Pointer() }

func (t *allocTable) add(mem []byte) {
	a := &allocation{start: address(mem), size: uintptr(len(mem)), mem: mem}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.search(a.start)
	t.list = append(t.list, nil)
	copy(t.list[i+1:], t.list[i:])
	t.list[i] = a
}

// search is the index of the first allocation at or above the address.
func (t *allocTable) search(start uintptr) int {
	return sort.Search(len(t.list), func(i int) bool { return t.list[i].start >= start })
}

// find is the allocation that the memory lies in, or nil.
func (t *allocTable) find(mem []byte) (*allocation, int) {
	if len(t.list) == 0 || len(mem) == 0 {
		return nil, 0
	}
	start := address(mem)
	i := t.search(start + 1)
	if i == 0 {
		return nil, 0
	}
	if a := t.list[i-1]; start-a.start < a.size {
		return a, i - 1
	}
	return nil, 0
}

// take removes the allocation that begins at mem and returns it whole, or nil
// while the regions in it end.
func (t *allocTable) take(mem []byte) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, i := t.find(mem)
	switch {
	case a == nil || a.start != address(mem):
		return nil, explain(syscall.EINVAL, "the memory is not from Alloc, or was freed")
	case a.registered > a.ending:
		return nil, explain(syscall.EBUSY, "%d memory regions lie in it; deregister them first", a.registered-a.ending)
	}
	t.list = append(t.list[:i], t.list[i+1:]...)
	if a.registered > 0 {
		a.freed = true
		return nil, nil
	}
	return a.mem, nil
}

// hold is a region's hold on the allocation that it lies in; nil for memory
// that is not from Alloc.
type hold struct {
	in     *allocation
	ending bool // guarded by the table's mu
}

// hold notes that a region lies in mem until release.
func (t *allocTable) hold(mem []byte) *hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, _ := t.find(mem)
	if a == nil {
		return nil
	}
	a.registered++
	return &hold{in: a}
}

// end tells that release follows soon, since the region's context is closed.
func (t *allocTable) end(h *hold) {
	if h == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h.ending = true
	h.in.ending++
}

func (t *allocTable) release(h *hold) {
	if h == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a := h.in
	if a.registered--; h.ending {
		a.ending--
	}
	if a.freed && a.registered == 0 {
		_ = unmapMemory(a.mem)
	}
}

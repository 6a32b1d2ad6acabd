package pages

import (
	"os"
	"reflect"
	"slices"
	"sort"
	"sync"
	"syscall"
)

// Alloc gives n bytes of zeroed memory, n > 0, that begins at a page boundary.
func Alloc(n int) ([]byte, error) {
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	mem, err := mapMemory(size)
	if err != nil {
		return nil, err
	}
	allocations.add(mem)
	return mem[:n:n], nil
}

// Free gives memory back that Alloc gave. EINVAL: mem is not the start of an
// allocation. EBUSY: regions, so many, lie in it. Those that are ending do not
// count, and the memory goes with the last of them.
func Free(mem []byte) (regions int, err error) {
	whole, regions, err := allocations.take(mem)
	if whole != nil {
		err = unmapMemory(whole)
	}
	return regions, err
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
	ending      int    // those of devices that are being closed; likewise
	freed       bool   // it goes with the last of them; likewise
}

// address is where a slice begins. It is compared, never turned back into a
// pointer.
func address(mem []byte) uintptr { return reflect.ValueOf(mem).Pointer() }

func (t *allocTable) add(mem []byte) {
	a := &allocation{start: address(mem), size: uintptr(len(mem)), mem: mem}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.Insert(t.list, t.search(a.start), a)
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
func (t *allocTable) take(mem []byte) (whole []byte, regions int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, i := t.find(mem)
	switch {
	case a == nil || a.start != address(mem):
		return nil, 0, syscall.EINVAL
	case a.registered > a.ending:
		return nil, a.registered - a.ending, syscall.EBUSY
	}
	t.list = slices.Delete(t.list, i, i+1)
	if a.registered > 0 {
		a.freed = true
		return nil, 0, nil
	}
	return a.mem, 0, nil
}

// Registration is a region's, of the allocation that it lies in; nil for memory
// that is not from Alloc.
type Registration struct {
	in     *allocation
	ending bool // guarded by the table's mu
}

// Register counts a region in mem until Release.
func Register(mem []byte) *Registration {
	t := &allocations
	t.mu.Lock()
	defer t.mu.Unlock()
	a, _ := t.find(mem)
	if a == nil {
		return nil
	}
	a.registered++
	return &Registration{in: a}
}

// End announces that Release follows soon: the region's device is closed.
func (r *Registration) End() {
	if r == nil {
		return
	}
	allocations.mu.Lock()
	defer allocations.mu.Unlock()
	r.ending = true
	r.in.ending++
}

// Release ends the registration, and the allocation if it was freed and has no
// other.
func (r *Registration) Release() {
	if r == nil {
		return
	}
	allocations.mu.Lock()
	defer allocations.mu.Unlock()
	a := r.in
	if a.registered--; r.ending {
		a.ending--
	}
	if a.freed && a.registered == 0 {
		_ = unmapMemory(a.mem)
	}
}

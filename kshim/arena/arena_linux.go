package arena

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sort"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// size is an arena's, in bytes; pages are memory when they are touched.
	size = 16 << 20
	// own is the least allocation that has an arena of its own.
	own = 4 << 20
)

// Seals are those of each arena: its size stays, and no mapping that comes
// later can be written to.
const Seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL

// arena is a memfd and its mapping.
type arena struct {
	id    uint64
	fd    int
	start uintptr // of mem
	mem   []byte
	free  []span // by offset; no two of them touch
	used  int    // allocations
	fresh int    // bytes from here on were never handed out
}

// span is a piece of an arena: [at, end).
type span struct{ at, end int }

var arenas struct {
	mu       sync.Mutex
	list     []*arena // guarded by mu; by address
	next     uint64   // guarded by mu: the number of the last arena
	watchers map[*func(uint64)]struct{}
	keepers  int // guarded by mu: how many called Keep
}

func address(mem []byte) uintptr { return reflect.ValueOf(mem).Pointer() }

// Alloc gives n bytes of zeroed memory, n being a multiple of the page size. An
// error is the system's: there is no memory, or it has no memfds with such
// seals (before Linux 5.1).
func Alloc(n int) ([]byte, error) {
	arenas.mu.Lock()
	defer arenas.mu.Unlock()
	if n < own {
		for _, a := range arenas.list {
			if mem := a.take(n); mem != nil {
				return mem, nil
			}
		}
	}
	whole := size
	if n >= own {
		whole = n
	}
	a, err := create(whole)
	if err != nil {
		return nil, err
	}
	return a.take(n), nil
}

// create makes an arena. Preconditions, here and below: mu is held.
func create(n int) (*arena, error) {
	fd, err := unix.MemfdCreate("rdmashim-arena", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	var mem []byte
	if err = unix.Ftruncate(fd, int64(n)); err == nil {
		mem, err = unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, Seals); err != nil {
			_ = unix.Munmap(mem)
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("arena of %d bytes: %w", n, err)
	}
	arenas.next++
	a := &arena{id: arenas.next, fd: fd, start: address(mem), mem: mem, free: []span{{0, n}}}
	i := sort.Search(len(arenas.list), func(i int) bool { return arenas.list[i].start > a.start })
	arenas.list = slices.Insert(arenas.list, i, a)
	return a, nil
}

// take cuts n bytes from the first piece that has them, or returns nil.
func (a *arena) take(n int) []byte {
	for i := range a.free {
		f := &a.free[i]
		if f.end-f.at < n {
			continue
		}
		at := f.at
		if f.at += n; f.at == f.end {
			a.free = slices.Delete(a.free, i, i+1)
		}
		if at < a.fresh {
			a.zero(at, min(at+n, a.fresh))
		}
		a.used, a.fresh = a.used+1, max(a.fresh, at+n)
		return a.mem[at : at+n : at+n]
	}
	return nil
}

// zero clears [at, end). Pages that were never touched are zeroes, and stay
// without memory: most of a connection's rings is never used.
func (a *arena) zero(at, end int) {
	for at < end {
		data, err := unix.Seek(a.fd, int64(at), unix.SEEK_DATA)
		if err == unix.ENXIO || err == nil && data >= int64(end) {
			return
		}
		hole := int64(end)
		if err == nil {
			hole, err = unix.Seek(a.fd, data, unix.SEEK_HOLE)
		}
		if err != nil { // a kernel that cannot tell
			clear(a.mem[at:end])
			return
		}
		next := min(int(hole), end)
		clear(a.mem[data:next])
		at = next
	}
}

// give takes [at, end) back.
func (a *arena) give(at, end int) {
	i := sort.Search(len(a.free), func(i int) bool { return a.free[i].at > at })
	a.free = slices.Insert(a.free, i, span{at, end})
	if i+1 < len(a.free) && a.free[i+1].at == end {
		a.free[i].end = a.free[i+1].end
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].end == at {
		a.free[i-1].end = a.free[i].end
		a.free = slices.Delete(a.free, i, i+1)
	}
	a.used--
}

// find is the arena that mem lies in, or nil, and its place in the list.
func find(mem []byte) (*arena, int) {
	start := address(mem)
	i := sort.Search(len(arenas.list), func(i int) bool { return arenas.list[i].start > start }) - 1
	if i < 0 || start-arenas.list[i].start >= uintptr(len(arenas.list[i].mem)) {
		return nil, 0
	}
	return arenas.list[i], i
}

// Free takes memory back that Alloc gave, whole. It returns false for any that
// lies in no arena.
func Free(mem []byte) bool {
	arenas.mu.Lock()
	a, i := find(mem)
	if a == nil {
		arenas.mu.Unlock()
		return false
	}
	at := int(address(mem) - a.start)
	a.give(at, at+len(mem))
	tell := func() {}
	if a.used == 0 && !a.spare() {
		tell = a.drop(i)
	}
	arenas.mu.Unlock()
	tell()
	return true
}

// drop gives an arena back, which is the i-th of the list. tell is to be called
// without the lock.
func (a *arena) drop(i int) (tell func()) {
	arenas.list = slices.Delete(arenas.list, i, i+1)
	_ = unix.Munmap(a.mem)
	unix.Close(a.fd)
	watchers := slices.Collect(maps.Keys(arenas.watchers))
	return func() {
		for _, f := range watchers {
			(*f)(a.id)
		}
	}
}

// spareTouched is how many bytes of an empty arena may have been used for it to
// stay.
const spareTouched = 8 << 20

// spare reports whether the empty arena stays, as the only one that is empty.
func (a *arena) spare() bool {
	if arenas.keepers == 0 || len(a.mem) != size || a.fresh > spareTouched {
		return false
	}
	return !slices.ContainsFunc(arenas.list, func(o *arena) bool { return o != a && o.used == 0 })
}

// Keep lets one arena stay that is empty, until stop is called by all that
// called Keep: a program whose connections come and go one by one does not make
// an arena for each. stop is called once.
func Keep() (stop func()) {
	arenas.mu.Lock()
	defer arenas.mu.Unlock()
	arenas.keepers++
	return func() {
		arenas.mu.Lock()
		tell := func() {}
		arenas.keepers--
		if i := slices.IndexFunc(arenas.list, func(a *arena) bool { return a.used == 0 }); i >= 0 && arenas.keepers == 0 {
			tell = arenas.list[i].drop(i)
		}
		arenas.mu.Unlock()
		tell()
	}
}

// Find tells where mem lies. ok is false for memory of no arena.
func Find(mem []byte) (id, at uint64, ok bool) {
	arenas.mu.Lock()
	defer arenas.mu.Unlock()
	if a, _ := find(mem); a != nil && len(mem) > 0 {
		return a.id, uint64(address(mem) - a.start), true
	}
	return 0, 0, false
}

// Open returns a descriptor of an arena, which the caller closes, and the
// arena's length in bytes. ENOENT if it has gone.
func Open(id uint64) (fd, n int, err error) {
	arenas.mu.Lock()
	defer arenas.mu.Unlock()
	for _, a := range arenas.list {
		if a.id == id {
			fd, err = unix.FcntlInt(uintptr(a.fd), unix.F_DUPFD_CLOEXEC, 0)
			return fd, len(a.mem), os.NewSyscallError("fcntl", err)
		}
	}
	return -1, 0, fmt.Errorf("arena %d: %w", id, syscall.ENOENT)
}

// Watch calls f with the number of each arena that goes, until stop is called.
// Numbers are not used again.
func Watch(f func(id uint64)) (stop func()) {
	arenas.mu.Lock()
	defer arenas.mu.Unlock()
	if arenas.watchers == nil {
		arenas.watchers = make(map[*func(uint64)]struct{})
	}
	arenas.watchers[&f] = struct{}{}
	return func() {
		arenas.mu.Lock()
		defer arenas.mu.Unlock()
		delete(arenas.watchers, &f)
	}
}

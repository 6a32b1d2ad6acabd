package mem

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// MaxWindows is how many memory windows one table holds.
const MaxWindows = 1<<19 - 1

// Window is a memory window (IBA 10.6.7): a key for a part of a region, which a
// work request binds and revokes. The upper 24 bits of its key are its own and
// no region's; the lowest 8 are chosen anew at each binding.
//
// A window of type 1 can be bound to something else at any time. A window of
// type 2 must be free for that, and serves the queue pair that bound it and no
// other: the specification's type 2B.
type Window struct {
	key   uint32
	pd    PD
	type2 bool
	bound Binding // Region is nil while it is free
	user  uint32  // of type 2: the queue pair that bound it
}

// Binding is the memory that a window gives access to, and the rights.
type Binding struct {
	Region       *Region
	Addr, Length uint64
	Access       abi.AccessFlags // remote rights, and AccessZeroBased
}

// Bind is a request to bind a window.
type Bind struct {
	Window       uint32 // its present key
	Key          uint32 // the lowest 8 bits are those of its next one
	LKey         uint32 // of the region
	Addr, Length uint64 // in the region; of no bytes: a window of type 1 is made to give access to nothing
	Access       abi.AccessFlags
}

// Key is the present R_Key.
func (w *Window) Key() uint32 { return w.key }

// AllocateWindow makes a window that gives access to nothing. ENOMEM when the
// table has no room.
func (t *Table) AllocateWindow(pd PD, type2 bool) (*Window, error) {
	if len(t.windows) >= MaxWindows {
		return nil, fmt.Errorf("all %d memory windows are in use: %w", MaxWindows, syscall.ENOMEM)
	}
	w := &Window{key: t.drawWindow(), pd: pd, type2: type2}
	if t.windows == nil {
		t.windows = map[uint32]*Window{}
	}
	t.windows[w.key>>8] = w
	return w, nil
}

// drawWindow returns a key whose upper 24 bits no key has.
func (t *Table) drawWindow() uint32 {
	for {
		key := uint32(t.random.Uint64())
		free := key>>8 != 0 && t.windows[key>>8] == nil
		for low := uint32(0); low < 256 && free; low++ {
			next := key&^0xff | low
			free = t.slots[t.locate(next)].key == 0
		}
		if free {
			return key
		}
	}
}

// FreeWindow removes a window: no packet reaches memory by it any more.
func (t *Table) FreeWindow(w *Window) {
	w.unbind()
	delete(t.windows, w.key>>8)
}

func (w *Window) unbind() {
	if w.bound.Region != nil {
		w.bound.Region.windows--
	}
	w.bound, w.user = Binding{}, 0
}

// Bind binds a window for a queue pair of a domain (IBA 10.6.7.2,
// rxe_mw.c:rxe_check_bind_mw). Nothing changes on an error.
func (t *Table) Bind(pd PD, user uint32, b *Bind) error {
	w := t.windows[b.Window>>8]
	if w == nil || w.key != b.Window {
		return ErrKey
	}
	const known = abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic | abi.AccessZeroBased
	next := Binding{Addr: b.Addr, Length: b.Length, Access: b.Access & known}
	if b.Length > 0 {
		next.Region = t.find(b.LKey)
	}
	switch r := next.Region; {
	case w.pd != pd:
		return ErrPD
	case w.type2 && w.bound.Region != nil, !w.type2 && b.Access&abi.AccessZeroBased != 0:
		return ErrAccess
	case r == nil && (w.type2 || b.Length > 0):
		return ErrKey
	case r == nil:
	case r.pd != pd:
		return ErrPD
	case r.access&abi.AccessMWBind == 0 || r.access&abi.AccessZeroBased != 0,
		b.Access&(abi.AccessRemoteWrite|abi.AccessRemoteAtomic) != 0 && r.access&abi.AccessLocalWrite == 0:
		return ErrAccess
	default:
		if _, err := r.offset(b.Addr, b.Length); err != nil {
			return err
		}
	}
	w.unbind()
	w.key = w.key&^0xff | b.Key&0xff
	w.bound = next
	if w.type2 {
		w.user = user
	}
	if next.Region != nil {
		next.Region.windows++
	}
	return nil
}

// Release frees the windows of type 2 that a queue pair has bound.
func (t *Table) Release(user uint32) {
	for _, w := range t.windows {
		if w.type2 && w.bound.Region != nil && w.user == user {
			w.unbind()
		}
	}
}

// Permits reports whether a queue pair may use a remote key: the key of a
// window of type 2 belongs to the queue pair that bound it.
func (t *Table) Permits(user, key uint32) bool {
	w := t.windows[key>>8]
	return w == nil || w.key != key || !w.type2 || w.user == user
}

// lookupWindow is lookup for a key that no region has.
func (t *Table) lookupWindow(pd PD, key uint32, addr, n uint64, need abi.AccessFlags) (r *Region, off uint64, err error) {
	const remote = abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic
	w := t.windows[key>>8]
	switch {
	case w == nil || w.key != key || w.bound.Region == nil || need&remote == 0: // no L_Key
		return nil, 0, ErrKey
	case w.pd != pd:
		return nil, 0, ErrPD
	case w.bound.Access&need != need:
		return nil, 0, ErrAccess
	}
	off = addr
	if w.bound.Access&abi.AccessZeroBased == 0 {
		off -= w.bound.Addr // below it wraps and exceeds any length
	}
	if off > w.bound.Length || n > w.bound.Length-off {
		return nil, 0, ErrBounds
	}
	off, err = w.bound.Region.offset(w.bound.Addr+off, n)
	return w.bound.Region, off, err
}

// invalidateWindow revokes the key of a window of type 2, for its queue pair or
// that one's peer.
func (t *Table) invalidateWindow(pd PD, user, key uint32) error {
	w := t.windows[key>>8]
	switch {
	case w == nil || w.key != key:
		return ErrKey
	case w.pd != pd:
		return ErrPD
	case !w.type2 || w.bound.Region != nil && w.user != user:
		return ErrAccess
	}
	w.unbind()
	return nil
}

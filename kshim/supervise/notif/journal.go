//go:build linux && (amd64 || arm64)

package notif

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// journal is memory that the ends of a shared listener have in common: the
// calls that one of them has received and not yet answered. Linux gives a call
// out once, so that without it the calls of a receiver that is killed would be
// held for ever.
type journal struct {
	fd    int
	mem   []byte
	table *table
}

// table is the memory of a journal.
type table struct {
	last atomic.Uint64 // the ID of the call received last
	rows [8192]row
}

// row has a call, or is free while its id is 0.
type row struct {
	id   atomic.Uint64
	call Notification
}

// tries is how many rows a call may be in.
const tries = 64

// Share lets those to whom the listener is sent from now on answer the calls
// that this end, or another, has received when it ends: Held.
func (l *Listener) Share() error {
	fd, err := unix.MemfdCreate("rdmashim held calls", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	if err = unix.Ftruncate(fd, int64(tableSize)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	if err == nil {
		l.journal, err = openJournal(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return err
}

// openJournal maps the memory fd, which it owns unless it fails. Memory that
// could become shorter than the table is refused.
func openJournal(fd int) (*journal, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || st.Size != int64(tableSize) {
		return nil, fmt.Errorf("notif: the other end is of another version; use one rdmashim for run and kernel serve: %w", unix.EPROTO)
	}
	mem, err := unix.Mmap(fd, 0, tableSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &journal{fd: fd, mem: mem, table: tableOf(mem)}, nil
}

func (j *journal) close() error {
	return errors.Join(unix.Munmap(j.mem), unix.Close(j.fd))
}

// row is the i-th that a call may be in. IDs follow one another, and calls that
// are held for long shall not lie side by side.
func (j *journal) row(id uint64, i int) *row {
	return &j.table.rows[(id*0x9e3779b97f4a7c15>>51+uint64(i))%uint64(len(j.table.rows))]
}

// add writes a call into a free row, or into that of a call which has gone
// without an answer. One goroutine adds. Where 64 rows are taken, the call is
// not noted.
func (j *journal) add(l *Listener, n *Notification) {
	for _, gone := range []bool{false, true} {
		for i := range tries {
			r := j.row(n.ID, i)
			if id := r.id.Load(); id == 0 || gone && !l.Valid(id) {
				r.id.Store(0)
				r.call = *n
				r.id.Store(n.ID)
				j.table.last.Store(n.ID)
				return
			}
		}
	}
}

func (j *journal) remove(id uint64) {
	for i := range tries {
		if j.row(id, i).id.CompareAndSwap(id, 0) {
			return
		}
	}
}

// Held returns the calls that an end of a shared listener received and did not
// answer before it ended. Of a call that it received in its last instant only
// the ID is known: its NR is -1.
func (l *Listener) Held() []Notification {
	if l.journal == nil {
		return nil
	}
	var held []Notification
	for i := range l.journal.table.rows {
		r := &l.journal.table.rows[i]
		if id := r.id.Load(); id != 0 && l.Valid(id) {
			call := r.call
			call.ID = id
			held = append(held, call)
		}
	}
	for next := range uint64(tries) { // IDs of callers that were killed are left out
		if id := l.journal.table.last.Load() + 1 + next; l.Valid(id) {
			return append(held, Notification{ID: id, NR: -1})
		}
	}
	return held
}

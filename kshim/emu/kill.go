package emu

import (
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/fault"
)

// errKilled is the answer to a process that was killed.
var errKilled error = &Error{Msg: "the process was killed", Errno: syscall.ESRCH}

// Kill ends a process as SIGKILL does, at any point, also in the middle of its
// commands and from within a driver. When it returns, no command touches the
// process's memory any more, none begins, its reads have ended, its files are
// closed, and everything that no command holds has been released: queue pairs
// and regions first of all, so that its peers get no answer to what is new. An
// object that a command holds on its way through the driver goes when that
// command leaves; it is the object that the driver works on at that moment. Ids
// of the connection manager follow by themselves. Done tells when all has gone.
// Kill itself waits for no command.
//
// ESRCH when the process has ended, or is not this machine's.
func (m *Machine) Kill(p *Process) error {
	if p.machine != m {
		return &Error{Op: "kill", Path: p.name, Msg: "no process of this machine", Errno: syscall.ESRCH}
	}
	open, ok := p.beginExit()
	if !ok {
		return &Error{Op: "kill", Path: p.name, Msg: "the process has ended", Errno: syscall.ESRCH}
	}
	// Commands that come now are refused; those on their way are kept from the
	// process's memory, and reap when they leave.
	for _, f := range open {
		switch f := f.(type) {
		case *uverbsFile:
			f.state.Store(fileKilled)
		case *ucmFile:
			f.kill()
		}
	}
	p.touch.shut()
	for _, f := range open {
		switch f := f.(type) {
		case *uverbsFile:
			f.kill()
		case *ucmFile: // is on its way
		default:
			_ = f.Close()
		}
	}
	p.maps.drop()
	p.memory.drop()
	return nil
}

// kill is Close, but waits for nothing.
func (f *uverbsFile) kill() {
	if f.claim() {
		close(f.ended)
		f.dying.orphan.Store(true)
	}
	f.reap()
}

// dying is the state of a killed file's end.
type dying struct {
	reapers atomic.Int32 // the reaper, and the callers that asked for another round
	orphan  atomic.Bool  // Close will not end the file; the last round does
}

// reap destroys the objects of a killed file, as far as they can be. Kill calls
// it, and so does every command that lets go of an object of such a file: an
// object that could not be destroyed because a command held it is destroyed by
// that command. Rounds do not overlap, and after every call a whole one
// follows.
func (f *uverbsFile) reap() {
	if f.dying.reapers.Add(1) > 1 {
		return // the reaper goes round once more
	}
	for {
		n := f.dying.reapers.Load()
		left := f.reapRound()
		if left == 0 && f.life.TryLock() {
			// No command is on its way, and none will begin.
			if f.handles.empty() && f.dying.orphan.CompareAndSwap(true, false) {
				f.detach()
			}
			f.life.Unlock()
		}
		if f.dying.reapers.CompareAndSwap(n, 0) {
			return
		}
	}
}

// reapRound destroys what it can and returns how many objects are left.
func (f *uverbsFile) reapRound() (left int) {
	for k := range numKinds {
		for _, o := range f.handles.all(k) {
			if !o.reap() {
				left++
			}
		}
	}
	return left
}

// reap destroys the object unless a command holds it, or an object that could
// not be destroyed needs it.
func (o *object) reap() bool {
	if !o.mu.TryLock() {
		return false
	}
	defer o.mu.Unlock()
	switch {
	case o.dead:
		o.file.handles.remove(o) // if it outlived its device
	case o.users.Load() != 0:
		return false
	default:
		_ = o.endLocked(true)
	}
	return true
}

// copy and zeroOut are the calls' ways to the memory of their process, until it
// is killed.

func (c *call) copy(dst, src []byte) error {
	if !c.file.proc.touch.enter(c.lane) {
		return errKilled
	}
	err := fault.Copy(dst, src)
	c.file.proc.touch.leave(c.lane)
	return err
}

func (c *call) zeroOut(dst []byte) error {
	if !c.file.proc.touch.enter(c.lane) {
		return errKilled
	}
	err := zeroOut(dst)
	c.file.proc.touch.leave(c.lane)
	return err
}

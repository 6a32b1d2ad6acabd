//go:build linux && (amd64 || arm64)

package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/far"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// process is a process that has made a call. Its descriptors are capabilities:
// they stay this process's, whoever gets its PID later.
type process struct {
	kernel *Kernel
	pid    int
	open   func(pid int) (*os.File, error) // opens its memory
	pidfd  int
	proc   int          // /proc/PID, a directory
	users  atomic.Int32 // calls, and 1 until its end; at 0 the descriptors are closed

	mem       atomic.Pointer[far.Memory]
	pinned    atomic.Bool  // regions lie in mem
	executing atomic.Int32 // the thread that has called execve, 0 for none

	mu      sync.Mutex
	program *program           // guarded by mu: nil before it opened a file
	sockets map[fileID]*socket // guarded by mu: of netlink
	kept    []*far.Memory      // guarded by mu: that mem was, with regions; keptMost at most
	ended   bool               // guarded by mu
}

// process finds the process of a call, and holds it until drop.
func (r *receiver) process(c *call) error {
	k, tid := r.kernel, int(c.PID)
	if p, ok := k.threads.Load(tid); ok && p.(*process).hold(c) {
		return nil
	}
	pid, err := leader(tid)
	if err != nil {
		return err
	}
	k.mu.Lock()
	p := k.processes[pid]
	k.mu.Unlock()
	if p == nil || !p.hold(c) {
		if p, err = r.meet(pid); err != nil {
			return err
		}
		c.process = p
	}
	k.threads.Store(tid, p)
	return nil
}

// hold keeps the descriptors of the process open until drop, if a call is one
// of its threads'.
func (p *process) hold(c *call) bool {
	for n := p.users.Load(); ; n = p.users.Load() {
		if n == 0 {
			return false
		}
		if p.users.CompareAndSwap(n, n+1) {
			break
		}
	}
	if c.isOf(p) {
		return true
	}
	p.drop()
	return false
}

// has reports whether a thread is one of the process.
func (p *process) has(tid int) bool {
	return unix.Faccessat(p.proc, threadOf(tid), unix.F_OK, 0) == nil
}

func threadOf(tid int) string { return "task/" + strconv.Itoa(tid) }

func (p *process) drop() {
	if p.users.Add(-1) > 0 {
		return
	}
	unix.Close(p.pidfd)
	unix.Close(p.proc)
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.sockets {
		p.kernel.closeSocket(id, s)
	}
	if p.program == nil {
		p.forget()
	}
}

// forget closes the process's memory. Preconditions: mu is held.
func (p *process) forget() {
	if m := p.mem.Load(); m != nil {
		m.Close()
	}
	for _, m := range p.kept {
		m.Close()
	}
	p.kept = nil
}

// leader returns the PID of the process that a thread belongs to.
func leader(tid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(notif.Field(status, "Tgid"))
}

// meet makes the process of a PID known.
func (r *receiver) meet(pid int) (*process, error) {
	p := &process{kernel: r.kernel, pid: pid, open: r.memory}
	var err error
	if p.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return nil, err
	}
	p.proc, err = unix.Open(fmt.Sprintf("/proc/%d", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(p.pidfd)
		return nil, err
	}
	p.users.Store(2) // its own, and the call's
	k := r.kernel
	k.mu.Lock()
	k.processes[pid] = p
	k.mu.Unlock()
	k.watch.add(p.pidfd, unix.EPOLLIN, func(uint32) { p.end() })
	return p, nil
}

// free returns the lowest number of the window that the process does not use.
func (c *call) free() (int, error) {
	w := Window
	for n := w.Low; n < w.High; n++ {
		if _, used := c.identify(int32(n)); !used {
			return n, nil
		}
	}
	return 0, syscall.EMFILE
}

// memory returns the process's memory as it is since the last execve.
func (p *process) memory() (*far.Memory, error) {
	if m := p.mem.Load(); m != nil {
		return m, nil
	}
	return p.reopen(nil)
}

// reopen takes new memory in the place of old.
func (p *process) reopen(old *far.Memory) (*far.Memory, error) {
	f, err := p.open(p.pid)
	if err != nil {
		return nil, err
	}
	m := far.New(f, p.pid)
	if !p.mem.CompareAndSwap(old, m) {
		m.Close()
		return p.mem.Load(), nil
	}
	if old != nil {
		old.Close()
	}
	return m, nil
}

// executes notes that a thread calls execve.
func (p *process) executes(tid int) { p.executing.Store(int32(tid)) }

// returns notes that a thread makes a call. If execve has returned, the
// process's memory may be another one, while the old one is still there: a
// child of vfork has its parent's. The thread that called execve has gone then,
// or it is the one that calls. If execve has failed, regions stay.
func (p *process) returns(tid int) {
	by := int(p.executing.Load())
	if by == 0 || by != tid && p.has(by) {
		return
	}
	p.executing.Store(0)
	switch old := p.mem.Swap(nil); {
	case old == nil:
	case p.pinned.Swap(false):
		p.keep(old)
	default:
		old.Close()
	}
}

// keptMost bounds kept: memory costs the server two descriptors, and a program
// may register and fail in turn for ever.
const keptMost = 16

// keep leaves memory to the regions in it. Regions of the oldest are lost when
// there are many.
func (p *process) keep(m *far.Memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) == keptMost {
		p.kept[0].Close()
		p.kept = slices.Delete(p.kept, 0, 1)
	}
	p.kept = append(p.kept, m)
}

// access runs f on the process's memory, again if that has been replaced by
// execve. Any failure is EFAULT.
func (p *process) access(f func(m *far.Memory) error) error {
	m, err := p.memory()
	if err == nil {
		if err = f(m); errors.Is(err, far.ErrGone) {
			if m, err = p.reopen(m); err == nil {
				err = f(m)
			}
		}
	}
	if err != nil {
		return syscall.EFAULT
	}
	return nil
}

// read copies from the process's memory, write to it.
func (p *process) read(dst []byte, addr uint64) error {
	return p.access(func(m *far.Memory) error { return m.Read(dst, addr) })
}

func (p *process) write(addr uint64, src []byte) error {
	return p.access(func(m *far.Memory) error {
		if err := m.Probe(addr, uint64(len(src)), true); err != nil { // Write passes over page rights
			return err
		}
		return m.Write(addr, src)
	})
}

func (p *process) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// end is called when the process has ended. Its files live on as long as others
// have them.
func (p *process) end() {
	p.mu.Lock()
	ended, program := p.ended, p.program
	p.ended = true
	p.mu.Unlock()
	if ended {
		return
	}
	k := p.kernel
	k.watch.remove(p.pidfd)
	k.mu.Lock()
	if k.processes[p.pid] == p {
		delete(k.processes, p.pid)
	}
	k.mu.Unlock()
	k.threads.Range(func(tid, of any) bool {
		if of == p {
			k.threads.CompareAndDelete(tid, p)
		}
		return true
	})
	if program != nil {
		go program.leave() // may wait for peers
	}
	p.drop()
}

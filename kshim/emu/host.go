package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/arena"
)

// Host is the program of a process that does not know this package: a C program
// with its libibverbs, whose system calls a stub brings to this kernel. Its
// whole memory is user memory, without Pin, and its files have numbers of the
// system, at which poll(2) finds them ready. The methods are called with locks
// held: they call nothing of this package, and do not block.
type Host interface {
	// Memory returns the n bytes at addr, or nil for addresses that no program
	// has. It does not look whether memory is there.
	Memory(addr, n uint64) []byte
	// Probe reports EFAULT unless mem can be read or, for write, written.
	Probe(mem []byte, write bool) error
	// Alloc and Free are where rings lie (kshim/ring.Memory).
	Alloc(n int) ([]byte, error)
	Free(mem []byte)
	// Offset tells where in a device file's descriptor the program maps memory
	// of Alloc.
	Offset(mem []byte) uint64
	// Descriptor returns an open descriptor of the system for a file that is
	// about to be opened: a device file's, where rings are mapped, or another.
	// The host closes it behind the file.
	Descriptor(device bool) (fd int32, err error)
	// Ready tells that the file of that number has one more event for its
	// reader or, if ready is false, that it has none any more. Each event wakes
	// those who wait, also behind unread ones (uverbs_main.c:
	// ib_uverbs_comp_handler).
	Ready(fd int32, ready bool)
}

// ProcessOf starts a client, as Process does, for the program of h.
func (m *Machine) ProcessOf(h Host, name string) *Process {
	p := m.process(name, &m.all)
	p.host, p.memory.host = h, h
	return p
}

// File returns the open file of a number: EBADF if there is none. Unlike Adopt
// it may be called often.
func (p *Process) File(fd int32) (kshim.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := int(fd) - firstFD; i >= 0 && i < len(p.files) && p.files[i].file != nil {
		return p.files[i].file, nil
	}
	return nil, &Error{Op: "file", Path: p.name, Msg: "descriptor is not open", Errno: syscall.EBADF}
}

// place is where f goes in the table: the lowest free number, or that which the
// host has for it. Preconditions: mu is held.
func (p *Process) place(f kshim.File) (i int, err error) {
	if p.host == nil {
		for i < len(p.files) && p.files[i].file != nil {
			i++
		}
		return i, nil
	}
	_, device := f.(*uverbsFile)
	fd, err := p.host.Descriptor(device)
	if err != nil {
		return 0, err
	}
	if i = int(fd) - firstFD; i < 0 || i < len(p.files) && p.files[i].file != nil {
		return 0, fail(syscall.EMFILE, "the program's descriptor %d was not closed here", fd)
	}
	return i, nil
}

// readiness tells a host of a file's events. The zero value tells no host.
type readiness struct {
	host Host
	fd   int32
	last bool // what the host heard
}

// event tells of one more event.
func (r *readiness) event() {
	if r.host != nil {
		r.last = true
		r.host.Ready(r.fd, true)
	}
}

// none tells that no event is left.
func (r *readiness) none() {
	if r.last {
		r.last = false
		r.host.Ready(r.fd, false)
	}
}

// probe looks whether memory is there, until the process is killed.
func (f *uverbsFile) probe(mem []byte, write bool) (err error) {
	if !f.proc.touch.enter(0) {
		return errKilled
	}
	defer f.proc.touch.leave(0)
	if h := f.proc.host; h != nil {
		return h.Probe(mem, write)
	}
	// Memory of an arena is there as long as the region. Its pages come with
	// the first bytes: a connection's ring costs nothing until it is used.
	if _, _, ok := arena.Find(mem); ok {
		return nil
	}
	_, err = probe(mem, write)
	return err
}

package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/arena"
	"github.com/rdmashim/rdmashim/kshim/driver"
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
	// Region is Memory for a region, which devices reach for as long as it is
	// registered. Without memory it is of no bytes.
	Region(addr, n uint64) driver.Memory
	// Probe reports EFAULT unless mem, of Region, can be read or, for write,
	// written.
	Probe(mem driver.Memory, write bool) error
	// Descriptor opens a descriptor of the system for a file that is about to
	// be opened. The host closes it behind the file.
	Descriptor(kind FileKind) (HostFile, error)
	// Number returns the number that this kernel has for the file behind a
	// descriptor of the program, which may be a duplicate: fd itself for one
	// that the host does not know.
	Number(fd int32) int32
}

// Tracked is a Host whose program is another process of the system than this
// kernel's.
type Tracked interface {
	// Owner is the program's PID and its name, as ps shows it.
	Owner() (pid int, name string)
}

// Owner is the process of the system that the program is; 0 if it is the
// kernel's own.
func (p *Process) Owner() (pid int, name string) {
	if t, ok := p.host.(Tracked); ok {
		return t.Owner()
	}
	return 0, ""
}

// FileKind is what a host makes a descriptor for.
type FileKind uint8

const (
	OtherFile  FileKind = iota // rdma_cm's, or an attribute's
	DeviceFile                 // rings are mapped from it
	EventFile                  // events are read from it
)

// HostFile is the host's part of an open file. A host whose program reads
// events from the descriptor itself gives an event file that is an EventSink.
type HostFile interface {
	// FD is the descriptor in the program.
	FD() int32
	// Alloc and Free are where a device file's rings lie (kshim/ring.Memory).
	Alloc(n int) ([]byte, error)
	Free(mem []byte)
	// Offset tells where in a device file's descriptor the program maps memory
	// of Alloc.
	Offset(mem []byte) uint64
	// Opened tells which file it is the part of, before a call can come to it.
	Opened(f kshim.File)
	// Moved tells that this kernel knows the file by another number from now
	// on, as another file has its own. A host that closes its files with their
	// numbers returns false.
	Moved(to int32) bool
	// Ready tells that the file has one more event for its reader or, if ready
	// is false, that it has none any more. Each event wakes those that wait,
	// also behind unread ones (uverbs_main.c: ib_uverbs_comp_handler).
	Ready(ready bool)
}

// EventSink is a HostFile that events are written to as the program reads them.
type EventSink interface {
	// Put writes an event, or reports that there is no room. It keeps no
	// reference. When there is room again the host calls the file's Refill.
	Put(event []byte) bool
	// Withdraw takes back the unread events that are equal to this one, and
	// returns how many they were.
	Withdraw(event []byte) (n int)
	// End tells that no event will follow.
	End()
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

// firstMoved is the lowest number of files whose own is another file's, above
// those of programs.
const firstMoved = 1 << 16

// move frees a number that an open file has, whose host has closed its
// descriptor and put another file there: the program reaches the old one by a
// duplicate. EMFILE when the host does not know that. Preconditions: mu is
// held.
func (p *Process) move(from int) error {
	f := p.files[from].file
	at := firstMoved - firstFD
	for at < len(p.files) && p.files[at].file != nil {
		at++
	}
	h, ok := f.(interface{ hosted() *file })
	if !ok || at >= maxFD || !h.hosted().host.Moved(int32(at+firstFD)) {
		return fail(syscall.EMFILE, "the program's descriptor %d was not closed here", from+firstFD)
	}
	for at >= len(p.files) {
		p.files = append(p.files, fdEntry{})
	}
	p.files[at], p.files[from] = p.files[from], fdEntry{}
	h.hosted().fd.Store(int32(at + firstFD))
	return nil
}

// number is the number here of the file behind a descriptor of the program.
func (p *Process) number(fd int32) int32 {
	if p.host == nil {
		return fd
	}
	return p.host.Number(fd)
}

// place is where f goes in the table: the lowest free number, or that which the
// host has for it. Preconditions: mu is held.
func (p *Process) place(f kshim.File, base *file) (i int, err error) {
	if p.host == nil {
		for i < len(p.files) && p.files[i].file != nil {
			i++
		}
		return i, nil
	}
	kind := OtherFile
	switch f.(type) {
	case *uverbsFile:
		kind = DeviceFile
	case *eventFile:
		kind = EventFile
	}
	if base.host, err = p.host.Descriptor(kind); err != nil {
		return 0, err
	}
	base.host.Opened(f)
	fd := base.host.FD()
	if i = int(fd) - firstFD; i < 0 {
		return 0, fail(syscall.EMFILE, "descriptor %d is the process's own", fd)
	}
	if i < len(p.files) && p.files[i].file != nil {
		err = p.move(i)
	}
	return i, err
}

// readiness tells a host of a file's events. The zero value tells no host.
type readiness struct {
	host  HostFile
	last  bool // what the host heard
	quiet bool // the reader looks itself
	news  bool // what the host did not hear meanwhile
}

// event tells of one more event.
func (r *readiness) event() {
	switch {
	case r.host == nil:
	case r.quiet:
		r.news = true
	default:
		r.last = true
		r.host.Ready(true)
	}
}

// none tells that no event is left.
func (r *readiness) none() {
	r.news = false
	if r.last {
		r.last = false
		r.host.Ready(false)
	}
}

// hush tells the host nothing, until a call without on; then it hears of the
// events that are there.
func (r *readiness) hush(on bool) {
	if r.quiet = on; !on && r.news {
		r.news = false
		r.event()
	}
}

// probe looks whether memory is there, until the process is killed.
func (f *uverbsFile) probe(mem driver.Memory, write bool) (err error) {
	if !f.proc.touch.enter(0) {
		return errKilled
	}
	defer f.proc.touch.leave(0)
	if h := f.proc.host; h != nil {
		return h.Probe(mem, write)
	}
	// Memory of an arena is there as long as the region. Its pages come with
	// the first bytes: a connection's ring costs nothing until it is used.
	if _, _, ok := arena.Find(mem.Bytes); ok {
		return nil
	}
	_, err = probe(mem.Bytes, write)
	return err
}

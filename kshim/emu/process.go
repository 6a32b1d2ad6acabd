package emu

import (
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
)

// firstFD is the lowest number a file gets: 0, 1 and 2 belong to the files that
// the process was started with, and are no event files.
const firstFD = 3

// maxFD bounds the table, RLIMIT_NOFILE.
const maxFD = 1 << 20

// Process is one client of the emulated kernel: a table of open files and the
// memory that was announced. It implements kshim.Kernel.
type Process struct {
	machine *Machine
	ns      *namespace
	name    string
	host    Host // nil: the program is written against kshim
	memory  *UserMemory
	maps    mappings
	touch   gate          // around every access to memory
	done    chan struct{} // closed when all has gone
	judge   kshim.Judge   // of completions; nil: none

	mu     sync.Mutex
	exited bool      // guarded by mu, as are all
	files  []fdEntry // index is the number less firstFD
	owning int       // files of objects that are not quite closed
}

type fdEntry struct {
	file    kshim.File // nil: free
	adopted bool       // a caller holds the file
}

var (
	_ kshim.Kernel = (*Process)(nil)
	_ kshim.Judged = (*Process)(nil)
)

// SetJudge implements kshim.Judged.
func (p *Process) SetJudge(j kshim.Judge) { p.judge = j }

// Process starts a client that sees every device. The name appears in messages
// only.
func (m *Machine) Process(name string) *Process { return m.process(name, &m.all) }

// ProcessOn starts a client in the network namespace of one device, with the
// RDMA subsystem in mode exclusive (rdma system set netns exclusive): it sees
// that device and no other, and rdma_cm's ports are its namespace's own. ENODEV
// when there is no such device.
func (m *Machine) ProcessOn(device, name string) (*Process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.find(device)
	if d == nil {
		return nil, &Error{Op: "process", Path: device, Msg: "no such device", Errno: syscall.ENODEV}
	}
	return m.process(name, &d.ns), nil
}

func (m *Machine) process(name string, ns *namespace) *Process {
	return &Process{machine: m, ns: ns, name: name, memory: newUserMemory(), done: make(chan struct{})}
}

// Open opens a device file or an attribute. See kshim.Kernel.
func (p *Process) Open(name string) (kshim.File, error) {
	name = path.Clean(name)
	if node, ok := strings.CutPrefix(name, "/dev/infiniband/"); ok {
		if node == nodeCM {
			return p.openCM(name)
		}
		return p.openDevice(name, node)
	}
	return p.openAttribute(name)
}

// ReadDir lists a directory. See kshim.Kernel.
func (p *Process) ReadDir(name string) ([]string, error) {
	names, err := p.ns.readDir(path.Clean(name))
	if err != nil {
		return nil, explain(err, "readdir", name)
	}
	return names, nil
}

// Changes counts the devices that came and went, and their events: while it
// stays, only what the use of devices changes is different below /sys and /dev.
func (p *Process) Changes() uint64 { return p.machine.changes.Load() }

func (p *Process) openDevice(name, node string) (kshim.File, error) {
	f := &uverbsFile{file: newFile(p, name), asyncs: map[*eventFile]struct{}{}, channels: map[*eventFile]struct{}{}}
	if err := f.attach(node); err != nil {
		return nil, explain(err, "open", name)
	}
	if err := p.install(f, &f.file, true); err != nil {
		f.disown()
		return nil, explain(err, "open", name)
	}
	return f, nil
}

// Adopt returns the file behind a number that a command answered. See
// kshim.Kernel.
func (p *Process) Adopt(fd int32) (kshim.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := int(fd) - firstFD
	if i < 0 || i >= len(p.files) || p.files[i].file == nil || p.files[i].adopted {
		return nil, &Error{Op: "adopt", Path: p.name, Msg: "descriptor is not open, or was adopted", Errno: syscall.EBADF}
	}
	p.files[i].adopted = true
	return p.files[i].file, nil
}

// Exit ends the process: every open file is closed, in the order of the
// numbers, and announced memory is forgotten. Idempotent.
// It waits for commands that are on their way; Machine.Kill does not.
func (p *Process) Exit() {
	open, ok := p.beginExit()
	if !ok {
		<-p.done
		return
	}
	for _, f := range open {
		_ = f.Close()
	}
	p.maps.drop()
	p.memory.drop()
	<-p.done
}

// Done is closed when the process has ended, by Exit or Machine.Kill, and all
// it owned has gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// beginExit makes the process open nothing more, and returns its files. It
// succeeds once.
func (p *Process) beginExit() (open []kshim.File, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited {
		return nil, false
	}
	p.exited = true
	for _, e := range p.files {
		if e.file != nil {
			open = append(open, e.file)
		}
	}
	if p.owning == 0 {
		close(p.done)
	}
	return open, true
}

// disowned notes that a file with objects has gone.
func (p *Process) disowned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owning--; p.owning == 0 && p.exited {
		close(p.done)
	}
}

// install gives a file a number.
func (p *Process) install(f kshim.File, base *file, adopted bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited {
		return fail(syscall.ESRCH, "process %q has exited", p.name)
	}
	i, err := p.place(f, base)
	if err != nil {
		return err
	}
	if i >= maxFD {
		return fail(syscall.EMFILE, "process %q has %d files open", p.name, len(p.files))
	}
	for i >= len(p.files) {
		p.files = append(p.files, fdEntry{})
	}
	switch f.(type) {
	case *uverbsFile, *ucmFile:
		p.owning++
	}
	p.files[i] = fdEntry{file: f, adopted: adopted}
	base.fd.Store(int32(i + firstFD))
	return nil
}

// release frees a file's number.
func (p *Process) release(f *file) {
	p.mu.Lock()
	p.files[f.fd.Load()-firstFD] = fdEntry{}
	p.mu.Unlock()
}

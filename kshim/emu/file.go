package emu

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
)

// file holds the part that all kinds of open file share: a place in a process's
// table, its memory, and the answers to calls that a kind does not have.
type file struct {
	proc   *Process
	path   string
	fd     atomic.Int32
	host   HostFile      // nil: the process has no host
	claims atomic.Int32  // callers that wanted to close it; the first does
	closed chan struct{} // closed when that begins
	ended  chan struct{} // closed when it is done
}

func newFile(p *Process, path string) file {
	return file{proc: p, path: path, closed: make(chan struct{}), ended: make(chan struct{})}
}

// FD is the file's number in its process, for messages.
func (f *file) FD() int { return int(f.fd.Load()) }

func (f *file) hosted() *file { return f }

// Path is the file's name, or the kernel's word for files without one.
func (f *file) Path() string { return f.path }

func (f *file) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// refuse answers a call that this kind of file does not have.
func (f *file) refuse(op string, errno syscall.Errno) error {
	if f.isClosed() {
		return errClosed
	}
	return &Error{Op: op, Path: f.path, Msg: "this kind of file has no " + op, Errno: errno}
}

func (f *file) Write([]byte) (int, error) { return 0, f.refuse("write", syscall.EBADF) }
func (f *file) Ioctl([]byte) error        { return f.refuse("ioctl", syscall.ENOTTY) }
func (f *file) Mmap(uint64, int) ([]byte, error) {
	return nil, f.refuse("mmap", syscall.ENODEV)
}
func (f *file) Read(context.Context, []byte) (int, error) {
	return 0, f.refuse("read", syscall.EINVAL)
}

// Munmap gives back a mapping of any file of the process. See kshim.File.
func (f *file) Munmap(mapping []byte) error {
	if err := f.proc.maps.remove(mapping); err != nil {
		return explain(err, "munmap", f.path)
	}
	return nil
}

// Pin announces memory to the process's address space. See kshim.File.
func (f *file) Pin(buf []byte) (uint64, func()) { return f.proc.memory.Pin(buf) }

// shut closes the file once: it frees the number, then runs the rest. Other
// callers wait for that.
func (f *file) shut(rest func()) {
	if f.claim() {
		if rest != nil {
			rest()
		}
		close(f.ended)
	}
	<-f.ended
}

// claim returns true to the first caller that closes the file, and frees its
// number.
func (f *file) claim() bool {
	if f.claims.Add(1) > 1 {
		return false
	}
	close(f.closed)
	f.proc.release(f)
	return true
}

// attributeFile is an open attribute of sysfs: its text as it was at open.
type attributeFile struct {
	file
	mu   sync.Mutex
	text string // guarded by mu: bytes still to be read
}

var _ kshim.File = (*attributeFile)(nil)

func (p *Process) openAttribute(name string) (kshim.File, error) {
	text, err := p.ns.readAttribute(name)
	if err != nil {
		return nil, explain(err, "open", name)
	}
	f := &attributeFile{file: newFile(p, name), text: text}
	if err := p.install(f, &f.file, true); err != nil {
		return nil, explain(err, "open", name)
	}
	return f, nil
}

// Read returns the text, then io.EOF.
func (f *attributeFile) Read(_ context.Context, buf []byte) (int, error) {
	if f.isClosed() {
		return 0, errClosed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text == "" && len(buf) > 0 {
		return 0, io.EOF
	}
	n := copy(buf, f.text)
	f.text = f.text[n:]
	return n, nil
}

func (f *attributeFile) Close() error {
	f.shut(nil)
	return nil
}

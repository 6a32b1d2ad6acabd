//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
)

// eventFile is a file that events are read from: the asynchronous one of a
// context, or a completion channel. Its descriptor is the runtime's: reads wait
// in the netpoller.
type eventFile struct {
	path   string
	f      *os.File
	fd     int           // for the process's table
	turn   chan struct{} // room for one: the goroutine that puts a token in may read
	closed chan struct{}
	once   sync.Once // guards the close
}

var _ kshim.File = (*eventFile)(nil)

// newEventFile takes a descriptor over, and closes it on failure.
func newEventFile(fd int, path string) (*eventFile, error) {
	// The kernel hands them out blocking.
	if err := syscall.SetNonblock(fd, true); err != nil {
		unhold(fd)
		syscall.Close(fd)
		return nil, pathError("adopt", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if err := f.SetReadDeadline(time.Time{}); err != nil { // the netpoller did not take it
		unhold(fd)
		f.Close()
		return nil, pathError("adopt", path, syscall.EPERM)
	}
	return &eventFile{path: path, f: f, fd: fd, turn: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// Read gives one event. See kshim.File. Readers take turns, because a deadline,
// by which the end of ctx wakes one, is the file's.
func (e *eventFile) Read(ctx context.Context, buf []byte) (int, error) {
	select {
	case <-e.closed:
		return 0, errClosed
	case <-ctx.Done():
		return 0, ctx.Err()
	case e.turn <- struct{}{}:
	}
	defer func() { <-e.turn }()
	if len(buf) == 0 {
		return 0, &callError{Op: "read", Path: e.path, Msg: "no room for an event", Errno: syscall.EINVAL}
	}
	defer e.wakeAtEnd(ctx)()
	n, err := e.f.Read(buf)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, ctx.Err()
	case errors.Is(err, os.ErrClosed):
		return 0, errClosed
	}
	return e.readNow(buf, err)
}

// readNow reads without waiting, after the netpoller has refused to wait. It
// does so when the kernel reports an error for the descriptor, as for a
// completion channel whose device file was closed, and does not say which;
// read(2) does, and gives events that are there still.
func (e *eventFile) readNow(buf []byte, refused error) (int, error) {
	conn, err := e.f.SyscallConn()
	if err != nil {
		return 0, pathError("read", e.path, err)
	}
	var n int
	read := refused
	err = conn.Control(func(fd uintptr) {
		n, read = retry(func() (int, error) { return syscall.Read(int(fd), buf) })
	})
	switch {
	case errors.Is(err, os.ErrClosed):
		return 0, errClosed
	case err != nil:
		return 0, pathError("read", e.path, err)
	case errors.Is(read, syscall.EAGAIN):
		return 0, pathError("read", e.path, refused)
	case read != nil:
		return 0, pathError("read", e.path, read)
	}
	return n, nil
}

// wakeAtEnd makes a read fail when ctx ends, until stop is called.
func (e *eventFile) wakeAtEnd(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	fired := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		_ = e.f.SetReadDeadline(time.Unix(1, 0))
		close(fired)
	})
	return func() {
		if !cancel() {
			<-fired
			_ = e.f.SetReadDeadline(time.Time{})
		}
	}
}

// Close closes the descriptor and wakes readers. See kshim.File.
func (e *eventFile) Close() error {
	e.once.Do(func() {
		close(e.closed)
		unhold(e.fd)
		e.f.Close()
	})
	return nil
}

// refuse answers calls that event files do not have, as the kernel does.
func (e *eventFile) refuse(op string, errno syscall.Errno) error {
	select {
	case <-e.closed:
		return errClosed
	default:
		return &callError{Op: op, Path: e.path, Errno: errno}
	}
}

func (e *eventFile) Write([]byte) (int, error) { return 0, e.refuse("write", syscall.EBADF) }

func (e *eventFile) Ioctl([]byte) error { return e.refuse("ioctl", syscall.ENOTTY) }

func (e *eventFile) Mmap(uint64, int) ([]byte, error) { return nil, e.refuse("mmap", syscall.ENODEV) }

func (e *eventFile) Munmap(mapping []byte) error { return unmapQueue(e.path, mapping) }

func (e *eventFile) Pin(buf []byte) (uint64, func()) { return pinMemory(buf) }

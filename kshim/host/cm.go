//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim"
)

// cmNode is the file of the connection manager. Its events are fetched by a
// command, so that it is opened non-blocking and waited for in the netpoller.
const cmNode = devDir + "rdma_cm"

// cmFile is an open cmNode. It has no ioctl by which a thread whose credentials
// were changed could get its commands through, as uverbs has: the thread that
// opened the file is kept, and gives them then. Where the whole process changed
// its credentials before it opened the file, each thread has its own, and only
// this thread may write. Where it did so afterwards no thread may.
type cmFile struct {
	*eventFile // waiting and closing are the same
	conn       syscall.RawConn
	opener     *thread
}

var (
	_ kshim.File   = (*cmFile)(nil)
	_ kshim.Waiter = (*cmFile)(nil)
)

func openCM(name string) (kshim.File, error) {
	opener := startThread()
	var fd int
	var err error
	opener.run(func() {
		fd, err = retry(func() (int, error) {
			return syscall.Open(name, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		})
	})
	if err != nil {
		opener.stop()
		return nil, openError(name, err.(syscall.Errno))
	}
	hold(fd)
	e, err := newEventFile(fd, name)
	if err != nil {
		opener.stop()
		return nil, err
	}
	c := &cmFile{eventFile: e, opener: opener}
	if c.conn, err = e.f.SyscallConn(); err != nil {
		c.Close()
		return nil, pathError("open", name, err)
	}
	return c, nil
}

// FD is the descriptor's number, by which MIGRATE_ID names the file.
func (c *cmFile) FD() int { return c.fd }

// Write gives a command. See kshim.File.
func (c *cmFile) Write(cmd []byte) (int, error) {
	n, errno, err := c.write(cmd)
	if errno == syscall.EACCES {
		if !c.opener.run(func() { n, errno, err = c.write(cmd) }) {
			return 0, errClosed
		}
	}
	switch {
	case errors.Is(err, os.ErrClosed):
		return 0, errClosed
	case err != nil:
		return 0, pathError("write", c.path, err)
	case errno == syscall.EACCES:
		return 0, &callError{Op: "write", Path: c.path, Errno: errno,
			Msg: "the process changed its credentials after it opened the file: open it anew, or start the process with its final user"}
	case errno != 0:
		return 0, &callError{Op: "write", Path: c.path, Errno: errno}
	}
	return n, nil
}

// write is write(2), which no Close can overtake.
func (c *cmFile) write(cmd []byte) (n int, errno syscall.Errno, err error) {
	err = c.conn.Control(func(fd uintptr) {
		for {
			var r uintptr
			r, _, errno = syscall.Syscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(cmd))), uintptr(len(cmd)))
			if n = int(r); errno != syscall.EINTR {
				return
			}
		}
	})
	return n, errno, err
}

// WaitReadable waits in the netpoller. See kshim.Waiter.
func (c *cmFile) WaitReadable(ctx context.Context) error {
	select {
	case <-c.closed:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	case c.turn <- struct{}{}:
	}
	defer func() { <-c.turn }()
	defer c.wakeAtEnd(ctx)()
	err := c.conn.Read(func(fd uintptr) bool { return readable(int32(fd)) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ctx.Err()
	case errors.Is(err, os.ErrClosed):
		return errClosed
	}
	return pathError("poll", c.path, err)
}

// readable asks poll(2) without waiting. Errors count: the next command says
// which.
func readable(fd int32) bool {
	p := struct {
		fd      int32
		events  int16
		revents int16
	}{fd: fd, events: 1} // POLLIN
	var now syscall.Timespec
	for {
		n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
		if errno != syscall.EINTR {
			return errno != 0 || n > 0
		}
	}
}

// Read is not the file's: EINVAL, as the kernel has it.
func (c *cmFile) Read(ctx context.Context, _ []byte) (int, error) {
	return 0, c.refuse("read", syscall.EINVAL)
}

// Close closes the file, and with it all ids. See kshim.File.
func (c *cmFile) Close() error {
	err := c.eventFile.Close()
	c.opener.stop()
	return err
}

// thread is a thread of the system that runs the functions it is given.
type thread struct {
	calls chan func()
	done  chan struct{}
	once  sync.Once
}

func startThread() *thread {
	t := &thread{calls: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			select {
			case call := <-t.calls:
				call()
			case <-t.done:
				return
			}
		}
	}()
	return t
}

// run reports whether the thread ran f.
func (t *thread) run(f func()) bool {
	ran := make(chan struct{})
	select {
	case t.calls <- func() { f(); close(ran) }:
		<-ran
		return true
	case <-t.done:
		return false
	}
}

func (t *thread) stop() { t.once.Do(func() { close(t.done) }) }

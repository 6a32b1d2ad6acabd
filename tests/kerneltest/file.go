package kerneltest

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// attribute is a file of Kernel.Sys.
type attribute struct {
	kshim.File
	text string
}

func (a *attribute) Read(_ context.Context, buf []byte) (int, error) { return copy(buf, a.text), nil }
func (a *attribute) Close() error                                    { return nil }

// File is a device file, an event file or rdma_cm's. Fields are guarded by the
// kernel's lock.
type File struct {
	kshim.File
	k      *Kernel
	cm     bool
	Closed bool
	events [][]byte           // that a test gave; nil is EIO
	wake   context.CancelFunc // of the reader
	ids    map[uint32]bool    // of rdma_cm
}

// look has the reader look at the file again.
func (f *File) look() {
	if f.wake != nil {
		f.wake()
	}
}

// Give gives an event to the reader, before the kernel's own: its bytes, or nil
// for EIO. Preconditions: the lock is held.
func (f *File) Give(event []byte) {
	f.events = append(f.events, event)
	f.look()
}

// next returns the next event that a test gave.
func (f *File) next() (event []byte, ok bool) {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	if len(f.events) == 0 {
		return nil, false
	}
	event, f.events = f.events[0], f.events[1:]
	return event, true
}

// wait has the kernel wait until there is an event of a test's.
func (f *File) wait(ctx context.Context, inner func(context.Context) error) (again bool, err error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	f.k.mu.Lock()
	f.wake = cancel
	given, silent := len(f.events) > 0, f.k.silent
	f.k.mu.Unlock()
	switch {
	case given:
		return true, nil
	case silent:
		<-within.Done()
		err = within.Err()
	default:
		err = inner(within)
	}
	return err != nil && within.Err() != nil && ctx.Err() == nil, err
}

func (f *File) Read(ctx context.Context, buf []byte) (n int, err error) {
	for {
		if event, ok := f.next(); event != nil {
			return copy(buf, event), nil
		} else if ok {
			return 0, syscall.EIO
		}
		again, err := f.wait(ctx, func(ctx context.Context) (err error) {
			n, err = f.File.Read(ctx, buf)
			return err
		})
		if !again {
			return n, err
		}
	}
}

func (f *File) WaitReadable(ctx context.Context) error {
	again, err := f.wait(ctx, f.File.(kshim.Waiter).WaitReadable)
	if again && !f.isClosed() {
		return nil
	}
	return err
}

func (f *File) isClosed() bool {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	return f.Closed
}

func (f *File) Pin(buf []byte) (uint64, func()) {
	addr, release := f.File.Pin(buf)
	p := &pin{addr, buf}
	f.k.Do(func() { f.k.pins[p] = struct{}{}; f.k.Pins++ })
	return addr, sync.OnceFunc(func() {
		release()
		f.k.Do(func() { delete(f.k.pins, p); f.k.Pins-- })
	})
}

func (f *File) Mmap(offset uint64, n int) ([]byte, error) {
	m, err := f.File.Mmap(offset, n)
	if err == nil {
		f.k.Do(func() {
			f.k.Mapped++
			if f.k.Map != nil {
				f.k.Map(m)
			}
		})
	}
	return m, err
}

func (f *File) Munmap(m []byte) error {
	err := f.File.Munmap(m)
	if err == nil {
		f.k.Do(func() { f.k.Mapped-- })
	}
	return err
}

func (f *File) Close() error {
	f.k.Do(func() {
		f.Closed = true
		clear(f.ids)
		f.look()
	})
	return f.File.Close()
}

func (f *File) Ioctl(arg []byte) error {
	c := f.k.parse(arg)
	if c == nil {
		return syscall.EFAULT
	}
	c.File = f
	return f.k.call(c, func() error { return f.File.Ioctl(arg) })
}

func (f *File) Write(b []byte) (n int, err error) {
	if f.cm {
		return f.writeCM(b)
	}
	if watched, err := f.k.watched(); !watched || err != nil {
		if err == nil {
			return f.File.Write(b)
		}
		return 0, err
	}
	var hdr abi.CmdHdr
	if hdr.Parse(b) != nil || len(b) < abi.CmdHdrSize+8 {
		return 0, syscall.EINVAL
	}
	in := b[abi.CmdHdrSize:]
	c := &Call{File: f, Cmd: hdr.Command, Written: true, Raw: b, In: in, Out: f.k.mem(le.Uint64(in), int(hdr.OutWords)*4)}
	err = f.k.call(c, func() error {
		n, err = f.File.Write(b)
		return err
	})
	return n, err
}

// writeCM is a command of rdma_cm.
func (f *File) writeCM(b []byte) (n int, err error) {
	var hdr abi.UCMHdr
	if hdr.Parse(b) != nil {
		return 0, syscall.EINVAL
	}
	c := &Call{File: f, Cmd: hdr.Cmd, Written: true, Raw: b, In: b[abi.UCMHdrSize:]}
	switch hdr.Cmd {
	case abi.UCMCmdCreateID:
		c.Out = f.k.mem(le.Uint64(c.In[8:]), int(hdr.Out))
	case abi.UCMCmdGetEvent:
		c.Out = f.k.mem(le.Uint64(c.In), int(hdr.Out))
	}
	if hdr.Cmd == abi.UCMCmdDestroyID {
		num := le.Uint32(c.In[8:])
		f.k.Do(func() { delete(f.ids, num) }) // now: the number may be the next id's before the answer
		defer func() {
			if err != nil && !errors.Is(err, syscall.ENOENT) {
				f.k.Do(func() { f.ids[num] = true })
			}
		}()
	}
	err = f.k.call(c, func() error {
		if hdr.Cmd == abi.UCMCmdGetEvent {
			if event, ok := f.next(); ok {
				copy(c.Out, event)
				return nil
			}
			if f.k.isSilent() {
				return syscall.EAGAIN
			}
		}
		_, err := f.File.Write(b)
		return err
	})
	if err != nil {
		return 0, err
	}
	f.k.Do(func() { f.count(c) })
	return len(b) - f.k.Short, nil
}

// count keeps the ids that were made. Preconditions: the lock is held.
func (f *File) count(c *Call) {
	var ev abi.UCMEventResp
	switch {
	case f.Closed:
	case c.Cmd == abi.UCMCmdCreateID:
		f.ids[le.Uint32(c.Out)] = true
	case c.Cmd == abi.UCMCmdGetEvent && ev.Parse(c.Out) == nil && ev.Event == abi.UCMEventConnectRequest:
		f.ids[ev.ID] = true
	}
}

//go:build linux && (amd64 || arm64)

package supervise

import (
	"context"
	"encoding/binary"
	"errors"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/trace"
)

// maxCommand is the longest write that reaches emu, in bytes; no command is
// longer.
const maxCommand = 1 << 20

// doorbell is the size of POST_SEND's write.
const doorbell = abi.CmdHdrSize + abi.PostSendSize

// write is a write of size bytes at addr.
func (c *call) write(addr, size uint64) {
	h := c.file(c.fd())
	if h == nil {
		c.writeOther(func() ([]byte, error) { return c.bytes(addr, size) })
		return
	}
	f := h.base()
	if size > maxCommand {
		c.fail(syscall.EINVAL)
		return
	}
	if size == doorbell && f.program.mu.TryLock() {
		f.program.mu.Unlock()
		f.assist(func() { c.command(f, addr, size) }) // POST_SEND, which does not wait
		return
	}
	go c.command(f, addr, size)
}

// assistRounds bounds the work that a doorbell's thread does for the device.
const assistRounds = 8

// assist rings a doorbell and does the work that it brings forth. A program
// that polls keeps a processor busy; the device's own goroutine would wait for
// another.
func (f *file) assist(doorbell func()) {
	if open := f.open.Load(); open != nil {
		if d, ok := (*open).(interface{ Assist(int, func()) }); ok {
			d.Assist(assistRounds, doorbell)
			return
		}
	}
	doorbell()
}

// bytes reads what a call sends.
func (c *call) bytes(addr, size uint64) ([]byte, error) {
	if size > maxCommand {
		return nil, syscall.EMSGSIZE
	}
	b := make([]byte, size)
	return b, c.process.read(b, addr)
}

func (c *call) writev() {
	h := c.file(c.fd())
	if h == nil {
		c.writeOther(func() ([]byte, error) { return c.gather(c.Args[1], c.Args[2], maxCommand) })
		return
	}
	go func() {
		cmd, err := c.gather(c.Args[1], c.Args[2], maxCommand)
		if err != nil {
			c.fail(err)
			return
		}
		c.run(h.base(), cmd)
	}()
}

// command is a write to a device file or rdma_cm.
func (c *call) command(f *file, addr, size uint64) {
	cmd, err := c.bytes(addr, size)
	if err != nil {
		c.fail(err)
		return
	}
	c.run(f, cmd)
}

// commands is where the file's commands go: emu's file, or what prints them
// (RDMASHIM_TRACE). It is nil before the file is there.
func (f *file) commands() kshim.File {
	open := f.open.Load()
	if open == nil {
		return nil
	}
	return trace.Of(f.program.traced, *open, int(f.number.Load()))
}

// run gives emu a command. GET_EVENT waits on a file that blocks.
func (c *call) run(f *file, cmd []byte) {
	open := f.commands()
	if open == nil {
		c.fail(syscall.EINVAL)
		return
	}
	n, err := c.try(f, open, cmd)
	if err != nil && number(err) == syscall.EAGAIN && !c.process.nonblocking(c.fd()) {
		if w, ok := (*f.open.Load()).(kshim.Waiter); ok {
			c.await(f, open, w, cmd)
			return
		}
	}
	c.finish(n, err)
}

func (c *call) try(f *file, open kshim.File, cmd []byte) (n int, err error) {
	err = f.program.do(c, func() error {
		n, err = open.Write(cmd)
		return err
	})
	return n, err
}

// glance is how often a call that waits looks for signals of its thread: none
// arrives while the call is held.
const glance = 20 * time.Millisecond

// manyWaiters is how many calls on one file make glances half as frequent: ten
// thousand threads cost as much as a few hundred.
const manyWaiters = 100

// restart is ERESTARTSYS: Linux makes EINTR of it or calls again, as the
// signal's handler wants.
const restart = syscall.Errno(512)

// await gives a command again until the file has an event, or the thread a
// signal.
func (c *call) await(f *file, open kshim.File, w kshim.Waiter, cmd []byte) {
	f.waiters.Add(1)
	defer f.waiters.Add(-1)
	for {
		pause := glance + glance*time.Duration(f.waiters.Load())/manyWaiters
		ctx, cancel := context.WithTimeout(context.Background(), pause)
		waited := w.WaitReadable(ctx)
		cancel()
		switch {
		case !c.listener.Valid(c.ID):
			c.done()
			return
		case waited == nil:
			n, err := c.try(f, open, cmd)
			if err == nil || number(err) != syscall.EAGAIN {
				c.finish(n, err)
				return
			}
		case !errors.Is(waited, context.DeadlineExceeded):
			// Another thread has closed the file. Linux leaves the caller
			// waiting: rping ends so, and fails if it is told.
			time.Sleep(pause)
		}
		if c.process.interrupted(int(c.PID)) {
			c.fail(restart)
			return
		}
	}
}

// ioctl is RDMA_VERBS_IOCTL.
func (c *call) ioctl() {
	h := c.file(c.fd())
	if h == nil {
		c.pass()
		return
	}
	go func() { c.finish(0, c.verbs(h.base(), c.Args[2])) }()
}

// verbs runs an ioctl, whose argument begins with its length
// (struct ib_uverbs_ioctl_hdr).
func (c *call) verbs(f *file, addr uint64) error {
	open := f.commands()
	if open == nil {
		return syscall.ENOTTY
	}
	var size [2]byte
	if err := c.process.read(size[:], addr); err != nil {
		return err
	}
	return f.program.do(c, func() error {
		arg := c.bounce(addr, uint64(binary.NativeEndian.Uint16(size[:])))
		if arg == nil {
			return syscall.EFAULT
		}
		return open.Ioctl(arg)
	})
}

// bytesOf is a structure as it lies in memory: those of x/sys name their gaps.
func bytesOf(v any) []byte {
	b, _ := binary.Append(nil, binary.NativeEndian, v)
	return b
}

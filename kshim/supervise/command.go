//go:build linux && (amd64 || arm64)

package supervise

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/refuse"
	"github.com/rdmashim/rdmashim/kshim/trace"
)

// maxCommand is the longest write that reaches emu, in bytes; no command is
// longer.
const maxCommand = 1 << 20

// doorbell is the size of POST_SEND's write.
const doorbell = abi.CmdHdrSize + abi.PostSendSize

// isHot reports whether a program gives a command for each message. Such a one
// does not wait, but for the program's other commands.
func isHot(cmd abi.Command) bool { return cmd == abi.CmdPostSend || cmd == abi.CmdReqNotifyCQ }

// write is a write of size bytes at addr.
func (c *call) write(addr, size uint64) {
	read := func() ([]byte, error) { return c.bytes(addr, size) }
	f := c.file(c.fd())
	if f == nil {
		c.writeOther(read)
		return
	}
	if size > maxCommand {
		c.fail(syscall.EINVAL)
		return
	}
	if size > doorbell {
		go c.command(f, read)
		return
	}
	cmd, err := c.peek(addr, size)
	if err != nil {
		c.fail(err)
		return
	}
	var header abi.CmdHdr
	if header.Parse(cmd) != nil || !isHot(header.Command) || !c.atOnce(f.program, func() { c.hot(f, cmd) }) {
		go c.later(f, func() { c.run(f, cmd) })
	}
}

// later runs a command behind the closes before it.
func (c *call) later(f *file, run func()) {
	c.settle(f.program)
	run()
}

// atOnce runs a hot command on the receiver's thread, unless another command of
// the program is on its way.
func (c *call) atOnce(g *program, run func()) bool {
	if !g.mu.TryLock() {
		return false
	}
	c.locks = true
	if run(); c.locks { // it has not come to program.do
		g.mu.Unlock()
	}
	return true
}

// assistRounds bounds the work that a doorbell's thread does for the device.
const assistRounds = 8

// hot carries out a command of few bytes at once.
func (c *call) hot(f *file, cmd []byte) {
	open := f.commands()
	if open == nil {
		c.fail(syscall.EINVAL)
		return
	}
	var n int
	var err error
	f.assist(c.receiver.listener.Ready, func() { n, err = c.try(f, open, cmd) }, func() { c.finish(n, err) })
}

// assist rings a doorbell, has it answered, and does the work that it brings
// forth. A program that polls keeps a processor busy; the device's own
// goroutine would wait for another.
func (f *file) assist(wanted func() bool, doorbell, answer func()) {
	if open := f.open.Load(); open != nil {
		if d, ok := (*open).(emu.Assistant); ok {
			d.Assist(assistRounds, wanted, doorbell, answer)
			return
		}
	}
	doorbell()
	answer()
}

// bytes reads what a call sends.
func (c *call) bytes(addr, size uint64) ([]byte, error) {
	if size > maxCommand {
		return nil, syscall.EMSGSIZE
	}
	b := make([]byte, size)
	return b, c.process.read(b, addr)
}

// around is how much of what lies around a short command is read with it.
// libibverbs has the request and the response of a command there.
const around = 256

// peek reads a short command, and what is beside it on its page: a second read
// would cost as much.
func (c *call) peek(addr, size uint64) ([]byte, error) {
	page := addr &^ uint64(os.Getpagesize()-1)
	from := max(addr-around, page)
	to := max(min(addr+size+around, page+uint64(os.Getpagesize())), addr+size)
	if addr < around || to < addr {
		return c.bytes(addr, size)
	}
	mem := make([]byte, to-from)
	if err := c.process.read(mem, from); err != nil {
		return nil, err
	}
	c.beside = bounced{addr: from, mem: mem}
	return bytes.Clone(c.beside.of(addr, size)), nil
}

func (c *call) writev() {
	gather := func() ([]byte, error) { return c.gather(c.Args[1], c.Args[2], maxCommand) }
	if f := c.file(c.fd()); f != nil {
		go c.command(f, gather)
	} else {
		c.writeOther(gather)
	}
}

// command is a write to a device file or rdma_cm.
func (c *call) command(f *file, read func() ([]byte, error)) {
	cmd, err := read()
	if err != nil {
		c.fail(err)
		return
	}
	c.settle(f.program)
	c.run(f, cmd)
}

// commands is where the file's commands go: emu's file, or what prints them or
// lets them fail. It is nil before the file is there.
func (f *file) commands() kshim.File {
	open := f.open.Load()
	if open == nil {
		return nil
	}
	return trace.Of(f.program.traced, refuse.Of(f.program.faulty, *open), int(f.number.Load()))
}

// run gives emu a command. GET_EVENT waits on a file that blocks.
func (c *call) run(f *file, cmd []byte) {
	open := f.commands()
	if open == nil {
		c.fail(syscall.EINVAL)
		return
	}
	n, err := c.try(f, open, cmd)
	if err != nil && number(err) == syscall.EAGAIN && !c.nonblocking() {
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
		case !c.receiver.listener.Valid(c.ID):
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
		if c.interrupted() {
			c.fail(restart)
			return
		}
	}
}

// ioctl is RDMA_VERBS_IOCTL, whose argument begins with its length.
func (c *call) ioctl() {
	f, addr := c.file(c.fd()), c.Args[2]
	if f == nil {
		c.pass()
		return
	}
	var header abi.IoctlHdr
	b, err := c.peek(addr, abi.IoctlHdrSize)
	if err == nil {
		err = header.Parse(b)
	}
	if err != nil {
		c.fail(err)
		return
	}
	run := func() { c.finish(0, c.verbs(f, addr, uint64(header.Length))) }
	if !c.carriesHot(&header) || !c.atOnce(f.program, run) {
		go c.later(f, run)
	}
}

// carriesHot reports whether an ioctl carries a hot command of write.
func (c *call) carriesHot(h *abi.IoctlHdr) bool {
	if h.ObjectID != abi.ObjectDevice || h.MethodID != abi.MethodInvokeWrite {
		return false
	}
	for at := c.Args[2] + abi.IoctlHdrSize; at < c.Args[2]+uint64(h.Length); at += abi.IoctlAttrSize {
		var a abi.IoctlAttr
		if a.Parse(c.beside.of(at, abi.IoctlAttrSize)) != nil {
			return false
		}
		if a.AttrID == abi.AttrWriteCmd {
			return isHot(abi.Command(a.Data))
		}
	}
	return false
}

// verbs runs an ioctl of size bytes.
func (c *call) verbs(f *file, addr, size uint64) error {
	open := f.commands()
	if open == nil {
		return syscall.ENOTTY
	}
	return f.program.do(c, func() error {
		arg := c.bounce(addr, size)
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

//go:build linux && (amd64 || arm64)

package supervise

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// receiver takes the calls of one listener's programs. It never waits: what may
// has a goroutine.
type receiver struct {
	kernel   *Kernel
	listener *notif.Listener
	memory   func(pid int) (*os.File, error)
	held     sync.WaitGroup // calls that are not answered
}

// call is a call that is held. It is answered exactly once, by pass, value
// or fail.
type call struct {
	notif.Notification
	receiver *receiver
	process  *process
	found    fileID // what fd leads to, or 0

	opens   string // the file that it opens
	flags   int    // O_CLOEXEC and O_NONBLOCK of its descriptor
	bounces []bounced
	beside  bounced // what lies around a short command
	blind   bool    // its response goes nowhere
	locks   bool    // it has locked its file's program already
}

// loop receives calls until no program is left, and answers them all: the
// listener may be closed behind it.
func (r *receiver) loop() error {
	defer r.held.Wait()
	for {
		c := &call{receiver: r, flags: unix.O_CLOEXEC}
		err := r.listener.Receive(&c.Notification)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.held.Add(1)
		if err := r.process(c); err != nil {
			c.pass() // it has ended, or is of another PID namespace
			continue
		}
		c.process.returns(int(c.PID))
		r.answer(c)
	}
}

// answer answers a call, at once or by a goroutine.
func (r *receiver) answer(c *call) {
	if p, ok := pathCalls[int(c.NR)]; ok {
		c.path(p)
		return
	}
	switch int(c.NR) {
	case unix.SYS_WRITE:
		c.write(c.Args[1], c.Args[2])
	case unix.SYS_WRITEV:
		c.writev()
	case unix.SYS_IOCTL:
		c.ioctl()
	case unix.SYS_FSTAT:
		c.stat()
	case unix.SYS_SOCKET:
		c.socket()
	case unix.SYS_SENDTO:
		c.send(c.Args[1], c.Args[2])
	case unix.SYS_SENDMSG:
		c.sendmsg()
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		c.process.executes(int(c.PID))
		c.pass()
	default:
		c.pass()
	}
}

// fd is the descriptor that the call is on.
func (c *call) fd() int32 { return int32(c.Args[0]) }

// identify returns what a descriptor of the calling thread leads to.
func (c *call) identify(fd int32) (id fileID, ok bool) {
	if fd == c.fd() && c.found != (fileID{}) {
		return c.found, true
	}
	var st unix.Stat_t
	if unix.Fstatat(c.process.proc, c.thread()+"/fd/"+strconv.Itoa(int(fd)), &st, 0) != nil {
		return fileID{}, false
	}
	return fileID{st.Dev, st.Ino}, true
}

// thread is the calling thread's directory below its process's.
func (c *call) thread() string { return threadOf(int(c.PID)) }

// isOf reports whether the caller is a thread of a process. In passing it finds
// what a call on a descriptor is on.
func (c *call) isOf(p *process) bool {
	switch c.process = p; int(c.NR) {
	case unix.SYS_WRITE, unix.SYS_IOCTL, unix.SYS_WRITEV, unix.SYS_FSTAT, unix.SYS_SENDTO, unix.SYS_SENDMSG:
		if id, ok := c.identify(c.fd()); ok {
			c.found = id
			return true
		}
	}
	if p.has(int(c.PID)) {
		return true
	}
	c.process = nil
	return false
}

// pass has Linux do the call.
func (c *call) pass() {
	_ = c.receiver.listener.Continue(c.ID)
	c.done()
}

func (c *call) value(v int64) {
	_ = c.receiver.listener.Value(c.ID, v)
	c.done()
}

func (c *call) fail(err error) {
	_ = c.receiver.listener.Fail(c.ID, number(err))
	c.done()
}

// finish answers with a value or an error.
func (c *call) finish(v int, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.value(int64(v))
}

func (c *call) done() {
	defer c.receiver.held.Done()
	if c.process != nil {
		c.process.drop()
		c.process = nil
	}
}

// number is the errno of an error.
func number(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != 0 {
		return errno
	}
	return syscall.EIO
}

// vectors is how many pieces a message of a program has at most.
const vectors = 64

// gather reads what n struct iovec at addr name, of limit bytes at most.
func (c *call) gather(addr, n uint64, limit int) ([]byte, error) {
	if n > vectors {
		return nil, syscall.EINVAL
	}
	list := make([]byte, 16*n)
	if err := c.process.read(list, addr); err != nil {
		return nil, err
	}
	var all []byte
	for ; len(list) > 0; list = list[16:] {
		base, size := binary.NativeEndian.Uint64(list), binary.NativeEndian.Uint64(list[8:])
		if size > uint64(limit-len(all)) {
			return nil, syscall.EMSGSIZE
		}
		piece := make([]byte, size)
		if err := c.process.read(piece, base); err != nil {
			return nil, err
		}
		all = append(all, piece...)
	}
	return all, nil
}

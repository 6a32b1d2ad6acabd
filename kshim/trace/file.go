package trace

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// fileKind is the kind of events that a file's reads give.
type fileKind uint8

const (
	deviceFile fileKind = iota
	attributeFile
	eventFile
	cmFile // of the connection manager
)

// file implements kshim.File.
type file struct {
	inner  kshim.File
	kernel *kernel
	kind   fileKind
	path   string
	fd     string // its number, as shown
	closed atomic.Bool
}

var _ kshim.File = (*file)(nil)

func (k *kernel) wrap(f kshim.File, kind fileKind, path, fd string) *file {
	return &file{inner: f, kernel: k, kind: kind, path: path, fd: fd}
}

// FD is the file's number, or -1 where its kernel does not tell.
func (f *file) FD() int {
	if n, err := strconv.Atoi(f.fd); err == nil {
		return n
	}
	return -1
}

// progressFile is a file of a kernel that makes progress when it is asked to.
// That is no call, and is not shown.
type progressFile struct {
	*file
	kshim.Driven
}

// waitFile is a file whose events a command fetches. That it is waited for is
// no call that the kernel answers, and is not shown.
type waitFile struct {
	*file
	kshim.Waiter
}

// asFile is the file with the optional interfaces of the wrapped one.
func (f *file) asFile() kshim.File {
	if w, ok := f.inner.(kshim.Waiter); ok {
		return &waitFile{f, w}
	}
	if p, ok := f.inner.(kshim.Driven); ok {
		return &progressFile{f, p}
	}
	return f
}

// begin begins the line of a call on the file.
func (f *file) begin(call string) *line {
	return f.kernel.out.call(call).text(f.fd)
}

// end prints the line of a call that answered err, or else what answer appends.
func (f *file) end(l *line, err error, answer func(b []byte) []byte) {
	if err != nil {
		l.b = appendError(l.b, err, f.path)
	} else {
		l.b = answer(l.b)
	}
	l.print()
}

// look copies the part of a command that is looked at. A command that is not
// there at all shows as such; the kernel answers EFAULT.
func look(cmd []byte) ([]byte, bool) {
	return copied(cmd[:min(len(cmd), copyLimit)])
}

const notThere = "memory that cannot be read"

// Write is one command. See kshim.File.
func (f *file) Write(cmd []byte) (int, error) {
	l := f.begin("write").text(", ")
	var a answer
	if seen, ok := look(cmd); !ok {
		l.text(notThere)
	} else if f.kind == cmFile {
		l.b, a = appendUCM(l.b, seen)
	} else {
		l.b, a = appendWrite(l.b, seen)
	}
	l.returns()
	n, err := f.inner.Write(cmd)
	f.end(l, err, func(b []byte) []byte {
		return appendAnswer(strconv.AppendInt(b, int64(n), 10), a, f.kernel.memory, nil)
	})
	return n, err
}

// Ioctl is RDMA_VERBS_IOCTL. See kshim.File.
func (f *file) Ioctl(arg []byte) error {
	l := f.begin("ioctl").text(", ")
	var a answer
	if seen, ok := look(arg); ok {
		l.b, a = appendIoctl(l.b, seen, f.kernel.memory)
	} else {
		l.text(notThere)
	}
	l.returns()
	err := f.inner.Ioctl(arg)
	f.end(l, err, func(b []byte) []byte {
		back, _ := look(arg)
		return appendAnswer(append(b, '0'), a, f.kernel.memory, back)
	})
	return err
}

// Mmap maps a queue. See kshim.File.
func (f *file) Mmap(offset uint64, length int) ([]byte, error) {
	l := f.begin("mmap").text(fmt.Sprintf(", offset=%#x, length=%d", offset, length)).returns()
	m, err := f.inner.Mmap(offset, length)
	f.end(l, err, func(b []byte) []byte { return fmt.Appendf(b, "%p", m) })
	return m, err
}

// Munmap gives a mapping back. See kshim.File.
func (f *file) Munmap(mapping []byte) error {
	l := f.kernel.out.call("munmap").text(fmt.Sprintf("%p, length=%d", mapping, len(mapping))).returns()
	err := f.inner.Munmap(mapping)
	f.end(l, err, zero)
	return err
}

// Read waits for an event or reads an attribute. See kshim.File. Its line comes
// when it returns, which may be long after it was called.
func (f *file) Read(ctx context.Context, buf []byte) (int, error) {
	l := f.begin("read").returns()
	n, err := f.inner.Read(ctx, buf)
	f.end(l, err, func(b []byte) []byte {
		b = strconv.AppendInt(b, int64(n), 10)
		if n <= 0 || n > len(buf) {
			return b
		}
		return f.kind.appendRead(append(b, ' '), buf[:n])
	})
	return n, err
}

// appendRead shows the bytes read: an attribute's text or an event.
func (k fileKind) appendRead(b, raw []byte) []byte {
	var comp abi.CompEvent
	var async abi.AsyncEvent
	switch {
	case k == attributeFile:
		return strconv.AppendQuote(b, string(raw[:min(len(raw), 4*hexLimit)]))
	case k == eventFile && len(raw) == abi.CompEventSize && comp.Parse(raw) == nil:
		return appendStruct(b, comp, nil)
	case k == eventFile && len(raw) == abi.AsyncEventSize && async.Parse(raw) == nil:
		return appendStruct(b, async, nil)
	}
	return appendHex(b, raw)
}

// Pin announces memory. See kshim.File.
func (f *file) Pin(buf []byte) (uint64, func()) {
	addr, release := f.inner.Pin(buf)
	if len(buf) == 0 {
		return addr, release
	}
	if f.kernel.out.pins {
		f.kernel.out.call("pin").text(strconv.Itoa(len(buf))).returns().text(fmt.Sprintf("%#x", addr)).print()
	}
	p := f.kernel.memory.add(addr, buf)
	var once sync.Once
	return addr, func() {
		once.Do(func() {
			f.kernel.memory.remove(p) // before it may vanish
			if f.kernel.out.pins {
				f.kernel.out.call("unpin").text(fmt.Sprintf("%#x", addr)).returns().text("0").print()
			}
		})
		release()
	}
}

// Close closes the file. See kshim.File. The second time it is no call, and not
// shown.
func (f *file) Close() error {
	if f.closed.Swap(true) {
		return f.inner.Close()
	}
	l := f.begin("close").returns()
	err := f.inner.Close()
	f.end(l, err, zero)
	return err
}

// zero is the answer of a call that says only that it succeeded.
func zero(b []byte) []byte { return append(b, '0') }

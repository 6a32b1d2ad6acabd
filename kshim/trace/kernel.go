package trace

import (
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
)

// New gives a kernel that hands every call on to k and prints it to w when it
// has returned, as one line with one Write. Writers that several kernels share
// must bear Writes beside each other, as files do. Errors of w are ignored.
func New(k kshim.Kernel, w io.Writer, opts ...Option) kshim.Kernel {
	o := &output{w: w, start: time.Now()}
	for _, opt := range opts {
		opt(o)
	}
	return &kernel{inner: k, out: o, memory: &memory{all: o.memory}}
}

// Of is the traced face of a file that k's program finds by its number, as C
// programs do. It returns f itself if k is not traced.
func Of(k kshim.Kernel, f kshim.File, fd int) kshim.File {
	t, traced := k.(*kernel)
	if !traced {
		return f
	}
	name := ""
	if named, ok := f.(interface{ Path() string }); ok {
		name = named.Path()
	}
	return t.wrap(f, kindOf(name), name, strconv.Itoa(fd)).asFile()
}

// kernel implements kshim.Kernel.
type kernel struct {
	inner  kshim.Kernel
	out    *output
	memory *memory
}

var _ kshim.Kernel = (*kernel)(nil)

// Open opens a device file or an attribute. See kshim.Kernel.
func (k *kernel) Open(name string) (kshim.File, error) {
	l := k.out.call("open").text(strconv.Quote(name)).returns()
	f, err := k.inner.Open(name)
	if err != nil {
		l.b = appendError(l.b, err, name)
		l.print()
		return nil, err
	}
	t := k.wrap(f, kindOf(path.Clean(name)), name, descriptor(f, path.Base(name)))
	l.text(t.fd).print()
	return t.asFile(), nil
}

func kindOf(name string) fileKind {
	switch {
	case strings.HasPrefix(name, "/sys/"):
		return attributeFile
	case name == "/dev/infiniband/rdma_cm":
		return cmFile
	case strings.HasPrefix(name, "/dev/"):
		return deviceFile
	}
	return eventFile
}

// ReadDir lists a directory. See kshim.Kernel.
func (k *kernel) ReadDir(name string) ([]string, error) {
	l := k.out.call("readdir").text(strconv.Quote(name)).returns()
	names, err := k.inner.ReadDir(name)
	if err != nil {
		l.b = appendError(l.b, err, name)
	} else {
		l.b = strconv.AppendInt(l.b, int64(len(names)), 10)
		for i, n := range names {
			if i == 0 {
				l.text(" [")
			} else {
				l.text(", ")
			}
			l.b = strconv.AppendQuote(l.b, n)
		}
		if len(names) > 0 {
			l.text("]")
		}
	}
	l.print()
	return names, err
}

// Adopt gives the file behind a descriptor. See kshim.Kernel. It is no system
// call, and is shown when it fails only: the command that answered the number
// shows it too.
func (k *kernel) Adopt(fd int32) (kshim.File, error) {
	number := strconv.Itoa(int(fd))
	f, err := k.inner.Adopt(fd)
	if err != nil {
		l := k.out.call("adopt").text(number).returns()
		l.b = appendError(l.b, err, "")
		l.print()
		return nil, err
	}
	return k.wrap(f, eventFile, "", number).asFile(), nil
}

// descriptor is the number of an open file, if it tells, else its name.
func descriptor(f kshim.File, name string) string {
	if n, ok := f.(interface{ FD() int }); ok && n.FD() >= 0 {
		return strconv.Itoa(n.FD())
	}
	return name
}

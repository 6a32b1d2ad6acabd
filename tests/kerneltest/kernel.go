package kerneltest

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Kernel is another kernel as it would be if it gave the answers that a test
// wants. Its files are neither Driven nor Pusher. The lock of Do guards the
// fields.
type Kernel struct {
	kshim.Kernel

	// Fail has the errors that commands are answered with, instead of carried
	// out: by abi.Command, abi.UCMCommand or abi.MethodID.
	Fail map[any]error
	// Writes is the answer to each write(2) of a device file.
	Writes error
	// Before is called ahead of a command, without the lock. After is called
	// with it when the kernel has answered, and may change the answer.
	Before, After func(c *Call)
	// Map is called with each queue that a program maps.
	Map func(queue []byte)
	// Short is by how much write(2) of rdma_cm answers less than it took.
	Short int
	// Mute opens files that cannot be waited for.
	Mute bool
	// Sys holds attributes besides the kernel's, or in their place, Hidden the
	// beginnings of paths that do not exist.
	Sys    map[string]string
	Hidden []string
	// Record adds each command to Calls.
	Record bool
	Calls  []Call

	Opened []*File // the device files and event files
	Pins   int     // what is announced now
	Mapped int     // queues that are mapped now

	mu     sync.Mutex
	silent bool
	pins   map[*pin]struct{}
}

// Call is a command: an abi.Command, abi.UCMCommand or abi.MethodID.
type Call struct {
	File     *File
	Cmd      any
	Written  bool   // by write(2), not ioctl(2)
	Raw      []byte // all that was handed over
	In       []byte // the request
	Out, UHW []byte // where the answer goes, and the driver's part
}

type pin struct {
	addr uint64
	buf  []byte
}

// NewKernel returns a kernel that answers as k does.
func NewKernel(k kshim.Kernel) *Kernel {
	return &Kernel{Kernel: k, Fail: map[any]error{}, Sys: map[string]string{}, pins: map[*pin]struct{}{}}
}

// Do runs f with the kernel's lock held.
func (k *Kernel) Do(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// Taken returns the recorded commands and starts anew.
func (k *Kernel) Taken() (list []Call) {
	k.Do(func() { list, k.Calls = k.Calls, nil })
	return list
}

// Silence has the kernel keep all events, or give them again.
func (k *Kernel) Silence(silent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent = silent
	for _, f := range k.Opened {
		f.look()
	}
}

// IDs returns how many ids of rdma_cm clients know of.
func (k *Kernel) IDs() (n int) {
	k.Do(func() {
		for _, f := range k.Opened {
			n += len(f.ids)
		}
	})
	return n
}

func (k *Kernel) hidden(name string) bool {
	return slices.ContainsFunc(k.Hidden, func(p string) bool { return strings.HasPrefix(name, p) })
}

func (k *Kernel) Open(name string) (kshim.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if text, ok := k.Sys[name]; ok {
		return &attribute{text: text}, nil
	}
	if k.hidden(name) {
		return nil, syscall.ENOENT
	}
	f, err := k.Kernel.Open(name)
	if err != nil || !strings.HasPrefix(name, "/dev/") {
		return f, err
	}
	return k.file(f, name), nil
}

func (k *Kernel) Adopt(fd int32) (kshim.File, error) {
	f, err := k.Kernel.Adopt(fd)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file(f, "event file"), nil
}

func (k *Kernel) file(inner kshim.File, name string) kshim.File {
	f := &File{File: inner, k: k, cm: path.Base(name) == "rdma_cm", ids: map[uint32]bool{}}
	k.Opened = append(k.Opened, f)
	if k.Mute {
		return struct{ kshim.File }{f}
	}
	return f
}

func (k *Kernel) ReadDir(name string) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	names, err := k.Kernel.ReadDir(name)
	names = slices.DeleteFunc(names, func(n string) bool { return k.hidden(path.Join(name, n)) })
	for p := range k.Sys {
		if rest, ok := strings.CutPrefix(p, name+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			names = append(names, first)
		}
	}
	if len(names) == 0 && (err != nil || k.hidden(name)) {
		return nil, syscall.ENOENT
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// mem returns announced memory.
func (k *Kernel) mem(addr uint64, n int) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p := range k.pins {
		if addr >= p.addr && addr+uint64(n) <= p.addr+uint64(len(p.buf)) {
			return p.buf[addr-p.addr:][:n:n]
		}
	}
	return nil
}

// call gives a command to the kernel, do, between the test's functions.
func (k *Kernel) call(c *Call, do func() error) error {
	k.mu.Lock()
	before := k.Before
	if k.Record {
		saved := *c
		saved.Raw, saved.In = slices.Clone(c.Raw), slices.Clone(c.In)
		k.Calls = append(k.Calls, saved)
	}
	k.mu.Unlock()
	if before != nil {
		before(c)
	}
	var err error
	k.Do(func() { err = k.Fail[c.Cmd] })
	if err == nil {
		err = do()
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.After != nil {
		k.After(c)
	}
	return nil
}

// watched reports whether writes are anything but passed on.
func (k *Kernel) watched() (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Record || k.Before != nil || k.After != nil || len(k.Fail) > 0, k.Writes
}

func (k *Kernel) isSilent() (silent bool) {
	k.Do(func() { silent = k.silent })
	return silent
}

var le = binary.LittleEndian

// parse finds the parts of an ioctl.
func (k *Kernel) parse(arg []byte) *Call {
	var hdr abi.IoctlHdr
	if hdr.Parse(arg) != nil || len(arg) < abi.IoctlHdrSize+abi.IoctlAttrSize*int(hdr.NumAttrs) {
		return nil
	}
	c := &Call{Cmd: hdr.MethodID, Raw: arg}
	for i := range int(hdr.NumAttrs) {
		raw := arg[abi.IoctlHdrSize+abi.IoctlAttrSize*i:]
		var a abi.IoctlAttr
		_ = a.Parse(raw)
		switch {
		case hdr.MethodID != abi.MethodInvokeWrite:
		case a.AttrID == abi.AttrWriteCmd:
			c.Cmd = abi.Command(a.Data)
		case a.AttrID == abi.AttrCoreIn && a.Len <= abi.AttrInlineMax:
			c.In = raw[8:][:a.Len]
		case a.AttrID == abi.AttrCoreIn:
			c.In = k.mem(a.Data, int(a.Len))
		case a.AttrID == abi.AttrCoreOut:
			c.Out = k.mem(a.Data, int(a.Len))
		case a.AttrID == abi.AttrUHWOut:
			c.UHW = k.mem(a.Data, int(a.Len))
		}
	}
	return c
}

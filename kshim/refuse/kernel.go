package refuse

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/fault"
	"github.com/rdmashim/rdmashim/kshim/ruletext"
)

// EnvFault is the environment variable with the rules of a process.
const EnvFault = "RDMASHIM_FAULT"

// New gives a kernel that hands every call on to k but those that the rules let
// fail. Completions are judged by k, if it can, else by its client.
func New(k kshim.Kernel, r *Rules) kshim.Kernel {
	if r.judges() {
		if j, ok := k.(kshim.Judged); ok {
			j.SetJudge(r.judge)
		} else {
			r.client = r.judge
		}
	}
	return &kernel{k, r}
}

// Env wraps k by the rules of the environment and those of text, which are the
// rules' own (Idle). Without any it returns k itself.
func Env(k kshim.Kernel, text string) (kshim.Kernel, *Rules, error) {
	expanded, err := ruletext.Expand(os.Getenv(EnvFault))
	r := &Rules{}
	if err == nil {
		r, err = Parse(expanded)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", EnvFault, err)
	}
	own, err := Parse(text)
	if err != nil {
		return nil, nil, err
	}
	r.others = len(r.rules)
	if r.rules = append(r.rules, own.rules...); len(r.rules) == 0 {
		return k, r, nil
	}
	return New(k, r), r, nil
}

// Of is the face of a file that k's program finds by its number, as C programs
// do, if k is wrapped; else f.
func Of(k kshim.Kernel, f kshim.File) kshim.File {
	if w, ok := k.(*kernel); ok {
		return w.wrap(f)
	}
	return f
}

type kernel struct {
	kshim.Kernel
	rules *Rules
}

// Open is open(2). Attributes never fail.
func (k *kernel) Open(name string) (kshim.File, error) {
	if !strings.HasPrefix(name, "/dev/") {
		f, err := k.Kernel.Open(name)
		if err == nil && strings.HasSuffix(name, "/hw_counters_now") {
			f = counters{f, k.rules}
		}
		return f, err
	}
	if errno := k.rules.answer(callOpen); errno != 0 {
		return nil, errno
	}
	f, err := k.Kernel.Open(name)
	if err != nil {
		return nil, err
	}
	return k.wrap(f), nil
}

// wrap is a file with the optional interfaces of the one that it wraps.
func (k *kernel) wrap(f kshim.File) kshim.File {
	w := &file{File: f, rules: k.rules, fatal: k.rules.fatal.Load()}
	if named, ok := f.(interface{ Path() string }); ok {
		w.path = named.Path()
	}
	w.cm = w.path == "/dev/infiniband/rdma_cm"
	switch x := f.(type) {
	case kshim.Waiter:
		w.cm = true
		return &waitFile{w, x}
	case kshim.Driven:
		return &progressFile{w, x}
	}
	return w
}

type file struct {
	kshim.File
	rules *Rules
	path  string
	cm    bool   // of the connection manager
	fatal uint32 // DEVICE_FATALs before it was opened
}

// counters is the attribute with all counters, and the rules' behind them.
type counters struct {
	kshim.File
	rules *Rules
}

func (c counters) Read(ctx context.Context, buf []byte) (int, error) {
	n, err := c.File.Read(ctx, buf)
	return n + copy(buf[n:], c.rules.counters()), err
}

// answer is the errno of a call. After DEVICE_FATAL only what destroys works,
// as on Linux (rdma_core.c: rdma_lookup_get_uobject).
func (f *file) answer(call string) syscall.Errno {
	if errno := f.rules.answer(call); errno != 0 {
		return errno
	}
	gone := !f.cm && f.fatal != f.rules.fatal.Load()
	if gone && !strings.HasPrefix(call, "DESTROY_") && !strings.HasPrefix(call, "DEALLOC_") && !strings.HasPrefix(call, "DEREG_") {
		return syscall.EIO
	}
	return 0
}

type waitFile struct {
	*file
	kshim.Waiter
}

type progressFile struct {
	*file
	kshim.Driven
}

// Path is the file's name where its kernel tells; empty elsewhere.
func (f *file) Path() string { return f.path }

// FD is the file's number, or -1 where its kernel does not tell.
func (f *file) FD() int {
	if n, ok := f.File.(interface{ FD() int }); ok {
		return n.FD()
	}
	return -1
}

// Write is one command.
func (f *file) Write(cmd []byte) (int, error) {
	if errno := f.answer(f.command(cmd)); errno != 0 {
		return 0, errno
	}
	return f.File.Write(cmd)
}

// Ioctl is RDMA_VERBS_IOCTL.
func (f *file) Ioctl(arg []byte) error {
	if errno := f.answer(method(arg)); errno != 0 {
		return errno
	}
	return f.File.Ioctl(arg)
}

// Mmap maps a queue.
func (f *file) Mmap(offset uint64, length int) ([]byte, error) {
	if errno := f.answer(callMmap); errno != 0 {
		return nil, errno
	}
	return f.File.Mmap(offset, length)
}

// command is the name of a command of write(2), empty for none.
func (f *file) command(cmd []byte) string {
	head, ok := copied(cmd, max(abi.CmdHdrSize, abi.UCMHdrSize))
	if !ok {
		return ""
	}
	if f.cm {
		var h abi.UCMHdr
		if h.Parse(head) != nil {
			return ""
		}
		return nameOf(abi.LookupUCM(h.Cmd))
	}
	var h abi.CmdHdr
	if h.Parse(head) != nil {
		return ""
	}
	return nameOf(abi.LookupCommand(h.Command))
}

// method is the name of an ioctl's method, or of the command that it carries.
func method(arg []byte) string {
	const most = abi.IoctlHdrSize + 16*abi.IoctlAttrSize
	arg, ok := copied(arg, most)
	var h abi.IoctlHdr
	if !ok || h.Parse(arg) != nil {
		return ""
	}
	if h.ObjectID != abi.ObjectDevice || h.MethodID != abi.MethodInvokeWrite {
		return nameOf(abi.LookupMethod(h.ObjectID, h.MethodID))
	}
	var a abi.IoctlAttr
	for at := abi.IoctlHdrSize; at+abi.IoctlAttrSize <= len(arg); at += abi.IoctlAttrSize {
		if a.Parse(arg[at:]) == nil && a.AttrID == abi.AttrWriteCmd {
			return nameOf(abi.LookupCommand(abi.Command(a.Data)))
		}
	}
	return ""
}

func nameOf(e *abi.Entry) string {
	if e == nil {
		return ""
	}
	return plain(e.ShortName())
}

// copied is a copy of the first bytes of memory that may vanish meanwhile.
func copied(b []byte, most int) ([]byte, bool) {
	b = b[:min(len(b), most)]
	dst := make([]byte, len(b))
	return dst, fault.Copy(dst, b) == nil
}

package uapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// recorder is a Kernel that notes the calls that pass the system-call line and
// hands them on or, when it is shut, answers EIO.
type recorder struct {
	kshim.Kernel
	shut atomic.Bool

	mu       sync.Mutex
	counts   map[string]int // guarded by mu: calls by name
	commands map[string]int // guarded by mu: commands of Ioctl and Write
	bytes    int            // guarded by mu: bytes of Write, Ioctl and Read
	wild     []string       // guarded by mu: writes that are no doorbell
}

func (r *recorder) wrap(k kshim.Kernel) kshim.Kernel {
	r.Kernel = k
	return r
}

func (r *recorder) note(call, command string, bytes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[call]++
	if command != "" {
		r.commands[command]++
	}
	r.bytes += bytes
	if r.shut.Load() {
		return syscall.EIO
	}
	return nil
}

// seen is the names of the commands that passed, sorted.
func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.commands))
}

func (r *recorder) count(call string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[call]
}

func (r *recorder) Open(path string) (kshim.File, error) {
	if err := r.note("Open", "", 0); err != nil {
		return nil, err
	}
	f, err := r.Kernel.Open(path)
	if err != nil {
		return nil, err
	}
	return &recordedFile{f, r}, nil
}

func (r *recorder) ReadDir(path string) ([]string, error) {
	if err := r.note("ReadDir", "", 0); err != nil {
		return nil, err
	}
	return r.Kernel.ReadDir(path)
}

func (r *recorder) Adopt(fd int32) (kshim.File, error) {
	if err := r.note("Adopt", "", 0); err != nil {
		return nil, err
	}
	f, err := r.Kernel.Adopt(fd)
	if err != nil {
		return nil, err
	}
	return &recordedFile{f, r}, nil
}

type recordedFile struct {
	kshim.File
	r *recorder
}

func (f *recordedFile) Write(cmd []byte) (int, error) {
	var hdr abi.CmdHdr
	var post abi.PostSend
	if hdr.Parse(cmd) != nil || hdr.Command != abi.CmdPostSend || post.Parse(cmd[abi.CmdHdrSize:]) != nil ||
		len(cmd) != abi.CmdHdrSize+abi.PostSendSize || post.WRCount != 0 || post.SGECount != 0 {
		f.r.mu.Lock()
		f.r.wild = append(f.r.wild, fmt.Sprintf("%x", cmd))
		f.r.mu.Unlock()
	}
	if err := f.r.note("Write", hdr.Command.String(), len(cmd)); err != nil {
		return 0, err
	}
	return f.File.Write(cmd)
}

func (f *recordedFile) Ioctl(arg []byte) error {
	if err := f.r.note("Ioctl", ioctlName(arg), len(arg)); err != nil {
		return err
	}
	return f.File.Ioctl(arg)
}

// ioctlName is the method's name, or that of the command it carries.
func ioctlName(arg []byte) string {
	var hdr abi.IoctlHdr
	if hdr.Parse(arg) != nil {
		return "?"
	}
	if hdr.ObjectID != abi.ObjectDevice || hdr.MethodID != abi.MethodInvokeWrite {
		return fmt.Sprintf("%v.%d", hdr.ObjectID, hdr.MethodID)
	}
	for i := range int(hdr.NumAttrs) {
		var attr abi.IoctlAttr
		if attr.Parse(arg[abi.IoctlHdrSize+i*abi.IoctlAttrSize:]) == nil && attr.AttrID == abi.AttrWriteCmd {
			return abi.Command(attr.Data).String()
		}
	}
	return "?"
}

func (f *recordedFile) Mmap(offset uint64, length int) ([]byte, error) {
	if err := f.r.note("Mmap", "", 0); err != nil {
		return nil, err
	}
	return f.File.Mmap(offset, length)
}

func (f *recordedFile) Munmap(mapping []byte) error {
	f.r.note("Munmap", "", 0)
	return f.File.Munmap(mapping)
}

func (f *recordedFile) Read(ctx context.Context, buf []byte) (int, error) {
	n, err := f.File.Read(ctx, buf)
	f.r.note("Read", "", n)
	return n, err
}

func (f *recordedFile) Pin(buf []byte) (uint64, func()) {
	f.r.note("Pin", "", 0)
	return f.File.Pin(buf)
}

func (f *recordedFile) Close() error {
	f.r.note("Close", "", 0)
	return f.File.Close()
}

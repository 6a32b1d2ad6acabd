//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
)

// Where the kernel shows itself, and all that Open and ReadDir look at.
const (
	devDir = "/dev/infiniband/"
	sysDir = "/sys/class/"
)

// kernel is the kernel of this machine. It implements kshim.Kernel and holds
// nothing itself.
type kernel struct{ options Options }

var _ kshim.Kernel = (*kernel)(nil)

// New gives the kernel of this machine, whether or not it has RDMA devices.
// ENOTSUP where there can be none.
func New(o Options) (kshim.Kernel, error) { return &kernel{o}, nil }

// Open opens a device file or an attribute. See kshim.Kernel.
func (k *kernel) Open(name string) (kshim.File, error) {
	name = path.Clean(name)
	mode := syscall.O_RDONLY
	switch {
	case name == cmNode:
		return openCM(name)
	case strings.HasPrefix(name, devDir):
		mode = syscall.O_RDWR
	case !strings.HasPrefix(name, sysDir):
		return nil, openError(name, syscall.ENOENT)
	}
	fd, err := retry(func() (int, error) { return syscall.Open(name, mode|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return nil, openError(name, err.(syscall.Errno))
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		syscall.Close(fd)
		return nil, openError(name, syscall.EISDIR)
	}
	hold(fd)
	return &device{path: name, fd: fd, rawBell: k.options.RawDoorbell}, nil
}

// ReadDir lists a directory. See kshim.Kernel.
func (k *kernel) ReadDir(name string) ([]string, error) {
	name = path.Clean(name)
	if !strings.HasPrefix(name+"/", sysDir) {
		return nil, &callError{Op: "readdir", Path: name, Errno: syscall.ENOENT}
	}
	dir, err := os.Open(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	slices.Sort(names)
	return names, nil
}

// eventLink is the kernel's name for both kinds of event file (uverbs_main.c:
// uverbs_event_fops).
const eventLink = "anon_inode:[infinibandevent]"

// Adopt gives the file behind a number that a command answered. See
// kshim.Kernel. When it fails for a number that is an event file, the
// descriptor is closed: no caller could.
func (k *kernel) Adopt(number int32) (kshim.File, error) {
	fd := int(number)
	refuse := func(why string) (kshim.File, error) {
		return nil, &callError{Op: "adopt", Path: "descriptor " + strconv.Itoa(fd), Msg: why, Errno: syscall.EBADF}
	}
	// Taking over a descriptor of another owner would close it one day.
	link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err == nil && link != eventLink {
		return refuse("it is " + link + ", no event file")
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0); errno != 0 {
		return refuse("it is not open")
	}
	if !hold(fd) {
		return refuse("it was adopted before")
	}
	f, err := newEventFile(fd, eventLink)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR { //nolint:errorlint // system calls answer the number itself
			return n, err
		}
	}
}

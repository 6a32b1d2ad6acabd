//go:build linux && (amd64 || arm64)

package supervise

import (
	"cmp"
	"encoding/binary"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/far"
)

// pathCall is a call that names a path: where its arguments are.
type pathCall struct {
	path int
	do   func(c *call, planted string, d *device) // answers for a path of RDMA
}

// pathCalls are the calls that name paths, by number; those that only old
// architectures have are in oldPathCalls.
var pathCalls = func() map[int]pathCall {
	all := map[int]pathCall{
		unix.SYS_OPENAT:     {1, func(c *call, at string, d *device) { c.open(at, d, c.Args[2]) }},
		unix.SYS_OPENAT2:    {1, (*call).openHow},
		unix.SYS_NEWFSTATAT: {1, func(c *call, at string, d *device) { c.statPath(at, d, c.Args[2], c.Args[3]) }},
		unix.SYS_STATX:      {1, (*call).statxPath},
		unix.SYS_FACCESSAT:  {1, func(c *call, at string, _ *device) { c.access(at, c.Args[2], 0) }},
		unix.SYS_FACCESSAT2: {1, func(c *call, at string, _ *device) { c.access(at, c.Args[2], c.Args[3]) }},
		unix.SYS_STATFS:     {0, func(c *call, at string, _ *device) { c.statfs(at, c.Args[1]) }},
		unix.SYS_GETXATTR:   {0, noAttribute},
		unix.SYS_LGETXATTR:  {0, noAttribute},
		unix.SYS_LISTXATTR:  {0, noAttributes},
		unix.SYS_LLISTXATTR: {0, noAttributes},
		unix.SYS_READLINKAT: {1, func(c *call, at string, _ *device) { c.readlink(at, c.Args[2], c.Args[3]) }},
	}
	for nr, p := range oldPathCalls {
		all[nr] = p
	}
	return all
}()

// device is a device file's numbers.
type device struct{ major, minor uint32 }

// The numbers of device files (uverbs_main.c: IB_UVERBS_MAJOR,
// IB_UVERBS_BASE_MINOR; kshim/emu gives rdma_cm its minor).
var (
	managerDevice  = &device{10, 58}
	uverbsMajor    = uint32(231)
	firstUverbs    = uint32(192)
	managerNode    = "/dev/infiniband/rdma_cm"
	uverbsNodes    = "/dev/infiniband/uverbs"
	ownDescriptors = "/proc/self/fd/"
)

// node returns the numbers of a device file, nil for other paths.
func node(name string) *device {
	if name == managerNode {
		return managerDevice
	}
	if n, ok := strings.CutPrefix(name, uverbsNodes); ok {
		if i, err := strconv.ParseUint(n, 10, 8); err == nil && strconv.FormatUint(i, 10) == n {
			return &device{uverbsMajor, firstUverbs + uint32(i)}
		}
	}
	return nil
}

// path answers a call that names a path, or leaves it to Linux.
func (c *call) path(p pathCall) {
	if byDescriptor(c) {
		c.stat()
		return
	}
	name := c.text(c.Args[p.path])
	switch {
	case isReadlink(int(c.NR)) && strings.HasPrefix(name, ownDescriptors):
		c.readlinkOwn(strings.TrimPrefix(name, ownDescriptors), p)
	case len(name) > 4 && (name[:5] == "/sys/" || name[:5] == "/dev/") && ours(path.Clean(name)):
		go c.planted(p, path.Clean(name)) // it may read a device
	default:
		c.pass()
	}
}

// text reads the path at addr, up to the end of the pages that have it: "" if
// it cannot be read.
func (c *call) text(addr uint64) string {
	var name string
	err := c.process.access(func(m *far.Memory) (err error) {
		name, err = m.ReadString(addr, unix.PathMax)
		return err
	})
	if err != nil {
		return ""
	}
	return name
}

// ours reports whether a clean path is one of RDMA's, or lists such.
func ours(name string) bool {
	for _, dir := range [...]string{"/dev/infiniband", "/sys/class/misc/rdma_cm", "/sys/class/infiniband", "/sys/class/infiniband_verbs"} {
		if rest, ok := strings.CutPrefix(name, dir); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return name == "/sys/class" || name == "/sys/class/misc"
}

// planted answers for a path of RDMA.
func (c *call) planted(p pathCall, name string) {
	d := node(name)
	c.opens = name
	at, err := c.process.kernel.plant(name)
	if err != nil {
		c.fail(err)
		return
	}
	p.do(c, at, d)
}

// plant makes a path anew in the tree.
func (k *Kernel) plant(name string) (string, error) {
	if d := k.config.Devices; d != nil {
		d.RLock()
		defer d.RUnlock()
	}
	return k.tree.Plant(name)
}

// open opens a device file in the mini kernel, and anything else in the tree.
func (c *call) open(at string, d *device, flags uint64) {
	c.flags = int(flags) & (unix.O_CLOEXEC | unix.O_NONBLOCK)
	if d != nil && flags&unix.O_PATH == 0 {
		c.openDevice()
		return
	}
	const same = unix.O_ACCMODE | unix.O_DIRECTORY | unix.O_PATH | unix.O_NOFOLLOW | unix.O_NONBLOCK
	fd, err := unix.Open(at, int(flags)&same|unix.O_CLOEXEC, 0)
	if err != nil {
		c.fail(err)
		return
	}
	defer unix.Close(fd)
	c.finish(c.put(fd, -1))
}

func (c *call) openHow(at string, d *device) {
	var how [8]byte
	if err := c.process.read(how[:], c.Args[2]); err != nil {
		c.fail(err)
		return
	}
	c.open(at, d, binary.NativeEndian.Uint64(how[:]))
}

func (c *call) openDevice() {
	c.settle(nil)
	if d := c.process.kernel.config.Devices; d != nil {
		if err := d.Bind(); err != nil {
			c.fail(err)
			return
		}
	}
	g, err := c.process.become()
	if err != nil {
		c.fail(err)
		return
	}
	var fd int
	err = g.do(c, func() error {
		f, err := g.traced.Open(c.opens)
		if err != nil {
			return err
		}
		fd = f.(interface{ FD() int }).FD()
		return nil
	})
	c.finish(fd, err)
}

// statPath writes struct stat of a path.
func (c *call) statPath(at string, d *device, to, flags uint64) {
	var st unix.Stat_t
	if err := unix.Fstatat(unix.AT_FDCWD, at, &st, int(flags)&unix.AT_SYMLINK_NOFOLLOW); err != nil {
		c.fail(err)
		return
	}
	c.putStat(&st, d, to)
}

func (c *call) putStat(st *unix.Stat_t, d *device, to uint64) {
	if d != nil {
		st.Mode, st.Rdev, st.Size = unix.S_IFCHR|0o666, unix.Mkdev(d.major, d.minor), 0
	}
	c.finish(0, c.process.write(to, bytesOf(st)))
}

func (c *call) statxPath(at string, d *device) {
	var st unix.Statx_t
	flags := int(c.Args[2]) &^ unix.AT_EMPTY_PATH
	if err := unix.Statx(unix.AT_FDCWD, at, flags, int(c.Args[3]), &st); err != nil {
		c.fail(err)
		return
	}
	c.putStatx(&st, d)
}

func (c *call) putStatx(st *unix.Statx_t, d *device) {
	if d != nil {
		st.Mode, st.Rdev_major, st.Rdev_minor, st.Size = unix.S_IFCHR|0o666, d.major, d.minor, 0
	}
	c.finish(0, c.process.write(c.Args[4], bytesOf(st)))
}

func (c *call) access(at string, mode, flags uint64) {
	c.finish(0, unix.Faccessat(unix.AT_FDCWD, at, uint32(mode), int(flags)&unix.AT_EACCESS))
}

// statfs writes what sysfs and devtmpfs say of themselves.
func (c *call) statfs(at string, to uint64) {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		c.fail(err)
		return
	}
	st.Type = unix.TMPFS_MAGIC
	if strings.HasPrefix(c.opens, "/sys/") {
		st.Type = unix.SYSFS_MAGIC
	}
	c.finish(0, c.process.write(to, bytesOf(&st)))
}

// RDMA's files have no extended attributes.

func noAttribute(c *call, at string, _ *device) {
	c.finish(0, cmp.Or(unix.Access(at, unix.F_OK), error(unix.ENODATA)))
}

func noAttributes(c *call, at string, _ *device) { c.finish(0, unix.Access(at, unix.F_OK)) }

func (c *call) readlink(at string, to, size uint64) {
	buf := make([]byte, min(size, unix.PathMax))
	if len(buf) == 0 {
		c.fail(syscall.EINVAL)
		return
	}
	n, err := unix.Readlink(at, buf)
	if err == nil {
		err = c.process.write(to, buf[:n])
	}
	c.finish(n, err)
}

// readlinkOwn answers for a file of RDMA what Linux has for it, and leaves
// other descriptors to Linux.
func (c *call) readlinkOwn(number string, p pathCall) {
	fd, err := strconv.ParseInt(number, 10, 32)
	var f *file
	if err == nil {
		f = c.file(int32(fd))
	}
	if f == nil {
		c.pass()
		return
	}
	name := f.path
	if name[0] != '/' {
		name = "anon_inode:" + name
	}
	to, size := c.Args[p.path+1], c.Args[p.path+2]
	b := []byte(name)[:min(size, uint64(len(name)))]
	c.finish(len(b), c.process.write(to, b))
}

// byDescriptor reports whether a stat names a descriptor by AT_EMPTY_PATH.
func byDescriptor(c *call) bool {
	var flags uint64
	switch int(c.NR) {
	case unix.SYS_NEWFSTATAT:
		flags = c.Args[3]
	case unix.SYS_STATX:
		flags = c.Args[2]
	}
	return flags&unix.AT_EMPTY_PATH != 0 && c.fd() >= 0
}

// stat answers a stat of a device file that is open.
func (c *call) stat() {
	f := c.file(c.fd())
	if f == nil || node(f.path) == nil {
		c.pass()
		return
	}
	d := node(f.path)
	if int(c.NR) == unix.SYS_STATX {
		c.putStatx(&unix.Statx_t{Mask: unix.STATX_BASIC_STATS, Blksize: 4096, Nlink: 1, Ino: f.id.ino}, d)
		return
	}
	to := c.Args[1]
	if int(c.NR) == unix.SYS_NEWFSTATAT {
		to = c.Args[2]
	}
	c.putStat(&unix.Stat_t{Dev: f.id.dev, Ino: f.id.ino, Nlink: 1, Blksize: 4096}, d, to)
}

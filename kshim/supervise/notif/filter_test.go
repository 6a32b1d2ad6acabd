//go:build linux && (amd64 || arm64)

package notif

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// vm interprets a filter.
type vm struct {
	*bpf.VM
	t *testing.T
}

func newVM(t *testing.T, filter []unix.SockFilter) vm {
	var raw []bpf.RawInstruction
	for _, f := range filter {
		raw = append(raw, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K})
	}
	program, all := bpf.Disassemble(raw)
	require.True(t, all)
	return vm{must.Get(bpf.NewVM(program))(t), t}
}

// holds reports whether a call is held. The interpreter reads packets, which
// are big-endian; the low half of an argument stands first, as in Linux on
// these processors. The high half, which Linux ignores, is noise.
func (v vm) holds(arch, nr uint32, args ...uint32) bool {
	data := binary.BigEndian.AppendUint32(nil, nr)
	data = binary.BigEndian.AppendUint32(data, arch)
	data = binary.BigEndian.AppendUint64(data, 0x7fff_0000_1234)
	for i := range 6 {
		low := uint32(0)
		if i < len(args) {
			low = args[i]
		}
		data = binary.BigEndian.AppendUint32(data, low)
		data = binary.BigEndian.AppendUint32(data, 0xdeadbeef)
	}
	action, err := v.Run(data)
	if err != nil || action != unix.SECCOMP_RET_ALLOW && action != unix.SECCOMP_RET_USER_NOTIF {
		v.t.Fatalf("call %d: action %#x, %v", nr, action, err)
	}
	return action == unix.SECCOMP_RET_USER_NOTIF
}

// must holds that a call is held, or is not.
func (v vm) must(held bool, arch, nr uint32, args ...uint32) {
	if v.holds(arch, nr, args...) != held {
		v.t.Errorf("call %d of architecture %#x with %#x: held is %t", nr, arch, args, !held)
	}
}

const fdcwd = 0xffffff9c // AT_FDCWD

// numbers are those at the edges of a window, with whether they are in it.
func numbers(w Window) map[uint32]bool {
	return map[uint32]bool{
		0: false, 2: false, uint32(w.Low) - 1: false, uint32(w.Low): true, uint32(w.Low) + 1: true, uint32(w.High) - 1: true,
		uint32(w.High): false, uint32(w.High) + 1: false, 1 << 20: false, 1<<31 - 1: false, 1 << 31: false, 1<<32 - 1: false, fdcwd: false,
	}
}

// TestFilter: of all calls with arguments at the edges, those of the design's
// table are held, and no other.
func TestFilter(t *testing.T) {
	always := []uint32{unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT,
		unix.SYS_STATFS, unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_EXECVE, unix.SYS_EXECVEAT}
	if runtime.GOARCH == "amd64" {
		always = append(always, 2, 4, 6, 21, 89) // open, stat, lstat, access, readlink
	}
	window := []uint32{unix.SYS_FSTAT, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_SENDTO, unix.SYS_SENDMSG}
	for _, w := range []Window{{960, 1024}, {1, 2}} {
		v := newVM(t, Filter(w))
		for nr := range uint32(500) {
			for fd, within := range numbers(w) {
				switch {
				case slices.Contains(always, nr):
					v.must(true, arch, nr, fd)
				case slices.Contains(window, nr):
					v.must(within, arch, nr, fd)
				case nr == unix.SYS_NEWFSTATAT || nr == unix.SYS_STATX: // dirfd, path, (statbuf,) flags
					with, without := []uint32{fd, 1, unix.AT_EMPTY_PATH | unix.AT_NO_AUTOMOUNT}, []uint32{fd, 1, unix.AT_SYMLINK_NOFOLLOW}
					if nr == unix.SYS_NEWFSTATAT {
						with, without = slices.Insert(with, 2, 0), slices.Insert(without, 2, unix.AT_EMPTY_PATH)
					}
					v.must(true, arch, nr, without...)
					v.must(within || fd == fdcwd, arch, nr, with...)
				case nr == unix.SYS_IOCTL:
					v.must(true, arch, nr, fd, abi.RDMAVerbsIoctl)
					v.must(false, arch, nr, fd, unix.TCGETS)
					v.must(false, arch, nr, abi.RDMAVerbsIoctl)
				case nr == unix.SYS_SOCKET:
					v.must(true, arch, nr, unix.AF_NETLINK, fd, unix.NETLINK_RDMA)
					v.must(false, arch, nr, unix.AF_NETLINK, fd, unix.NETLINK_ROUTE)
					v.must(false, arch, nr, unix.AF_INET, fd, unix.NETLINK_RDMA)
				default:
					v.must(false, arch, nr, fd, fd, fd, fd)
				}
				for _, foreign := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_X86_64 ^ unix.AUDIT_ARCH_AARCH64 ^ arch} {
					v.must(false, foreign, nr, fd, abi.RDMAVerbsIoctl)
				}
				v.must(false, arch, nr|1<<30, fd, abi.RDMAVerbsIoctl)
			}
		}
	}
}

// TestTableNamesEachCallOnce: a second row of a call would never be asked.
func TestTableNamesEachCallOnce(t *testing.T) {
	rows := map[uint32]bool{}
	for _, c := range calls {
		rows[c.nr] = true
	}
	require.Len(t, calls, len(rows))
}

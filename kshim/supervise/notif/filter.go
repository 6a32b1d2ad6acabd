//go:build linux && (amd64 || arm64)

package notif

import "golang.org/x/sys/unix"

// Window is the range of numbers, Low included and High not, of the descriptors
// whose calls are held. A filter sees numbers, not files: what else has a
// number of the window must be continued.
type Window struct{ Low, High int }

// Filter returns the BPF program that holds the calls of the table. It reads
// struct seccomp_data: the number at 0, the architecture at 4, the arguments
// from 16, each of 8 bytes. Numbers, descriptors, requests and flags are 32
// bits wide in Linux as well, the first four bytes of an argument.
//
// A call of another architecture is allowed. So is one of x32: bit 30 is part
// of its number, which no row has.
func Filter(w Window) []unix.SockFilter {
	p := []unix.SockFilter{load(4), when(unix.BPF_JEQ, arch, 1), allow, load(0)}
	for _, c := range calls {
		at := len(p)
		p = c.held(append(p, unix.SockFilter{}), w)
		p[at] = unless(unix.BPF_JEQ, c.nr, uint8(len(p)-at-1))
	}
	return append(p, allow)
}

var (
	allow = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	hold  = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func loadArg(i int) unix.SockFilter { return load(16 + 8*uint32(i)) }

// when skips instructions if what was loaded compares so with k.
func when(op uint16, k uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: skip, K: k}
}

// unless skips instructions if it does not.
func unless(op uint16, k uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jf: skip, K: k}
}

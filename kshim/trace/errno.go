package trace

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// errnoNames are the numbers that RDMA kernels answer, and the common ones.
var errnoNames = map[syscall.Errno]string{
	syscall.E2BIG: "E2BIG", syscall.EACCES: "EACCES", syscall.EADDRINUSE: "EADDRINUSE", syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL",
	syscall.EAFNOSUPPORT: "EAFNOSUPPORT", syscall.EAGAIN: "EAGAIN", syscall.EALREADY: "EALREADY", syscall.EBADF: "EBADF",
	syscall.EBUSY: "EBUSY", syscall.ECANCELED: "ECANCELED", syscall.ECONNREFUSED: "ECONNREFUSED", syscall.ECONNRESET: "ECONNRESET",
	syscall.EEXIST: "EEXIST", syscall.EFAULT: "EFAULT", syscall.EFBIG: "EFBIG", syscall.EHOSTUNREACH: "EHOSTUNREACH",
	syscall.EINPROGRESS: "EINPROGRESS", syscall.EINTR: "EINTR", syscall.EINVAL: "EINVAL", syscall.EIO: "EIO", syscall.EISCONN: "EISCONN",
	syscall.EISDIR: "EISDIR", syscall.EMFILE: "EMFILE", syscall.EMSGSIZE: "EMSGSIZE", syscall.ENETDOWN: "ENETDOWN",
	syscall.ENETUNREACH: "ENETUNREACH", syscall.ENFILE: "ENFILE", syscall.ENODEV: "ENODEV", syscall.ENOENT: "ENOENT",
	syscall.ENOMEM: "ENOMEM", syscall.ENOSPC: "ENOSPC", syscall.ENOSYS: "ENOSYS", syscall.ENOTCONN: "ENOTCONN",
	syscall.ENOTDIR: "ENOTDIR", syscall.ENOTTY: "ENOTTY", syscall.ENXIO: "ENXIO", syscall.EOPNOTSUPP: "EOPNOTSUPP",
	syscall.EOVERFLOW: "EOVERFLOW", syscall.EPERM: "EPERM", syscall.EPIPE: "EPIPE", syscall.EPROTO: "EPROTO",
	syscall.EPROTONOSUPPORT: "EPROTONOSUPPORT", syscall.ERANGE: "ERANGE", syscall.EROFS: "EROFS", syscall.ESRCH: "ESRCH",
	syscall.ETIMEDOUT: "ETIMEDOUT", syscall.EXDEV: "EXDEV", abi.ENODATA: "ENODATA",
}

// Errno returns the number of a name, 0 if it is none that a trace shows.
func Errno(name string) syscall.Errno {
	for n, have := range errnoNames {
		if have == name {
			return n
		}
	}
	return 0
}

// appendError shows a call's error as strace does: -1, the number's name and
// its text; and what the error says beyond that. path is the file's.
func appendError(b []byte, err error, path string) []byte {
	var errno syscall.Errno
	switch {
	case errors.Is(err, io.EOF):
		return append(b, '0')
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return append(append(b, "? ("...), err.Error()+")"...)
	case !errors.As(err, &errno):
		return append(append(b, "-1 "...), err.Error()...)
	}
	name, ok := errnoNames[errno]
	if !ok {
		name = "errno " + strconv.Itoa(int(errno))
	}
	text := errno.Error()
	b = append(append(append(b, "-1 "...), name...), " ("...)
	if text != "" {
		b = append(append(b, strings.ToUpper(text[:1])...), text[1:]...)
	}
	b = append(b, ')')
	if why := explanation(err, text, path); why != "" {
		b = append(append(b, ": "...), oneLine(why)...)
	}
	return b
}

// explanation returns an error's text without the call, the file and the
// number.
func explanation(err error, errno, path string) string {
	var bare interface {
		error
		Reason() error
	}
	if errors.As(err, &bare) {
		err = bare.Reason()
	}
	text := err.Error()
	if _, after, ok := strings.Cut(text, path+": "); ok && path != "" {
		text = after
	}
	text = strings.TrimSuffix(text, errno)
	text = strings.TrimPrefix(text, errno)
	return strings.Trim(text, ": ()")
}

// oneLine keeps a text that comes from elsewhere on the line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

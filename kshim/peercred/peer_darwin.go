package peercred

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Of returns the user at the other end (unix(4), LOCAL_PEERCRED), and 0 for the
// process, which is not told.
func Of(c *net.UnixConn) (pid, uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	var cred *unix.Xucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return 0, -1, err
	}
	return 0, int(cred.Uid), nil
}

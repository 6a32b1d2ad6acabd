package peercred

import (
	"errors"
	"net"
	"syscall"
)

// Of returns the process and the user at the other end (unix(7), SO_PEERCRED).
func Of(c *net.UnixConn) (pid, uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return 0, -1, err
	}
	return int(cred.Pid), int(cred.Uid), nil
}

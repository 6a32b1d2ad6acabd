//go:build unix

package vm

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// socketPair returns two ends of a stream: ours, and one to inherit.
func socketPair() (net.Conn, *os.File, error) {
	ours, theirs, err := filePair()
	if err != nil {
		return nil, nil, err
	}
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// filePair returns two ends of a stream, neither of which a child inherits
// unless it is told to.
func filePair() (*os.File, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "socketpair"), os.NewFile(uintptr(fds[1]), "socketpair"), nil
}

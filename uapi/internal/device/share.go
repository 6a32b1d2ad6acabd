package device

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Several processes of a user share the UDP port 4791 of an address, as far as
// connecting is concerned. The first process has it: its device is the owner.
// Another process that wants to be found there opens its device beside, on the
// same address and another UDP port, and registers each service that it listens
// for with the owner's port mapper (an abstract UNIX socket, by which the
// kernel tells each side the other's process and user). Requests that come to
// the owner for such a service are sent on by the connection manager's own
// redirection (cm.Manager.Redirect). All this lasts as long as the connection
// to the port mapper, so that nothing is left of a process that died; when the
// owner goes, the processes beside try to take port 4791, one of them gets it,
// and the others register their services there.

// takenError names the process that has a port of an address.
type takenError struct {
	service uint64
	pid     int
}

func (e *takenError) Error() string {
	return fmt.Sprintf("port %d is taken by %s (%v)", uint16(e.service), processCalled(e.pid), e.Unwrap())
}

func (e *takenError) Unwrap() error { return syscall.EADDRINUSE }

// processCalled names a process for an error.
func processCalled(pid int) string {
	switch comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); {
	case pid == 0:
		return "another process"
	case err != nil:
		return fmt.Sprintf("process %d", pid)
	default:
		return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(comm)))
	}
}

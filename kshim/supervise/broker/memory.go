//go:build linux && (amd64 || arm64)

package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// openMemory is Memory in the ancestor of the programs.
func openMemory(pid int) (*os.File, error) {
	dir, err := os.OpenRoot("/proc/" + strconv.Itoa(pid)) // of this process, whichever has the PID later
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for {
		parent, err := parent(func() ([]byte, error) { return dir.ReadFile("status") })
		if err != nil {
			return nil, err
		}
		switch ours, err := descends(parent); {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH): // an ancestor ended: it has others now
		case err != nil:
			return nil, err
		case !ours:
			return nil, fmt.Errorf("process %d does not descend from this one: %w", pid, syscall.EPERM)
		default:
			return dir.OpenFile("mem", os.O_RDWR, 0)
		}
	}
}

// descends reports whether a process is this one or descends from it.
func descends(pid int) (bool, error) {
	for pid != os.Getpid() {
		if pid <= 1 {
			return false, nil
		}
		var err error
		pid, err = parent(func() ([]byte, error) { return os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) })
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// parent returns the parent's PID in /proc/PID/status, 0 for none. Linux says 0
// as well of a process that is reaped while its status is read (array.c:
// task_state): the second reading fails then.
func parent(status func() ([]byte, error)) (pid int, err error) {
	for range 2 {
		text, err := status()
		if err != nil {
			return 0, err
		}
		if pid, _ = strconv.Atoi(notif.Field(text, "PPid")); pid != 0 {
			break
		}
	}
	return pid, nil
}

// Messages on the connection with a server: the listener, as package notif
// sends it; then, as often as the server asks, a PID of 4 bytes as it is here,
// answered by an error number or 0, and the memory's descriptor. A server that
// refuses the programs asks for 0.

// lend gives a server the listener and memory until it closes the connection.
func lend(server int, l *notif.Listener, memory Memory) error {
	defer unix.Close(server)
	if err := l.Send(server); err != nil {
		return err
	}
	for {
		pid, err := receiveNumber(server)
		if err != nil {
			return err
		}
		if pid == 0 {
			return fmt.Errorf("the server does not see these programs, whose PID namespace is neither its own nor below it: %w", syscall.ESRCH)
		}
		mem, err := memory(int(pid))
		if err != nil {
			err = notif.Refuse(server, err)
		} else {
			err = sendNumber(server, 0, int(mem.Fd()))
			_ = mem.Close()
		}
		if err != nil {
			return err
		}
	}
}

// Attach is the server's side of a connection that Run has made: it returns the
// listener, and the way to memory. The server closes the socket when it stops
// answering, and not before. Memory is for any goroutine. Programs of a PID
// namespace that is not below the server's are refused: ESRCH.
func Attach(socket int) (*notif.Listener, Memory, error) {
	l, err := notif.Accept(socket)
	if err != nil {
		return nil, nil, err
	}
	peer, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	pids, err := namespaces(int(peer.Pid))
	if err != nil {
		return nil, nil, errors.Join(err, sendNumber(socket, 0), l.Close())
	}
	depth := len(pids)
	var mu sync.Mutex // a request and its answer follow one another
	return l, func(pid int) (*os.File, error) {
		pids, err := namespaces(pid)
		if err != nil || len(pids) < depth {
			return nil, errors.Join(err, syscall.ESRCH)
		}
		mu.Lock()
		defer mu.Unlock()
		if err := sendNumber(socket, uint32(pids[depth-1])); err != nil {
			return nil, err
		}
		return receiveMemory(socket, pid)
	}, nil
}

// namespaces returns a process's PIDs: here, in the PID namespace below, and so
// on to its own (NSpid in proc_pid_status(5)).
func namespaces(pid int) (pids []int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for _, word := range strings.Fields(notif.Field(status, "NSpid")) {
		n, _ := strconv.Atoi(word)
		pids = append(pids, n)
	}
	if err == nil && len(pids) == 0 {
		err = syscall.ESRCH
	}
	return pids, err
}

func receiveMemory(socket, pid int) (*os.File, error) {
	var status [4]byte
	_, fds, err := notif.Receive(socket, status[:])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if errno := syscall.Errno(binary.NativeEndian.Uint32(status[:])); err == nil && errno != 0 {
		err = errno
	}
	if err == nil && len(fds) != 1 {
		err = syscall.EPROTO
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return os.NewFile(uintptr(fds[0]), fmt.Sprintf("/proc/%d/mem", pid)), nil
}

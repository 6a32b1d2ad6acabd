//go:build linux && (amd64 || arm64)

package broker

import (
	"bytes"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// keeper is the second process, the program's parent.
type keeper struct {
	command  int // the socket to the command
	pid      int // of the command
	pidfd    int // of the command
	program  int // the program's pidfd, for it may be another's PID when it has ended
	child    int // the program's PID
	listener *notif.Listener
	witness  *witness
	served   chan struct{} // closed when the kernel and what replaces it have ended
}

// keep runs the keeper and returns its exit status.
func keep(c Config, r role) int {
	k := &keeper{command: r.socket, pid: os.Getppid(), witness: newWitness(), served: make(chan struct{})}
	if err := k.start(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", c.Args[0], err)
		return 1
	}
	go k.serve(c, r.server)
	go k.forward()
	children(k.changed)
	<-k.served
	return 0
}

// start starts the program and tells the command.
func (k *keeper) start() (err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	if k.pidfd, err = unix.PidfdOpen(k.pid, 0); err != nil {
		return err
	}
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(sockets[0])
	k.child, err = start(role{name: "program", socket: sockets[1], server: -1})
	_ = unix.Close(sockets[1])
	if err != nil {
		return err
	}
	release()
	if k.program, err = unix.PidfdOpen(k.child, 0); err != nil {
		return err
	}
	if k.listener, err = notif.Accept(sockets[0]); err != nil {
		if ws := reap(k.child); ws.Signaled() {
			Status(ws).Exit()
		}
		_ = notif.Refuse(k.command, err) // the command says it
		os.Exit(1)
	}
	// From here on the program runs, and its calls wait for an answer.
	if err = k.listener.Share(); err == nil {
		err = k.listener.Send(k.command)
	}
	if err == nil {
		err = sendNumber(k.command, uint32(k.child))
	}
	if err != nil {
		k.kill(unix.SIGKILL)
	}
	return err
}

// serve has the calls answered until the last program has ended.
func (k *keeper) serve(c Config, server int) {
	defer close(k.served)
	var err error
	if server >= 0 {
		err = lend(server, k.listener, openMemory)
	} else {
		err = c.Kernel(k.listener, openMemory)
	}
	if err != nil && !k.hungUp() {
		fmt.Fprintf(os.Stderr, "%s: the kernel of its RDMA devices has ended: %v\n", c.Args[0], err)
	}
	replace(k.listener, openMemory)
}

// hungUp reports whether no program under the filter is left.
func (k *keeper) hungUp() bool {
	p := []unix.PollFd{{Fd: int32(k.listener.FD())}}
	var err error = unix.EINTR
	for err == unix.EINTR {
		_, err = unix.Poll(p, 0)
	}
	return err == nil && p[0].Revents&unix.POLLHUP != 0
}

// forward sends the command's signals to the program, but for those that it has
// got itself, and kills the program when the command has been killed.
func (k *keeper) forward() {
	for {
		var s [1]byte
		if _, _, err := notif.Receive(k.command, s[:]); err != nil {
			k.kill(unix.SIGKILL)
			return
		}
		if sig := syscall.Signal(s[0]); sig > 0 && sig <= 64 && !k.witness.take(sig) {
			k.kill(sig)
		}
		_ = notif.Send(k.command, s[:])
	}
}

func (k *keeper) kill(s syscall.Signal) { _ = unix.PidfdSendSignal(k.program, s, nil, 0) }

// changed makes the command what the program has become.
func (k *keeper) changed(pid int, ws unix.WaitStatus) {
	switch {
	case pid != k.child:
	case ws.Stopped():
		_ = unix.PidfdSendSignal(k.pidfd, unix.SIGSTOP, nil, 0)
	case ws.Continued():
		k.wake()
	default:
		k.ended(ws)
	}
}

// wake continues the command, which a shell may have done already.
func (k *keeper) wake() {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.pid))
	if err == nil && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
		_ = unix.PidfdSendSignal(k.pidfd, unix.SIGCONT, nil, 0)
	}
}

// ended tells the command the program's status: at once when other processes
// live under the filter, which are served further, else after the kernel's end.
func (k *keeper) ended(ws unix.WaitStatus) {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid == 0 {
			break
		}
	}
	if k.hungUp() {
		<-k.served
	}
	k.wake()
	_ = sendNumber(k.command, uint32(ws))
	silence(1, 2)
}

//go:build linux && (amd64 || arm64)

package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// Messages between the command and the keeper, each in one packet: the keeper's
// listener, as package notif sends it, the program's PID and its wait status,
// of 4 bytes; the command's signals, of 1 byte, and the keeper's answer to
// each.

// command is the first process.
func command(c Config) (Status, error) {
	r := role{name: "keeper", server: -1}
	switch {
	case len(c.Args) == 0 || (c.Kernel == nil) == (c.Server == ""):
		return 0, fmt.Errorf("running a program: it needs a name, and either a kernel or a server: %w", syscall.EINVAL)
	case c.Server != "":
		var err error
		if r.server, err = dial(c.Server); err != nil {
			return 0, err
		}
		defer unix.Close(r.server)
	}
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	keeper := sockets[0]
	defer unix.Close(keeper)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	signals := catch()
	defer signal.Stop(signals)
	r.socket = sockets[1]
	pid, err := start(r)
	_ = unix.Close(r.socket)
	if err != nil {
		return 0, err
	}
	release()
	l, program, err := greet(keeper)
	if err != nil {
		if ws := reap(pid); ws.Signaled() { // the group's, before it could catch it
			return Status(ws), nil
		}
		return 0, err
	}
	defer l.Close()

	said := make(chan message)
	go listen(keeper, said)
	var unanswered []os.Signal
	for {
		select {
		case s := <-signals:
			unanswered = append(unanswered, s)
			_ = notif.Send(keeper, []byte{byte(s.(syscall.Signal))})
		case m, ok := <-said:
			switch {
			case !ok:
				return takeOver(l, program, unanswered, signals)
			case m.ended:
				return m.status, nil
			case len(unanswered) > 0:
				unanswered = unanswered[1:]
			}
		}
	}
}

// message is the program's status, or else says that a signal was sent on.
type message struct {
	status Status
	ended  bool
}

// listen tells what the keeper says until it has ended, or the program.
func listen(keeper int, said chan<- message) {
	defer close(said)
	for {
		var b [4]byte
		n, _, err := notif.Receive(keeper, b[:])
		if err != nil {
			return
		}
		m := message{Status(binary.NativeEndian.Uint32(b[:])), n == len(b)}
		said <- m
		if m.ended {
			return
		}
	}
}

// dial connects to a server of this user: it gets the program's memory.
func dial(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	if err == nil {
		var peer *unix.Ucred
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil && int(peer.Uid) != os.Geteuid() {
			err = fmt.Errorf("it is of user %d, and this is %d: %w", peer.Uid, os.Geteuid(), syscall.EACCES)
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("no kernel of this user serves at %[1]s, start one by rdmashim kernel serve %[1]s: %[2]w", path, err)
	}
	return fd, nil
}

// greet receives what the keeper says once the program is under the filter.
func greet(keeper int) (*notif.Listener, int, error) {
	l, err := notif.Accept(keeper)
	if err != nil {
		return nil, 0, fmt.Errorf("starting the program: %w", err)
	}
	pid, err := receiveNumber(keeper)
	if err != nil {
		_ = l.Close()
		return nil, 0, err
	}
	return l, int(pid), nil
}

// takeOver is the command without its keeper, which has been killed or has
// crashed: the program is its child now. It ends when no process is left under
// the filter.
func takeOver(l *notif.Listener, program int, unanswered []os.Signal, signals <-chan os.Signal) (Status, error) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		replace(l, openMemory)
	}()
	ended := make(chan Status)
	go func() {
		defer close(ended)
		children(func(pid int, ws unix.WaitStatus) {
			switch {
			case pid != program:
			case ws.Stopped():
				_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
			case !ws.Continued():
				ended <- Status(ws)
			}
		})
	}()
	for _, s := range unanswered {
		_ = unix.Kill(program, s.(syscall.Signal))
	}
	for {
		select {
		case s := <-signals:
			_ = unix.Kill(program, s.(syscall.Signal))
		case s, ok := <-ended:
			<-served
			if !ok {
				return 0, fmt.Errorf("the kernel and the program were killed: %w", syscall.EIO)
			}
			return s, nil
		}
	}
}

// children tells of each change of a child until none is left.
func children(changed func(pid int, ws unix.WaitStatus)) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WUNTRACED|unix.WCONTINUED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return
		default:
			changed(pid, ws)
		}
	}
}

// reap waits for a child that is ending.
func reap(pid int) (ws unix.WaitStatus) {
	for {
		if _, err := unix.Wait4(pid, &ws, 0, nil); !errors.Is(err, unix.EINTR) {
			return ws
		}
	}
}

func sendNumber(socket int, n uint32, fds ...int) error {
	return notif.Send(socket, binary.NativeEndian.AppendUint32(nil, n), fds...)
}

func receiveNumber(socket int) (uint32, error) {
	var b [4]byte
	n, fds, err := notif.Receive(socket, b[:])
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	if err == nil && n != len(b) {
		err = unix.EPROTO
	}
	return binary.NativeEndian.Uint32(b[:]), err
}

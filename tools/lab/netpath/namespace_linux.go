package netpath

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// entered marks a process that Enter started.
const entered = "RDMASHIM_NETPATH_ENTERED"

// Enter makes sure that this process may make network namespaces. For root it
// does nothing. For other users it runs the program again, with its arguments,
// as root of a user namespace, and exits with its status; where user namespaces
// are not allowed it returns, and New says so. It is called first in main or
// TestMain.
func Enter() {
	if os.Getuid() == 0 || os.Getenv(entered) != "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), entered+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "netpath: in a user namespace:", err)
		os.Exit(1)
	}
	os.Exit(max(cmd.ProcessState.ExitCode(), 0))
}

// Namespace is a network namespace with a thread that lives in it. A thread is
// enough: sockets and child processes belong to the namespace of the thread
// that makes them.
type Namespace struct {
	FD    int // for netlink.LinkSetNsFd and its like
	calls chan func()
	ended chan struct{}
}

// NewNamespace makes one, which lives until Close. Its error Is EPERM where
// that is not allowed.
func NewNamespace() (*Namespace, error) {
	s := &Namespace{calls: make(chan func()), ended: make(chan struct{})}
	ready := make(chan error)
	go func() {
		defer close(s.ended)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			s.FD, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		ready <- err
		for f := range s.calls {
			f()
		}
	}()
	if err := <-ready; err != nil {
		close(s.calls)
		<-s.ended
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOSPC) {
			return nil, fmt.Errorf("no network namespace to be had (%w): run as root or allow user namespaces: "+
				"sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns", err)
		}
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return s, nil
}

// Do runs f on the namespace's thread: sockets and processes that it makes
// belong there.
func (s *Namespace) Do(f func() error) error {
	done := make(chan error)
	s.calls <- func() { done <- f() }
	return <-done
}

// Take moves an interface of this process's namespace into this one, gives it
// an address with its prefix, as in 10.0.0.2/24, and brings it and lo up.
func (s *Namespace) Take(name, address string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsFd(l, s.FD); err != nil {
		return err
	}
	return s.Do(func() (err error) {
		for _, n := range []string{name, "lo"} {
			l, e := netlink.LinkByName(n)
			if e == nil {
				e = netlink.LinkSetUp(l)
			}
			if e == nil && n == name {
				e = netlink.AddrAdd(l, addr)
			}
			err = errors.Join(err, e)
		}
		return err
	})
}

// Close ends the thread. Sockets and processes keep the namespace.
func (s *Namespace) Close() {
	close(s.calls)
	<-s.ended
	unix.Close(s.FD)
}

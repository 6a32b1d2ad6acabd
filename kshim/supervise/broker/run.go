//go:build linux && (amd64 || arm64)

package broker

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// Config says which program runs, and on which kernel.
type Config struct {
	Path   string       // the program's file
	Args   []string     // its arguments, its name first
	Env    []string     // NAME=VALUE
	Window notif.Window // descriptors whose calls are held

	// Kernel answers the calls, in the keeper, until Receive returns
	// io.EOF. It makes its devices and the like itself: Run is called in
	// three processes, and calls Kernel in one.
	Kernel func(l *notif.Listener, memory Memory) error

	// Server is the path of a SOCK_SEQPACKET socket of a server that answers
	// them, instead of Kernel.
	Server string
}

// Memory opens the memory of a process, by its PID or that of a thread, for
// reading and writing: /proc/PID/mem. It ends with the process's next exec.
// Processes that do not descend from the program are refused: EPERM.
type Memory = func(pid int) (*os.File, error)

// Run runs the program and returns its status once it has ended. Errors are
// those that kept it from starting under the filter, notif.ErrBusy among them,
// and those of reaching the server. A file that cannot be executed is status
// 127 if it is not there, else 126, and said on standard error, as by a shell.
//
// The process is Run's: its signals, its children, and its descriptors above 2
// that exec would not close. A main function comes to Run with what it has read
// of its arguments, before it does or prints anything else.
func Run(c Config) (Status, error) {
	r := role{socket: -1, server: -1}
	text, others := os.LookupEnv(variable)
	if !others {
		return command(c)
	}
	os.Unsetenv(variable)
	if _, err := fmt.Sscanf(text, "%s %d %d", &r.name, &r.socket, &r.server); err != nil {
		return 0, fmt.Errorf("%s=%q is for children of this program, unset it: %w", variable, text, syscall.EINVAL)
	}
	for _, fd := range []int{r.socket, r.server} {
		if fd >= 0 {
			unix.CloseOnExec(fd)
		}
	}
	as := become
	if r.name == "keeper" {
		as = keep
	}
	os.Exit(as(c, r))
	return 0, nil
}

// role is what a process that Run has started is for.
type role struct {
	name   string
	socket int // to its parent
	server int // the connection with the server, -1 for none
}

// start executes this program once more, in a role, with the descriptors of the
// role and those that exec leaves open.
func start(r role) (pid int, err error) {
	for _, fd := range []int{r.socket, r.server} {
		if fd >= 0 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
				return 0, err
			}
			defer unix.CloseOnExec(fd)
		}
	}
	text := fmt.Sprintf("%s=%s %d %d", variable, r.name, r.socket, r.server)
	p, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(os.Environ(), text),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 0, err
	}
	pid = p.Pid // which Release forgets
	return pid, p.Release()
}

// become is the third process: it becomes the program.
func become(c Config, r role) int {
	env := slices.DeleteFunc(slices.Clone(c.Env), func(e string) bool { return strings.HasPrefix(e, variable+"=") })
	return sayExec(c.Args, notif.Exec(c.Window, r.socket, c.Path, c.Args, env))
}

// release closes the descriptors that this process has of its parent and that
// the one it has started has, too, above 2, and takes standard input from
// /dev/null.
func release() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 && fd > 2 {
			_ = unix.Close(fd)
		}
	}
	silence(0)
}

// silence makes descriptors those of /dev/null.
func silence(fds ...int) {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for _, fd := range fds {
		_ = unix.Dup3(null, fd, 0)
	}
	_ = unix.Close(null)
}

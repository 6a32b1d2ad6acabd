//go:build linux && (amd64 || arm64)

package broker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
)

// part in the environment makes the test binary a command, that runs its
// arguments, a server, or a program under a command.
const part = "RDMASHIM_TEST_PART"

// at names a server's socket, which a command connects to.
const at = "RDMASHIM_TEST_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(part) {
	case "command":
		status, err := Run(config())
		if err != nil {
			fmt.Fprintln(os.Stderr, "Run:", err)
			os.Exit(125)
		}
		status.Exit()
	case "server":
		err := answer(os.Getenv(at), os.Stdout)
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	case "program":
		programs[os.Args[1]]()
		os.Exit(0)
	}
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP) // commands do not ignore it, though these tests run under nohup
	leak.Main(m)
}

func config() Config {
	c := Config{Args: os.Args[1:], Window: notif.Window{Low: 960, High: 1024}, Server: os.Getenv(at)}
	for _, e := range os.Environ() {
		c.Env = append(c.Env, strings.Replace(e, part+"=command", part+"=program", 1))
	}
	c.Path = c.Args[0]
	if !strings.Contains(c.Path, "/") {
		c.Path = "/bin/" + c.Path
	}
	if c.Server == "" {
		c.Kernel = kernel
	}
	return c
}

// The last argument of a command is a request of the tests' kernel.
const (
	plain = iota // the answer is 42
	hold         // the kernel never answers
	crash        // its process ends
	quit         // it returns an error
	peek         // the answer is the word at the next argument
	steal        // the answer is the error of opening the memory of PID next argument
)

var errQuit = errors.New("asked to quit")

func kernel(l *notif.Listener, memory Memory) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		var n notif.Notification
		if err := l.Receive(&n); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		if n.NR != unix.SYS_IOCTL || uint32(n.Args[1]) != abi.RDMAVerbsIoctl {
			_ = l.Continue(n.ID)
			continue
		}
		switch n.Args[2] {
		case plain:
			_ = l.Value(n.ID, 42)
		case crash:
			os.Exit(9)
		case quit:
			return errQuit
		case peek, steal:
			pid := int(n.PID)
			if n.Args[2] == steal {
				pid = int(n.Args[3])
			}
			mem, err := memory(pid)
			if err != nil {
				var errno syscall.Errno
				_ = errors.As(err, &errno)
				_ = l.Fail(n.ID, errno)
				continue
			}
			var word [8]byte
			_, _ = mem.ReadAt(word[:], int64(n.Args[3]))
			_ = l.Value(n.ID, int64(binary.LittleEndian.Uint64(word[:])))
			mem.Close()
		}
	}
}

// answer serves the programs that come to a socket.
func answer(path string, ready io.Writer) error {
	s, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return err
	}
	fmt.Fprintln(ready, "ready")
	for {
		c, err := s.AcceptUnix()
		if err != nil {
			return err
		}
		go attend(c)
	}
}

// attend serves one program and returns the error of its kernel.
func attend(c *net.UnixConn) error {
	f, err := c.File()
	c.Close()
	if err != nil {
		return err
	}
	defer f.Close()
	l, memory, err := Attach(int(f.Fd()))
	if err != nil {
		return err
	}
	defer l.Close()
	return kernel(l, memory)
}

// run is a command that a test has started.
type run struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	t   *testing.T
}

// begin makes a command of arguments, an own process group, and does not start
// it; env are variables.
func begin(t *testing.T, env []string, args ...string) *run {
	t.Helper()
	if _, err := notif.Check(); err != nil {
		t.Skip("this machine does not let a test hold calls:", err)
	}
	r := &run{Cmd: exec.Command(must.Get(os.Executable())(t), args...), t: t}
	r.Env = append(append(os.Environ(), part+"=command"), env...)
	r.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return r
}

// do starts a command.
func do(t *testing.T, env []string, args ...string) *run {
	t.Helper()
	r := begin(t, env, args...)
	r.start()
	return r
}

func (r *run) start() {
	r.t.Helper()
	inR, inW := pipe(r.t)
	outR, outW := pipe(r.t)
	r.Stdin, r.Stdout, r.in, r.out = inR, outW, inW, bufio.NewReader(outR)
	stderr := must.Get(os.Create(filepath.Join(r.t.TempDir(), "stderr")))(r.t)
	r.Stderr = stderr
	require.NoError(r.t, r.Start())
	inR.Close()
	outW.Close()
	stderr.Close()
	r.t.Cleanup(func() {
		_ = unix.Kill(-r.Process.Pid, unix.SIGKILL)
		_ = r.Wait()
		inW.Close()
		outR.Close()
	})
}

// through starts the command from a shell that does something first, in a
// directory that is removed.
func (r *run) through(first string) {
	r.t.Helper()
	r.Path, r.Args = "/bin/sh", append([]string{"sh", "-c", first + `; exec "$@"`, "sh", r.Path}, r.Args[1:]...)
	r.Dir = r.t.TempDir()
	r.start()
}

func pipe(t *testing.T) (*os.File, *os.File) {
	a, b, err := os.Pipe()
	require.NoError(t, err)
	return a, b
}

// says holds that the next line of the program is this.
func (r *run) says(want string) {
	r.t.Helper()
	require.Equal(r.t, want, r.line(), r.errors())
}

// line is the next line of the program.
func (r *run) line() string {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	require.NoError(r.t, err, r.errors())
	return strings.TrimSuffix(line, "\n")
}

// errors are what the processes wrote to standard error.
func (r *run) errors() string {
	text, _ := os.ReadFile(r.Stderr.(*os.File).Name())
	return string(text)
}

// ends waits for the command and returns its wait status.
func (r *run) ends() syscall.WaitStatus {
	r.t.Helper()
	var exit *exec.ExitError
	if err := r.Wait(); err != nil && !errors.As(err, &exit) {
		require.NoError(r.t, err)
	}
	return r.ProcessState.Sys().(syscall.WaitStatus)
}

// exits holds that the command ends with an exit status.
func (r *run) exits(code int) {
	r.t.Helper()
	ws := r.ends()
	require.True(r.t, ws.Exited(), "%v", r.ProcessState)
	require.Equal(r.t, code, ws.ExitStatus(), r.errors())
}

// self is the test binary, as a program.
const self = "/proc/self/exe"

// ask asks the kernel.
func ask(fd int, what, arg uintptr) (int, error) {
	n, _, errno := syscall.Syscall6(syscall.SYS_IOCTL, uintptr(fd), abi.RDMAVerbsIoctl, what, arg, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

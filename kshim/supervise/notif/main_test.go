//go:build linux && (amd64 || arm64)

package notif

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
)

// The test binary is a program under a filter when part names one, and before
// that, when start is set, the child that becomes it.
const (
	part  = "RDMASHIM_TEST_PART"
	start = "RDMASHIM_TEST_START"
)

func TestMain(m *testing.M) {
	if as := os.Getenv(start); as != "" {
		os.Unsetenv(start)
		if as == "nobody" {
			becomeNobody()
		}
		err := Exec(Window{960, 1024}, 3, "/proc/self/exe", os.Args, os.Environ())
		os.Stderr.WriteString("Exec: " + err.Error() + "\n")
		os.Exit(126)
	}
	if name := os.Getenv(part); name != "" {
		parts[name]()
		os.Exit(0)
	}
	leak.Main(m)
}

// becomeNobody gives up root, and keeps the right to execute /proc/self/exe.
func becomeNobody() {
	err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534), unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
	if err != nil {
		panic(err)
	}
}

// program is a part that runs under a filter.
type program struct {
	*Listener
	cmd *exec.Cmd
	out *bufio.Reader
}

// run starts a part, as nobody or as the test's user.
func run(t *testing.T, name, as string) *program {
	t.Helper()
	if _, err := Check(); err != nil && !errors.Is(err, unix.EPERM) {
		t.Skip("this machine does not let a test hold calls:", err)
	}
	sockets := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(sockets[0])
	theirs := os.NewFile(uintptr(sockets[1]), "socket")
	defer theirs.Close()
	cmd := exec.Command(must.Get(os.Executable())(t))
	cmd.Env = append(os.Environ(), part+"="+name, start+"="+as)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	p := &program{cmd: cmd}
	out := must.Get(cmd.StdoutPipe())(t)
	p.out = bufio.NewReader(out)
	require.NoError(t, cmd.Start())
	theirs.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p.Listener = must.Get(Accept(sockets[0]))(t)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// line reads what the program prints.
func (p *program) line(t *testing.T) string {
	t.Helper()
	return strings.TrimSuffix(must.Get(p.out.ReadString('\n'))(t), "\n")
}

// serve answers the held commands by a function and lets all other calls
// continue, until the last program has ended. A command is an ioctl that the Go
// runtime never does.
func (p *program) serve(t *testing.T, answer func(*Notification)) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		var n Notification
		err := p.Receive(&n)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		require.EqualValues(t, arch, n.Arch)
		if n.NR == unix.SYS_IOCTL && uint32(n.Args[1]) == abi.RDMAVerbsIoctl {
			answer(&n)
			continue
		}
		if err := p.Continue(n.ID); !errors.Is(err, unix.ENOENT) {
			require.NoError(t, err)
		}
	}
}

// command is the call that tests answer.
func command(arg uintptr) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_IOCTL, 0, abi.RDMAVerbsIoctl, arg)
	return int(n), failed(n, 0, errno)
}

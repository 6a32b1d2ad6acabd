//go:build amd64 || arm64

package programs

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// server is a kernel of its own process, with one device.
type server struct {
	*process
	tool, socket, addr string
}

// serve starts one, in other namespaces if flags say so.
func serve(t *testing.T, flags uintptr) *server {
	t.Helper()
	if _, err := notif.Check(); err != nil {
		t.Skip("this machine supervises no programs: ", err)
	}
	device, addr := newDevice()
	dir := must.Get(os.MkdirTemp("", "kernel"))(t) // short, and to be entered by others
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	s := &server{tool: built.Tool(t), socket: filepath.Join(dir, "k.sock"), addr: addr}
	cmd := exec.CommandContext(t.Context(), s.tool, "kernel", "serve", "-d", device, s.socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	s.process = begin(t, cmd)
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", s.socket+".console")
		if err == nil {
			c.Close()
		}
		return err == nil
	}, patience, time.Millisecond)
	t.Cleanup(func() {
		_ = s.Process.Kill()
		_ = s.Wait()
	})
	return s
}

// command returns what runs a program on the server.
func (s *server) command(args ...string) *exec.Cmd {
	return exec.CommandContext(s.t.Context(), s.tool, append([]string{"run", "--kernel", s.socket, "--"}, args...)...)
}

// console has the server carry out lines and returns what they print.
func (s *server) console(lines string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.tool, "kernel", "--attach", s.socket, "-")
	cmd.Stdin = strings.NewReader(lines)
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	return string(out)
}

// rows are the programs of ps.
func (s *server) rows() []string {
	return strings.Split(strings.TrimSpace(s.console("ps\n")), "\n")[1:]
}

// talk is a program that says when it is ready.
type talk struct {
	*exec.Cmd
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

func (s *server) talk(args ...string) *talk {
	s.t.Helper()
	p := &talk{Cmd: s.command(args...), t: s.t}
	in := must.Get(p.StdinPipe())(s.t)
	out := must.Get(p.StdoutPipe())(s.t)
	p.in, p.out, p.Stderr = in, bufio.NewReader(out), os.Stderr
	require.NoError(s.t, p.Start())
	p.says("ready")
	return p
}

func (p *talk) says(line string) {
	p.t.Helper()
	got := must.Get(p.out.ReadString('\n'))(p.t)
	require.Equal(p.t, line+"\n", got)
}

func (p *talk) exits(code int) {
	p.t.Helper()
	_ = p.Wait()
	require.Equal(p.t, code, p.ProcessState.ExitCode())
}

// meetsGo has a program in C and one in Go meet on the server's device, at its
// one address.
func (s *server) meetsGo(flags uintptr) {
	s.t.Helper()
	port := freePort(s.t)
	run := func(args ...string) func() *process {
		return func() *process {
			cmd := s.command(args...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
			return begin(s.t, cmd)
		}
	}
	meet(s.t, nil, run("rping", "-s", "-C", "10", "-a", s.addr, "-p", port),
		run(s.tool, "ping", "client", "-d", "host:rxe0", s.addr, "--port", port, "--count", "10"))
}

// TestServe: programs of several commands meet on one device; a killed one
// leaves nothing.
func TestServe(t *testing.T) {
	needs(t, "rping")
	verbsHeader(t)
	s := serve(t, 0)
	for _, name := range []string{s.socket, s.socket + ".console"} {
		info := must.Get(os.Stat(name))(t)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	second := exec.CommandContext(t.Context(), s.tool, "kernel", "serve", s.socket)
	require.Contains(t, begin(t, second).ends(1), "serves at "+s.socket+" already")
	s.meetsGo(0)

	program := compile(t, "fatal", "-libverbs")
	for range amount.Of(5, 20) { // TestKilled of kshim/supervise kills 200
		four := []*talk{s.talk(program), s.talk(program), s.talk(program), s.talk(program)}
		rows := s.rows()
		require.Len(t, rows, 4)
		require.Contains(t, rows[0], "/dev/infiniband/uverbs0")
		for i, p := range four {
			require.NoError(t, p.Process.Kill())
			_ = p.Wait()
			require.Eventually(t, func() bool { return len(s.rows()) == 3-i }, patience, time.Millisecond)
		}
	}
}

// TestServeDeviceEnds: a device that a console takes away ends for programs as
// a card that is pulled out. A module that they use stays, as in Linux.
func TestServeDeviceEnds(t *testing.T) {
	needs(t)
	verbsHeader(t)
	program := compile(t, "fatal", "-libverbs")
	s := serve(t, 0)
	one, two := s.talk(program), s.talk(program)
	require.Contains(t, s.console("! rmmod soft\nunregister rxe0\n"), "EBUSY")
	for _, p := range []*talk{one, two} {
		p.says("the device has ended")
		p.exits(4)
	}
	s.console("rmmod soft\n")
}

// TestServerKilled: commands are EIO, ordinary calls go on, and the next server
// takes the socket.
func TestServerKilled(t *testing.T) {
	needs(t)
	verbsHeader(t)
	s := serve(t, 0)
	p := s.talk(compile(t, "orphan", "-libverbs"))
	require.NoError(t, s.Process.Kill())
	_ = s.Wait()
	require.NoError(t, p.in.Close())
	p.says("EIO")
	p.exits(6)
	next := begin(t, exec.CommandContext(t.Context(), s.tool, "kernel", "serve", "-d", "soft:"+s.addr, s.socket))
	require.Eventually(t, func() bool { return s.command("test", "-d", "/sys/class/infiniband/rxe0").Run() == nil }, patience, time.Millisecond)
	require.NoError(t, next.Process.Signal(syscall.SIGTERM))
	next.ends(0)
	require.NoFileExists(t, s.socket)
}

// TestServeContainers: what containers are made of. Programs in network, mount
// and PID namespaces of their own meet on the server's device. Those whose PIDs
// it does not see have no device, are told so once, and run.
func TestServeContainers(t *testing.T) {
	needs(t, "rping")
	const apart = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	netns.Needs(t, apart|syscall.CLONE_NEWPID)
	s := serve(t, 0)
	s.meetsGo(apart)
	below := s.command("ibv_devinfo")
	below.Path, below.Args = "/usr/bin/unshare", append([]string{"unshare", "-n", "-m", "-p", "-f", "--mount-proc"}, below.Args...)
	require.Contains(t, begin(t, below).ends(0), "hca_id:\trxe0")

	s = serve(t, syscall.CLONE_NEWPID)
	beside := s.command("sh", "-c", "test -e /dev/infiniband/uverbs0 || cat /etc/passwd; exit 3")
	said := begin(t, beside).ends(3)
	require.Contains(t, said, "root:")
	require.Equal(t, 1, strings.Count(said, "PID namespace"), said)
}

// TestServeUsers: another user's programs are not served, nor lent to it.
func TestServeUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has another user at hand: run as root")
	}
	s := serve(t, 0)
	require.NoError(t, os.Chmod(s.socket, 0o666))
	require.NoError(t, os.Chmod(s.socket+".console", 0o666))
	tool := filepath.Join(filepath.Dir(s.socket), "rdmashim") // to be executed by others
	text := must.Get(os.ReadFile(s.tool))(t)
	require.NoError(t, os.WriteFile(tool, text, 0o755))
	as := func(args ...string) *process {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = "/"
		cmd.Stdin = strings.NewReader("lsmod\n")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
		return begin(t, cmd)
	}
	require.Contains(t, as("run", "--kernel", s.socket, "--", "true").ends(1), "permission denied")
	require.Contains(t, as("kernel", "--attach", s.socket, "-").ends(1), "another user's")
}

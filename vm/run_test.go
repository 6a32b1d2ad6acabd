//go:build unix

package vm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// runFake runs a command of the fake guest.
func runFake(t *testing.T, c Config, args ...string) (r *Result, stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	c.Command.Args, c.Command.Stdout, c.Command.Stderr = args, &out, &errs
	r, err = Run(t.Context(), c)
	return r, out.String(), errs.String(), err
}

func TestRun(t *testing.T) {
	c := fakeConfig(t, "ok")
	r, stdout, stderr, err := runFake(t, c, "echo", "hello", "world")
	require.NoError(t, err)
	require.Equal(t, "hello world\n", stdout)
	require.Empty(t, stderr)
	require.Len(t, r.Nodes, 1)
	require.Equal(t, NodeResult{Link: "rxe0", Steps: []string{"fake"}}, r.Nodes[0])
	require.Equal(t, "tcg", r.Accel)
	image := must.Get(os.ReadFile(c.Image))(t)
	require.Equal(t, sum(image), r.Image.SHA256)
	require.Positive(t, r.Boot)
	require.GreaterOrEqual(t, r.Total, r.Boot)
	require.Empty(t, logsLeft(t), "the log of a good run is not kept")

	_, stdout, stderr, err = runFake(t, c, "err", "oh")
	require.NoError(t, err)
	require.Equal(t, "oh\n", stderr)
	require.Empty(t, stdout)
}

func logsLeft(t *testing.T) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(os.TempDir(), "rdmashim-vm-*.log")))(t)
}

func TestRunStatus(t *testing.T) {
	c := fakeConfig(t, "ok")
	var exit *ExitError
	r, _, _, err := runFake(t, c, "exit", "7")
	require.ErrorAs(t, err, &exit)
	require.Equal(t, ExitError{Code: 7}, *exit)
	require.Equal(t, 7, exit.Status())
	require.Equal(t, 7, r.Nodes[0].Status)
	require.Empty(t, logsLeft(t), "a command's status is no failure of the guest")

	r, _, _, err = runFake(t, c, "signal", "9")
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGKILL, exit.Signal)
	require.Equal(t, 137, exit.Status())
	require.Equal(t, 137, r.Nodes[0].Status)

	var command *CommandError
	r, _, _, err = runFake(t, c, "frobnicate")
	require.ErrorAs(t, err, &command)
	require.True(t, command.NotFound)
	require.Equal(t, -1, r.Nodes[0].Status)
	require.Empty(t, logsLeft(t))
}

func TestRunInput(t *testing.T) {
	c := fakeConfig(t, "ok")
	text := strings.Repeat("0123456789abcdef", 20000) // many frames
	c.Command.Stdin = strings.NewReader(text)
	_, stdout, _, err := runFake(t, c, "cat")
	require.NoError(t, err)
	require.Equal(t, text, stdout)
}

func TestRunFiles(t *testing.T) {
	c := fakeConfig(t, "ok")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o644))
	c.Add = []Add{{filepath.Join(dir, "f"), "/etc/f"}, {dir, "/tree"}}
	c.Out = filepath.Join(dir, "out")
	_, stdout, _, err := runFake(t, c, "file", "/etc/f")
	require.NoError(t, err)
	require.Equal(t, "content", stdout)
	got := must.Get(os.ReadFile(filepath.Join(c.Out, "sub/b")))(t)
	require.Equal(t, "sub/b of node 0", string(got))

	c.Add = []Add{{filepath.Join(dir, "none"), ""}}
	_, _, _, err = runFake(t, c, "file", "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestRunFilesNowhere: nothing boots for files that cannot be brought back.
func TestRunFilesNowhere(t *testing.T) {
	c := fakeConfig(t, "ok")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	c.Out = filepath.Join(file, "out")
	booted := false
	c.Log = func(format string, args ...any) {
		booted = booted || strings.Contains(fmt.Sprintf(format, args...), "booting")
	}
	_, _, _, err := runFake(t, c, "exit", "0")
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.False(t, booted)
}

// TestRunFilesAfterFailure: a failing command's files are wanted most.
func TestRunFilesAfterFailure(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.Out = filepath.Join(t.TempDir(), "out")
	_, _, _, err := runFake(t, c, "exit", "1")
	require.ErrorAs(t, err, new(*ExitError))
	require.FileExists(t, filepath.Join(c.Out, "a"))

	_, _, _, err = runFake(t, c, "die")
	require.ErrorAs(t, err, new(*DiedError))
	require.Equal(t, 1, strings.Count(err.Error(), "ended while"), "told once: %v", err)
}

func TestRunEnvironment(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.Env = []string{"A=1"}
	c.Command.Env = []string{"B=2"}
	_, a, _, err := runFake(t, c, "env", "A")
	require.NoError(t, err)
	_, b, _, err := runFake(t, c, "env", "B")
	require.NoError(t, err)
	_, peer, _, err := runFake(t, c, "env", "RDMASHIM_PEER")
	require.NoError(t, err)
	require.Equal(t, []string{"A=1\n", "B=2\n", ""}, []string{a, b, peer})
}

func TestRunTwoNodes(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.Nodes = 2
	c.Out = filepath.Join(t.TempDir(), "out")
	r, stdout, _, err := runFake(t, c, "env", "RDMASHIM_PEER")
	require.NoError(t, err)
	require.Len(t, r.Nodes, 2)
	require.ElementsMatch(t, []string{"node0: RDMASHIM_PEER=10.77.0.2", "node1: RDMASHIM_PEER=10.77.0.1"}, strings.Split(strings.TrimSpace(stdout), "\n"))
	got := must.Get(os.ReadFile(filepath.Join(c.Out, "node1", "a")))(t)
	require.Equal(t, "a of node 1", string(got))

	var exit *ExitError
	r, _, _, err = runFake(t, c, "exitnode")
	require.ErrorAs(t, err, &exit, "0 only if both are")
	require.Equal(t, ExitError{Node: 1, Code: 1}, *exit)
	require.Equal(t, []int{0, 1}, []int{r.Nodes[0].Status, r.Nodes[1].Status})

	// One guest that dies ends the other, which may wait for it.
	var died *DiedError
	r, _, _, err = runFake(t, c, "dienode", "1")
	require.ErrorAs(t, err, &died)
	require.Equal(t, 1, died.Node)
	require.Equal(t, -1, r.Nodes[0].Status)
}

func TestRunTimeout(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.Timeout = 200 * time.Millisecond
	var timeout *TimeoutError
	r, _, _, err := runFake(t, c, "hang")
	require.ErrorAs(t, err, &timeout)
	require.Contains(t, timeout.Doing, "hang")
	require.ErrorContains(t, err, "the guests' limit of 200ms was used up")
	require.FileExists(t, timeout.Log, "the log is kept")
	require.Equal(t, timeout.Log, r.Nodes[0].Log)

	c.Nodes = 2
	c.Timeout = 5 * time.Second // the other node answers in time on a busy machine
	_, _, _, err = runFake(t, c, "hangnode", "1")
	require.ErrorAs(t, err, &timeout)
	require.Equal(t, 1, timeout.Node)
}

func TestRunBootTimeout(t *testing.T) {
	c := fakeConfig(t, "mute")
	c.BootTimeout = 5 * time.Second // a busy machine starts the process in time
	var timeout *TimeoutError
	_, _, _, err := runFake(t, c, "echo")
	require.ErrorAs(t, err, &timeout)
	require.Equal(t, "booting", timeout.Doing)
	log := must.Get(os.ReadFile(timeout.Log))(t)
	require.Contains(t, string(log), "Linux version", "it holds what came until then")
}

func TestRunCancelled(t *testing.T) {
	c := fakeConfig(t, "ok")
	ctx, cancel := context.WithCancel(t.Context())
	s := must.Get(Start(ctx, c))(t)
	time.AfterFunc(50*time.Millisecond, cancel)
	err := s.Exec(ctx, 0, Command{Args: []string{"hang"}})
	require.ErrorIs(t, err, context.Canceled)
	must.Get(s.Close())(t)
	require.NotNil(t, s.Nodes[0].process.cmd.ProcessState, "QEMU has ended and was waited for")
	require.Empty(t, logsLeft(t), "nobody wants the log of a run that was given up")
}

func TestRunDied(t *testing.T) {
	c := fakeConfig(t, "ok")
	var died *DiedError
	var kernel *KernelError
	_, _, _, err := runFake(t, c, "die")
	require.ErrorAs(t, err, &died)
	require.ErrorAs(t, err, &kernel)
	require.Contains(t, kernel.Lines[0], "Kernel panic")
	require.FileExists(t, died.Log)

	c = fakeConfig(t, "refuse")
	_, _, _, err = runFake(t, c, "echo")
	require.ErrorAs(t, err, &died)
	require.Equal(t, "qemu: could not load kernel", died.Cause)
}

func TestRunKernelComplains(t *testing.T) {
	c := fakeConfig(t, "ok")
	var kernel *KernelError
	r, _, _, err := runFake(t, c, "log", "[    5.0] WARNING: CPU: 0 PID: 1 at x.c:1 f+0x1/0x2")
	require.ErrorAs(t, err, &kernel)
	require.Equal(t, []string{"WARNING: CPU: 0 PID: 1 at x.c:1 f+0x1/0x2"}, kernel.Lines)
	require.Equal(t, 0, r.Nodes[0].Status, "the command itself was fine")
	require.FileExists(t, kernel.Log)

	r, _, _, err = runFake(t, c, "log", softLockup)
	require.NoError(t, err)
	require.Len(t, r.Nodes[0].Stalls, 1)
}

func TestRunLogFile(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.LogFile = filepath.Join(t.TempDir(), "log")
	r, _, _, err := runFake(t, c, "log", "[    5.0] a line")
	require.NoError(t, err)
	require.Equal(t, c.LogFile, r.Nodes[0].Log)
	log := must.Get(os.ReadFile(c.LogFile))(t)
	require.Contains(t, string(log), "Linux version")
	require.Contains(t, string(log), "a line")
	c.Nodes = 2
	_, _, _, err = runFake(t, c, "echo")
	require.NoError(t, err)
	require.FileExists(t, c.LogFile+".node1")
}

func TestRunSetupFails(t *testing.T) {
	c := fakeConfig(t, "nolink")
	r, _, _, err := runFake(t, c, "echo")
	require.ErrorContains(t, err, "link rxe0: no such module")
	require.NotEmpty(t, r.Nodes[0].Log)
	c = fakeConfig(t, "old")
	_, _, _, err = runFake(t, c, "echo")
	require.ErrorContains(t, err, "build the image anew")
}

func TestRunMissing(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.QEMU = "no-such-qemu"
	_, _, _, err := runFake(t, c, "echo")
	require.ErrorAs(t, err, new(*MissingError))
	require.Contains(t, err.Error(), "no-such-qemu")
	require.Contains(t, err.Error(), "install")
	require.NotContains(t, err.Error(), "\n")
}

// TestRunWrongImage: an image for another kernel would hang at boot.
func TestRunWrongImage(t *testing.T) {
	c := fakeConfig(t, "ok")
	require.NoError(t, os.WriteFile(c.Image, fakeImage("9.9-other"), 0o644))
	_, _, _, err := runFake(t, c, "echo")
	require.ErrorContains(t, err, "9.9-other")
	require.NoError(t, os.WriteFile(c.Image, []byte("text"), 0o644))
	_, _, _, err = runFake(t, c, "echo")
	require.ErrorContains(t, err, "no image")
	c.Image = "/nonexistent"
	_, _, _, err = runFake(t, c, "echo")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestRunBlockedOutput: the command's output has no reader, yet its time limit
// holds.
func TestRunBlockedOutput(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.Timeout = 200 * time.Millisecond
	r, w := io.Pipe()
	defer r.Close()
	c.Command = Command{Args: []string{"echo", "x"}, Stdout: w}
	_, err := Run(t.Context(), c)
	require.ErrorAs(t, err, new(*TimeoutError))
}

// TestSession runs several commands in one guest.
func TestSession(t *testing.T) {
	s := must.Get(Start(t.Context(), fakeConfig(t, "ok")))(t)
	for _, word := range []string{"one", "two"} {
		var out bytes.Buffer
		require.NoError(t, s.Exec(t.Context(), 0, Command{Args: []string{"echo", word}, Stdout: &out}))
		require.Equal(t, word+"\n", out.String())
	}
	var exit *ExitError
	require.ErrorAs(t, s.Exec(t.Context(), 0, Command{Args: []string{"exit", "3"}}), &exit)
	require.NoError(t, s.Exec(t.Context(), 0, Command{Args: []string{"echo"}}), "one that failed ends nothing")
	require.ErrorContains(t, s.Exec(t.Context(), 1, Command{Args: []string{"echo"}}), "node 1")
	must.Get(s.Close())(t)
	_, err := s.Close()
	require.NoError(t, err, "closing twice does nothing")
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Nodes: 3}, "3 nodes"},
		{Config{Nodes: -1}, "nodes"},
		{Config{CPUs: -1}, "CPUs"},
		{Config{Memory: 64}, "128"},
		{Config{Accel: "hvf"}, "hvf"},
		{Config{Env: []string{"NOVALUE"}}, "NAME=VALUE"},
		{Config{Command: Command{Env: []string{"=x"}}}, "NAME=VALUE"},
	} {
		c.config.Command.Args = []string{"true"}
		_, err := Run(t.Context(), c.config)
		require.ErrorContains(t, err, c.want)
	}
	_, err := Run(t.Context(), Config{})
	require.ErrorContains(t, err, "no command")
}

func TestParseAdd(t *testing.T) {
	for in, want := range map[string]Add{"a": {"a", ""}, "a:/b": {"a", "/b"}, "/x/y:/": {"/x/y", "/"}} {
		got := must.Get(ParseAdd(in))(t)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", ":/b", "a:b", "a:"} {
		_, err := ParseAdd(in)
		require.Error(t, err, in)
	}
}

func TestHardwareArgs(t *testing.T) {
	h := hardware{accel: "tcg", kernel: "K", image: "I", memory: 256, cpus: 2, node: 1, network: true}
	args := " " + strings.Join(h.args(), " ") + " "
	for _, want := range []string{" -accel tcg,thread=multi ", " -cpu max,-erms ", " -kernel K ", " -initrd I ", " -m 256M ", " -smp 2 ", " -no-reboot ", " -nodefaults ", "name=rdmashim.control", "52:54:00:72:64:02"} {
		require.Contains(t, args, want)
	}
	h.network, h.accel = false, "kvm"
	args = strings.Join(h.args(), " ")
	require.NotContains(t, args, "netdev")
	require.Contains(t, args, "-accel kvm -cpu max -smp")
}

// TestRunLoad: the guest is told which modules to load, by the kernel's names;
// one that the kernel does not have boots nothing.
func TestRunLoad(t *testing.T) {
	c := fakeConfig(t, "ok")
	c.Load = []string{"veth", "rdma-ucm"}
	_, stdout, _, err := runFake(t, c, "env", "LOAD")
	require.NoError(t, err)
	require.Equal(t, "LOAD=veth,rdma_ucm\n", stdout)

	c.Load = []string{"nvme_rdma"}
	_, _, _, err = runFake(t, c, "env", "LOAD")
	require.ErrorAs(t, err, new(*MissingError))

	c.Load = []string{"../x"}
	_, _, _, err = runFake(t, c, "env", "LOAD")
	require.ErrorContains(t, err, "no name of a module")
}

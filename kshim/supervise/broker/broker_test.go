//go:build linux && (amd64 || arm64)

package broker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// word is read by the kernel.
var word = uint64(123456789)

// programs are those that the tests run.
var programs = map[string]func(){
	"signals": func() {
		got := make(chan os.Signal, 64)
		signal.Notify(got, forwarded()...)
		fmt.Println("ready")
		for s := range got {
			fmt.Println(s)
			if s == unix.SIGTERM {
				os.Exit(4)
			}
		}
	},
	"ask": func() { fmt.Println(ask(0, plain, 0)) },
	"memory": func() {
		fmt.Println(ask(0, peek, uintptr(unsafe.Pointer(&word))))
		other, _ := strconv.Atoi(os.Args[2])
		fmt.Println(ask(0, steal, uintptr(other)))
		fmt.Println(ask(0, steal, uintptr(os.Getppid())))
	},
	"masked": func() {
		if os.Args[2] == "mask" {
			runtime.LockOSThread()
			winch := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGWINCH - 1)}}
			_ = unix.PthreadSigmask(unix.SIG_BLOCK, &winch, nil)
			_ = unix.Exec(self, []string{os.Args[0], os.Args[1], "look"}, os.Environ())
		}
		w := newWitness()
		fmt.Println(w.underWay(unix.SIGWINCH))
		_ = unix.Kill(os.Getpid(), unix.SIGWINCH)
		fmt.Println(w.take(unix.SIGWINCH), w.take(unix.SIGWINCH))
	},
	"survive": survive,
	"bereft": func() {
		got := make(chan os.Signal, 2)
		signal.Notify(got, unix.SIGUSR1, unix.SIGCONT)
		keeper := os.Getppid()
		_ = unix.Kill(keeper, unix.SIGSTOP)
		fmt.Println("alone")
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = unix.Kill(keeper, unix.SIGKILL)
		for os.Getppid() == keeper {
			runtime.Gosched()
		}
		fmt.Println("ready")
		fmt.Println(<-got)
		fmt.Println(<-got)
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		fmt.Println(<-got)
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	},
	"late": func() {
		fmt.Println("late")
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Println(ask(0, peek, uintptr(unsafe.Pointer(&word))))
	},
	"inherits": func() {
		fmt.Println(os.Getenv(variable) == "")
		b, err := io.ReadAll(os.NewFile(7, "seven"))
		fmt.Printf("%s %v\n", b, err)
		_ = unix.Close(8)
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
}

// survive loses its kernel while a call is held, and shows what calls do.
func survive() {
	memfd := must.Get(unix.MemfdCreate("device", 0))(nil)
	fmt.Println(ask(memfd, plain, 0))
	var held sync.WaitGroup
	var lastInstant atomic.Bool // one call may have been received in it, and continues
	for range 3 {
		held.Go(func() {
			_, err := ask(memfd, hold, 0)
			if !errors.Is(err, unix.EIO) && (!errors.Is(err, unix.ENOTTY) || lastInstant.Swap(true)) {
				fmt.Println("held:", err)
			}
		})
	}
	if os.Args[2] == "killed" {
		fmt.Println(os.Getppid())
		_, _ = io.Copy(io.Discard, os.Stdin)
	} else {
		what, _ := strconv.Atoi(os.Args[2])
		_, _ = ask(memfd, uintptr(what), 0)
	}
	held.Wait()
	_, err := ask(memfd, plain, 0)
	fmt.Println(err)
	_, err = ask(0, hold, 0)
	fmt.Println(err)
	must.Get(0, unix.Dup3(memfd, 970, 0))(nil)
	_, err = unix.Write(970, []byte("command"))
	fmt.Println(err)
	file := must.Get(os.OpenFile(os.Args[3], os.O_RDWR, 0))(nil)
	must.Get(0, unix.Dup3(int(file.Fd()), 971, 0))(nil)
	fmt.Println(unix.Write(971, []byte("ordinary")))
	_, err = os.Open("/dev/infiniband/uverbs0")
	fmt.Println(err)
	text, err := os.ReadFile(os.Args[3])
	fmt.Println(string(text), err)
	os.Exit(5)
}

// after is what survive prints once its kernel has gone.
func (r *run) after() {
	r.t.Helper()
	for _, line := range []string{
		unix.EIO.Error(), // a command on memory of a kernel
		unix.EIO.Error(), // or on a pipe
		unix.EIO.Error(), // a write to a number of the window
		"8 <nil>",        // but not to a file
		"open /dev/infiniband/uverbs0: " + unix.ENODEV.Error(),
		"ordinary <nil>",
	} {
		r.says(line)
	}
	r.exits(5)
}

func file(t *testing.T, text string, mode os.FileMode) string {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), mode))
	return name
}

// TestStatus: the command ends as the program does.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"sh", "-c", "exit 0"}},
		{7, []string{"sh", "-c", "exit 7"}},
		{126, []string{file(t, "no program", 0o600)}},
		{127, []string{"/nowhere/program"}},
	} {
		r := do(t, nil, c.args...)
		r.exits(c.code)
		if c.code >= 126 {
			require.Contains(t, r.errors(), c.args[0])
		}
	}
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGSEGV, unix.SIGKILL, unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT, unix.SIGUSR1} {
		r := begin(t, nil, "sh", "-c", fmt.Sprintf("kill -%d $$", s))
		r.through(`ulimit -c unlimited`)
		ws := r.ends()
		require.True(t, ws.Signaled(), "%v", s)
		require.Equal(t, s, ws.Signal())
		require.False(t, ws.CoreDump())
		require.Equal(t, 128+int(s), Status(ws).Code())
	}
}

// TestStreams: the program reads the command's standard input.
func TestStreams(t *testing.T) {
	r := do(t, nil, "cat")
	must.Get(io.WriteString(r.in, "through\n"))(t)
	r.says("through")
	require.NoError(t, r.in.Close())
	r.exits(0)
}

// TestKernelAnswers: here, and in a server; memory of the program's processes
// is opened, and no other's.
func TestKernelAnswers(t *testing.T) {
	for _, env := range [][]string{nil, {at + "=" + serve(t)}} {
		r := do(t, env, self, "memory", strconv.Itoa(os.Getpid()))
		r.says("123456789 <nil>")
		r.says("-1 " + unix.EPERM.Error())
		r.says("-1 " + unix.EPERM.Error()) // the keeper's own
		r.exits(0)
	}
}

// serve starts a server in this process and returns its socket.
func serve(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "kernel")
	s := must.Get(net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"}))(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := s.AcceptUnix()
			if err != nil {
				return
			}
			all.Go(func() {
				if err := attend(c); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		all.Wait()
	})
	return path
}

// TestNoServer: a command without its server says so, and runs nothing.
func TestNoServer(t *testing.T) {
	r := do(t, []string{at + "=/nowhere/kernel"}, "true")
	r.exits(125)
	require.Contains(t, r.errors(), "/nowhere/kernel")
}

// TestNested: a command under a command says that a listener is there, so that
// its caller can run the program without.
func TestNested(t *testing.T) {
	r := do(t, nil, "sh", "-c", fmt.Sprintf("%s=command %s true; echo $?", part, must.Get(os.Executable())(t)))
	r.says("125")
	r.exits(0)
	require.Contains(t, r.errors(), "a listener is there already")
}

// TestStop: the command stops with the program and continues with it, and the
// program with the command.
func TestStop(t *testing.T) {
	r := do(t, nil, "sh", "-c", `echo $$; kill -STOP $$; echo again; kill -TSTP $$; echo once more; read x; kill -STOP $$; exit 3`)
	program := must.Get(strconv.Atoi(r.line()))(t)
	command := r.Process.Pid
	stops := func() {
		var ws syscall.WaitStatus
		must.Get(syscall.Wait4(command, &ws, syscall.WUNTRACED, nil))(t)
		require.True(t, ws.Stopped(), "%v", ws)
	}
	stops()
	require.NoError(t, unix.Kill(command, unix.SIGCONT)) // the command alone
	r.says("again")
	stops()
	require.NoError(t, unix.Kill(-command, unix.SIGCONT)) // all, as a shell
	r.says("once more")
	// It stops when this signal has come to all of the group: Linux drops the
	// keeper's SIGSTOP at a SIGCONT behind it.
	must.Get(io.WriteString(r.in, "\n"))(t)
	stops()
	require.NoError(t, unix.Kill(program, unix.SIGCONT)) // the program alone
	r.exits(3)
}

// TestKilledWhileStopped: the end of a stopped program is seen.
func TestKilledWhileStopped(t *testing.T) {
	r := do(t, nil, "sh", "-c", `echo $$; kill -STOP $$`)
	program := must.Get(strconv.Atoi(r.line()))(t)
	var ws syscall.WaitStatus
	must.Get(syscall.Wait4(r.Process.Pid, &ws, syscall.WUNTRACED, nil))(t)
	require.NoError(t, unix.Kill(program, unix.SIGKILL))
	require.Equal(t, unix.SIGKILL, r.ends().Signal(), "%v %s", r.ProcessState, r.errors())
}

// TestSignals: one to the command is sent on; one to the group comes once.
func TestSignals(t *testing.T) {
	r := do(t, nil, self, "signals")
	r.says("ready")
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGALRM, unix.SIGTSTP, unix.SIGCONT, unix.SIGABRT, 40} {
		require.NoError(t, unix.Kill(r.Process.Pid, s))
		r.says(s.String())
	}
	twice, group := 0, []syscall.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH, unix.SIGTSTP, unix.SIGHUP}
	for i := range 20 {
		last := syscall.Signal(41 + i%8) // behind those that come twice
		for _, s := range group {
			require.NoError(t, unix.Kill(-r.Process.Pid, s))
			for r.line() != s.String() {
				twice++
			}
		}
		require.NoError(t, unix.Kill(r.Process.Pid, last))
		for r.line() != last.String() {
			twice++
		}
	}
	require.Less(t, twice, 10, "of 100; a thread was interrupted in its handler")
	require.NoError(t, unix.Kill(r.Process.Pid, unix.SIGTERM))
	r.says(unix.SIGTERM.String())
	r.exits(4)
}

// TestInterruptedStart: an interrupt is one, however early it comes.
func TestInterruptedStart(t *testing.T) {
	for i := range amount.Of(40, 200) {
		r := do(t, nil, "sh", "-c", "exit 0")
		for range i % 40 * 20 { // later each time
			_, _ = os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.Process.Pid))
		}
		_ = unix.Kill(-r.Process.Pid, unix.SIGINT)
		ws := r.ends()
		require.True(t, ws.Exited() && ws.ExitStatus() == 0 || ws.Signaled() && ws.Signal() == unix.SIGINT, "%v: %s", r.ProcessState, r.errors())
	}
}

// TestIgnoredSignals: what nohup ignores stays ignored, in the command too.
func TestIgnoredSignals(t *testing.T) {
	r := begin(t, nil, "sh", "-c", `echo ready; read x; exit 2`)
	r.through(`trap "" HUP`)
	r.says("ready")
	require.NoError(t, unix.Kill(-r.Process.Pid, unix.SIGHUP))
	require.NoError(t, unix.Kill(r.Process.Pid, unix.SIGHUP))
	must.Get(io.WriteString(r.in, "x\n"))(t)
	r.exits(2)
}

// TestInherited: descriptors keep their numbers, a pipe ends when the program
// closes it, and the role is not shown.
func TestInherited(t *testing.T) {
	r := begin(t, nil, self, "inherits")
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	defer outR.Close()
	r.ExtraFiles = []*os.File{nil, nil, nil, nil, inR, outW} // 7 and 8
	r.start()
	inR.Close()
	outW.Close()
	r.says("true")
	must.Get(io.WriteString(inW, "seven"))(t)
	inW.Close()
	r.says("seven <nil>")
	require.Empty(t, must.Get(io.ReadAll(outR))(t), "the end, while the program lives")
	r.in.Close()
	r.exits(0)
}

// TestKernelEnds: the keeper or the command answers for a kernel that returned,
// crashed, or whose process was killed, also what it held.
func TestKernelEnds(t *testing.T) {
	t.Run("error", func(t *testing.T) {
		r := do(t, nil, self, "survive", strconv.Itoa(quit), file(t, "", 0o600))
		r.says("42 <nil>")
		r.after()
		require.Contains(t, r.errors(), errQuit.Error())
	})
	t.Run("crash", func(t *testing.T) {
		r := do(t, nil, self, "survive", strconv.Itoa(crash), file(t, "", 0o600))
		r.says("42 <nil>")
		r.after()
	})
	t.Run("keeper", func(t *testing.T) {
		r := do(t, nil, self, "survive", "killed", file(t, "", 0o600))
		r.says("42 <nil>")
		keeper := must.Get(strconv.Atoi(r.line()))(t)
		require.NoError(t, unix.Kill(keeper, unix.SIGKILL))
		r.in.Close()
		r.after()
	})
	t.Run("server", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "kernel")
		server := begin(t, []string{at + "=" + path, part + "=server"})
		server.start()
		server.says("ready")
		r := do(t, []string{at + "=" + path}, self, "survive", "killed", file(t, "", 0o600))
		r.says("42 <nil>")
		_ = r.line()
		require.NoError(t, server.Process.Kill())
		_ = server.ends()
		r.in.Close()
		r.after()
	})
}

// TestWithoutKeeper: after the keeper's death the command passes signals on,
// also those that the keeper has not, and stops and ends as the program does.
func TestWithoutKeeper(t *testing.T) {
	r := do(t, nil, self, "bereft")
	r.says("alone")
	require.NoError(t, unix.Kill(r.Process.Pid, unix.SIGUSR1))
	require.NoError(t, r.in.Close())
	r.says("ready")
	r.says(unix.SIGUSR1.String())
	require.NoError(t, unix.Kill(r.Process.Pid, unix.SIGUSR1))
	r.says(unix.SIGUSR1.String())
	var ws syscall.WaitStatus
	must.Get(syscall.Wait4(r.Process.Pid, &ws, syscall.WUNTRACED, nil))(t)
	require.True(t, ws.Stopped())
	require.NoError(t, unix.Kill(r.Process.Pid, unix.SIGCONT))
	r.says(unix.SIGCONT.String())
	require.Equal(t, unix.SIGKILL, r.ends().Signal(), "%v %s", r.ProcessState, r.errors())
}

// TestKilledCommand: the program of a command that is killed is killed, and
// what the program has started is served further.
func TestKilledCommand(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	r := do(t, nil, "sh", "-c", fmt.Sprintf("%s late < %s & read x", must.Get(os.Executable())(t), name))
	late := must.Get(os.OpenFile(name, os.O_RDWR, 0))(t)
	r.says("late")
	require.NoError(t, r.Process.Kill())
	require.Equal(t, unix.SIGKILL, r.ends().Signal(), "%v %s", r.ProcessState, r.errors())
	require.NoError(t, late.Close())
	r.says("123456789 <nil>")
	require.Empty(t, must.Get(io.ReadAll(r.out))(t), "the program has gone, and the keeper")
}

// TestOrphans: the command ends with the program, and its output too, and
// processes that the program leaves are served further.
func TestOrphans(t *testing.T) {
	for _, env := range [][]string{nil, {at + "=" + serve(t)}} {
		in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
		require.NoError(t, errors.Join(unix.Mkfifo(in, 0o600), unix.Mkfifo(out, 0o600)))
		r := do(t, env, "sh", "-c", fmt.Sprintf("%s late < %s > %s 2>&1 & exit 3", must.Get(os.Executable())(t), in, out))
		late := must.Get(os.OpenFile(in, os.O_RDWR, 0))(t)
		said := bufio.NewReader(must.Get(os.Open(out))(t))
		require.Equal(t, "late\n", must.Get(said.ReadString('\n'))(t))
		r.exits(3)
		require.Empty(t, must.Get(io.ReadAll(r.out))(t))
		require.NoError(t, late.Close())
		require.Equal(t, "123456789 <nil>\n", must.Get(said.ReadString('\n'))(t))
	}
}

// TestManyRuns: a server has neither a descriptor nor a goroutine more after
// many programs, and each keeper ends.
func TestManyRuns(t *testing.T) {
	path := serve(t)
	open := func() int { return len(must.Get(os.ReadDir("/proc/self/fd"))(t)) }
	before := 0
	for i := range amount.Of(20, 200) {
		r := begin(t, []string{at + "=" + path}, self, "ask")
		out := must.Get(r.StdoutPipe())(t)
		r.Stderr = os.Stderr
		require.NoError(t, r.Start())
		text := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
		require.Equal(t, "42 <nil>\n", text)
		must.Get(io.ReadAll(out))(t)
		require.NoError(t, r.Wait())
		if i == 0 {
			before = open()
		}
	}
	require.LessOrEqual(t, open(), before+2, "descriptors of runs that are just ending")
}

// TestNoRun: a configuration without a kernel, and a role that Run did not
// give.
func TestNoRun(t *testing.T) {
	_, err := Run(Config{Args: []string{"true"}})
	require.ErrorIs(t, err, unix.EINVAL)
	t.Setenv(variable, "keeper")
	_, err = Run(Config{})
	require.ErrorIs(t, err, unix.EINVAL)
	require.Contains(t, err.Error(), variable)
}

// TestMaskedSignal: one that the parent blocked, as perf does SIGWINCH, is seen
// in Go's threads, and is not taken for one that is on its way.
func TestMaskedSignal(t *testing.T) {
	program := exec.Command(must.Get(os.Executable())(t), "masked", "mask")
	program.Env = append(os.Environ(), part+"=program")
	require.Equal(t, "false\ntrue false\n", string(must.Get(program.CombinedOutput())(t)))
}

// TestKeptSignals: those that Go or a fault raises are not sent on.
func TestKeptSignals(t *testing.T) {
	for _, s := range kept {
		require.False(t, slices.Contains(forwarded(), os.Signal(s)))
	}
	require.Len(t, forwarded(), 64-len(kept))
}

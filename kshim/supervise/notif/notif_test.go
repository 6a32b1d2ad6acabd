//go:build linux && (amd64 || arm64)

package notif

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
)

// parts are the programs of the tests.
var parts = map[string]func(){
	"answers": func() {
		for i := range uintptr(3) {
			fmt.Println(command(i))
		}
	},
	"descriptors": func() {
		for range 4 {
			fd, err := command(0)
			text := make([]byte, 16)
			n, readErr := unix.Pread(fd, text, 0)
			flags, flagsErr := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			fmt.Printf("%d %q %d\n", fd, text[:n], flags)
			if err := errors.Join(err, readErr, flagsErr); err != nil {
				fmt.Println(err)
			}
		}
		fmt.Println(command(0))
	},
	"signal": func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, unix.SIGUSR1)
		fmt.Println(command(0))
		fmt.Println(<-signals)
	},
	"nested": func() {
		sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			panic(err)
		}
		err = Exec(Window{960, 1024}, sockets[1], "/nowhere", nil, nil)
		_, accepted := Accept(sockets[0])
		fmt.Println(errors.Is(err, ErrBusy), errors.Is(err, unix.EBUSY), errors.Is(accepted, ErrBusy))
		_, checked := Check()
		fmt.Println(errors.Is(checked, ErrBusy))
	},
	"threads": func() {
		var wrong atomic.Int64
		var all sync.WaitGroup
		for thread := range uintptr(threads) {
			all.Go(func() {
				runtime.LockOSThread()
				for i := range uintptr(commands) {
					if n, err := command(thread<<16 | i); err != nil || n != int(thread<<16|i) {
						wrong.Add(1)
					}
				}
			})
		}
		all.Wait()
		fmt.Println(wrong.Load())
	},
	"storm": func() {
		wrong := 0
		for range storms {
			fd, err := command(0)
			if err != nil || fd < 3 || unix.Close(fd) != nil {
				wrong++
			}
		}
		fmt.Println(wrong)
	},
	"privileges": func() {
		fmt.Println(command(0))
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %d\n", regexp.MustCompile(`NoNewPrivs:\s+\d`).Find(status), os.Getuid())
	},
	"held": func() { _, _ = command(0) },
	"queue": func() {
		var all sync.WaitGroup
		var wrong atomic.Int64
		waiting := func() {
			if n, err := command(keep); err != nil || n != 1 {
				wrong.Add(1)
			}
		}
		for range queue / 2 {
			all.Go(waiting)
		}
		for range 10_000 {
			_, _ = command(pass)
		}
		for range queue / 2 {
			all.Go(waiting)
		}
		for n := 0; n == 0; {
			n, _ = command(ask)
		}
		all.Wait()
		fmt.Println(wrong.Load())
	},
}

const (
	threads  = 32
	commands = 150
	storms   = 400
	queue    = 40
)

// what the program "queue" commands: to be held, to be answered, to look at
// what is held.
const (
	keep = iota
	pass
	ask
)

// TestAnswers: a held call returns the value, the error, or what Linux does.
func TestAnswers(t *testing.T) {
	p := run(t, "answers", "itself")
	p.serve(t, func(n *Notification) {
		require.True(t, p.Valid(n.ID))
		require.NotZero(t, n.IP)
		require.EqualValues(t, p.cmd.Process.Pid, tgid(t, n.PID))
		require.Zero(t, n.Args[0])
		require.False(t, p.Ready(), "there is one thread")
		switch n.Args[2] {
		case 0:
			require.NoError(t, p.Value(n.ID, 1<<40))
		case 1:
			require.NoError(t, p.Fail(n.ID, unix.EXDEV))
		case 2:
			require.NoError(t, p.Continue(n.ID))
		}
		err := p.Value(n.ID, 0)
		require.True(t, errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.ENOENT), "a second answer: %v", err)
		require.False(t, p.Valid(n.ID), "answered")
	})
	require.Equal(t, "1099511627776 <nil>", p.line(t))
	require.Equal(t, "-1 "+unix.EXDEV.Error(), p.line(t))
	require.Equal(t, "-1 "+unix.ENOTTY.Error(), p.line(t), "Linux's answer, for /dev/null")
	require.NoError(t, p.cmd.Wait())
}

// tgid is the process of a thread.
func tgid(t *testing.T, tid uint32) int {
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", tid)))(t)
	return must.Get(strconv.Atoi(string(regexp.MustCompile(`Tgid:\s+(\d+)`).FindSubmatch(status)[1])))(t)
}

// TestAdd: a descriptor is put at the lowest number or at a chosen one, with
// and without close-on-exec. The call is held until its answer.
func TestAdd(t *testing.T) {
	p := run(t, "descriptors", "itself")
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("planted"), 0o600))
	file := must.Get(os.Open(name))(t)
	defer file.Close()
	fd, lowest := int(file.Fd()), -1
	turn := 0
	p.serve(t, func(n *Notification) {
		turn++
		switch turn {
		case 1:
			lowest = must.Get(p.Add(n.ID, fd, -1, true))(t)
			require.True(t, p.Valid(n.ID), "not yet answered")
			require.NoError(t, p.Value(n.ID, int64(lowest)))
		case 2:
			require.Equal(t, lowest+1, must.Get(p.Add(n.ID, fd, -1, false))(t))
			require.NoError(t, p.Value(n.ID, int64(lowest+1)))
		case 3:
			require.Equal(t, 200, must.Get(p.Add(n.ID, fd, 200, true))(t))
			require.NoError(t, p.Value(n.ID, 200))
		case 4:
			require.Equal(t, 200, must.Get(p.Add(n.ID, fd, 200, false))(t))
			require.NoError(t, p.Value(n.ID, 200))
		case 5:
			must.Fail(p.Add(n.ID, fd, 1<<30, false))(t, unix.EBADF, "beyond the limit")
			require.True(t, p.Valid(n.ID))
			require.NoError(t, p.Fail(n.ID, unix.EMFILE))
			_, err := p.Add(n.ID, fd, -1, false)
			require.Error(t, err, "answered")
		}
	})
	for _, want := range []string{fmt.Sprintf("%d \"planted\" 1", lowest), fmt.Sprintf("%d \"planted\" 0", lowest+1), "200 \"planted\" 1", "200 \"planted\" 0", "-1 " + unix.EMFILE.Error()} {
		require.Equal(t, want, p.line(t))
	}
}

// TestSignalWaits: a signal to a thread whose call has been received comes
// after the answer, and the call is not made again.
func TestSignalWaits(t *testing.T) {
	p := run(t, "signal", "itself")
	if s, _ := Check(); !s.WaitKillable {
		t.Skip("this machine has no WAIT_KILLABLE_RECV: boot Linux 5.19 or later")
	}
	received := 0
	p.serve(t, func(n *Notification) {
		received++
		require.NoError(t, unix.Tgkill(p.cmd.Process.Pid, int(n.PID), unix.SIGUSR1))
		for p.Valid(n.ID) && !unsignalled(t, n.PID) {
			runtime.Gosched()
		}
		require.NoError(t, p.Value(n.ID, 7))
	})
	require.Equal(t, 1, received)
	require.Equal(t, "7 <nil>", p.line(t))
	require.Equal(t, unix.SIGUSR1.String(), p.line(t))
}

// unsignalled reports whether a thread waits in the state that only SIGKILL
// ends, with SIGUSR1 pending.
func unsignalled(t *testing.T, tid uint32) bool {
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", tid)))(t)
	pending := must.Get(strconv.ParseUint(string(regexp.MustCompile(`SigPnd:\s+(\w+)`).FindSubmatch(status)[1]), 16, 64))(t)
	return pending&(1<<(unix.SIGUSR1-1)) != 0 && regexp.MustCompile(`State:\s+D`).Match(status)
}

// TestNested: a second listener is refused by name, to the process and to its
// supervisor.
func TestNested(t *testing.T) {
	p := run(t, "nested", "itself")
	p.serve(t, nil)
	require.Equal(t, "true true true", p.line(t))
	require.Equal(t, "true", p.line(t), "Check")
}

// TestManyThreads: thousands of calls of many threads get each its own answer,
// also from several goroutines.
func TestManyThreads(t *testing.T) {
	p := run(t, "threads", "itself")
	held := make(chan Notification, threads)
	var answerers sync.WaitGroup
	for range 3 {
		answerers.Go(func() {
			for n := range held {
				if err := p.Value(n.ID, int64(n.Args[2])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	received := 0
	p.serve(t, func(n *Notification) {
		for received == 0 && !p.Ready() { // until another thread calls
			runtime.Gosched()
		}
		received++
		held <- *n
	})
	close(held)
	answerers.Wait()
	require.Equal(t, "0", p.line(t), "wrong answers")
	require.GreaterOrEqual(t, received, threads*commands)
}

// TestAddAmongSignals: signals to the supervisor do not make a descriptor that
// is the answer another number.
func TestAddAmongSignals(t *testing.T) {
	p := run(t, "storm", "itself")
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR2)
	defer signal.Stop(signals)
	end := make(chan struct{})
	tid := make(chan int, 1)
	var sender sync.WaitGroup
	sender.Go(func() {
		for at := <-tid; ; {
			select {
			case <-end:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), at, unix.SIGUSR2)
			}
		}
	})
	file := must.Get(os.Open(os.DevNull))(t)
	defer file.Close()
	p.serve(t, func(n *Notification) {
		select {
		case tid <- unix.Gettid():
		default:
		}
		fd, err := p.Add(n.ID, int(file.Fd()), -1, true)
		if err == nil {
			err = p.Value(n.ID, int64(fd))
		}
		if err != nil {
			t.Error(err)
			_ = p.Fail(n.ID, unix.EIO)
		}
	})
	close(end)
	sender.Wait()
	require.Equal(t, "0", p.line(t), "wrong numbers")
}

// TestKilledWhileHeld: the call of a killed program is no longer there, and
// with the program Receive ends.
func TestKilledWhileHeld(t *testing.T) {
	p := run(t, "held", "itself")
	p.serve(t, func(n *Notification) {
		require.True(t, p.Valid(n.ID))
		require.NoError(t, p.cmd.Process.Kill())
		must.Get(p.cmd.Process.Wait())(t)
		require.False(t, p.Valid(n.ID))
		require.ErrorIs(t, p.Value(n.ID, 0), unix.ENOENT)
		must.Fail(p.Add(n.ID, 0, -1, false))(t, unix.ENOENT)
	})
}

// TestPrivileges: without CAP_SYS_ADMIN the program gives up what set-user-ID
// programs would give it; with it, it does not.
func TestPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become nobody: run as root")
	}
	own := string(regexp.MustCompile(`NoNewPrivs:\s+\d`).Find(must.Get(os.ReadFile("/proc/self/status"))(t)))
	var caps [2]unix.CapUserData
	require.NoError(t, unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0]))
	if caps[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 { // a container's root
		own = "NoNewPrivs:\t1"
	}
	for as, want := range map[string]string{"itself": own + " 0", "nobody": "NoNewPrivs:\t1 65534"} {
		p := run(t, "privileges", as)
		p.serve(t, func(n *Notification) { require.NoError(t, p.Value(n.ID, 3)) })
		require.Equal(t, "3 <nil>", p.line(t))
		require.Equal(t, want, p.line(t))
	}
}

// TestExecFails: a child that ends before Exec, and one whose program is not
// there.
func TestExecFails(t *testing.T) {
	sockets := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	require.NoError(t, unix.Close(sockets[1]))
	must.Fail(Accept(sockets[0]))(t, io.EOF)
	require.NoError(t, unix.Close(sockets[0]))
	for errno, want := range map[syscall.Errno]error{unix.EBUSY: ErrBusy, unix.EINVAL: ErrUnsupported, unix.ENOSYS: ErrUnsupported, unix.EPERM: ErrUnsupported, unix.ENOMEM: unix.ENOMEM} {
		require.ErrorIs(t, named(errno), want)
		require.ErrorIs(t, named(errno), errno)
	}
}

// TestPassing: messages and descriptors arrive as they were sent; more than
// expected are closed.
func TestPassing(t *testing.T) {
	sockets := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	require.NoError(t, Send(sockets[0], []byte("two"), pipe[0], pipe[1]))
	require.NoError(t, Send(sockets[0], []byte("none")))
	require.NoError(t, Send(sockets[1], []byte("unread")))
	require.NoError(t, Send(sockets[0], []byte("many"), slices.Repeat(pipe[:1], mostDescriptors+1)...))
	require.NoError(t, unix.Close(sockets[0]))

	data := make([]byte, 16)
	n, fds, err := Receive(sockets[1], data)
	require.NoError(t, err)
	require.Equal(t, "two", string(data[:n]))
	require.Len(t, fds, 2)
	must.Get(unix.Write(fds[1], []byte("through")))(t)
	n = must.Get(unix.Read(pipe[0], data))(t)
	require.Equal(t, "through", string(data[:n]))
	require.Equal(t, unix.FD_CLOEXEC, must.Get(unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0))(t))
	closeAll(append(fds, pipe[:]...))

	n, fds, err = Receive(sockets[1], data)
	require.NoError(t, err)
	require.Equal(t, "none", string(data[:n]))
	require.Empty(t, fds)
	_, _, err = Receive(sockets[1], data)
	require.ErrorIs(t, err, unix.EMSGSIZE)
	_, _, err = Receive(sockets[1], data)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, unix.Close(sockets[1]))
}

// TestCheck: where programs can be held, they are (the other tests), and what
// is found has the order of Linux's versions.
func TestCheck(t *testing.T) {
	s, err := Check()
	if err != nil {
		require.True(t, errors.Is(err, ErrBusy) || errors.Is(err, ErrUnsupported) || errors.Is(err, unix.EPERM), "%v", err)
		t.Skip("this machine supervises no programs: ", err)
	}
	require.True(t, s.WaitKillable || !s.SyncWakeUp)
	if s == (Support{true, true, "0"}) {
		require.Equal(t, "all of it", s.String())
	}
	require.Equal(t, "no WAIT_KILLABLE_RECV (Linux 5.19), no SYNC_WAKE_UP (Linux 6.6), memory of descendants only (Yama 1)",
		Support{Yama: "1"}.String())
	for filtered(t) {
		runtime.Gosched() // the thread is ending
	}
}

// filtered reports whether a thread of this process has more filters than the
// process's first.
func filtered(t *testing.T) bool {
	filters := regexp.MustCompile(`Seccomp_filters:\s+\d+`)
	own := filters.Find(must.Get(os.ReadFile("/proc/self/status"))(t))
	for _, task := range must.Get(filepath.Glob("/proc/self/task/*/status"))(t) {
		status, err := os.ReadFile(task)
		if err == nil && !bytes.Equal(filters.Find(status), own) {
			return true
		}
	}
	return false
}

//go:build amd64 || arm64

package programs

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/tests/must"
)

// matrix has TestSupervisor leave nothing out, which takes minutes.
var matrix = flag.Bool("matrix", false, "run all tests and rows by the second way, too")

// some are the rows of a test that run: by the first way as amount says, by the
// second one of them, since the rest proves it only more often.
func some[T any](all []T, n int) []T {
	if supervisor == "" || *matrix {
		return amount.Some(all, n)
	}
	return all[:1]
}

// The tests of TestSupervisor that run: each time, with all, with -matrix.
const (
	each = iota
	withAll
	withMatrix
)

// TestSupervisor runs tests with the programs' system calls held, and what only
// that way runs.
func TestSupervisor(t *testing.T) {
	needs(t)
	if _, err := notif.Check(); err != nil {
		t.Skip("this machine supervises no programs: ", err)
	}
	supervisor = built.Tool(t)
	defer func() { supervisor = "" }()
	for _, c := range []struct {
		name string
		test func(t *testing.T)
		part int
	}{
		{"TestCalls", TestCalls, each},
		{"TestSignals", TestSignals, each},
		{"TestWakeups", TestWakeups, each},
		{"TestNetlink", TestNetlink, each},
		{"TestDevinfo", TestDevinfo, each},
		{"TestForeignDevice", TestForeignDevice, each},
		{"TestPingpong", TestPingpong, each},
		{"TestStats", TestStats, each},
		{"TestConnectionManager", TestConnectionManager, withAll},
		{"TestExit", TestExit, each},
		{"TestEnds", TestEnds, withAll},
		{"TestLooks", TestLooks, withAll},
		{"TestTrace", TestTrace, withAll},
		{"TestRefusedCalls", TestRefusedCalls, each},
		{"TestJudgedCompletions", TestJudgedCompletions, each},
		{"TestRDMA", TestRDMA, withAll},
		{"TestUCX", TestUCX, withAll},
		{"TestMPI", TestMPI, withAll},
		{"TestRanks", TestRanks, withAll},
		{"TestLibfabric", TestLibfabric, withAll},
		{"TestRDMACore", TestRDMACore, withAll},
		{"TestPerftest", TestPerftest, withAll},
		{"TestOthers", TestOthers, withAll},
		{"TestMigration", TestMigration, withAll},
		{"TestISER", TestISER, withAll},
		{"TestDAPL", TestDAPL, withAll},
		{"TestRPMA", TestRPMA, withAll},
		{"TestGloo", TestGloo, withAll},
		{"TestCeph", TestCeph, withAll},
		{"TestAddressSanitizer", TestAddressSanitizer, withMatrix},
		{"TestKill", TestKill, withMatrix},
		{"TestGoPrograms", TestGoPrograms, withMatrix},
		{"TestGoPingpong", TestGoPingpong, withMatrix},

		{"Static", static, each},
		{"Musl", musl, each},
		{"Goroutines", goroutines, each},
		{"Passed", handedOver, each},
		{"Opens", opens, each},
		{"Debuggers", debuggers, withAll},
		{"User", user, each},
		{"Nested", nested, each},
		{"Shared", shared, each},
	} {
		if c.part == each || c.part == withAll && amount.All() || *matrix {
			t.Run(c.name, c.test)
		}
	}
}

// supervised returns the tool with arguments.
func supervised(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), supervisor, args...)
	cmd.Env = append(cmd.Environ(), "PROGRAMS_SUPERVISED=1")
	return cmd
}

// program is the number of the program's process: under a supervisor the last
// in the line of children.
func (p *process) program() int {
	if supervisor == "" { // its child sweeps
		return p.Process.Pid
	}
	for pid := p.Process.Pid; ; {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		child := 0
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			_, _ = fmt.Sscan(string(text), &child)
		}
		if child == 0 {
			return pid
		}
		pid = child
	}
}

// says runs a program with a device of its own to its end.
func says(t *testing.T, want string, args ...string) {
	t.Helper()
	device, _ := newDevice()
	require.Regexp(t, "^"+want+"$", start(t, device, args...).ends(0))
}

// static: a program of no library at all, also one that is loaded anywhere.
func static(t *testing.T) {
	for _, flag := range []string{"-static", "-static-pie"} {
		says(t, "all calls are as they should be\n", compile(t, "calls", flag))
	}
}

// musl: the same with another libc.
func musl(t *testing.T) {
	if _, err := exec.LookPath("musl-gcc"); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip(err, ": apt-get install musl-tools")
	}
	t.Setenv("CC", "musl-gcc")
	for _, flag := range []string{"-static", "-no-pie"} {
		says(t, "all calls are as they should be\n", compile(t, "calls", flag))
	}
}

// goroutines: a Go program of libibverbs, with the race detector.
func goroutines(t *testing.T) {
	verbsHeader(t)
	says(t, "closed: 0\n", goProgram(t, "goroutines", "-race"))
}

func handedOver(t *testing.T) { says(t, "the file was passed\n", compile(t, "passed")) }

func opens(t *testing.T) { says(t, "all files were the machine's\n", compile(t, "opens")) }

// debuggers: programs that hold a program's calls or stop it, themselves held.
func debuggers(t *testing.T) {
	needs(t, "strace", "gdb", "ibv_devinfo")
	traced := filepath.Join(t.TempDir(), "traced")
	device, _ := newDevice()
	require.Contains(t, start(t, device, "strace", "-f", "-o", traced, "ibv_devinfo").ends(0), "PORT_ACTIVE")
	text := must.Get(os.ReadFile(traced))(t)
	require.Contains(t, string(text), "uverbs0")
	require.Regexp(t, `(?s)PORT_ACTIVE.*exited normally`, start(t, device, "gdb", "-q", "-batch", "-ex", "run", "ibv_devinfo").ends(0))
}

// user: a user without privileges. Where the tests have none, the other tests
// prove it.
func user(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	dir := must.Get(os.MkdirTemp("", "user"))(t) // which others may look into
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	text := must.Get(os.ReadFile(supervisor))(t)
	tool := filepath.Join(dir, "rdmashim")
	require.NoError(t, os.WriteFile(tool, text, 0o755))
	runtime := filepath.Join(dir, "runtime")
	require.NoError(t, os.Mkdir(runtime, 0o700))
	require.NoError(t, os.Chown(runtime, nobody, nobody))
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	device, _ := newDevice()
	cmd := command(t, device, "ibv_devinfo")
	cmd.Path, cmd.Args[0], cmd.Dir = tool, tool, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	require.Contains(t, begin(t, cmd).ends(0), "PORT_ACTIVE")
}

// nested: a program that is run by one that is run has the outer one's device.
func nested(t *testing.T) {
	says(t, "(?s).*rxe0.*", supervisor, "run", "--way", "supervisor", "-d", "soft", "--", "ibv_devices")
}

// shared: four programs of one kernel, on one address, and two more when one of
// them has been killed.
func shared(t *testing.T) {
	needs(t, "ibv_rc_pingpong", "rping")
	socket := filepath.Join(t.TempDir(), "kernel")
	device, addr := newDevice()
	server := begin(t, supervised(t, "kernel", "serve", "-d", device, socket))
	require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, patience, 1e6)
	info := must.Get(os.Stat(socket))(t)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	on := func(line string) func() *process {
		return func() *process {
			return begin(t, supervised(t, append([]string{"run", "--kernel", socket, "--"}, strings.Fields(line)...)...))
		}
	}
	pingpong := func() {
		port := freePort(t)
		line := "ibv_rc_pingpong -e -g 0 -n 200 -p " + port
		meet(t, func(p *process) { p.listens(port) }, on(line), on(line+" "+addr))
	}
	rping := fmt.Sprintf("rping -a %s -p %s -C 50 -v -V", addr, freePort(t))
	killed := on(rping + " -s -P")() // -P: it serves for ever
	t.Run("at a time", func(t *testing.T) {
		t.Run("pingpong", func(t *testing.T) {
			t.Parallel()
			pingpong()
		})
		t.Run("rping", func(t *testing.T) {
			t.Parallel()
			for on(rping+" -c")().Wait() != nil { // until it serves
				require.NoError(t, t.Context().Err())
			}
		})
	})
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait()
	pingpong()
	require.NoError(t, server.Process.Signal(os.Interrupt))
	_ = server.Wait()
	require.NoFileExists(t, socket)
}

//go:build amd64 || arm64

package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
	"github.com/rdmashim/rdmashim/tests/must"
)

// compile makes a program of testdata that is in C.
func compile(t *testing.T, name string, flags ...string) (program string) {
	t.Helper()
	return compileBy(t, must.Get(cbuild.Compiler())(t), name+".c", append([]string{"-Werror", "-pthread"}, flags...)...)
}

// compileBy makes a program of a file of testdata.
func compileBy(t *testing.T, compiler, source string, flags ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	args := append([]string{"-O1", "-Wall", "-o", program, filepath.Join("testdata", source)}, flags...)
	out, err := exec.Command(compiler, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// verbsHeader skips the test where libibverbs has no headers.
func verbsHeader(t *testing.T) {
	t.Helper()
	header(t, "/usr/include/infiniband/verbs.h", "libibverbs-dev")
}

func header(t *testing.T, file, distributed string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip(err, ": apt-get install ", distributed)
	}
}

// inChild is what the child of a fork is told, once, that opens a device and
// has the library.
func inChild() string {
	if supervisor != "" {
		return ""
	}
	return "rdmashim: process \\d+ is the child of a fork: it cannot open RDMA devices unless it executes a program\n"
}

// TestCalls: the calls that the stub answers, one by one, by programs that need
// no rdma-core.
func TestCalls(t *testing.T) {
	needs(t)
	for name, says := range map[string]string{
		"calls": inChild() + "all calls are as they should be\n",
		"exit":  "it ends\n",
		"ways":  "all ways lead there\n",
	} {
		t.Run(name, func(t *testing.T) {
			device, _ := newDevice()
			require.Regexp(t, "^"+says+"$", start(t, device, compile(t, name)).ends(0))
		})
	}
}

// TestSignals: programs of libibverbs with handlers of their own, children,
// threads that come and go, and files that are closed under those who wait.
func TestSignals(t *testing.T) {
	needs(t)
	verbsHeader(t)
	device, _ := newDevice()
	type row struct {
		name, device string
		args         []string
		says         string
	}
	list := []row{
		{"alarms", device, []string{compile(t, "alarms", "-libverbs")}, "no message was lost\n"},
		{"urgent", device, []string{compile(t, "urgent", "-libverbs")}, "no signal came\n"},
		{"threads", device, []string{compile(t, "threads", "-libverbs")}, "the threads have gone\n"},
		{"closing", device, []string{compile(t, "closing", "-libverbs")}, "the program ends\n"},
	}
	if supervisor != "" {
		list = append(list, row{"forks", device, []string{compile(t, "forks", "-libverbs")}, "parent and children went on\n"})
	} else {
		faults := compile(t, "faults", "-libverbs") // of the program and the kernel in it
		list = append(list,
			row{"faults, handlers before the library", device, []string{faults, "before"}, "all faults were the program's\n"},
			row{"faults, handlers after the library", device, []string{faults, "after"}, "all faults were the program's\n"},
			// Programs that it executes have an address of their own.
			row{"children", "soft", []string{compile(t, "children", "-libverbs")}, inChild() + "the parent went on\n"})
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			require.Regexp(t, "^"+c.says+"$", start(t, c.device, c.args...).ends(0))
		})
	}
}

// TestEnds: what a program that polls learns of queue pairs in ERR.
func TestEnds(t *testing.T) {
	needs(t)
	verbsHeader(t)
	device, _ := newDevice()
	require.Equal(t, "receives posted in ERR: flushed\nshared receive queue: the last request is told of\n",
		start(t, device, compile(t, "ends", "-libverbs")).ends(0))
}

// TestWakeups: each event of a file wakes, by each way to wait, as on Linux.
func TestWakeups(t *testing.T) {
	needs(t)
	header(t, "/usr/include/rdma/rdma_cma.h", "librdmacm-dev")
	device, addr := newDevice()
	require.Equal(t, "completion channel: one wake-up an event\n"+
		"asynchronous file: one wake-up an event\n"+
		"connection manager: one wake-up an event\n",
		start(t, device, compile(t, "wakeups", "-lrdmacm", "-libverbs"), addr).ends(0))
}

// TestLooks: a look at a device takes no address. The first open of a device
// file does, says where it is taken, and changes no attribute.
func TestLooks(t *testing.T) {
	needs(t, "ibv_devices", "ibv_rc_pingpong")
	device, addr := newDevice()
	says := start(t, device+"?guid=0200:0000:0000:0077", compile(t, "looks"), addr).ends(0)
	require.Regexp(t, "(?s)^(rdmashim: no RDMA device: .*the address is taken.*\n){2}it was opened\n$", says)
	t.Setenv("RDMASHIM_TRACE", "1")
	says = start(t, device, compile(t, "looks"), addr).ends(0)
	require.Regexp(t, `\[\d+ looks\] open\(`, says, "the name, behind a title")
	require.Contains(t, says, "it was opened\n")
	t.Setenv("RDMASHIM_TRACE", "")

	// A shell that looks beside a program that has the address.
	port := freePort(t)
	held := start(t, device, "ibv_rc_pingpong", "-g", "0", "-p", port)
	held.listens(port)
	says = start(t, device, "sh", "-c", "test -d /sys/class/infiniband/rxe0 && ibv_devices").ends(0)
	require.Contains(t, says, "rxe0")
	require.NotContains(t, says, "rdmashim:")
	require.NoError(t, held.Process.Kill())
	_ = held.Wait()
	start(t, device, "sh", "-c", "test -d /sys/class/infiniband/rxe0 && ibv_devinfo").ends(0)
}

// TestAddressSanitizer: a program that is built with it starts, uses the
// device, and is told of its own faults.
func TestAddressSanitizer(t *testing.T) {
	needs(t)
	verbsHeader(t)
	program := compile(t, "sanitized", "-fsanitize=address", "-libverbs")
	device, _ := newDevice()
	require.Equal(t, "closed\n", start(t, device, program).ends(0))
	t.Setenv("ASAN_OPTIONS", "exitcode=42")
	says := start(t, device, "sh", "-c", program+" overflow; exit $?").ends(42)
	require.Contains(t, says, "heap-buffer-overflow")
}

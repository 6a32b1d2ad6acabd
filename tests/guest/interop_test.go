package guest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

var update = flag.Bool("update", false, "replace the recordings of tests/testdata by new ones")

const testdata = "../testdata"

// onKernel are the tests of uapi/rdmanet that a kernel's device can take. Those
// of HTTP and TLS show more of these than of the device.
const onKernel = "^Test(Conn|HalfClose|CloseRead|Copies|SmallBuffers.*|CloseCarries.*|LingerZero|UnreadData.*|Flush|Rival(08|09|11).*)$"

// together are the tests of tests/interop in which goroutines share a client of
// the kernel: the race detector sees them alone. In the others one goroutine or
// C program takes its turn after the other, and the suites of the emulators
// show it the same code.
const together = "^Test(ManyConnections|Refusals|KilledIdlePeer|SoftCM|SoftCMEnds|SharedLimit|Streams)$"

// onRXE are the tests of uapi/registration that rxe has: what the device moves
// and how it goes. With all of them, how connections end on it, too; how they
// are refused is the connection manager's, which tests/conform compares.
func onRXE() string {
	const moves = "StreamAndDatagram|QueuePairs|RingFull|KernelDevice|PortDown"
	if amount.All() {
		return "^Test(" + moves + "|CloseOpen|NothingLeft|ListenerClose|PeerKilled)$"
	}
	return "^Test(" + moves + ")$"
}

// TestInterop runs the conformance suite on rxe, compares programs on it, has
// streams on it, and runs the soft RNIC against rxe. CONFORM_SEED,
// CONFORM_PROGRAMS and INTEROP_RUN, which chooses tests, count there as well.
func TestInterop(t *testing.T) {
	t.Parallel()
	interop(t, vmtest.Config(t))
}

func interop(t *testing.T, c vm.Config) {
	c.Memory, c.Timeout = 768, 20*time.Minute // of the guest's time; it takes seven
	if amount.Race {
		c.Memory, c.Timeout = 1800, 3*c.Timeout
	}
	c.Out = t.TempDir()
	for _, name := range []string{"CONFORM_SEED", "CONFORM_PROGRAMS"} {
		if v := os.Getenv(name); v != "" {
			c.Env = append(c.Env, name+"="+v)
		}
	}
	others := false
	if adds, err := programs(t.Context()); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "the C programs: %v", err)
		t.Log("without the C programs: ", err)
		c.Env = append(c.Env, "INTEROP_NO_PROGRAMS="+strings.ReplaceAll(err.Error(), "\n", " "))
	} else {
		c.Add = append(c.Add, adds...)
		c.Add, c.Env = addCompiled(t, c.Add, c.Env)
		if others = amount.All() && !amount.Race; others {
			addOthers(&c)
		}
	}
	if curl, err := exec.LookPath("curl"); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "curl: %v", err)
		c.Env = append(c.Env, "INTEROP_NO_CURL="+err.Error())
	} else {
		c.Add = append(c.Add, vm.Add{Host: curl, Guest: "/usr/bin/curl"})
	}
	c.Env = append(c.Env, "RDMANET_TEST_DEVICE=rxe0", "REGISTRATION_TEST_DEVICE=rxe0",
		"MSGRING_TEST_DEVICE=rxe0", "SESSION_TEST_DEVICE=rxe0", "PROGRAMS_RXE=10.77.0.1")
	g := vmtest.Start(t, c)
	suites, closing := "^(TestRXE|TestProgramsOnRXE)$", 2
	if amount.Race { // where the client has goroutines; emulators run it all
		suites, closing = "^TestRXE$/^(cm|event|uapi)$", 1
	}
	sums := sumUp(g.GoTest(t, "-run="+suites, module+"tests/conform"), "conform:")
	require.GreaterOrEqual(t, sums, closing, "closing lines of tests/conform")

	if !amount.Race { // as above
		g.GoTest(t, "-run="+onKernel, module+"uapi/rdmanet")
		g.GoTest(t, "-run="+onRXE(), module+"uapi/registration")
		g.GoTest(t, "-run=^Test(Kits|Reads)OnNetwork$", module+"uapi/msgring")
		g.GoTest(t, "-run=^Test(NothingIsLeft|ResourceShow)$", module+"uapi/rpc/session")
	}
	if others {
		g.GoTest(t, "-run=^Test(Others|DAPL)$", module+"tests/programs")
	}

	run := os.Getenv("INTEROP_RUN")
	if amount.Race && run == "" {
		run = together
	}
	output := g.GoTest(t, "-run="+run, module+"tests/interop")
	sumUp(output, "interop:")
	if testing.Verbose() {
		t.Logf("output in the guest:\n%s", output)
	}
	require.NoError(t, g.PullAll(t.Context()))
	if *update && !t.Failed() && c.Kernel == "" {
		replaceRecordings(t, c.Out)
	}
}

// sumUp prints the closing lines of a suite and counts them.
func sumUp(output, prefix string) (n int) {
	for line := range strings.Lines(output) {
		if at := strings.Index(line, prefix); at >= 0 {
			fmt.Print(line[at:])
			n++
		}
	}
	return n
}

// replaceRecordings copies the guest's recordings over those of the tree.
func replaceRecordings(t *testing.T, out string) {
	files := must.Get(filepath.Glob(filepath.Join(out, "soft-rxe-*")))(t)
	require.NotEmpty(t, files, "the guest left no recordings")
	for _, f := range files {
		data := must.Get(os.ReadFile(f))(t)
		require.NoError(t, os.WriteFile(filepath.Join(testdata, filepath.Base(f)), data, 0o644))
	}
}

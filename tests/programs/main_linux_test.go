//go:build amd64 || arm64

package programs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/run"
)

// envStart makes the test binary what rdmashim run is: its value is the folder
// of the two libraries, and the arguments are the devices, joined by commas,
// and the program with its own.
const envStart = "RDMASHIM_PROGRAMS_START"

// envBuilt is that folder in a second process of the tests.
const envBuilt = "RDMASHIM_PROGRAMS_BUILT"

// cache is where the libraries are built, once, if the run has not.
var cache string

func TestMain(m *testing.M) {
	args := os.Args
	if len(args) == 3 && args[1] == "run" && args[2] == "--"+preload.Sweep {
		exitWith(run.Sweep())
	}
	if len(args) == 4 && args[1] == "run" && args[2] == "--"+preload.Build {
		exitWith(preload.BuildLibraries(args[3]))
	}
	if len(args) > 3 && args[1] == "run" { // as the pages have it
		os.Setenv(envStart, os.Getenv(envBuilt))
		device, program := "soft", args[3:]
		if args[2] == "-d" {
			device, program = args[3], args[5:]
		}
		args = append([]string{"rdmashim", device}, program...)
	}
	if dir := os.Getenv(envStart); dir != "" {
		os.Unsetenv(envStart)
		p, err := preload.Look(args[2])
		if err == nil {
			err = preload.Start(p, preload.LibrariesIn(dir), strings.Split(args[1], ","), args[2:])
		}
		exitWith(err)
	}
	code := m.Run()
	if cache != "" {
		os.RemoveAll(cache)
	}
	os.Exit(code)
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// libraries is where the two libraries are, built if need be.
var libraries = sync.OnceValues(func() (dir string, err error) {
	if dir := os.Getenv(envBuilt); dir != "" {
		return dir, nil
	}
	if dir, ok := built.Path(built.Libraries); ok {
		return dir, nil
	}
	if cache, err = os.MkdirTemp("", "programs"); err != nil {
		return "", err
	}
	dir = filepath.Join(cache, built.Libraries)
	build := exec.Command("/proc/self/exe", "run", "--"+preload.Build, dir)
	build.Stderr = os.Stderr
	return dir, build.Run()
})

// supervisor is the tool, while programs run by its second way, and else empty:
// then they run with the libraries. TestSupervisor sets it.
var supervisor string

// onRXE is the address of rxe0 in a guest, where programs run on it as they
// are, and else empty. Faults of a device's name are left out there.
var onRXE = os.Getenv("PROGRAMS_RXE")

// command returns what runs a program on soft devices.
func command(t *testing.T, devices string, args ...string) *exec.Cmd {
	t.Helper()
	if onRXE != "" {
		return exec.CommandContext(t.Context(), args[0], args[1:]...)
	}
	if supervisor != "" {
		line := []string{"run", "--way", "supervisor"}
		for _, d := range strings.Split(devices, ",") {
			line = append(line, "-d", d)
		}
		return supervised(t, append(append(line, "--"), args...)...)
	}
	dir := must.Get(libraries())(t)
	self := must.Get(os.Executable())(t)
	cmd := exec.CommandContext(t.Context(), self, append([]string{devices}, args...)...)
	cmd.Env = append(cmd.Environ(), envStart+"="+dir)
	return cmd
}

// needs says which programs a test runs, beside those that it compiles.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a shared library")
	}
	missing := func(why error) {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", why)
		t.Skip(why)
	}
	if _, err := cbuild.Compiler(); err != nil && onRXE == "" {
		missing(err)
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing(fmt.Errorf("%w: apt-get install ibverbs-utils rdmacm-utils perftest ucx-utils libfabric-bin openmpi-bin libopenmpi-dev iproute2 fio qperf iperf tgt libiscsi-bin infiniband-diags dapl2-utils mpich libmpich-dev qemu-system-x86 ceph-mon ceph-osd ceph-common", err))
		}
	}
}

// patience bounds a hang.
const patience = 2 * time.Minute

// process is a program that runs on the mini kernel.
type process struct {
	t *testing.T
	*exec.Cmd
	out bytes.Buffer
}

// start starts a program with a soft device.
func start(t *testing.T, device string, args ...string) *process {
	t.Helper()
	return begin(t, command(t, device, args...))
}

// begin starts a program as it is.
func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, Cmd: cmd}
	p.Stdout, p.Stderr = &p.out, &p.out
	p.WaitDelay = patience
	require.NoError(t, p.Start())
	kill := time.AfterFunc(patience, func() { _ = p.Process.Signal(syscall.SIGKILL) })
	t.Cleanup(func() { kill.Stop() })
	return p
}

// ends waits for the program and returns what it printed.
func (p *process) ends(status int) string {
	p.t.Helper()
	err := p.Wait()
	require.Equal(p.t, status, p.ProcessState.ExitCode(), "%v: %v\n%s", p.Args, err, p.out.String())
	return p.out.String()
}

// newDevice names a soft device at an address of 127.0.0.0/8 that no other test
// takes. On rxe there is one device for all.
func newDevice() (device, addr string) {
	if onRXE != "" {
		return "rxe0", onRXE
	}
	addr = fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
	return "soft:" + addr, addr
}

// ports counts the ports that freePort has tried.
var ports = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32())
	return n
}()

// freePort is a TCP port for a server to listen on. It lies beneath those that
// the system gives away by itself: between here and the server it would give
// one of them to another program's connection.
func freePort(t *testing.T) string {
	const least, count = 10_000, 22_000
	for range count {
		port := strconv.Itoa(least + int(ports.Add(1)%count))
		if l, err := net.Listen("tcp", ":"+port); err == nil {
			l.Close()
			return port
		}
	}
	require.FailNow(t, "no port is free")
	return ""
}

// listens waits until a program listens on a TCP port, without connecting to
// it.
func (p *process) listens(port string) {
	p.t.Helper()
	n := must.Get(strconv.Atoi(port))(p.t)
	want := fmt.Sprintf(":%04X ", n)
	require.Eventually(p.t, func() bool {
		for _, file := range []string{"tcp", "tcp6"} {
			text, _ := os.ReadFile(filepath.Join("/proc/self/net", file))
			for line := range strings.Lines(string(text)) {
				if fields := strings.Fields(line); len(fields) > 3 && strings.HasSuffix(fields[1]+" ", want) && fields[3] == "0A" {
					return true
				}
			}
		}
		return false
	}, patience, 10*time.Millisecond, "%v does not listen: %s", p.Args, &p.out)
}

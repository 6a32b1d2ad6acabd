package preload

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
	"github.com/rdmashim/rdmashim/tests/built"
)

// envStart makes the test binary what rdmashim run is: its value names the two
// libraries, and the arguments are the devices, joined by commas, and the
// program with its own.
const envStart = "RDMASHIM_PRELOAD_TEST"

// envBuilt names the libraries in a second process of the tests.
const envBuilt = "RDMASHIM_PRELOAD_BUILT"

// cache is where the libraries are built, once, if the run has not.
var cache string

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "run" && os.Args[2] == "--"+Sweep {
		exitWith(SweepWhenEnded())
	}
	if len(os.Args) == 4 && os.Args[1] == "run" && os.Args[2] == "--"+Build {
		exitWith(BuildLibraries(os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == "find" {
		_, err := findIn(os.Args[2], os.Stderr)
		exitWith(err)
	}
	if len(os.Args) > 3 && os.Args[1] == "run" && os.Args[2] == "--" { // as the page has it
		os.Setenv(envStart, os.Getenv(envBuilt))
		os.Args = append([]string{"rdmashim", "soft"}, os.Args[3:]...)
	}
	if found := os.Getenv(envStart); found != "" {
		os.Unsetenv(envStart)
		stub, kernel, _ := strings.Cut(found, ":")
		p, err := Look(os.Args[2])
		if err == nil {
			err = Start(p, Libraries{stub, kernel}, strings.Split(os.Args[1], ","), os.Args[2:])
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

var found = sync.OnceValues(func() (l Libraries, err error) {
	if stub, kernel, ok := strings.Cut(os.Getenv(envBuilt), ":"); ok {
		return Libraries{stub, kernel}, nil
	}
	if dir, ok := built.Path(built.Libraries); ok {
		return LibrariesIn(dir), nil
	}
	if cache, err = os.MkdirTemp("", "preload"); err != nil {
		return l, err
	}
	return findIn(filepath.Join(cache, "preload"), io.Discard)
})

// libraries builds the two libraries. The test needs the programs, too.
func libraries(t *testing.T, programs ...string) Libraries {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a shared library")
	}
	missing := func(why error) {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", why)
		t.Skip(why)
	}
	if _, err := cbuild.Compiler(); err != nil {
		missing(err)
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing(fmt.Errorf("%w: apt-get install ibverbs-utils rdmacm-utils perftest ucx-utils libfabric-bin openmpi-bin libopenmpi-dev iproute2", err))
		}
	}
	l, err := found()
	require.NoError(t, err)
	return l
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
func start(t *testing.T, l Libraries, device string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{device}, args...)...)
	cmd.Env = append(os.Environ(), envStart+"="+l.Stub+":"+l.Kernel)
	return begin(t, cmd)
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
// takes.
func newDevice() (device, addr string) {
	addr = fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
	return "soft:" + addr, addr
}

// freePort is a TCP port for a server to listen on.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// listens waits until a program listens on a TCP port, without connecting to
// it.
func (p *process) listens(port string) {
	p.t.Helper()
	n, err := strconv.Atoi(port)
	require.NoError(p.t, err)
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

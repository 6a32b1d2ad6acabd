package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestDemoWithoutRoot runs the demo as an ordinary user; where the tests run as
// one already, they all show it.
func TestDemoWithoutRoot(t *testing.T) {
	if os.Getuid() != 0 {
		requireProof(t, runDemo(t), mustExecutable(t))
		return
	}
	dir, err := os.MkdirTemp("", "rdmashim-user-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "rdmashim")
	copyFile(t, mustExecutable(t), program)
	cmd := exec.CommandContext(t.Context(), program, "demo", "--json")
	cmd.Dir = "/"
	cmd.Env = []string{asTool + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	requireProof(t, decodeReport(t, finish(t, cmd)), program)
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return self
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// inNamespace marks the run of this test binary inside a network namespace of
// its own, where holding ports disturbs nobody.
const inNamespace = "RDMASHIM_TEST_IN_NAMESPACE"

// TestDemoWhilePortIsHeld: something else holds UDP 4791 on every address, as a
// loaded rdma_rxe does.
func TestDemoWhilePortIsHeld(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		loopbackUp(t)
		holder, err := net.ListenPacket("udp", ":4791")
		require.NoError(t, err)
		defer holder.Close()
		path := writeFile(t, 100_000)
		o := runTool(t, "demo", "--json", path)
		r := decodeReport(t, o)
		requireProof(t, r, path)
		require.False(t, strings.HasSuffix(r.ServerDevice.Address, ":4791"), r.ServerDevice.Address)
		require.Contains(t, o.stderr, "4791", "the choice of another port is said")
		// A named address gets no other port behind the user's back.
		o = runTool(t, "devices", "--device", "soft:127.0.0.1")
		require.Equal(t, 1, o.code)
		require.Contains(t, o.stderr, "4791")
		// Between two shells, too.
		addr, _, _ := startTestServer(t)
		requireProof(t, decodeReport(t, runTool(t, "client", "--json", addr, path)), path)
		return
	}
	inOwnNamespace(t, t.Name())
}

// inOwnNamespace runs a test of this binary in a network namespace of its own.
func inOwnNamespace(t *testing.T, name string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), mustExecutable(t), "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	text, err := cmd.CombinedOutput()
	if len(text) == 0 && err != nil {
		t.Skipf("no network namespace to be had (%v); run as root or allow user namespaces", err)
	}
	require.NoError(t, err, "%s", text)
	if strings.Contains(string(text), "--- SKIP: "+name) {
		t.Skip(reason(text))
	}
	require.Contains(t, string(text), "--- PASS: "+name)
}

// said is a line of a test's own in what go test prints.
var said = regexp.MustCompile(`(?m)^\s+\S+_test\.go:\d+: (.*)$`)

// reason is why a test was skipped, out of what go test printed of it.
func reason(text []byte) string {
	if m := said.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return string(text)
}

// TestReason: a test that a child skipped is skipped with the child's words, on one line.
func TestReason(t *testing.T) {
	require.Equal(t, "no tshark here; install it", reason([]byte("=== RUN   TestX\n    x_test.go:7: no tshark here; install it\n--- SKIP: TestX (0.00s)\nPASS\n")))
	require.Equal(t, "nothing was said", reason([]byte("nothing was said")))
}

// loopbackUp brings lo up, which a new namespace has down.
func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr))
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr))
}

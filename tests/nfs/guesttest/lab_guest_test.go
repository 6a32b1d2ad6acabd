//go:build guest && linux

package guesttest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/lab/netpath"
)

// softAddr is the soft RNIC's address.
const softAddr = "10.77.0.2"

// patience bounds every wait: an emulated processor on a busy machine is slow.
const patience = 2 * time.Minute

// space is the network namespace of the soft RNIC.
var space *netpath.Namespace

func TestMain(m *testing.M) {
	var err error
	if space, err = setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: set up the network:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// setUp makes the namespace of the soft RNIC and moves eth1 there.
func setUp() (*netpath.Namespace, error) {
	if err := os.Chmod(os.TempDir(), 0o1777); err != nil { // the server is nobody
		return nil, err
	}
	s, err := netpath.NewNamespace()
	if err != nil {
		return nil, err
	}
	return s, s.Take("eth1", softAddr+"/24")
}

// newExport makes a directory that nobody may write.
func newExport(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "export"))(t)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chown(dir, 65534, 65534))
	return dir
}

// export serves a directory on the soft device, as nobody, until the test ends
// or the process is killed.
func export(t *testing.T, dir, options string) *server {
	t.Helper()
	cmd := exec.Command("nfs", "--device", "soft:"+softAddr+options, dir)
	cmd.Env = append(os.Environ(), "HOME=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, space.Do(cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	said := mountLine.FindStringSubmatch(line)
	require.NotNil(t, said, line)
	return &server{cmd, said[1], said[2]}
}

// server is a process that exports a directory, and how that is mounted.
type server struct {
	*exec.Cmd
	options, source string
}

var mountLine = regexp.MustCompile(`^listening: mount -t nfs -o (\S+) (\S+) /mnt\n$`)

// mount mounts what a server exports, and returns where.
func (s *server) mount(t *testing.T) string {
	t.Helper()
	at := must.Get(os.MkdirTemp("", "mount"))(t)
	require.NoError(t, unix.Mount(s.source, at, "nfs", 0, s.options))
	t.Cleanup(func() {
		require.NoError(t, unix.Unmount(at, 0))
		require.NoError(t, os.Remove(at))
	})
	return at
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

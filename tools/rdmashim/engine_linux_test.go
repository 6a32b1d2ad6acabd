//go:build engine

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/lab/netpath"
)

// TestContainerEngine: two containers of podman, with network, mount and PID
// namespaces of their own and a directory of both, WRITE through shared memory.
// CI has no podman, so the file has a build tag, which tools/test --all gives.
func TestContainerEngine(t *testing.T) {
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("this machine has no podman")
	}
	if !netns.Own(t) {
		return
	}
	top, shared := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(shared, 0o700))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(top, "rdmashim"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	n, err := netpath.New(netpath.Options{Straight: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	start := func(end *netpath.End, args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
		var space string
		require.NoError(t, end.Do(func() (err error) {
			space, err = os.Readlink("/proc/thread-self")
			return err
		}))
		root, err := os.MkdirTemp(top, "root")
		require.NoError(t, err)
		for _, dir := range []string{"proc", "sys", "dev", "etc", "run", "tmp"} {
			require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o755))
		}
		require.NoError(t, os.Link(filepath.Join(top, "rdmashim"), filepath.Join(root, "rdmashim")))
		cmd = exec.CommandContext(t.Context(), podman, append([]string{
			"--root", top + "/store", "--runroot", top + "/run", "--storage-driver", "vfs",
			"run", "--rm", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "ns:/proc/" + space + "/ns/net",
			"-v", shared + ":/run/shm", "-e", "RDMASHIM_SHM_DIR=/run/shm", "--rootfs", root, "/rdmashim", "perf"}, args...)...)
		out = new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		require.NoError(t, cmd.Start())
		return cmd, out
	}
	server, said := start(n.A, "server", "--once")
	for try := 0; ; try++ {
		client, out := start(n.B, "write", "bw", n.A.Addr4.String())
		if client.Wait() == nil {
			require.Contains(t, out.String(), "way shm")
			break
		}
		if !strings.Contains(out.String(), "rdmashim: ") && try == 0 {
			_ = server.Process.Kill()
			_ = server.Wait()
			t.Skipf("this machine's podman runs no containers: %s%s", said, out)
		}
		require.Less(t, try, 100, "%s%s", said, out)
	}
	require.NoError(t, server.Wait(), "%s", said)
}

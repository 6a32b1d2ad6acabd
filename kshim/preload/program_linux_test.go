package preload

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/uapi"
)

// copyOf copies a program's file, with other permissions.
func copyOf(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.WriteFile(to, b, 0o700))
	require.NoError(t, os.Chmod(to, mode))
	return to
}

// TestLook: a program that the stub does not reach is told why.
func TestLook(t *testing.T) {
	_, err := Look("true")
	require.NoError(t, err)
	_, err = Look("no such program")
	require.ErrorIs(t, err, exec.ErrNotFound)
	true_, err := exec.LookPath("true")
	require.NoError(t, err)
	_, err = Look(copyOf(t, true_, 0o700|fs.ModeSetuid))
	require.ErrorContains(t, err, "set-user-ID")
	self, err := os.Executable()
	require.NoError(t, err)
	_, err = Look(self)
	require.ErrorContains(t, err, "is a Go program")

	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!"+self+" -x\n"), 0o700))
	_, err = Look(script)
	require.ErrorContains(t, err, "is a Go program", "of the script's interpreter")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	_, err = Look(script)
	require.NoError(t, err)
}

// TestNoCompiler: without a C compiler the message names the packages to
// install.
func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	_, err := FindIn(t.TempDir(), io.Discard)
	require.ErrorContains(t, err, "apt-get install gcc libc6-dev")
}

func TestCheckDevice(t *testing.T) {
	for _, good := range []string{"soft", "soft:127.0.0.5", "soft?loss=1%", "soft:[::1]?mtu=1024"} {
		require.NoError(t, CheckDevice(good))
	}
	for _, bad := range []string{"", "sim", "rxe0", "softly", "soft\nsoft"} {
		require.Error(t, CheckDevice(bad), "%q", bad)
	}
}

// TestEnvironment: the variables come back as they went, and what else was to
// be preloaded still is, behind the stub, which is there once.
func TestEnvironment(t *testing.T) {
	e := Environment{"/run/tree", []string{"soft:127.0.0.5", "soft?pcap=a b"}}
	first := e.over([]string{"HOME=/", "LD_PRELOAD=/a.so /b.so"}, Libraries{"/l/" + stubFile, "/l/k.so"})
	require.Contains(t, first, "LD_PRELOAD=/l/"+stubFile+":/a.so:/b.so")
	again := e.over(first, Libraries{"/m/" + stubFile, "/m/k.so"})
	require.Contains(t, again, "LD_PRELOAD=/m/"+stubFile+":/a.so:/b.so")
	require.Len(t, again, len(first))
	for _, v := range again {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, map[bool]string{true: "", false: value}[name == "LD_PRELOAD"])
	}
	require.Equal(t, e, FromEnvironment())
}

// TestTree: files and directories are planted when they are asked for, and go
// with what they show.
func TestTree(t *testing.T) {
	m := uapi.MiniKernel()
	require.NoError(t, m.Insmod("sim", "?name=rxe7"))
	p := m.Process("test")
	defer p.Exit()
	tree := Tree{t.TempDir(), kshim.Kernel(p)}
	at, err := tree.Plant("/sys/class/infiniband")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(at, "rxe7/ports/1/state"))
	require.NoError(t, err)
	require.Equal(t, "4: ACTIVE\n", string(text))
	require.FileExists(t, filepath.Join(at, "rxe7/ports/1/gids/0"))
	gid, err := tree.Plant("/sys/class/infiniband/rxe7/ports/1/gids/1023")
	require.NoError(t, err)
	require.FileExists(t, gid)
	none, err := tree.Plant("/sys/class/infiniband/rxe8")
	require.NoError(t, err)
	require.NoFileExists(t, none)
	node, err := tree.Plant("/dev/infiniband/uverbs0")
	require.NoError(t, err)
	require.FileExists(t, node)
	require.NoError(t, m.Rmmod("sim"))
	_, err = tree.Plant("/sys/class/infiniband/rxe7")
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(at, "rxe7"))
	require.ErrorIs(t, err, syscall.ENOENT)
}

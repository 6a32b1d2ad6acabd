package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// WithoutRoot is the tool as an ordinary user runs it. Where root runs tests
// that is nobody, with a copy of the tool that all may read.
func WithoutRoot(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := Tool(t, args...)
	if os.Getuid() != 0 {
		return cmd
	}
	dir, err := os.MkdirTemp("", "rdmashim-user-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.ReadFile(cmd.Path)
	require.NoError(t, err)
	cmd.Path = filepath.Join(dir, "rdmashim")
	require.NoError(t, os.WriteFile(cmd.Path, self, 0o755))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	return cmd
}

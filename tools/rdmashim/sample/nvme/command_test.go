package nvme

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/diskload"
)

// TestCommands: a host verifies a file that a target serves, and reads and
// writes it for a while; the file has the bytes and its size.
func TestCommands(t *testing.T) {
	t.Parallel()
	const size = 1<<20 + 512
	file := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(file, make([]byte, size), 0o600))
	s := clitest.Serve(t, "sample", "nvme", "serve", file, "64K", "--listen", clitest.Host(), "--port", "0")
	host := func(args ...string) clitest.Outcome {
		return clitest.RunTool(t, append([]string{"sample", "nvme", "host", s.Addr}, args...)...)
	}
	o := host("--queues", "2", "--verify", "--seed", "7", "--bytes", "1M")
	require.Zero(t, o.Code, o.Stderr)
	require.Regexp(t, `(?m)\Acontroller 1, rdmashim sample nvme: namespace 1 has 1\.0 MiB in blocks of 512\nwrite +\d.* 0 errors\nread +\d.* 0 errors\n\z`, o.Stdout)
	want := make([]byte, size)
	(&diskload.Load{Seed: 7}).Fill(want[:1<<20], 0)
	require.Equal(t, want, must.Get(os.ReadFile(file))(t))

	for _, args := range [][]string{{}, {"--write", "--size", "64K"}} {
		o = host(append(args, "--time", "20ms", "--namespace", "2")...)
		require.Zero(t, o.Code, o.Stderr)
		require.Contains(t, o.Stdout, " 0 errors\n")
	}
	o = host("--namespace", "3")
	require.Equal(t, 2, o.Code)
	require.Contains(t, o.Stderr, "the target has 2")
	for _, bytes := range []string{"100", "-512"} {
		o = host("--verify", "--bytes", bytes)
		require.Equal(t, 2, o.Code)
		require.Contains(t, o.Stderr, "whole blocks of 512")
	}
}

func TestCommandErrors(t *testing.T) {
	t.Parallel()
	clitest.Refused(t, 2, "", map[string]string{
		"sample nvme serve":                      "SIZE",
		"sample nvme host":                       "HOST",
		"sample nvme host 127.0.0.1 -S 100":      "blocks",
		"sample nvme host 127.0.0.1 --queues 0":  "1 … 64",
		"sample nvme host 127.0.0.1 --depth 1":   "2 … 1024",
		"sample nvme host a --write --verify":    "write",
		"sample nvme serve 4096 --max-clients 0": "at least one",
	})
	clitest.Refused(t, 1, "", map[string]string{
		"sample nvme serve /nonexistent/disk": "no such file",
		"sample nvme serve 100":               "multiple of 512",
		"sample nvme serve 0":                 "multiple of 512",
	})
}

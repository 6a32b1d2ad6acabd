//go:build amd64 || arm64

package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/trace"
)

// TestTrace: the calls of a C program are printed by the kernel's names, with
// what its own memory has; several programs share a file, line by line.
func TestTrace(t *testing.T) {
	needs(t, "ibv_devinfo", "rping")
	t.Setenv(trace.EnvTrace, "1")
	device, _ := newDevice()
	said := start(t, device, "ibv_devinfo").ends(0)
	lines := []string{
		`\[\d+ ibv_devinfo\] open\("/dev/infiniband/uverbs0"\) = \d+`,
		`ioctl\(\d+, QUERY_PORT \{port_num=1\}\) = 0 \{.*state=ACTIVE`,
		`transport:\s+InfiniBand`, // its own output
	}
	if supervisor == "" { // whose kernel sees no close
		lines = append(lines, `close\(\d+\) = 0`)
	}
	for _, line := range lines {
		require.Regexp(t, line, said)
	}

	file := filepath.Join(t.TempDir(), "trace")
	t.Setenv(trace.EnvTrace, file)
	port := freePort(t)
	rping := func(side string) []string { return []string{"rping", side, "-a", "ADDR", "-p", port, "-C", "3"} }
	pair(t, "", nil, rping("-s"), rping("-c"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		require.Regexp(t, `^\[\d+ rping\] [a-z]+\(.*\) = .*\n$`, line)
	}
	for _, call := range []string{`"/dev/infiniband/rdma_cm"`, "RESOLVE_ADDR {", "CONNECT {", "ACCEPT {", "REG_MR {", "POST_SEND {", "ESTABLISHED"} {
		require.Contains(t, string(text), call)
	}
}

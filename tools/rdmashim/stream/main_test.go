package stream

import (
	"fmt"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{ProxyCommand()} })
}

// start starts a proxy, with --json.
func start(t *testing.T, args ...string) *clitest.Server {
	t.Helper()
	return clitest.Serve(t, append(args, "--json")...)
}

// descriptors is how many files the process has open.
func descriptors(t *testing.T, p *clitest.Server) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Cmd.Process.Pid))
	require.NoError(t, err)
	return len(list)
}

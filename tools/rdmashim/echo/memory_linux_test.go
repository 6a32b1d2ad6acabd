//go:build !race

package echo

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestStrangersMemory: a silent connection makes no more of the server resident
// than docs/limits.md says, and a margin for a busy machine, its rings,
// goroutines and handshake included.
func TestStrangersMemory(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1MiB")     // garbage is no connection's
	const few, many, kib = 32, 448, 80 // 60 alone, 68 beside three others
	s := start(t, overRDMA, "--silence", "0", "--max-clients", "1024")
	device := must.Get(uapi.Open("soft:"+clitest.Host(), uapi.OpenConfig{}))(t)
	t.Cleanup(func() { _ = device.Close() })
	dial := func(n int) (resident int) {
		for range n {
			c, err := (&rdmanet.Dialer{Device: device}).DialContext(t.Context(), "rdma", s.Addr)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
		}
		text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.Cmd.Process.Pid)))(t)
		pages := must.Get(strconv.Atoi(strings.Fields(string(text))[1]))(t)
		return pages * os.Getpagesize()
	}
	before := dial(few) // what the first ones bring is the server's
	each := (dial(many) - before) / many
	t.Logf("%d bytes each", each)
	require.Less(t, each, kib<<10)
}

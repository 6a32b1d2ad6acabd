package preload

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
)

// TestCalls: the calls that the stub answers, one by one, by programs that need
// no rdma-core.
func TestCalls(t *testing.T) {
	l := libraries(t)
	cc, err := cbuild.Compiler()
	require.NoError(t, err)
	for name, says := range map[string]string{
		"calls": "all calls are as they should be\n",
		"exit":  "it ends\n",
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), name)
			source := filepath.Join("testdata", name+".c")
			out, err := exec.Command(cc, "-O1", "-Wall", "-pthread", "-o", program, source).CombinedOutput()
			require.NoError(t, err, "%s", out)
			device, _ := newDevice()
			require.Equal(t, says, start(t, l, device, program).ends(0))
		})
	}
}

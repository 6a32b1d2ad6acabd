package preload

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
)

// TestCalls: the calls that the stub answers, one by one, by a program that
// needs no rdma-core.
func TestCalls(t *testing.T) {
	l := libraries(t)
	cc, err := cbuild.Compiler()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "calls")
	out, err := exec.Command(cc, "-O1", "-Wall", "-pthread", "-o", program, "testdata/calls.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	device, _ := newDevice()
	require.Equal(t, "all calls are as they should be\n", start(t, l, device, program).ends(0))
}

//go:build amd64 || arm64

package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/supervise"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestDoctorRun: the command's checks are the table's, and say whether the
// machine that runs the tests has a way.
func TestDoctorRun(t *testing.T) {
	require.Equal(t, [...]int{low, high}, [...]int{supervise.Window.Low, supervise.Window.High})
	r := decodeDoctor(t, clitest.RunTool(t, "doctor", "run", "-j"))
	system, err := Running()
	require.NoError(t, err)
	_, err = system.Supervisor()
	require.Equal(t, err == nil, way(&r, "supervisor").Status == Pass, "%+v", r)
	require.Contains(t, clitest.RunTool(t, "doctor", "run").Stdout, "supervisor")
}

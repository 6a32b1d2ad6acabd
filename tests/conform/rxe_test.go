//go:build linux && guest

package conform

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRXE(t *testing.T) {
	if !haveRXE() {
		t.Skip("no rxe0 here: tests/guest runs this in a guest, and rdmashim link up makes one")
	}
	sys, err := kernelRXE()
	require.NoError(t, err)
	runSuite(t, sys, suite())
}

func TestProgramsOnRXE(t *testing.T) {
	if !haveRXE() {
		t.Skip("no rxe0 here: tests/guest runs this in a guest, and rdmashim link up makes one")
	}
	sys, err := kernelRXE()
	require.NoError(t, err)
	comparePrograms(t, emulatorSim(t), sys)
}

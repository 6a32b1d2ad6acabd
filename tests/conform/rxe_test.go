//go:build linux && guest

package conform

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRXE(t *testing.T) { runSuite(t, rxe(t), suite()) }

func TestProgramsOnRXE(t *testing.T) { comparePrograms(t, emulatorSim(t), rxe(t)) }

// rxe is this machine's kernel's device; a test without one is skipped.
func rxe(t *testing.T) *system {
	if !haveRXE() {
		t.Skip("no rxe0 here: tests/guest runs this in a guest, and rdmashim link up makes one")
	}
	sys, err := kernelRXE()
	require.NoError(t, err)
	return sys
}

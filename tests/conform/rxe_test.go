//go:build linux && guest

package conform

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRXE(t *testing.T) {
	if !haveRXE() {
		t.Fatal("no rxe0 here: these tests run in a guest, see guest_test.go")
	}
	sys, err := kernelRXE()
	require.NoError(t, err)
	runSuite(t, sys)
}

// TestProgramsOnRXE is not among what guest_test.go runs yet: a few programs in a
// hundred still differ, because rxe does not always hear the bell in ERR.
func TestProgramsOnRXE(t *testing.T) {
	if !haveRXE() {
		t.Fatal("no rxe0 here: these tests run in a guest, see guest_test.go")
	}
	sys, err := kernelRXE()
	require.NoError(t, err)
	comparePrograms(t, emulatorSim(t), sys)
}
